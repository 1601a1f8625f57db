//! What a flow start is: the trait, what it says, and how it ends.

use alloc::boxed::Box;

use flowstart_quick_start::Carried;
use flowstart_units::{Rate, Span, Time};

use crate::{Ack, Acked, Answer, Departure, NewMss, Next, Occasion, Sent, Signal, Window};

/// Why a start ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExitReason {
    /// HyStart's ACK train grew longer than half the minimum RTT.
    AckTrain,
    /// The round-trip time rose (HyStart's or HyStart++'s delay test).
    DelayIncrease,
    /// Paced chirping, or a grant of Quick-Start that was checked: the packets in flight fill the
    /// path at the measured rate.
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
    /// It ended without anybody seeing why: of a kernel's connection, from outside.
    Unseen,
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
    /// Pace at this rate until the avoidance or the controller's pacing has computed one of its
    /// own. A rate of zero is none.
    pub rate: Option<Rate>,
}

/// What a start says after an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterAck {
    /// Still starting.
    Continue,
    /// Done; the avoidance takes over with this ACK.
    Done(Exit),
}

/// What a start says to an ACK once an avoidance has taken over from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Afterwards {
    /// It has no more to say.
    Settled,
    /// What it handed over may yet turn out to be wrong.
    Open,
    /// It was wrong: the avoidance goes on with this, and the start is asked again with the next
    /// ACK.
    Corrected(Exit),
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

/// A flow start. All methods but [`grow`](FlowStart::grow) have defaults that fit a start driven by
/// the ACK clock.
pub trait FlowStart {
    /// Window in packets that the connection begins with, if this start does not want the usual
    /// initial window.
    fn initial_window(&self) -> Option<u32> {
        None
    }

    /// An ACK came; windows have not grown yet.
    fn on_ack(&mut self, _ack: &Ack, _window: &mut Window) -> AfterAck {
        AfterAck::Continue
    }

    /// This start has ended by itself, an avoidance is in charge, and an ACK came. Asked until
    /// there is no more to say, or a signal of congestion that it leaves to the avoidance.
    fn on_ack_after(&mut self, _ack: &Ack, _window: &Window) -> Afterwards {
        Afterwards::Settled
    }

    /// The same, and congestion is signalled. Returns the threshold in packets to go on with, or
    /// `None` to leave that to the avoidance.
    fn on_signal_after(&mut self, _signal: Signal, _window: &Window) -> Option<u32> {
        None
    }

    /// The window may grow for the `acked` packets of this ACK. Returns the packets left for
    /// congestion avoidance after ssthresh was reached.
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

    /// A packet was delivered. Called before [`on_ack`](FlowStart::on_ack) of the same ACK, oldest
    /// first.
    fn on_acked(&mut self, _acked: &Acked) {}

    /// When the next packet may leave, or `None` to leave that to the controller's pacing. Must be
    /// idempotent: the transport may ask several times before it sends.
    fn departure(&mut self, _now: Time, _next: &Next, _window: &Window) -> Option<Departure> {
        None
    }

    /// The rate at which [`departure`](FlowStart::departure) lets packets leave one after the other
    /// now, where it has one: for transports that can be told a rate but no times.
    fn departure_rate(&self) -> Option<Rate> {
        None
    }

    /// True if this start sets the window as a mere permission: reaching ssthresh does not end it,
    /// and neither idleness nor an application with little to send shrinks the window while it is
    /// in charge.
    fn owns_window(&self) -> bool {
        false
    }

    /// True if the avoidance is to start the flow by itself, if it can; this start is then never in
    /// charge. See [`begin_flow`](crate::CongestionAvoidance::begin_flow).
    fn leaves_to_avoidance(&self) -> bool {
        false
    }

    /// The part that asks the routers on the path for a rate, if this start has one.
    fn router_client(&mut self) -> Option<&mut dyn RouterClient> {
        None
    }

    /// This start is over, and now the flow is below its threshold again. Returns true to be in
    /// charge once more until the threshold is reached; otherwise standard slow start does it.
    fn on_restart(&mut self, _now: Time, _restart: Restart, _window: &Window, _last: LastRtt) -> bool {
        false
    }

    /// The part that goes on to look for free capacity after the start, if this start has one.
    fn lookout(&mut self) -> Option<&mut dyn Lookout> {
        None
    }

    /// A full packet has another payload from now on. Windows were counted anew already; what this
    /// start keeps in packets, or works out with the payload of a full packet, is to follow.
    fn on_mss(&mut self, _mss: NewMss) {}
}

/// A start of any type that can be duplicated and handed to other threads, as the one in a
/// controller must be able to. Every FlowStart that is `Clone + Send + Sync` is one.
pub trait OwnStart: FlowStart + Send + Sync {
    /// Another one in the same state.
    fn duplicate(&self) -> Box<dyn OwnStart>;
}

impl<T: FlowStart + Clone + Send + Sync + 'static> OwnStart for T {
    fn duplicate(&self) -> Box<dyn OwnStart> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn OwnStart> {
    fn clone(&self) -> Self {
        (**self).duplicate()
    }
}

/// A start that asks the routers on the path for a rate (Quick-Start, RFC 4782; RCP).
pub trait RouterClient {
    /// What to ask for with the next packet, if anything. Asked at every
    /// [`Moment`](crate::Moment) at which that may make sense.
    fn rate_request(&mut self, occasion: &Occasion) -> Carried;

    /// What was asked for is answered. Returns true for the start to be in charge (again) from now
    /// on.
    fn on_answer(&mut self, answer: &Answer, window: &mut Window) -> bool;

    /// What the next new data reports to the routers, if anything (the report of approved rate of
    /// RFC 4782); told once.
    fn take_report(&mut self) -> Carried;

    /// True if every packet asks the routers what they have for this flow (RCP): then
    /// [`on_answer`](Self::on_answer) is called for every ACK, and
    /// [`rate_request`](Self::rate_request) matters for the SYN alone. Always the same.
    fn asks_for_shares(&self) -> bool {
        false
    }
}

/// A start that begins again while an avoidance is in charge.
pub trait Lookout {
    /// An ACK came while a scalable avoidance is in charge, one that is marked every few round
    /// trips at any rate. Returns true for the start to be in charge again.
    fn look(&mut self, ack: &Ack, window: &Window) -> bool;
}
