//! What one ACK delivered.

use flowstart_units::{Span, Time};

/// Collected while the scoreboard takes an ACK in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivery {
    /// Packets delivered for the first time, cumulatively or selectively.
    pub(super) packets: u32,
    /// Their payload.
    pub(super) bytes: u64,
    /// Packets selectively acknowledged for the first time.
    pub(super) sacked: u32,
    /// Packets cumulatively acknowledged, those delivered before included.
    pub(super) cumulative: u32,
    /// Times of sending of the earliest and latest packet cumulatively acknowledged that was never
    /// retransmitted.
    acked_sent: Option<(Time, Time)>,
    /// The same for packets selectively acknowledged.
    sacked_sent: Option<(Time, Time)>,
    /// A retransmitted packet was cumulatively acknowledged.
    pub(super) retransmitted_acked: bool,
    /// RACK's round trip is the age of a packet that was cumulatively acknowledged.
    pub(super) aged_by_ack: bool,
    /// A packet that was never retransmitted was delivered below the end of the recovery.
    pub(super) original_below_high: bool,
    /// Lowest byte of a packet never retransmitted that was delivered after a later one; `u64::MAX`
    /// if none was.
    pub(super) reordered_from: u64,
    /// Transmission number plus one of the newest packet delivered; 0 if none was.
    pub(super) newest_after: u64,
    /// It was sent more than once.
    pub(super) newest_retransmitted: bool,
    /// How it left.
    pub(super) newest: Flight,
}

/// How a packet left, for the delivery rate.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flight {
    /// When.
    pub sent_at: Time,
    /// Since the first packet of its flight; `None` if that is too long to be of use.
    pub send_elapsed: Option<Span>,
    /// Since the delivery before.
    pub delivered_elapsed: Option<Span>,
    /// Packets delivered until then.
    pub prior_delivered: u64,
    /// The application was the limit.
    pub app_limited: bool,
}

/// The round-trip times an ACK gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Samples {
    /// Of the earliest packet, for the timeout: it includes the delay of a delayed ACK.
    pub(super) smoothed: Option<Span>,
    /// Of the latest packet, for congestion control.
    pub(super) latest: Option<Span>,
}

impl Delivery {
    #[inline]
    pub(super) fn new() -> Self {
        Self {
            packets: 0,
            bytes: 0,
            sacked: 0,
            cumulative: 0,
            acked_sent: None,
            sacked_sent: None,
            retransmitted_acked: false,
            aged_by_ack: false,
            original_below_high: false,
            reordered_from: u64::MAX,
            newest_after: 0,
            newest_retransmitted: false,
            newest: Flight::default(),
        }
    }

    /// A packet was delivered that may be the newest.
    #[inline]
    pub(super) fn take_newest(&mut self, number: u64, retransmitted: bool, flight: &Flight) {
        if number >= self.newest_after {
            self.newest_after = number + 1;
            self.newest_retransmitted = retransmitted;
            self.newest = *flight;
        }
    }

    /// A packet that was sent only once was delivered.
    #[inline]
    pub(super) fn sample(&mut self, sent_at: Time, by_sack: bool) {
        let slot = if by_sack { &mut self.sacked_sent } else { &mut self.acked_sent };
        *slot = Some((slot.map_or(sent_at, |(earliest, _)| earliest), sent_at));
    }

    /// Round-trip times (Linux `tcp_clean_rtx_queue`, `tcp_ack_update_rtt`): cumulatively
    /// acknowledged packets first, then selectively acknowledged ones, then the echoed timestamp if
    /// the ACK delivered data.
    #[inline]
    pub(super) fn samples(&self, now: Time, echo: Time) -> Samples {
        let mut samples = Samples::default();
        if let Some((earliest, latest)) = self.acked_sent
            && !self.retransmitted_acked
        {
            samples = Samples { smoothed: Some(now.since(earliest)), latest: Some(now.since(latest)) };
        }
        if let Some((earliest, latest)) = self.sacked_sent {
            samples.smoothed = samples.smoothed.or(Some(now.since(earliest)));
            samples.latest = Some(now.since(latest));
        }
        if samples.smoothed.is_none() && self.cumulative > 0 {
            let echoed = now.checked_since(echo);
            samples = Samples { smoothed: echoed, latest: echoed };
        }
        samples
    }

    /// Round-trip time of the earliest packet selectively acknowledged.
    pub(super) fn sack_rtt(&self, now: Time) -> Option<Span> {
        self.sacked_sent.map(|(earliest, _)| now.since(earliest))
    }
}
