//! Congestion avoidance: what a flow does once it is up to speed.

use flowstart_units::{Rate, Span, Time};

use crate::detection::Isolation;
use crate::{Ack, Acked, Sent, Signal, Window};

/// A congestion avoidance.
pub trait CongestionAvoidance {
    /// An ACK came (also while a start is in charge, and in recovery): statistics such as DCTCP's alpha.
    fn on_ack(&mut self, _ack: &Ack, _window: &Window) {}

    /// True if [`on_sent`](Self::on_sent) and [`on_acked`](Self::on_acked) must be called for every packet while this avoidance is in charge.
    /// Must always answer the same between two calls of [`on_isolation`](Self::on_isolation).
    fn wants_packets(&self) -> bool {
        false
    }

    /// A packet left; only called if [`wants_packets`](Self::wants_packets).
    fn on_sent(&mut self, _sent: &Sent) {}

    /// A packet was delivered, before [`on_ack`](Self::on_ack) of the same ACK, oldest first; only called if [`wants_packets`](Self::wants_packets).
    fn on_acked(&mut self, _acked: &Acked) {}

    /// The window may grow by `acked` packets' worth of acknowledgements; the flow is in congestion avoidance.
    fn grow(&mut self, ack: &Ack, acked: u32, window: &mut Window);

    /// The threshold in packets after this signal, at least 2. The transport walks the window there.
    fn reduce(&mut self, now: Time, signal: Signal, window: &Window) -> u32;

    /// A start handed over without a reduction: the window begins to grow from here. (After a reduction there is [`reduce`](Self::reduce), after
    /// idle time [`on_idle`](Self::on_idle).)
    fn on_takeover(&mut self, _now: Time, _window: &Window) {}

    /// The last reduction turned out to be spurious. Returns the window to restore, given the one before the reduction.
    /// The threshold is restored by the controller.
    fn undo(&mut self, prior_cwnd: u32, window: &Window) -> u32 {
        prior_cwnd.max(window.cwnd)
    }

    /// The flow was idle for this long.
    fn on_idle(&mut self, _idle: Span) {}

    /// It is known, or known anew, whether the flow has a queue of its own. If that matters to an avoidance that is in charge, the window it
    /// leaves is the one to go on with.
    fn on_isolation(&mut self, _now: Time, _isolation: Isolation, _window: &mut Window) {}

    /// True if what it sees contradicts that it has a queue of its own ([`Isolation::Isolated`]): the controller then tells it that the queue
    /// is shared. Only asked of avoidances that control recovery.
    fn doubts_isolation(&self) -> bool {
        false
    }

    /// It was seen again that the flow has a queue of its own, whatever [`doubts_isolation`](Self::doubts_isolation) builds on.
    fn on_isolation_confirmed(&mut self) {}

    /// The start measured the rate that the path has for this flow, in payload; [`on_takeover`](Self::on_takeover) follows.
    fn on_measured_rate(&mut self, _rate: Rate) {}

    /// A detector measured a round-trip time without queue.
    fn on_smallest_rtt(&mut self, _rtt: Span) {}

    /// Another avoidance takes over; it goes on to hear of ACKs, and [`on_takeover`](Self::on_takeover) tells if it is in charge again.
    fn on_dismissal(&mut self) {}

    /// A pacing rate of its own, instead of the controller's.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }

    /// True if the avoidance sets cwnd itself also in recovery (BBR, PCC), so that the transport must not reduce proportionally. Its
    /// [`grow`](Self::grow) is then called for every ACK, whether the window was used or not, and no start is in charge again after a timeout.
    /// Must always answer the same between two calls of [`on_isolation`](Self::on_isolation).
    fn controls_recovery(&self) -> bool {
        false
    }

    /// True if this control, where packets are marked, is marked every few round trips at any rate (a scalable control), so that a long silence
    /// means free capacity.
    fn is_scalable(&self) -> bool {
        false
    }
}

pub mod allegro;
pub mod bbr;
pub mod bic;
mod by_isolation;
mod config;
pub mod cubic;
pub mod dctcp;
pub mod delay_target;
mod intervals;
pub mod reno;
pub mod scalable;
mod trials;
pub mod vegas_like;
pub mod vivace;

