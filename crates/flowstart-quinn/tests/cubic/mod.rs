//! quinn's CUBIC (quinn-proto 0.11, as it is after a loss) with single rules of Linux's, to see
//! what each is worth.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};

const BETA: f64 = 0.7;
const C: f64 = 0.4;

/// Which rules are Linux's.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rules {
    /// The window is at most what the curve says. quinn adds what is missing with every ACK anew,
    /// so the window is up to a packet ahead.
    pub(crate) not_ahead: bool,
    /// Whole packets are left of a reduction.
    pub(crate) whole: bool,
    /// The curve begins with the first ACK after a reduction, not with the loss.
    pub(crate) later: bool,
}

impl ControllerFactory for Rules {
    fn build(self: Arc<Self>, _now: Instant, mtu: u16) -> Box<dyn Controller> {
        let mtu = f64::from(mtu);
        let cubic = Cubic {
            rules: *self,
            mtu,
            window: 10.0 * mtu,
            ssthresh: f64::MAX,
            recovery: None,
            epoch: None,
            w_max: 0.0,
            k: 0.0,
            increment: 0.0,
        };
        Box::new(cubic)
    }
}

/// All in bytes.
#[derive(Clone, Debug)]
struct Cubic {
    rules: Rules,
    mtu: f64,
    window: f64,
    ssthresh: f64,
    recovery: Option<Instant>,
    epoch: Option<Instant>,
    w_max: f64,
    k: f64,
    increment: f64,
}

impl Controller for Cubic {
    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        if app_limited || self.recovery.is_some_and(|began| sent <= began) {
            return;
        }
        if self.window < self.ssthresh {
            self.window += bytes as f64;
            return;
        }
        let began = if self.rules.later { None } else { self.recovery };
        let epoch = *self.epoch.get_or_insert(began.unwrap_or(now));
        let (t, rtt) = ((now - epoch).as_secs_f64(), rtt.get().as_secs_f64());
        let w_max = self.w_max / self.mtu;
        let cubic = (C * (t + rtt - self.k).powi(3) + w_max) * self.mtu;
        let friendly = (w_max * BETA + 3.0 * (1.0 - BETA) / (1.0 + BETA) * t / rtt) * self.mtu;
        let ahead = if cubic < friendly {
            (friendly - self.window).max(0.0)
        } else {
            ((cubic - self.window) / self.window * self.mtu).max(0.0)
        };
        self.increment = match self.rules.not_ahead && cubic < friendly {
            true => ahead,
            false => self.increment + ahead,
        };
        if self.increment >= self.mtu {
            self.window += self.mtu;
            self.increment = 0.0;
        }
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, persistent: bool, _lost: u64) {
        if self.recovery.is_some_and(|began| sent <= began) {
            return;
        }
        (self.recovery, self.epoch) = (Some(now), None);
        self.w_max = if self.window < self.w_max { self.window * (1.0 + BETA) / 2.0 } else { self.window };
        let mut left = self.window * BETA;
        if self.rules.whole {
            left = (left / self.mtu).floor() * self.mtu;
        }
        self.ssthresh = left.max(2.0 * self.mtu);
        self.window = self.ssthresh;
        self.k = (self.w_max / self.mtu * (1.0 - BETA) / C).cbrt();
        self.increment *= BETA;
        if persistent {
            self.recovery = None;
            self.window = 2.0 * self.mtu;
        }
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.mtu = f64::from(mtu);
    }

    fn window(&self) -> u64 {
        self.window as u64
    }

    fn metrics(&self) -> ControllerMetrics {
        ControllerMetrics::default()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        (10.0 * self.mtu) as u64
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
