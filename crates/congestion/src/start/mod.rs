//! Flow starts: from the first packet until they hand over to congestion avoidance.

use flowstart_quick_start::Carried;
use flowstart_units::{Rate, Span, Time};

use crate::{Ack, Acked, Answer, Departure, Next, Occasion, Pacing, Sent, Signal, Window};

/// Why a start ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExitReason {
    /// HyStart's ACK train grew longer than half the minimum RTT.
    AckTrain,
    /// The round-trip time rose (HyStart's or HyStart++'s delay test).
    DelayIncrease,
    /// Paced chirping, or a grant of Quick-Start that was checked: the packets in flight fill the path at the measured rate.
    PipeFull,
    /// SEARCH: delivery fell behind what was sent a round trip earlier.
    DeliveryLag,
    /// BBR's start-up: the delivery rate no longer grew.
    RatePlateau,
    /// A loss was found.
    Loss,
    /// A congestion mark was obeyed.
    Marks,
    /// The retransmission timer expired.
    Timeout,
    /// The window reached a threshold known before (ssthresh).
    Threshold,
    /// A limit of the algorithm itself was hit (for instance the number of chirps).
    Limit,
    /// The detector of fair queuing gave its answer.
    Isolation,
}

/// How a start hands over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// Why.
    pub reason: ExitReason,
    /// Window to continue with, in packets.
    pub cwnd: u32,
    /// Threshold to continue with, in packets.
    pub ssthresh: u32,
    /// Pace at this rate until the avoidance or the controller's pacing has computed one of its own.
    pub rate: Option<Rate>,
}

/// What a start says after an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Still starting.
    Continue,
    /// Done; the avoidance takes over with this ACK.
    Done(Exit),
}

/// What a start says to a signal of congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    /// The start goes on and the window is not reduced (the avoidance still keeps its statistics).
    Ignore,
    /// The start is over; the avoidance computes the reduced threshold.
    Leave,
    /// The start is over; the threshold is this, in packets.
    LeaveAt(u32),
    /// The start is over, and the window is `cwnd` at once: no walk from the one before.
    FallTo {
        /// Window in packets.
        cwnd: u32,
        /// Threshold in packets.
        ssthresh: u32,
    },
}

/// Why a flow is below its threshold again after its start was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    /// The retransmission timer expired.
    Timeout,
    /// The flow was idle for longer than a retransmission timeout.
    Idle,
    /// The reduction that ended the start was spurious and has been undone.
    Undo,
}

/// Round-trip times as of the last ACK.
#[derive(Clone, Copy, Debug)]
pub struct LastRtt {
    /// Smoothed; zero if unknown.
    pub srtt: Span,
    /// Smallest; [`Span::MAX`] if unknown.
    pub min_rtt: Span,
}

/// A flow start. All methods but [`grow`](FlowStart::grow) have defaults that fit a start driven by the ACK clock.
pub trait FlowStart {
    /// Window in packets that the connection begins with, if this start does not want the usual initial window.
    fn initial_window(&self) -> Option<u32> {
        None
    }

    /// An ACK came; windows have not grown yet.
    fn on_ack(&mut self, _ack: &Ack, _window: &mut Window) -> Verdict {
        Verdict::Continue
    }

    /// The window may grow for the `acked` packets of this ACK. Returns the packets left for congestion avoidance after ssthresh was reached.
    fn grow(&mut self, ack: &Ack, window: &mut Window) -> u32;

    /// Loss, marks or a timeout.
    fn on_signal(&mut self, _now: Time, _signal: Signal, _window: &mut Window) -> Response {
        Response::Leave
    }

    /// A packet left.
    fn on_sent(&mut self, _sent: &Sent) {}

    /// True if [`on_acked`](FlowStart::on_acked) must be called for every packet.
    fn wants_packets(&self) -> bool {
        false
    }

    /// A packet was delivered. Called before [`on_ack`](FlowStart::on_ack) of the same ACK, oldest first.
    fn on_acked(&mut self, _acked: &Acked) {}

    /// When the next packet may leave, or `None` to leave that to the controller's pacing. Must be idempotent: the transport may ask
    /// several times before it sends.
    fn departure(&mut self, _now: Time, _next: &Next, _window: &Window) -> Option<Departure> {
        None
    }

    /// True if this start sets the window as a mere permission: reaching ssthresh does not end it, and neither idleness nor an application with
    /// little to send shrinks the window while it is in charge.
    fn owns_window(&self) -> bool {
        false
    }

    /// What to ask the routers on the path for with the next packet, if anything (Quick-Start, RFC 4782). Asked at every
    /// [`Moment`](crate::Moment) at which that may make sense.
    fn rate_request(&mut self, _occasion: &Occasion) -> Carried {
        Carried::NONE
    }