pub use allegro::{Allegro, AllegroConfig};
pub use bbr::{Bbr, BbrConfig, BbrMode};
pub use bic::{Bic, BicConfig};
pub use by_isolation::{ByIsolation, DelayOrCubicConfig, VegasOrVivaceConfig};
pub use config::AvoidanceConfig;
pub use cubic::{Cubic, CubicConfig};
pub use dctcp::{Dctcp, DctcpConfig};
pub use delay_target::{DelayTarget, DelayTargetConfig};
pub use reno::Reno;
pub use scalable::{Scalable, ScalableConfig};
pub use vegas_like::{VegasLike, VegasLikeConfig};
pub use vivace::{Vivace, VivaceConfig};

use crate::ControllerConfig;

/// An avoidance in operation.
pub enum Avoidance {
    /// NewReno.
    Reno(Reno),
    /// CUBIC.
    Cubic(Cubic),
    /// DCTCP.
    Dctcp(Dctcp),
    /// Scalable TCP.
    Scalable(Scalable),
    /// BIC.
    Bic(Bic),
    /// PCC Vivace (Dong et al. 2018).
    Vivace(Box<Vivace>),
    /// PCC Vivace with a utility of rate and loss alone (Bachl, Fabini and Zseby 2020).
    VivaceLoss(Box<Vivace>),
    /// PCC Allegro (Dong et al. 2015).
    Allegro(Box<Allegro>),
    /// The delay-based rule for queues of one's own (Bachl, Fabini and Zseby 2020).
    VegasLike(Box<VegasLike>),
    /// A queueing delay kept at a target, for queues of one's own.
    DelayTarget(Box<DelayTarget>),
    /// The published pair for both answers of a detector of fair queuing (Bachl, Fabini and Zseby 2020).
    VegasOrVivace(Box<ByIsolation<VegasLike, Vivace>>),
    /// A delay target in a queue of one's own, CUBIC in any other.
    DelayOrCubic(Box<ByIsolation<DelayTarget, Cubic>>),
    /// BBR version 1 (Cardwell et al. 2016).
    Bbr(Box<Bbr>),
    /// An algorithm from outside this crate.
    External(Box<dyn CongestionAvoidance + Send>),
}

impl std::fmt::Debug for Avoidance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Reno(avoidance) => avoidance.fmt(f),
            Self::Cubic(avoidance) => avoidance.fmt(f),
            Self::Dctcp(avoidance) => avoidance.fmt(f),
            Self::Scalable(avoidance) => avoidance.fmt(f),
            Self::Bic(avoidance) => avoidance.fmt(f),
            Self::Vivace(avoidance) => avoidance.fmt(f),
            Self::VivaceLoss(avoidance) => avoidance.fmt(f),
            Self::Allegro(avoidance) => avoidance.fmt(f),
            Self::VegasLike(avoidance) => avoidance.fmt(f),
            Self::DelayTarget(avoidance) => avoidance.fmt(f),
            Self::VegasOrVivace(avoidance) => avoidance.fmt(f),
            Self::DelayOrCubic(avoidance) => avoidance.fmt(f),
            Self::Bbr(avoidance) => avoidance.fmt(f),
            Self::External(_) => f.write_str("External"),
        }
    }
}

impl Avoidance {
    /// The avoidance that `config` names.
    #[must_use]
    pub fn new(config: &ControllerConfig) -> Self {
        match &config.avoidance {
            AvoidanceConfig::Reno => Self::Reno(Reno::default()),
            AvoidanceConfig::Cubic(avoidance) => Self::Cubic(Cubic::new(avoidance)),
            AvoidanceConfig::Dctcp(avoidance) => Self::Dctcp(Dctcp::new(avoidance)),
            AvoidanceConfig::Scalable(avoidance) => Self::Scalable(Scalable::new(avoidance)),
            AvoidanceConfig::Bic(avoidance) => Self::Bic(Bic::new(avoidance)),
            AvoidanceConfig::Vivace(avoidance) => {
                Self::Vivace(Box::new(Vivace::new(avoidance, config.mss, config.seed)))
            }
            AvoidanceConfig::VivaceLoss(avoidance) => {
                Self::VivaceLoss(Box::new(Vivace::loss_only(avoidance, config.mss, config.seed)))
            }
            AvoidanceConfig::Allegro(avoidance) => {
                Self::Allegro(Box::new(Allegro::new(avoidance, config.mss, config.seed)))
            }
            AvoidanceConfig::VegasLike(avoidance) => Self::VegasLike(Box::new(VegasLike::new(avoidance, config.mss))),
            AvoidanceConfig::DelayTarget(avoidance) => {
                Self::DelayTarget(Box::new(DelayTarget::new(avoidance, config.mss)))
            }
            AvoidanceConfig::Bbr(avoidance) => Self::Bbr(Box::new(Bbr::new(avoidance, config.mss, config.seed))),
            AvoidanceConfig::VegasOrVivace(avoidance) => Self::VegasOrVivace(Box::new(ByIsolation::new(
                VegasLike::new(&avoidance.isolated, config.mss),
                Vivace::loss_only(&avoidance.shared, config.mss, config.seed),
            ))),
            AvoidanceConfig::DelayOrCubic(avoidance) => Self::DelayOrCubic(Box::new(ByIsolation::new(
                DelayTarget::new(&avoidance.isolated, config.mss),
                Cubic::new(&avoidance.shared),
            ))),
        }
    }
}

