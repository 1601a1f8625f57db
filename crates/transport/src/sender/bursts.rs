//! New data in bursts, as segmentation offload sends it (Linux `tcp_write_xmit`,
//! `tcp_tso_should_defer`).

use flowstart_units::{Span, Time};

use super::transmit::Blocked;
use super::{Sender, SenderState};

/// A burst is held back only if the last packet left within this time, and if the next ACK is due
/// within it.
const RECENT: Span = Span::from_millis(1);

/// The burst that is leaving.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Burst {
    /// When it leaves.
    at: Time,
    /// Segments of it that have not left.
    left: u32,
}

impl Sender {
    /// Payload of the next new segment if it may leave now, as part of a burst.
    #[inline(never)]
    pub(super) fn next_in_burst(&mut self, now: Time) -> Result<u32, Blocked> {
        let payload = self.new_payload(false)?;
        if self.burst.left > 0 && self.burst.at == now {
            self.burst.left -= 1;
            return Ok(payload);
        }
        let next = self.next_packet(payload, false);
        let (departure, own) = self.controller.departure_by(now, &next);
        if !self.is_due(now, departure, false) {
            return Err(Blocked::Departure);
        }
        // A start that gives its packets times of their own sends them one by one.
        let segments = if own { 1 } else { self.burst_size(now)? };
        self.burst = Burst { at: now, left: segments - 1 };
        Ok(payload)
    }

    /// How many segments leave now, at least 1.
    fn burst_size(&self, now: Time) -> Result<u32, Blocked> {
        let Some(offload) = &self.config.offload else { return Ok(1) };
        let mss = u64::from(self.config.mss);
        let cwnd = self.controller.cwnd();
        let free = cwnd.saturating_sub(self.board.in_flight());
        let rate = self.controller.assumed_rate(self.board.packets_out(), self.stats.srtt, self.config.mss);
        let full = offload.segments(self.config.mss, rate, self.stats.min_rtt);
        let available = self.available();
        let offered = self.window_end.saturating_sub(self.stats.next);
        let room = offered.min(u64::from(free) * mss);
        if available > mss && available > room && self.waits(now, full, room, offload.window_divisor) {
            let by_window = u64::from(free) * mss >= offered;
            return Err(if by_window { Blocked::Window } else { Blocked::Burst });
        }
        // No more than half of a window at once.
        let most = u64::from(full.min(free).min((cwnd / 2).max(1)));
        let segments = most.min(offered / mss).min(available.div_ceil(mss)).max(1);
        Ok(u32::try_from(segments).unwrap_or(u32::MAX))
    }

    /// Whether a burst had better wait until the next ACK makes room for more.
    fn waits(&self, now: Time, full: u32, room: u64, divisor: u32) -> bool {
        let mss = u64::from(self.config.mss);
        let Some(head) = self.board.head_sent_at() else { return false };
        let window = u64::from(self.controller.cwnd()) * mss;
        let window = window.min(self.window_end.saturating_sub(self.stats.una));
        let worthwhile = window.checked_div(u64::from(divisor)).unwrap_or(0);
        let srtt = self.stats.srtt;
        self.recovery.state < SenderState::Recovery
            && self.last_sent.is_some_and(|last| now.since(last) <= RECENT)
            && room < u64::from(full) * mss
            && room < worthwhile
            // The next ACK is near.
            && (head + srtt).since(now) <= RECENT.min(srtt / 2)
    }
}
