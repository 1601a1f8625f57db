//! What a congestion avoidance is.

use alloc::boxed::Box;

use flowstart_units::{Rate, Span, Time};

use crate::{Ack, Acked, ExitReason, Isolation, NewMss, Sent, Signal, Window};

/// A congestion avoidance.
pub trait CongestionAvoidance {
    /// The flow is this avoidance's from its first packet on, there is no start in front of it.
    /// Returns true if it brings a start of its own (BBR); otherwise standard slow start comes
    /// first. Only asked of avoidances that control recovery.
    fn begin_flow(&mut self, _window: &Window) -> bool {
        false
    }

    /// How the start of its own ended, once it has; only asked after
    /// [`begin_flow`](Self::begin_flow) said that there is one.
    fn own_exit(&self) -> Option<ExitReason> {
        None
    }

    /// Pacing lets the next packet leave at this time at the earliest. Told before
    /// [`grow`](Self::grow) to avoidances that control recovery.
    fn on_booked(&mut self, _next: Time) {}

    /// An ACK came (also while a start is in charge, and in recovery): statistics such as DCTCP's
    /// alpha.
    fn on_ack(&mut self, _ack: &Ack, _window: &Window) {}

    /// True if [`on_sent`](Self::on_sent) and [`on_acked`](Self::on_acked) must be called for every
    /// packet while this avoidance is in charge. Must always answer the same between two calls of
    /// [`IsolationAware::on_isolation`].
    fn wants_packets(&self) -> bool {
        false
    }

    /// A packet left; only called if [`wants_packets`](Self::wants_packets).
    fn on_sent(&mut self, _sent: &Sent) {}

    /// A packet was delivered, before [`on_ack`](Self::on_ack) of the same ACK, oldest first; only
    /// called if [`wants_packets`](Self::wants_packets).
    fn on_acked(&mut self, _acked: &Acked) {}

    /// The window may grow by `acked` packets' worth of acknowledgements; the flow is in congestion
    /// avoidance. Zero of them only if the avoidance controls recovery.
    fn grow(&mut self, ack: &Ack, acked: u32, window: &mut Window);

    /// The threshold in packets after this signal, at least 2. The transport walks the window
    /// there.
    fn reduce(&mut self, now: Time, signal: Signal, window: &Window) -> u32;

    /// A start handed over without a reduction: the window begins to grow from here. `rate` is what
    /// the path has for this flow in payload, if the start measured it. (After a reduction there is
    /// [`reduce`](Self::reduce), after idle time [`on_idle`](Self::on_idle).)
    fn on_takeover(&mut self, _now: Time, _window: &Window, _rate: Option<Rate>) {}

    /// The last reduction turned out to be spurious. Returns the window to restore, given the one
    /// before the reduction. The threshold is restored by the controller.
    fn undo(&mut self, prior_cwnd: u32, window: &Window) -> u32 {
        prior_cwnd.max(window.cwnd)
    }

    /// The flow was idle for this long and sends again (Linux `CA_EVENT_TX_START`). The window is
    /// there for who held it back meanwhile.
    fn on_idle(&mut self, _idle: Span, _window: &mut Window) {}

    /// The part that goes by whether the flow has a queue of its own, if this avoidance has one.
    fn isolation_aware(&mut self) -> Option<&mut dyn IsolationAware> {
        None
    }

    /// A pacing rate of its own, of payload, instead of the controller's. A rate of zero is none:
    /// it would never let a packet leave again.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }

    /// False if it has no [`pacing_rate`](Self::pacing_rate) now and will have none before it is
    /// told of something, so that the window alone may decide when packets leave, and nobody need
    /// ask for every one. True where that is not known at a glance.
    fn paces(&self) -> bool {
        true
    }

    /// True if in a kernel that counts ACKs, however many packets they acknowledge, the window
    /// grows by packets nevertheless: this avoidance works out for itself how many an ACK
    /// acknowledged (CUBIC of Linux before 4.0, `delayed_ack`). A transport that does as such a
    /// kernel then tells [`grow`](Self::grow) of packets.
    fn counts_packets(&self) -> bool {
        false
    }

    /// Segments that a burst of new data has at least, where there is as much to send; `None`: as
    /// many as the transport has (Linux `min_tso_segs` of `tcp_congestion_ops`).
    fn least_burst(&self) -> Option<u32> {
        None
    }

    /// True if the avoidance sets cwnd itself also in recovery (BBR, PCC), so that the transport
    /// must not reduce proportionally. Its [`grow`](Self::grow) is then called for every ACK,
    /// whether the window was used or not, and no start is in charge again after a timeout. Must
    /// always answer the same between two calls of [`IsolationAware::on_isolation`].
    fn controls_recovery(&self) -> bool {
        false
    }

    /// The retransmission timer expired, also if that calls for no reduction because one is under
    /// way; after [`reduce`](Self::reduce) if it does. `total_lost` packets were declared lost so
    /// far, those of this timeout included.
    fn on_expiry(&mut self, _now: Time, _total_lost: u64) {}

    /// True if this control, where packets are marked, is marked every few round trips at any rate
    /// (a scalable control), so that a long silence means free capacity.
    fn is_scalable(&self) -> bool {
        false
    }

    /// A full packet has another payload from now on. Windows were counted anew already; what this
    /// avoidance keeps in packets, or works out with the payload of a full packet, is to follow.
    fn on_mss(&mut self, _mss: NewMss) {}
}

/// An avoidance of any type that can be duplicated and handed to other threads, as the one in a
/// controller must be able to. Every CongestionAvoidance that is `Clone + Send + Sync` is one.
pub trait OwnAvoidance: CongestionAvoidance + Send + Sync {
    /// Another one in the same state.
    fn duplicate(&self) -> Box<dyn OwnAvoidance>;
}

impl<T: CongestionAvoidance + Clone + Send + Sync + 'static> OwnAvoidance for T {
    fn duplicate(&self) -> Box<dyn OwnAvoidance> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn OwnAvoidance> {
    fn clone(&self) -> Self {
        (**self).duplicate()
    }
}

/// An avoidance that goes by whether the flow has a queue of its own. All methods have defaults
/// that do nothing.
pub trait IsolationAware {
    /// It is known, or known anew, whether the flow has a queue of its own. If that matters to an
    /// avoidance that is in charge, the window it leaves is the one to go on with.
    fn on_isolation(&mut self, _now: Time, _isolation: Isolation, _window: &mut Window) {}

    /// True if what it sees contradicts that it has a queue of its own ([`Isolation::Isolated`]):
    /// the controller then tells it that the queue is shared. Only asked of avoidances that control
    /// recovery.
    fn doubts_isolation(&self) -> bool {
        false
    }

    /// True if it cannot keep its rate on this path although the queue is the flow's own: another
    /// avoidance had better go on.
    fn gives_up(&self) -> bool {
        false
    }

    /// It was seen again that the flow has a queue of its own, whatever
    /// [`doubts_isolation`](Self::doubts_isolation) builds on.
    fn on_isolation_confirmed(&mut self) {}

    /// A detector measured a round-trip time without queue.
    fn on_smallest_rtt(&mut self, _rtt: Span) {}

    /// Another avoidance takes over; it goes on to hear of ACKs, and
    /// [`on_takeover`](CongestionAvoidance::on_takeover) tells if it is in charge again.
    fn on_dismissal(&mut self) {}
}