macro_rules! dispatch {
    ($self:ident, $avoidance:ident => $call:expr) => {
        match $self {
            Avoidance::Reno($avoidance) => $call,
            Avoidance::Cubic($avoidance) => $call,
            Avoidance::Dctcp($avoidance) => $call,
            Avoidance::Scalable($avoidance) => $call,
            Avoidance::Bic($avoidance) => $call,
            Avoidance::Vivace($avoidance) => $call,
            Avoidance::VivaceLoss($avoidance) => $call,
            Avoidance::Allegro($avoidance) => $call,
            Avoidance::VegasLike($avoidance) => $call,
            Avoidance::DelayTarget($avoidance) => $call,
            Avoidance::VegasOrVivace($avoidance) => $call,
            Avoidance::DelayOrCubic($avoidance) => $call,
            Avoidance::Bbr($avoidance) => $call,
            Avoidance::External($avoidance) => $call,
        }
    };
}

impl CongestionAvoidance for Avoidance {
    fn wants_packets(&self) -> bool {
        dispatch!(self, a => a.wants_packets())
    }

    fn on_sent(&mut self, sent: &Sent) {
        dispatch!(self, a => a.on_sent(sent));
    }

    fn on_acked(&mut self, acked: &Acked) {
        dispatch!(self, a => a.on_acked(acked));
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack, window: &Window) {
        dispatch!(self, a => a.on_ack(ack, window));
    }

    #[inline]
    fn grow(&mut self, ack: &Ack, acked: u32, window: &mut Window) {
        dispatch!(self, a => a.grow(ack, acked, window));
    }

    fn reduce(&mut self, now: Time, signal: Signal, window: &Window) -> u32 {
        dispatch!(self, a => a.reduce(now, signal, window))
    }

    fn on_takeover(&mut self, now: Time, window: &Window) {
        dispatch!(self, a => a.on_takeover(now, window));
    }

    fn undo(&mut self, prior_cwnd: u32, window: &Window) -> u32 {
        dispatch!(self, a => a.undo(prior_cwnd, window))
    }

    fn on_idle(&mut self, idle: Span) {
        dispatch!(self, a => a.on_idle(idle));
    }

    fn on_isolation(&mut self, now: Time, isolation: Isolation, window: &mut Window) {
        dispatch!(self, a => a.on_isolation(now, isolation, window));
    }

    fn doubts_isolation(&self) -> bool {
        dispatch!(self, a => a.doubts_isolation())
    }

    fn on_isolation_confirmed(&mut self) {
        dispatch!(self, a => a.on_isolation_confirmed());
    }

    fn on_measured_rate(&mut self, rate: Rate) {
        dispatch!(self, a => a.on_measured_rate(rate));
    }

    fn on_smallest_rtt(&mut self, rtt: Span) {
        dispatch!(self, a => a.on_smallest_rtt(rtt));
    }

    fn on_dismissal(&mut self) {
        dispatch!(self, a => a.on_dismissal());
    }

    #[inline]
    fn pacing_rate(&self) -> Option<Rate> {
        dispatch!(self, a => a.pacing_rate())
    }

    fn controls_recovery(&self) -> bool {
        dispatch!(self, a => a.controls_recovery())
    }

    fn is_scalable(&self) -> bool {
        dispatch!(self, a => a.is_scalable())
    }
}
