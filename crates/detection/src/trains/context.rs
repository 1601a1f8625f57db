//! What all stages of the detection know and use.

use flowstart_units::{Bytes, Rate, Span, Time};

use crate::answer::{Decision, Isolation};
use crate::random::Random;

use super::config::TrainProbeConfig;
use super::dispersion::Dispersion;
use super::evidence::Evidence;
use super::scale::{Calm, Scale};
use super::side::Side;

/// What all stages of the detection know and use.
#[derive(Clone, Debug)]
pub(super) struct Context {
    pub(super) config: TrainProbeConfig,
    pub(super) random: Random,
    /// Connection 0 sends trains, connection 1 lone packets.
    pub(super) sides: [Side; 2],
    /// When the first packet could leave.
    pub(super) began: Option<Time>,
    /// Time the bottleneck takes for a packet.
    pub(super) service: Option<Span>,
    /// RTTs while nothing of ours was queued.
    pub(super) calm: Calm,
    /// By how much gaps of the first train differed at most from their mean, if a batch followed it
    /// at once.
    pub(super) uneven: Span,
    /// Batches and chirps so far.
    pub(super) attempts: u32,
    pub(super) dispersion: Dispersion,
    /// Of packets that may have been served on a new flow's credit.
    pub(super) with_credit: Dispersion,
    pub(super) evidence: Evidence,
}

impl Context {
    pub(super) fn new(config: &TrainProbeConfig, seed: u64) -> Self {
        Self {
            config: *config,
            random: Random::new(seed),
            sides: [Side::default(), Side::default()],
            began: None,
            service: None,
            calm: Calm::default(),
            uneven: Span::ZERO,
            attempts: 0,
            dispersion: Dispersion::default(),
            with_credit: Dispersion::default(),
            evidence: Evidence::new(config.evidence),
        }
    }

    /// Nothing more leaves, unless it is planned anew.
    pub(super) fn clear_plans(&mut self) {
        self.sides.iter_mut().for_each(|side| side.plan.clear());
    }

    /// The smallest RTT of both connections.
    pub(super) fn smallest(&self) -> Span {
        let of = |side: &Side| side.smallest.unwrap_or(Span::MAX);
        of(&self.sides[0]).min(of(&self.sides[1]))
    }

    /// Largest difference between RTTs in a row without a queue of ours. Their range would not do:
    /// it has the queue of other flows in it, which train and lone packet meet alike.
    pub(super) fn jitter(&self) -> Span {
        self.calm.jitter().max(self.uneven)
    }

    /// A packet is lost if one that left later by this has arrived.
    pub(super) fn patience(&self, in_bursts: bool) -> Span {
        let jitter = self.jitter().mul_f64(self.config.patience_jitters);
        // Bursts come without a measurement of jitter.
        if in_bursts { jitter.max(self.smallest().mul_f64(self.config.follow_rtts)) } else { jitter }
    }

    pub(super) fn scale(&self) -> Scale {
        Scale { smallest: self.smallest(), service: self.service.unwrap_or(Span::ZERO), jitter: self.jitter() }
    }

    /// What the evidence says, if it is enough.
    pub(super) fn answer(&self) -> Option<Isolation> {
        let error = self.evidence.error_if_isolated();
        if error <= self.config.isolated_error {
            Some(Isolation::Isolated)
        } else {
            (1.0 - error <= self.config.shared_error).then_some(Isolation::Shared)
        }
    }

    /// True if the rate to go on with is known. In a queue of one's own that is a share if others
    /// are there, which the first train does not tell.
    pub(super) fn knows_rate(&self) -> bool {
        if self.answer() != Some(Isolation::Isolated) {
            return true;
        }
        let service = self.service.unwrap_or(Span::ZERO);
        let lone = service * u64::from(self.config.lone);
        // What the first train took, if nobody else is served.
        let alone = service.mul_f64(self.config.alone_gaps);
        self.dispersion.per_packet(self.config.least_gaps, lone).is_some()
            || self.with_credit.per_packet(1, lone).is_some_and(|per_packet| per_packet <= alone)
    }

    /// The answer with all that was measured, for packets of this size.
    pub(super) fn decision(&self, now: Time, isolation: Isolation, packet: Bytes) -> Decision {
        // Without any measurement as much as was sent in a round trip at first.
        let service = self.service.unwrap_or(self.smallest() / u64::from(self.config.train));
        // A new flow's credit, or luck, may have let the first train pass others.
        let overtaking = if isolation == Isolation::Isolated { self.config.lone } else { 0 };
        let overtaking = service * u64::from(overtaking);
        let per_packet = self.dispersion.per_packet(self.config.least_gaps, overtaking).unwrap_or(service).max(service);
        Decision {
            now,
            isolation,
            ratio: self.evidence.mean_ratio(),
            rate: Rate::of(packet, per_packet),
            confidence: Some(self.evidence.confidence(isolation)),
            smallest: self.smallest(),
        }
    }
}
