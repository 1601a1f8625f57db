//! A start in operation, whichever it is.

use flowstart_chirping::Measured;
use flowstart_control::{
    Ack, Acked, Answer, Connection, Departure, FlowStart, LastRtt, Next, Occasion, Response, Restart, Sent, Setup,
    Signal, Verdict, Window,
};
use flowstart_quick_start::Carried;
use flowstart_units::Time;

use super::*;

/// A start in operation.
pub enum Start {
    /// Standard slow start.
    SlowStart(SlowStart),
    /// HyStart as in Linux CUBIC.
    Hystart(Hystart),
    /// HyStart++ (RFC 9406).
    HystartPlusPlus(HystartPlusPlus),
    /// Paced Chirping; boxed, as it is larger than the others and gone after the start.
    PacedChirping(Box<PacedChirping>),
    /// Paced Chirping with a probe gap and a load gap.
    TwoGapChirping(Box<TwoGapChirping>),
    /// Paced Chirping as this project does it.
    AdaptiveChirping(Box<AdaptiveChirping>),
    /// SEARCH (draft-chung-ccwg-search).
    Search(Box<Search>),
    /// Limited slow start (RFC 3742).
    LimitedSlowStart(LimitedSlowStart),
    /// BBR's start-up and drain (draft-ietf-ccwg-bbr).
    BbrStart(Box<BbrStart>),
    /// Rapid Start (draft-kazuho-ccwg-rapid-start).
    RapidStart(Box<RapidStart>),
    /// Jump Start (Liu, Allman, Jin and Wang 2007).
    JumpStart(JumpStart),
    /// Careful Resume (RFC 9959).
    CarefulResume(Box<CarefulResume>),
    /// Quick-Start (RFC 4782).
    QuickStart(Box<QuickStart>),
    /// SUSS (Arghavani et al. 2024).
    Suss(Box<Suss>),
    /// One of the two connections of a detector of fair queuing.
    Directed(Box<Directed>),
    /// An algorithm from outside this crate.
    External(Box<dyn FlowStart + Send>),
}

impl Start {
    /// The start that `setup` names.
    #[must_use]
    pub fn new<'a>(setup: impl Into<Setup<'a, StartConfig>>) -> Self {
        let Setup { config, connection } = setup.into();
        let Connection { initial_window, mss, seed, paced } = connection;
        match config {
            StartConfig::SlowStart => Self::SlowStart(SlowStart),
            StartConfig::Hystart(start) => Self::Hystart(Hystart::new(start, paced, mss)),
            StartConfig::HystartPlusPlus(start) => Self::HystartPlusPlus(HystartPlusPlus::new(start, paced, mss)),
            StartConfig::PacedChirping(start) => Self::PacedChirping(Box::new(PacedChirping::new(start, mss))),
            StartConfig::TwoGapChirping(start) => Self::TwoGapChirping(Box::new(TwoGapChirping::new(start, mss))),
            StartConfig::AdaptiveChirping(start) => Self::AdaptiveChirping(Box::new(AdaptiveChirping::new(start, mss))),
            StartConfig::Search(start) => Self::Search(Box::new(Search::new(start, initial_window, mss))),
            StartConfig::QuickStart(start) => {
                Self::QuickStart(Box::new(QuickStart::new(start, initial_window, mss, seed)))
            }
            StartConfig::LimitedSlowStart(start) => Self::LimitedSlowStart(LimitedSlowStart::new(start)),
            StartConfig::BbrStart(start) => Self::BbrStart(Box::new(BbrStart::new(start, initial_window, mss))),
            StartConfig::RapidStart(start) => Self::RapidStart(Box::new(RapidStart::new(start, initial_window, mss))),
            StartConfig::JumpStart(start) => Self::JumpStart(JumpStart::new(start, initial_window, mss)),
            StartConfig::CarefulResume(start) => {
                Self::CarefulResume(Box::new(CarefulResume::new(start, initial_window, mss, seed)))
            }
            StartConfig::Suss(start) => Self::Suss(Box::new(Suss::new(start, initial_window, paced, mss))),
            StartConfig::TwoFlowProbe(_) | StartConfig::FairQueuingProbe(_) => Self::Directed(Box::default()),
        }
    }
}

