//! Spacing packets: by the rate of an avoidance, by what a start left behind, or by a rate derived
//! from the window.

use flowstart_control::{Departure, Next, Pacing, Sent, Window, WindowRate};
use flowstart_units::{Bytes, Rate, Span, Time};

/// What packets are spaced by now.
#[derive(Clone, Copy, Debug)]
enum Spacing {
    None,
    Rate(Rate),
    Window(WindowRate),
}

/// Books departures one gap after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pacer {
    pacing: Pacing,
    mss: u32,
    spacing: Spacing,
    /// The rate a start left behind, until pacing or the ACK clock takes its place, at the latest
    /// at this time.
    left_behind: Option<(Rate, Time)>,
    /// Earliest departure of the next packet; zero before the first.
    next: Time,
}

impl Pacer {
    pub(super) fn new(pacing: Pacing, mss: u32) -> Self {
        Self { pacing, mss: mss.max(1), spacing: Spacing::None, left_behind: None, next: Time::ZERO }
    }

    #[inline]
    pub(super) fn rate(&self) -> Option<Rate> {
        match self.spacing {
            Spacing::None => self.left_behind.map(|(rate, _)| rate),
            Spacing::Rate(rate) => Some(rate),
            Spacing::Window(window) => Some(window.rate(self.mss)),
        }
    }

    /// Full packets have so many bytes of payload from now on.
    pub(super) fn on_mss(&mut self, mss: u32) {
        self.mss = mss.max(1);
        // Until the next question a rate by the window would be that of packets of the old size.
        self.spacing = Spacing::None;
    }

    /// True if nothing is spaced unless the avoidance says so.
    #[inline(always)]
    pub(super) fn is_off(&self) -> bool {
        self.pacing == Pacing::Off && self.left_behind.is_none() && matches!(self.spacing, Spacing::None)
    }

    /// The next packet leaves when another says so: no gap of this pacing is booked for it.
    #[inline]
    pub(super) fn stand_aside(&mut self) {
        self.spacing = Spacing::None;
    }

    /// Earliest departure of the next packet.
    pub(super) fn next(&self) -> Time {
        self.next
    }

    /// A start hands over and wants packets to leave at this rate for now, at most until `until`.
    pub(super) fn set_rate(&mut self, rate: Rate, until: Time) {
        self.left_behind = Some((rate, until));
    }

    #[inline]
    pub(super) fn departure(&mut self, now: Time, next: &Next, window: &Window, own: Option<Rate>) -> Departure {
        if own.is_none() && self.left_behind.is_none() && self.pacing == Pacing::Off {
            self.spacing = Spacing::None;
            return Departure::Now;
        }
        self.paced_departure(now, next, window, own)
    }

    fn paced_departure(&mut self, now: Time, next: &Next, window: &Window, own: Option<Rate>) -> Departure {
        self.spacing = match (own, self.pacing) {
            (Some(rate), _) => Spacing::Rate(rate),
            (None, Pacing::Off) => match self.left_behind {
                None => return Departure::Now,
                // Without pacing, the rate the start left behind holds until the window is full:
                // from then on ACKs are the clock. Otherwise what the window has left would leave
                // in one burst.
                Some((rate, until)) if next.in_flight.saturating_add(1) < window.cwnd && now < until => {
                    Spacing::Rate(rate)
                }
                Some(_) => {
                    self.left_behind = None;
                    self.spacing = Spacing::None;
                    return Departure::Now;
                }
            },
            (None, Pacing::Window { start_percent, avoidance_percent, unpaced_packets, .. }) => {
                self.left_behind = None;
                // The last of the unpaced packets is the first whose gap counts.
                if next.srtt.is_zero() || next.number.saturating_add(1) < unpaced_packets {
                    Spacing::None
                } else {
                    let percent = [start_percent, avoidance_percent];
                    Spacing::Window(WindowRate::new(percent, window, next.packets_out, next.srtt))
                }
            }
        };
        if self.next <= now { Departure::Now } else { Departure::At(self.next) }
    }

    #[inline]
    pub(super) fn on_sent(&mut self, sent: &Sent) {
        match self.spacing {
            Spacing::None => self.next = self.next.max(sent.now),
            spacing => self.book(spacing, sent),
        }
    }

    fn book(&mut self, spacing: Spacing, sent: &Sent) {
        let gap = match spacing {
            Spacing::None => Span::ZERO,
            Spacing::Rate(rate) => rate.transmission_time(Bytes::new(u64::from(sent.bytes))),
            Spacing::Window(window) => window.gap(self.mss, sent.bytes),
        };
        // A late packet gets back only part of a gap, so that lateness does not turn into bursts.
        let late = sent.now.since(self.next);
        let credit = if self.next == Time::ZERO { Span::ZERO } else { late.min(self.pacing.catch_up(gap)) };
        self.next = self.next.max(sent.now) + (gap - credit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowstart_control::testing::{next, sent};

    fn ms(n: u64) -> Time {
        Time::ZERO + Span::from_millis(n)
    }

    #[test]
    fn the_first_ten_packets_leave_at_once_and_the_others_one_gap_apart() {
        let mut pacer = Pacer::new(Pacing::LINUX, 1000);
        let window = Window::new(100);
        let srtt = Span::from_millis(100);
        let start = ms(7);
        for number in 0..10 {
            assert_eq!(pacer.departure(start, &Next { srtt, ..next(number) }, &window, None), Departure::Now);
            pacer.on_sent(&Sent { bytes: 1000, ..sent(start, number) });
        }
        // 200 % of 100 packets in 100 ms: a gap of 0.5 ms.
        let mut at = start;
        for number in 10..15 {
            at += Span::from_micros(500);
            let departure = pacer.departure(start, &Next { srtt, ..next(number) }, &window, None);
            assert_eq!(departure, Departure::At(at), "packet {number}");
            pacer.on_sent(&Sent { bytes: 1000, ..sent(at, number) });
        }
    }

    #[test]
    fn a_late_packet_gets_back_at_most_half_a_gap() {
        let mut pacer = Pacer::new(Pacing::LINUX, 1000);
        let (window, srtt) = (Window::new(100), Span::from_millis(100));
        let mut book = |at: Time| {
            pacer.departure(at, &Next { srtt, ..next(20) }, &window, None);
            pacer.on_sent(&Sent { bytes: 1000, ..sent(at, 20) });
            pacer.next.since(at).as_micros()
        };
        assert_eq!(book(ms(10)), 500);
        assert_eq!(book(ms(10) + Span::from_micros(600)), 400, "0.1 ms late");
        assert_eq!(book(ms(20)), 250, "very late");
    }

    #[test]
    fn without_pacing_the_rate_a_start_left_behind_holds_until_the_window_is_full() {
        let mut pacer = Pacer::new(Pacing::Off, 1000);
        let window = Window::new(10);
        pacer.set_rate(Rate::from_bps(8_000_000), Time::ZERO + Span::from_secs(1));
        let ask = |pacer: &mut Pacer, in_flight| pacer.departure(ms(1), &Next { in_flight, ..next(50) }, &window, None);
        assert_eq!(ask(&mut pacer, 5), Departure::Now);
        pacer.on_sent(&Sent { bytes: 1000, ..sent(ms(1), 50) });
        assert_eq!(ask(&mut pacer, 6), Departure::At(ms(2)));
        assert_eq!(ask(&mut pacer, 9), Departure::Now, "this packet fills the window");
        assert_eq!(ask(&mut pacer, 5), Departure::Now);
        assert_eq!(pacer.rate(), None);
    }
}
