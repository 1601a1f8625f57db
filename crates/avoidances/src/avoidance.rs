//! An avoidance in operation, whichever it is.

use flowstart_control::{Ack, Acked, CongestionAvoidance, Connection, Isolation, Sent, Setup, Signal, Window};
use flowstart_units::{Rate, Span, Time};

use super::*;

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
    /// The avoidance that `setup` names.
    #[must_use]
    pub fn new<'a>(setup: impl Into<Setup<'a, AvoidanceConfig>>) -> Self {
        let Setup { config, connection } = setup.into();
        let Connection { mss, seed, .. } = connection;
        match config {
            AvoidanceConfig::Reno => Self::Reno(Reno::default()),
            AvoidanceConfig::Cubic(avoidance) => Self::Cubic(Cubic::new(avoidance)),
            AvoidanceConfig::Dctcp(avoidance) => Self::Dctcp(Dctcp::new(avoidance)),
            AvoidanceConfig::Scalable(avoidance) => Self::Scalable(Scalable::new(avoidance)),
            AvoidanceConfig::Bic(avoidance) => Self::Bic(Bic::new(avoidance)),
            AvoidanceConfig::Vivace(avoidance) => Self::Vivace(Box::new(Vivace::new(avoidance, mss, seed))),
            AvoidanceConfig::VivaceLoss(avoidance) => {
                Self::VivaceLoss(Box::new(Vivace::loss_only(avoidance, mss, seed)))
            }
            AvoidanceConfig::Allegro(avoidance) => Self::Allegro(Box::new(Allegro::new(avoidance, mss, seed))),
            AvoidanceConfig::VegasLike(avoidance) => Self::VegasLike(Box::new(VegasLike::new(avoidance, mss))),
            AvoidanceConfig::DelayTarget(avoidance) => Self::DelayTarget(Box::new(DelayTarget::new(avoidance, mss))),
            AvoidanceConfig::Bbr(avoidance) => Self::Bbr(Box::new(Bbr::new(avoidance, mss, seed))),
            AvoidanceConfig::VegasOrVivace(avoidance) => Self::VegasOrVivace(Box::new(ByIsolation::new(
                VegasLike::new(&avoidance.isolated, mss),
                Vivace::loss_only(&avoidance.shared, mss, seed),
            ))),
            AvoidanceConfig::DelayOrCubic(avoidance) => Self::DelayOrCubic(Box::new(ByIsolation::new(
                DelayTarget::new(&avoidance.isolated, mss),
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
