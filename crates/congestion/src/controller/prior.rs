//! What comes back if a reduction turns out to have been needless.

use flowstart_control::NewMss;

use super::Controller;

/// Window and threshold of before a reduction, which come back if what called for it turns out to
/// have been spurious. For whoever tells a [`Controller`] of losses and marks: the rules are those
/// of Linux 6.1. The default has nothing to give back.
///
/// ```
/// use flowstart_congestion::{AvoidanceConfig, Controller, ControllerConfig};
/// use flowstart_congestion::{Prior, Signal, StartConfig};
/// use flowstart_units::Time;
///
/// let config = ControllerConfig::new(StartConfig::SlowStart, AvoidanceConfig::Reno);
/// let mut controller = Controller::new(&config);
/// // Something is lost, and nothing was before.
/// let mut prior = Prior::before(&controller, false);
/// if controller.on_signal(Time::ZERO, Signal::Loss).is_some() {
///     prior.reduced(&controller);
///     controller.end_recovery();
/// }
/// assert_eq!(controller.cwnd(), 5);
/// // It arrives after all.
/// assert!(prior.give_back(&mut controller));
/// assert_eq!(controller.cwnd(), 10);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prior {
    /// In packets.
    cwnd: u32,
    /// In packets; `None` if nothing is to come back.
    ssthresh: Option<u32>,
}

impl Prior {
    /// What a reduction will have to give back that is about to begin: to be asked for before
    /// [`Controller::on_signal`]. `reducing` says that a loss or marks have the window on its way
    /// to the threshold already: then this threshold is the one worth restoring, otherwise three
    /// quarters of the window if that is more (Linux `tcp_current_ssthresh`).
    #[must_use]
    pub fn before(controller: &Controller, reducing: bool) -> Self {
        let (cwnd, ssthresh) = (controller.cwnd(), controller.ssthresh());
        let worth = if reducing { ssthresh } else { ssthresh.max((cwnd >> 1) + (cwnd >> 2)) };
        Self { cwnd, ssthresh: Some(worth) }
    }

    /// The signal was obeyed; to be called after [`Controller::on_signal`]. Returns the window in
    /// packets that the reduction begins with. It is read after the signal: otherwise it does not
    /// change there, except that a chirping start, whose window is only a permission, sets it to
    /// what is in flight.
    pub fn reduced(&mut self, controller: &Controller) -> u32 {
        self.cwnd = controller.fell_from().unwrap_or(controller.cwnd());
        self.cwnd
    }

    /// Congestion marks confirm the reduction, which stays whatever becomes of the loss that began
    /// it (Linux `tcp_fastretrans_alert`); so do marks that began it.
    pub fn confirm(&mut self) {
        self.ssthresh = None;
    }

    /// A full packet has another payload from now on: what comes back stays what it is in bytes.
    pub fn on_mss(&mut self, change: NewMss) {
        self.cwnd = change.packets(self.cwnd);
        self.ssthresh = self.ssthresh.map(|ssthresh| change.packets(ssthresh));
    }

    /// The reduction was needless: window and threshold come back, once (Linux
    /// `tcp_undo_cwnd_reduction`). Returns false if nothing was to come back.
    pub fn give_back(&mut self, controller: &mut Controller) -> bool {
        let Some(ssthresh) = self.ssthresh.take() else { return false };
        controller.undo(self.cwnd, ssthresh);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AvoidanceConfig, ControllerConfig, Signal, StartConfig};
    use flowstart_units::Time;

    fn controller(cwnd: u32, ssthresh: u32) -> Controller {
        let config = ControllerConfig {
            initial_ssthresh: Some(ssthresh),
            initial_window: cwnd,
            ..ControllerConfig::new(StartConfig::SlowStart, AvoidanceConfig::Reno)
        };
        Controller::new(&config)
    }

    /// Window and threshold after a reduction to half that is taken back.
    fn after(cwnd: u32, ssthresh: u32, reducing: bool, then: impl Fn(&mut Prior)) -> (u32, u32) {
        let mut controller = controller(cwnd, ssthresh);
        let mut prior = Prior::before(&controller, reducing);
        controller.on_signal(Time::ZERO, Signal::Loss);
        assert_eq!(prior.reduced(&controller), cwnd);
        controller.end_recovery();
        then(&mut prior);
        prior.give_back(&mut controller);
        let windows = (controller.cwnd(), controller.ssthresh());
        controller.set_cwnd(7);
        assert!(!prior.give_back(&mut controller), "once");
        assert_eq!(controller.cwnd(), 7);
        windows
    }

    #[test]
    fn the_window_comes_back_with_the_threshold_or_three_quarters_of_the_window_if_that_is_more() {
        for (cwnd, ssthresh, restored) in [(100, 50, 75), (100, 80, 80), (101, 50, 75), (40, 1000, 1000)] {
            assert_eq!(after(cwnd, ssthresh, false, |_| {}), (cwnd, restored));
        }
        let nothing = Prior::default().give_back(&mut controller(10, 5));
        assert!(!nothing);
    }

    #[test]
    fn in_a_reduction_it_is_the_threshold_that_the_window_was_on_its_way_to() {
        assert_eq!(after(90, 50, true, |_| {}), (90, 50));
    }

    #[test]
    fn what_marks_confirm_does_not_come_back() {
        assert_eq!(after(100, 50, false, Prior::confirm), (50, 50));
    }

    #[test]
    fn what_comes_back_stays_what_it_is_in_bytes() {
        assert_eq!(after(100, 50, false, |prior| prior.on_mss(NewMss::new(1000, 500))), (200, 150));
    }
}