impl Start {
    /// The last chirp that was fit to be read, also after the start has ended; `None` before the first, and for starts that do not chirp.
    #[must_use]
    pub fn last_chirp(&self) -> Option<&Measured> {
        match self {
            Self::PacedChirping(start) => start.last_chirp(),
            Self::TwoGapChirping(start) => start.last_chirp(),
            Self::AdaptiveChirping(start) => start.last_chirp(),
            _ => None,
        }
    }
}

macro_rules! dispatch {
    ($self:ident, $start:ident => $call:expr) => {
        match $self {
            Start::SlowStart($start) => $call,
            Start::Hystart($start) => $call,
            Start::HystartPlusPlus($start) => $call,
            Start::PacedChirping($start) => $call,
            Start::TwoGapChirping($start) => $call,
            Start::AdaptiveChirping($start) => $call,
            Start::Search($start) => $call,
            Start::LimitedSlowStart($start) => $call,
            Start::BbrStart($start) => $call,
            Start::RapidStart($start) => $call,
            Start::JumpStart($start) => $call,
            Start::CarefulResume($start) => $call,
            Start::QuickStart($start) => $call,
            Start::Suss($start) => $call,
            Start::Directed($start) => $call,
            Start::External($start) => $call,
        }
    };
}

impl std::fmt::Debug for Start {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::SlowStart(start) => start.fmt(f),
            Self::Hystart(start) => start.fmt(f),
            Self::HystartPlusPlus(start) => start.fmt(f),
            Self::PacedChirping(start) => start.fmt(f),
            Self::TwoGapChirping(start) => start.fmt(f),
            Self::AdaptiveChirping(start) => start.fmt(f),
            Self::Search(start) => start.fmt(f),
            Self::LimitedSlowStart(start) => start.fmt(f),
            Self::BbrStart(start) => start.fmt(f),
            Self::RapidStart(start) => start.fmt(f),
            Self::JumpStart(start) => start.fmt(f),
            Self::CarefulResume(start) => start.fmt(f),
            Self::QuickStart(start) => start.fmt(f),
            Self::Suss(start) => start.fmt(f),
            Self::Directed(start) => start.fmt(f),
            Self::External(_) => f.write_str("External"),
        }
    }
}

impl FlowStart for Start {
    fn initial_window(&self) -> Option<u32> {
        dispatch!(self, start => start.initial_window())
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack, window: &mut Window) -> Verdict {
        dispatch!(self, start => start.on_ack(ack, window))
    }

    #[inline]
    fn grow(&mut self, ack: &Ack, window: &mut Window) -> u32 {
        dispatch!(self, start => start.grow(ack, window))
    }

    fn on_signal(&mut self, now: Time, signal: Signal, window: &mut Window) -> Response {
        dispatch!(self, start => start.on_signal(now, signal, window))
    }

    #[inline]
    fn on_sent(&mut self, sent: &Sent) {
        dispatch!(self, start => start.on_sent(sent));
    }

    #[inline]
    fn wants_packets(&self) -> bool {
        dispatch!(self, start => start.wants_packets())
    }

    fn on_acked(&mut self, acked: &Acked) {
        dispatch!(self, start => start.on_acked(acked));
    }

    #[inline]
    fn departure(&mut self, now: Time, next: &Next, window: &Window) -> Option<Departure> {
        dispatch!(self, start => start.departure(now, next, window))
    }

    #[inline]
    fn owns_window(&self) -> bool {
        dispatch!(self, start => start.owns_window())
    }

    fn rate_request(&mut self, occasion: &Occasion) -> Carried {
        dispatch!(self, start => start.rate_request(occasion))
    }

    fn on_answer(&mut self, answer: &Answer, window: &mut Window) -> bool {
        dispatch!(self, start => start.on_answer(answer, window))
    }

    fn take_report(&mut self) -> Carried {
        dispatch!(self, start => start.take_report())
    }

    fn on_restart(&mut self, now: Time, restart: Restart, window: &Window, last: LastRtt) -> bool {
        dispatch!(self, start => start.on_restart(now, restart, window, last))
    }

    fn watches(&self) -> bool {
        dispatch!(self, start => start.watches())
    }

    fn watch(&mut self, ack: &Ack, window: &Window) -> bool {
        dispatch!(self, start => start.watch(ack, window))
    }
}
