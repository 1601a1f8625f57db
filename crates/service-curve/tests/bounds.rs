//! Delay bounds of arbitrary arrivals and the synthetic video.

mod common;

use common::{close, numbers, vectors};
use flowstart_service_curve::{Arrivals, Line, Probability, ServiceCurve, Video, VideoConfig};
use flowstart_units::{Bytes, Rate, Span, Time};

/// One packet is one byte here.
fn curve(rates: &[f64], delays: &[f64]) -> ServiceCurve {
    let line = |(rate, delay): (&f64, &f64)| Line {
        rate: Rate::from_bps(*rate as u64 * 8),
        delay: Span::from_secs_f64(*delay),
    };
    ServiceCurve::new(&rates.iter().zip(delays).map(line).collect::<Vec<_>>(), Probability::ONE_PERMILLE)
}

fn seconds(times: impl IntoIterator<Item = f64>) -> Arrivals {
    Arrivals::new(times.into_iter().map(|t| (Time::ZERO + Span::from_secs_f64(t), Bytes::new(1)))).unwrap()
}

#[test]
fn eight_packets_that_can_be_checked_by_hand_have_their_bounds() {
    let tiny = &vectors("video_and_bounds")["tiny"];
    let curve = curve(&numbers(&tiny["rates"]), &numbers(&tiny["d"]));
    for (count, expected) in (1..=8).zip(numbers(&tiny["S_inv_1_8"])) {
        assert_eq!(curve.inverse(f64::from(count) * 8.0), Span::from_secs_f64(expected));
    }
    let arrivals = seconds(numbers(&tiny["t"]));
    for (bound, expected) in curve.delay_bounds(&arrivals).into_iter().zip(numbers(&tiny["W"])) {
        assert_eq!(bound, Span::from_secs_f64(expected));
    }
    for (count, expected) in numbers(&tiny["min_span"]).into_iter().enumerate().skip(1) {
        assert_eq!(arrivals.shortest_span(count), Some(Span::from_secs_f64(expected)));
    }
}

#[test]
fn the_video_is_the_published_one_to_the_byte() {
    let expected = &vectors("video_and_bounds")["4Mbps"];
    let video = Video::generate(&VideoConfig::default(), 14_400, 7).unwrap();
    let first: Vec<f64> = video.frames()[..36].iter().map(|size| size.get() as f64).collect();
    assert_eq!(first, numbers(&expected["first_36_frames_bytes"]));
    let sum: u64 = video.frames().iter().map(|size| size.get()).sum();
    assert_eq!(sum, expected["sum_bytes"].as_u64().unwrap());
    let arrivals = video.arrivals();
    for (frames, bits) in expected["envelope_bits_by_frames"].as_object().unwrap() {
        // Between the first and the last of k frames lie k - 1 intervals; rounding of times is a
        // nanosecond.
        let window = Span::from_secs(1).mul_ratio(frames.parse::<u64>().unwrap() - 1, 24) + Span::from_nanos(1);
        assert_eq!(arrivals.envelope(window) as f64, bits.as_f64().unwrap(), "{frames}");
    }
    let constant = Line { rate: Rate::from_bps(9_400_000), delay: Span::ZERO };
    let bound = ServiceCurve::new(&[constant], Probability::ZERO).delay_bound(&arrivals);
    assert!((bound.as_secs_f64() - expected["delay_bound_const_9.4Mbps_no_latency_s"].as_f64().unwrap()).abs() < 3e-9);
}

#[test]
fn the_bounds_of_figure_6_are_the_published_ones() {
    let expected = &vectors("video_and_bounds")["fig6"];
    let video = Video::generate(&VideoConfig::default(), 720, 11).unwrap();
    // Every frame is cut into units of 250 bytes.
    let units = |(index, size): (usize, &Bytes)| {
        std::iter::repeat_n(video.time(index).as_secs_f64(), size.get().div_ceil(250) as usize)
    };
    let times: Vec<f64> = video.frames().iter().enumerate().flat_map(units).take(40_000).collect();
    let arrivals = seconds(times);
    let all = vectors("adaptive_window");
    for (mode, epsilon, step) in [("no_cwv", "0.001", 500), ("cwv", "0.001", 500), ("no_cwv", "0.01", 100)] {
        let rates = numbers(&all[mode]["rates"]);
        let quantiles = numbers(&all[mode]["quantile_s"][epsilon]);
        let (rates, delays): (Vec<f64>, Vec<f64>) =
            rates.into_iter().zip(quantiles).filter(|(rate, _)| (*rate as u64).is_multiple_of(step)).unzip();
        let bounds = curve(&rates, &delays).delay_bounds(&arrivals);
        let case = &expected[format!("{mode} eps'={epsilon} dr={step}")];
        let mean = bounds.iter().map(|bound| bound.as_secs_f64()).sum::<f64>() / bounds.len() as f64;
        close(mean, case["bound_mean_s"].as_f64().unwrap(), 1e-7);
        let largest = bounds.iter().max().unwrap().as_secs_f64();
        assert!((largest - case["bound_max_s"].as_f64().unwrap()).abs() < 3e-9, "{largest}");
    }
}

#[test]
fn videos_that_cannot_be_are_refused_and_an_empty_one_is_empty() {
    let config = VideoConfig::default();
    let refused = |config: VideoConfig| Video::generate(&config, 10, 1).is_err();
    assert!(refused(VideoConfig { frames_per_second: 0, ..config }));
    assert!(refused(VideoConfig { group_correlation: 1.0, ..config }));
    assert!(refused(VideoConfig { ratio: [0.0; 3], ..config }));
    assert!(refused(VideoConfig { scene_sigma: f64::NAN, ..config }));
    assert!(Video::generate(&config, 0, 1).unwrap().arrivals().is_empty());
}

#[test]
fn films_from_outside_have_the_mean_rate_of_their_frames_and_empty_ones_are_refused() {
    let film = Video::new(vec![Bytes::new(1_000), Bytes::ZERO, Bytes::new(5_000)], 30).unwrap();
    // 48 kbit in a tenth of a second.
    assert_eq!(film.mean_rate(), Rate::from_bps(480_000));
    assert_eq!((film.frames().len(), film.frames_per_second(), film.arrivals().len()), (3, 30, 3));
    assert_eq!(film.time(2), Time::ZERO + Span::from_nanos(66_666_666));
    assert!(Video::new(vec![], 24).is_err() && Video::new(vec![Bytes::ZERO], 24).is_err());
    assert!(Video::new(vec![Bytes::new(1)], 0).is_err());
    let huge = Video::new(vec![Bytes::new(u64::MAX); 3], 24).unwrap();
    assert!(huge.mean_rate() > Rate::ZERO);
}
