//! Bounds of the detector's constants.

use super::*;

/// Which field is complained about.
fn refused(change: impl FnOnce(&mut TrainProbeConfig)) -> Option<&'static str> {
    let mut config = TrainProbeConfig::default();
    change(&mut config);
    config.validate().err().map(|error| error.field)
}

/// Checks a field: its bounds are allowed, what is just outside of them is not.
macro_rules! bounds {
    ($($field:ident).+, $inside:expr, $outside:expr) => {
        let name = stringify!($($field).+).rsplit(['.', ' ']).next().unwrap();
        for value in $inside {
            assert_eq!(refused(|config| config.$($field).+ = value), None, "{name} {value:?}");
        }
        for value in $outside {
            assert_eq!(refused(|config| config.$($field).+ = value), Some(name), "{value:?}");
        }
    };
}

#[test]
fn the_bounds_of_whole_numbers_are_as_documented() {
    bounds!(train, [4, 64], [3, 65]);
    bounds!(shortest_train, [4, 96], [3]);
    bounds!(train_at_once, [4, 1000], [3, 1001]);
    bounds!(longest_train, [8, 1000], [7, 1001]);
    bounds!(spread, [1, 1000], [0, 1001]);
    bounds!(enough_gaps, [2, 63], [1, 64]);
    bounds!(lone_apart, [1, 1000], [0, 1001]);
    bounds!(batch, [1, 100], [0, 101]);
    bounds!(most_batches, [1, 1000], [0, 1001]);
    bounds!(spread_apart, [1, 100], [0, 101]);
    bounds!(lone, [1, 2], [0, 3]);
    bounds!(followers, [1, 100], [0, 101]);
    bounds!(fall_packets, [2, 32], [1, 1001]);
    bounds!(fall_packets_behind_loss, [8, 1000], [7, 1001]);
    bounds!(least_gaps, [1, u32::MAX], [0]);
    bounds!(most_in_an_ack, [1, 1000], [0, 1001]);
    bounds!(policing.pace, [1, 1000], [0, 1001]);
    bounds!(most_space, [1, 1000], [0, 1001]);
    bounds!(watch.service_packets, [2, 100_000], [1, 100_001]);
    bounds!(watch.min_rtt_window, [Span::from_millis(1)], [Span::from_micros(999)]);
}

#[test]
fn the_bounds_of_shares_and_factors_are_as_documented() {
    let (nan, infinite) = (f64::NAN, f64::INFINITY);
    bounds!(chirp_shrink, [0.01, 0.99], [0.0, 1.0, nan]);
    bounds!(train_load, [1.01, 100.0], [1.0, 100.1, nan]);
    bounds!(even_gaps, [0.0, 1.0], [-0.1, 1.1, nan]);
    bounds!(apart, [1.0, 100.0], [0.9, 100.1, nan]);
    bounds!(crowd, [1.0, 1e9], [0.9, infinite, nan]);
    bounds!(crowd_share, [0.0, 1.0], [-0.1, 1.1, nan]);
    bounds!(crowd_unhurried, [0.0, 1.0], [-0.1, 1.1, nan]);
    bounds!(crowd_growth, [0.0, 1.0], [-0.1, 1.1, nan]);
    bounds!(least_queue, [1.0, 1e9], [0.9, infinite, nan]);
    bounds!(least_jitters, [0.0, 1e9], [-0.1, infinite, nan]);
    bounds!(isolated_error, [1e-9, 0.49], [0.0, 0.5, nan]);
    bounds!(shared_error, [1e-9, 0.49], [0.0, 0.5, nan]);
    bounds!(quickest_share, [0.0, 1.0], [-0.1, 1.1, nan]);
    bounds!(burst_jitter, [0.0, 1.0], [-0.1, 1.1, nan]);
    bounds!(at_once, [0.0, 1.0], [-0.1, 1.1, nan]);
    bounds!(policed, [0.0, 1.0], [-0.1, 1.1, nan]);
    bounds!(full_loss, [0.0, 1.0], [-0.1, 1.1, nan]);
    bounds!(starved_rtts, [0.0, 1000.0], [-0.1, 1000.1, nan]);
    bounds!(slowed, [1.0, 1000.0], [0.9, 1000.1, nan]);
    bounds!(together_apart, [0.01, 10.0], [0.0, 10.1, nan]);
    bounds!(released_rtts, [0.0, 100.0], [-0.1, 100.1, nan]);
    bounds!(late_loss_factor, [0.01, 1.0], [0.0, 1.1, nan]);
    bounds!(follow_rtts, [0.01, 10.0], [0.0, 10.1, nan]);
    bounds!(patience_jitters, [0.0, 1000.0], [-0.1, 1000.1, nan]);
    bounds!(delayed_ack_packets, [0.0, 1000.0], [-0.1, 1000.1, nan]);
    bounds!(delayed_ack_growth, [1.0, 1000.0], [0.9, 1000.1, nan]);
    bounds!(alone_gaps, [1.0, 1000.0], [0.9, 1000.1, nan]);
    bounds!(watch.memory, [1.0, 1e9], [0.9, infinite, nan]);
    bounds!(watch.patience_rtts, [1.0, 1000.0], [0.9, 1000.1, nan]);
}

