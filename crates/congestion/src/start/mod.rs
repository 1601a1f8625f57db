//! Flow starts: from the first packet until they hand over to congestion avoidance.

use flowstart_units::{Rate, Time};

use crate::{Ack, Acked, Departure, Next, Sent, Signal, Window};

/// Why a start ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExitReason {
    /// HyStart's ACK train grew longer than half the minimum RTT.
    AckTrain,
    /// The round-trip time rose (HyStart's or HyStart++'s delay test).
    DelayIncrease,
    /// Paced chirping: the packets in flight fill the path at the measured rate.
    PipeFull,
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
}

/// A flow start. All methods but [`grow`](FlowStart::grow) have defaults that fit a start driven by the ACK clock.
pub trait FlowStart {
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
}

pub mod slow_start;

use crate::ControllerConfig;

/// Which start, with its constants.
#[derive(Clone, Debug, PartialEq)]
pub enum StartConfig {
    /// Standard slow start (RFC 5681).
    SlowStart {
        /// Initial threshold in packets; `None` for none.
        initial_ssthresh: Option<u32>,
    },
}

impl StartConfig {
    /// The threshold in packets a connection begins with, if the start knows one.
    #[must_use]
    pub fn initial_ssthresh(&self) -> Option<u32> {
        match self {
            Self::SlowStart { initial_ssthresh } => *initial_ssthresh,
        }
    }
}

/// A start in operation.
pub enum Start {
    /// Standard slow start.
    SlowStart(slow_start::SlowStart),
    /// An algorithm from outside this crate.
    External(Box<dyn FlowStart + Send>),
}

impl std::fmt::Debug for Start {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::SlowStart(start) => start.fmt(f),
            Self::External(_) => f.write_str("External"),
        }
    }
}

impl Start {
    /// The start that `config` names.
    #[must_use]
    pub fn new(config: &ControllerConfig) -> Self {
        match &config.start {
            StartConfig::SlowStart { .. } => Self::SlowStart(slow_start::SlowStart),
        }
    }

    /// True if reaching ssthresh does not end this start (it ends by its own verdict).
    pub(crate) fn owns_threshold(&self) -> bool {
        false
    }
}

impl FlowStart for Start {
    #[inline]
    fn on_ack(&mut self, ack: &Ack, window: &mut Window) -> Verdict {
        match self {
            Self::SlowStart(s) => s.on_ack(ack, window),
            Self::External(s) => s.on_ack(ack, window),
        }
    }

    #[inline]
    fn grow(&mut self, ack: &Ack, window: &mut Window) -> u32 {
        match self {
            Self::SlowStart(s) => s.grow(ack, window),
            Self::External(s) => s.grow(ack, window),
        }
    }

    fn on_signal(&mut self, now: Time, signal: Signal, window: &mut Window) -> Response {
        match self {
            Self::SlowStart(s) => s.on_signal(now, signal, window),
            Self::External(s) => s.on_signal(now, signal, window),
        }
    }

    #[inline]
    fn on_sent(&mut self, sent: &Sent) {
        match self {
            Self::SlowStart(s) => s.on_sent(sent),
            Self::External(s) => s.on_sent(sent),
        }
    }

    #[inline]
    fn wants_packets(&self) -> bool {
        match self {
            Self::SlowStart(s) => s.wants_packets(),
            Self::External(s) => s.wants_packets(),
        }
    }

    fn on_acked(&mut self, acked: &Acked) {
        match self {
            Self::SlowStart(s) => s.on_acked(acked),
            Self::External(s) => s.on_acked(acked),
        }
    }

    #[inline]
    fn departure(&mut self, now: Time, next: &Next, window: &Window) -> Option<Departure> {
        match self {
            Self::SlowStart(s) => s.departure(now, next, window),
            Self::External(s) => s.departure(now, next, window),
        }
    }
}
