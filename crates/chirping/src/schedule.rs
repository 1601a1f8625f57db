//! What differs between the generations of Paced Chirping: when the next chirp comes, what a
//! chirp's result changes, and when the start is over.

use flowstart_units::{Bytes, Rate, Span, Time};

use super::again::{ChirpingAgainConfig, Known};
use super::flight::Measured;
use super::geometry::Geometry;
use flowstart_control::{Ack, Afterwards, Exit, ExitReason, INFINITE_SSTHRESH, NewMss, Next, Window};

/// A chirp on its way out.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub(super) geometry: Geometry,
    /// Pause after its last packet in ns.
    pub(super) guard: u64,
    /// Earliest departure of its first packet.
    pub(super) at: Time,
    /// What the schedule wants to know of it when its result comes.
    pub(super) load: u64,
}

/// What came of the wish for another chirp.
#[derive(Clone, Copy, Debug)]
pub enum Pull {
    /// This one.
    Chirp(Plan),
    /// Not now; something must happen first.
    Hold,
    /// None: packets leave without, as the window lets them.
    Unchirped,
}

/// The chirp before the one that is planned.
#[derive(Clone, Copy, Debug)]
pub struct Before {
    /// When its first packet left.
    pub(super) first: Time,
    /// When its last packet left.
    pub(super) last: Time,
    /// Packets of it.
    pub(super) packets: u32,
    /// Earliest departure of the next chirp, as it was planned: after its guard.
    pub(super) after: Time,
}

/// The rules of a generation.
pub trait Schedule: core::fmt::Debug {
    /// True if a chirp is planned anew with what is known by then until its first packet leaves;
    /// false if the first plan holds.
    const PLANS_ANEW: bool;

    /// The next chirp, which would be number `number`, counted from 0.
    fn pull(&mut self, now: Time, number: u32, next: &Next, window: &Window, before: Option<&Before>) -> Pull;

    /// Chirp `number` is complete. Without `measured` it says nothing.
    fn completed(&mut self, number: u32, measured: Option<&Measured>, in_flight: u32);

    /// A packet of chirp `number` was acknowledged.
    fn acked(&mut self, _number: u32) {}

    /// Whether and how the start is over, after an ACK; `completed` if the ACK completed a chirp.
    fn verdict(&mut self, ack: &Ack, completed: bool) -> Option<Exit>;

    /// An ACK after the start's end, while an avoidance is in charge with a window of `cwnd`.
    fn on_ack_after(&mut self, _ack: &Ack, _cwnd: u32) -> Afterwards {
        Afterwards::Settled
    }

    /// A loss was found after the start's end, while an avoidance is in charge with a window of
    /// `cwnd`: threshold in packets to go on with, or `None` to leave that to the avoidance.
    fn on_loss_after(&mut self, _cwnd: u32) -> Option<u32> {
        None
    }

    /// Packets that may leave beyond those in flight; `leaving` are left of the chirp that is
    /// leaving.
    fn permission(&self, number: u32, leaving: u32) -> u32;

    /// A loss was found: window and threshold in packets to go on with, or `None` to go on as if
    /// nothing had happened.
    fn on_loss(&mut self, now: Time, in_flight: u32) -> Option<(u32, u32)>;

    /// A packet of a chirp left this much later than the host was told, in ns, after a planned gap
    /// of `gap`.
    fn left(&mut self, _late: u64, _gap: u64) {}

    /// True once the host turned out to keep no gaps: packets leave as in slow start from then on.
    fn gave_up(&self) -> bool {
        false
    }

    /// A chirp in which two packets left further apart than this many planned gaps says nothing.
    /// `host` if it was the host that was late, not an ACK.
    fn stall(&self, host: bool) -> f64;

    /// When chirps are sent again after the start, if ever.
    fn again(&self) -> Option<&ChirpingAgainConfig> {
        None
    }

    /// Packets that fill the path at the capacity that chirps have shown; zero if they have shown
    /// none.
    fn shown(&self) -> u32 {
        0
    }

    /// A full packet has another payload: the gaps of the next chirps keep the rate in bytes.
    /// Chirps that are on their way will be [completed](Self::completed) as if they had been of
    /// such packets.
    fn on_mss(&mut self, mss: NewMss);

    /// Begins again with chirp number `number`. Returns false if this schedule only starts flows.
    fn resume(&mut self, _number: u32, _known: Known) -> bool {
        false
    }
}

/// How a schedule hands over: this window, which is also the threshold, filled at one packet per
/// `gap`.
pub(super) fn exit(reason: ExitReason, cwnd: u32, gap: u64, mss: u32) -> Exit {
    let rate = Rate::of(Bytes::new(u64::from(mss)), Span::from_nanos(gap));
    let cwnd = cwnd.clamp(2, INFINITE_SSTHRESH);
    Exit { reason, cwnd, ssthresh: cwnd, rate: Some(rate) }
}

/// Packets that fill `rtt` at one per `gap`; zero if the RTT is not known.
pub(super) fn packets_in(rtt: Span, gap: u64) -> u32 {
    if rtt == Span::MAX {
        return 0;
    }
    u32::try_from(rtt.as_nanos() / gap.max(1)).unwrap_or(INFINITE_SSTHRESH).min(INFINITE_SSTHRESH)
}