#[test]
fn the_bounds_of_what_delays_mean_are_as_documented() {
    let (nan, infinite) = (f64::NAN, f64::INFINITY);
    bounds!(evidence.shared_ratio, [0.36, 1e9], [0.0, -1.0, infinite, nan]);
    bounds!(evidence.isolated_ratio, [0.0, 1.11], [-0.1, 1.12, nan]);
    bounds!(evidence.shared_width, [0.01, 1e9], [0.0, infinite, nan]);
    bounds!(evidence.isolated_width, [0.01, 1e9], [0.0, infinite, nan]);
    bounds!(evidence.outlier, [0.01, 0.99], [0.0, 1.0, nan]);
    bounds!(evidence.lone_lost_shared, [0.01, 0.99], [0.0, 1.0, nan]);
    bounds!(evidence.lone_lost_isolated, [0.01, 0.99], [0.0, 1.0, nan]);
    bounds!(
        meeting.bulk_others,
        [[1.0, 0.0, 0.0, 0.0], [0.25; 4]],
        [[0.25, 0.25, 0.25, 0.24], [-0.5, 0.5, 0.5, 0.5], [0.5, 0.5, 0.5, 0.5], [nan, 0.4, 0.3, 0.3]]
    );
    bounds!(meeting.error, [1e-9, 0.49], [0.0, 0.5, nan]);
    bounds!(meeting.least, [0.01, 1.0], [0.0, 1.01, nan]);
    bounds!(meeting.jitters, [0.0, 1000.0], [-0.1, 1000.1, nan]);
    bounds!(meeting.outlier, [0.01, 0.99], [0.0, 1.0, nan]);
    bounds!(meeting.quiet, [0.0, 1.0], [-0.1, 1.01, nan]);
    bounds!(meeting.doubt, [0.01, 1.0], [0.0, 1.01, nan]);
    bounds!(meeting.bulk_jitters, [0.0, 1000.0], [-0.1, 1000.1, nan]);
    bounds!(meeting.bulk_width, [0.01, 1000.0], [0.0, 1000.1, nan]);
    bounds!(meeting.bulk_trains, [1.0, 1000.0], [0.9, 1000.1, nan]);
    bounds!(meeting.bulk_outlier, [1e-9, 0.99], [0.0, 1.0, nan]);
    bounds!(policing.error, [1e-9, 0.05], [0.0, 1.0, nan]);
    bounds!(policing.doubt, [0.001, 0.99], [0.0009, 1.0, nan]);
    bounds!(policing.odds, [1.0, 1e9], [0.9, infinite, nan]);
    bounds!(policing.width, [0.01, 1e9], [0.0, infinite, nan]);
    bounds!(policing.outlier, [1e-9, 0.99], [0.0, 1.0, nan]);
}
