//! Controllers for noq-proto.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use flowstart_congestion::{Controller, ControllerConfig, StartExit};
use noq_proto::RttEstimator;
use noq_proto::congestion::{self, ControllerFactory, ControllerMetrics};

use crate::builds::Builds;
use crate::events::{Clock, Events};
use crate::refused::{Refused, Stack, check};

/// A rate in bytes per second at which nothing waits.
const UNPACED: u64 = 1 << 40;

/// Makes a controller for every path of every connection:
/// [`congestion_controller_factory`](noq_proto::TransportConfig::congestion_controller_factory).
///
/// Algorithms that draw random numbers draw others in every connection; the factory's first
/// controller has the seed of the configuration, and all that follow depend on it.
#[derive(Clone, Debug)]
pub struct NoqFactory(Builds);

impl NoqFactory {
    /// For this start and avoidance. The MSS is the stack's affair. Without pacing
    /// ([`Pacing::Off`](flowstart_congestion::Pacing::Off)) packets leave as the window opens, but
    /// for those to which the algorithm itself gives a rate.
    ///
    /// # Errors
    /// If the stack cannot carry one of them, or a constant is out of range.
    pub fn new(config: ControllerConfig) -> Result<Self, Refused> {
        check(&config, Stack::Noq)?;
        Ok(Self(Builds::new(config)))
    }
}

impl ControllerFactory for NoqFactory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn congestion::Controller> {
        Box::new(NoqController { clock: Clock::new(now), events: self.0.for_path(current_mtu) })
    }
}

/// A start and an avoidance as noq's controller.
#[derive(Clone, Debug)]
pub struct NoqController {
    clock: Clock,
    events: Events,
}

impl NoqController {
    /// Start and avoidance with their state.
    #[must_use]
    pub fn controller(&self) -> &Controller {
        self.events.controller()
    }

    /// How the start ended, once it has.
    #[must_use]
    pub fn start_exit(&self) -> Option<&StartExit> {
        self.events.start_exit()
    }
}

impl congestion::Controller for NoqController {
    // `on_sent` tells of the same bytes again, with those of packets that ask for no ACK.
    fn on_packet_sent(&mut self, now: Instant, bytes: u16, _pn: u64) {
        self.events.on_sent(self.clock.time(now), u64::from(bytes));
    }

    fn on_ack(&mut self, _now: Instant, sent: Instant, bytes: u64, _pn: u64, app_limited: bool, _rtt: &RttEstimator) {
        self.events.on_acked(self.clock.time(sent), bytes, app_limited);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, _largest: Option<u64>) {
        self.events.on_end_acks(self.clock.time(now), in_flight, app_limited);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        lost_bytes: u64,
        _largest_lost_pn: u64,
    ) {
        let (now, sent) = (self.clock.time(now), self.clock.time(sent));
        if is_ecn {
            self.events.on_marks(now, sent);
        } else {
            self.events.on_lost(now, sent, lost_bytes, is_persistent_congestion);
        }
    }

    fn on_spurious_congestion_event(&mut self) {
        self.events.on_spurious();
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.events.on_mtu(new_mtu);
    }

    fn window(&self) -> u64 {
        self.events.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.events.window();
        metrics.ssthresh = self.events.ssthresh();
        metrics.pacing_rate = Some(self.events.rate().map_or(UNPACED, |rate| (rate.as_bps() / 8).clamp(1, UNPACED)));
        metrics
    }

    fn clone_box(&self) -> Box<dyn congestion::Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.events.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