    /// What was asked for is answered. Returns true to be in charge (again) from now on.
    fn on_answer(&mut self, _answer: &Answer, _window: &mut Window) -> bool {
        false
    }

    /// What the next new data reports to the routers, if anything (the report of approved rate of RFC 4782); told once.
    fn take_report(&mut self) -> Carried {
        Carried::NONE
    }

    /// This start is over, and now the flow is below its threshold again. Returns true to be in charge once more until the threshold is
    /// reached; otherwise standard slow start does it.
    fn on_restart(&mut self, _now: Time, _restart: Restart, _window: &Window, _last: LastRtt) -> bool {
        false
    }

    /// True if [`watch`](FlowStart::watch) must be called while a scalable avoidance is in charge.
    fn watches(&self) -> bool {
        false
    }

    /// An ACK came while a scalable avoidance is in charge, one that is marked every few round trips at any rate. Returns true to be in charge
    /// again.
    fn watch(&mut self, _ack: &Ack, _window: &Window) -> bool {
        false
    }
}

pub mod bbr_start;
pub mod careful_resume;
mod config;
pub mod directed;
mod first_recovery;
pub mod hystart;
pub mod hystart_plus_plus;
pub mod jump_start;
pub mod limited_slow_start;
pub mod paced_chirping;
pub mod quick_start;
pub mod rapid_start;
pub mod search;
pub mod slow_start;
mod spacing;
pub mod suss;

pub use bbr_start::{BbrStart, BbrStartConfig};
pub use careful_resume::{CarefulResume, CarefulResumeConfig};
pub use config::StartConfig;
pub use directed::Directed;
pub use hystart::{Hystart, HystartConfig};
pub use hystart_plus_plus::{HystartPlusPlus, HystartPlusPlusConfig};
pub use jump_start::{JumpStart, JumpStartConfig};
pub use limited_slow_start::{LimitedSlowStart, LimitedSlowStartConfig};
pub use paced_chirping::{
    AdaptiveChirping, AdaptiveChirpingConfig, BeliefConfig, ChirpingAgainConfig, PacedChirping, PacedChirpingConfig,
    TwoGapChirping, TwoGapChirpingConfig,
};
pub use quick_start::{GrantCheckConfig, QuickStart, QuickStartConfig};
pub use rapid_start::{RapidStart, RapidStartConfig};
pub use search::{Search, SearchConfig};
pub use slow_start::SlowStart;
pub use suss::{Suss, SussConfig};

use crate::ControllerConfig;

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
    /// The start that `config` names.
    #[must_use]
    pub fn new(config: &ControllerConfig) -> Self {
        let (paced, mss) = (config.pacing != Pacing::Off, config.mss);
        match &config.start {
            StartConfig::SlowStart => Self::SlowStart(SlowStart),
            StartConfig::Hystart(start) => Self::Hystart(Hystart::new(start, paced, mss)),
            StartConfig::HystartPlusPlus(start) => Self::HystartPlusPlus(HystartPlusPlus::new(start, paced, mss)),
            StartConfig::PacedChirping(start) => Self::PacedChirping(Box::new(PacedChirping::new(start, mss))),
            StartConfig::TwoGapChirping(start) => Self::TwoGapChirping(Box::new(TwoGapChirping::new(start, mss))),
            StartConfig::AdaptiveChirping(start) => Self::AdaptiveChirping(Box::new(AdaptiveChirping::new(start, mss))),
            StartConfig::Search(start) => Self::Search(Box::new(Search::new(start, config.initial_window, mss))),
            StartConfig::QuickStart(start) => {
                Self::QuickStart(Box::new(QuickStart::new(start, config.initial_window, mss, config.seed)))
            }
            StartConfig::LimitedSlowStart(start) => Self::LimitedSlowStart(LimitedSlowStart::new(start)),
            StartConfig::BbrStart(start) => Self::BbrStart(Box::new(BbrStart::new(start, config.initial_window, mss))),
            StartConfig::RapidStart(start) => {
                Self::RapidStart(Box::new(RapidStart::new(start, config.initial_window, mss)))
            }
            StartConfig::JumpStart(start) => Self::JumpStart(JumpStart::new(start, config.initial_window, mss)),
            StartConfig::CarefulResume(start) => {
                Self::CarefulResume(Box::new(CarefulResume::new(start, config.initial_window, mss, config.seed)))
            }
            StartConfig::Suss(start) => Self::Suss(Box::new(Suss::new(start, config.initial_window, paced, mss))),
            StartConfig::TwoFlowProbe(_) | StartConfig::FairQueuingProbe(_) => Self::Directed(Box::default()),
        }
    }
}

impl Start {
    /// The last chirp that was fit to be read, also after the start has ended; `None` before the first, and for starts that do not chirp.
    #[must_use]
    pub fn last_chirp(&self) -> Option<&paced_chirping::Measured> {
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
