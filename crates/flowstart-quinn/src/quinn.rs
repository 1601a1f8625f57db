//! Controllers for quinn-proto.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use flowstart_congestion::{Controller, ControllerConfig, Pacing, StartExit};
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{self, ControllerFactory, ControllerMetrics};

use crate::builds::Builds;
use crate::events::{Clock, Events};
use crate::refused::{Refused, Stack, check};

/// Makes a controller for every path of every connection:
/// [`congestion_controller_factory`](quinn_proto::TransportConfig::congestion_controller_factory).
///
/// Algorithms that draw random numbers draw others in every connection; the factory's first
/// controller has the seed of the configuration, and all that follow depend on it.
#[derive(Clone, Debug)]
pub struct QuinnFactory(Builds);

impl QuinnFactory {
    /// For this start and avoidance. The MSS is the stack's affair, and so is pacing: quinn always
    /// does.
    ///
    /// # Errors
    /// If the stack cannot carry one of them, or a constant is out of range.
    pub fn new(config: ControllerConfig) -> Result<Self, Refused> {
        check(&config, Stack::Quinn)?;
        let pacing = if config.pacing == Pacing::Off { Pacing::LINUX } else { config.pacing };
        Ok(Self(Builds::new(ControllerConfig { pacing, ..config })))
    }
}

impl ControllerFactory for QuinnFactory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn congestion::Controller> {
        Box::new(QuinnController { clock: Clock::new(now), events: self.0.for_path(current_mtu) })
    }
}

/// A start and an avoidance as quinn's controller. From a connection one comes as
/// `connection.congestion_state().into_any().downcast::<QuinnController>()`.
#[derive(Clone, Debug)]
pub struct QuinnController {
    clock: Clock,
    events: Events,
}

impl QuinnController {
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

impl congestion::Controller for QuinnController {
    fn on_sent(&mut self, now: Instant, bytes: u64, _last_packet_number: u64) {
        self.events.on_sent(self.clock.time(now), bytes);
    }

    fn on_ack(&mut self, _now: Instant, sent: Instant, bytes: u64, app_limited: bool, _rtt: &RttEstimator) {
        self.events.on_acked(self.clock.time(sent), bytes, app_limited);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, _largest: Option<u64>) {
        self.events.on_end_acks(self.clock.time(now), in_flight, app_limited);
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, persistent: bool, lost_bytes: u64) {
        let (now, sent) = (self.clock.time(now), self.clock.time(sent));
        // Marks come as a loss of nothing.
        if lost_bytes == 0 && !persistent {
            self.events.on_marks(now, sent);
        } else {
            self.events.on_lost(now, sent, lost_bytes, persistent);
        }
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.events.on_mtu(new_mtu);
    }

    /// quinn lets a packet leave if less than the window is in flight with it, not if as much is:
    /// of a window of whole packets the last would never leave.
    fn window(&self) -> u64 {
        self.events.window() + 1
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.events.window();
        metrics.ssthresh = self.events.ssthresh();
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
