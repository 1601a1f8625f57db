//! The detector of fair queuing that fits a look.

use flowstart_congestion::detection::TrainProbeConfig;
use flowstart_units::Span;

use super::LookConfig;

/// A detector whose trains build no longer queue than they may, if there can be one. `service` is
/// zero if it is not known, and there is `room` for so many packets one behind the other.
pub(super) fn detector(config: &LookConfig, service: Span, room: Option<u32>) -> Option<TrainProbeConfig> {
    let usual = TrainProbeConfig {
        longest_train: config.detection_train,
        most_batches: config.detection_batches,
        proof_service: Span::ZERO,
        // A look has its time anyway, and what follows a batch tells of RTTs without a queue.
        long_wait: f64::MAX,
        ..TrainProbeConfig::default()
    };
    // Packets that may wait; without knowledge as many as the detector likes. Where they are few, a
    // single lone packet joins them: this receiver acknowledges every packet.
    let fits = config.detection_queue.as_nanos() as f64 / service.as_nanos().max(1) as f64;
    let fits = room.map_or(fits, |room| fits.min(f64::from(room.saturating_sub(1))));
    let lone = if fits < f64::from(config.lone_room) { 1 } else { usual.lone };
    let fits = fits - f64::from(lone);
    // Of a train that leaves faster than it arrives this share queues.
    let share = 1.0 - 1.0 / usual.train_load;
    let longest = ((fits / share) as u32).min(usual.longest_train);
    // One of the first train is in transmission.
    let train = (fits as u32).saturating_add(1).min(usual.train);
    let shortest = longest.min(usual.shortest_train);
    let fitting = TrainProbeConfig {
        train,
        // A single lone packet needs no room for another.
        train_at_once: if lone < usual.lone { shortest } else { usual.train_at_once },
        shortest_train: shortest,
        longest_train: longest.max(shortest),
        lone,
        ..usual
    };
    let enough = fits >= f64::from(config.detection_room) && shortest >= config.least_detection_train;
    (enough && fitting.validate().is_ok()).then_some(fitting)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detectors_build_no_longer_queue_than_a_path_bears() {
        let fits = |service| detector(&LookConfig::default(), service, None);
        let usual = TrainProbeConfig {
            longest_train: 96,
            most_batches: 6,
            proof_service: Span::ZERO,
            long_wait: f64::MAX,
            ..TrainProbeConfig::default()
        };
        assert_eq!((fits(Span::ZERO), fits(Span::from_micros(120))), (Some(usual), Some(usual)));
        // 1.5 Mbit/s: four in the queue and a lone packet are 40 ms.
        let slow = fits(Span::from_millis(8)).unwrap();
        assert_eq!((slow.train, slow.shortest_train, slow.longest_train, slow.lone), (5, 8, 8, 1));
        assert_eq!(fits(Span::from_millis(12)), None);
    }
}
