//! An avoidance that sets its window itself, and doubts that it has a queue of its own.

use super::*;

/// An avoidance that counts what it is asked, and always doubts that it has a queue of its own.
#[derive(Clone, Default)]
struct Doubter {
    /// It sets the window in recovery too.
    own_recovery: bool,
    /// Packets acknowledged with which it was asked to grow.
    grown: std::sync::Arc<std::sync::Mutex<Vec<u32>>>,
}

impl CongestionAvoidance for Doubter {
    fn grow(&mut self, _ack: &Ack, acked: u32, _window: &mut Window) {
        self.grown.lock().unwrap().push(acked);
    }

    fn reduce(&mut self, _now: Time, _signal: Signal, window: &Window) -> u32 {
        window.cwnd / 2
    }

    fn isolation_aware(&mut self) -> Option<&mut dyn flowstart_control::IsolationAware> {
        Some(self)
    }

    fn controls_recovery(&self) -> bool {
        self.own_recovery
    }
}

impl flowstart_control::IsolationAware for Doubter {
    fn doubts_isolation(&self) -> bool {
        true
    }
}

fn join(avoidance: Doubter) -> Controller {
    let config = config(StartConfig::SlowStart);
    Controller::join(Start::new(&config), Avoidance::External(Box::new(avoidance)), &config)
}

#[test]
fn an_avoidance_grows_by_what_slow_start_left_and_by_nothing_only_if_it_controls_recovery() {
    for own_recovery in [false, true] {
        let grown = std::sync::Arc::default();
        let mut controller = join(Doubter { own_recovery, grown: std::sync::Arc::clone(&grown) });
        controller.on_signal(ms(1), Signal::Loss);
        // Below the threshold of 5 the whole ACK is slow start's.
        controller.set_cwnd(1);
        controller.grow(&ack(2));
        controller.grow(&ack(3));
        let expected: &[u32] = if own_recovery { &[2, 3] } else { &[1] };
        assert_eq!(*grown.lock().unwrap(), expected);
        // An ACK of nothing.
        controller.grow(&ack(0));
        assert_eq!(grown.lock().unwrap().len(), expected.len() + usize::from(own_recovery));
    }
}

#[test]
fn doubts_about_isolation_count_only_while_an_avoidance_that_controls_recovery_is_in_charge() {
    for own_recovery in [false, true] {
        let mut controller = join(Doubter { own_recovery, ..Doubter::default() });
        controller.on_ack(&Ack { now: ms(1), ..ack(1) });
        assert_eq!(controller.isolation_revoked(), None, "the start is in charge");
        controller.on_signal(ms(2), Signal::Loss);
        controller.on_ack(&Ack { now: ms(3), ..ack(1) });
        assert_eq!(controller.isolation_revoked(), own_recovery.then(|| ms(3)));
    }
}
