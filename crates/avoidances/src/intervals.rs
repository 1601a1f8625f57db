//! Monitor intervals: what became of the packets that were sent at one rate for about a round trip.
//! Rate-based controls try a rate, wait for the outcome, and decide.
//!
//! A packet counts as lost when one that left three or more transmissions later was
//! delivered and it was not, or when the interval is given up. Transmissions are numbered, so a
//! retransmission is a packet of its own. Nothing is allocated after the beginning.

use flowstart_control::{Ack, Acked, NewMss, Sent, Window};
use flowstart_units::{Bytes, Rate, Span, Time};

/// Most intervals that are planned at once.
pub(super) const MAX_PLANNED: usize = 4;

/// Sums over the RTT samples of an interval, for their mean and their slope over the time of
/// sending.
#[derive(Clone, Copy, Debug, Default)]
struct Samples {
    count: f64,
    time: f64,
    rtt: f64,
    time_time: f64,
    time_rtt: f64,
}

impl Samples {
    fn add(&mut self, time: f64, rtt: f64) {
        self.count += 1.0;
        self.time += time;
        self.rtt += rtt;
        self.time_time += time * time;
        self.time_rtt += time * rtt;
    }

    fn mean(&self) -> Option<f64> {
        (self.count > 0.0).then(|| self.rtt / self.count)
    }

    /// Least squares; zero if the samples do not tell.
    fn slope(&self) -> f64 {
        let spread = self.count * self.time_time - self.time * self.time;
        if spread > 0.0 { (self.count * self.time_rtt - self.time * self.rtt) / spread } else { 0.0 }
    }
}

/// How long an interval lasts: longer than this, and with at least so many packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Length {
    pub(super) span: Span,
    pub(super) packets: u32,
}

impl Length {
    /// As long as `span`, with two packets.
    pub(super) fn of(span: Span) -> Self {
        Self { span, packets: 2 }
    }

    fn is_over(&self, interval: &Interval, now: Time) -> bool {
        now.since(interval.first_sent) > self.span && interval.packets >= self.packets
    }
}

/// What became of the packets of an interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct IntervalOutcome {
    /// The rate that was meant.
    pub(super) rate: Rate,
    /// The rate measured from the first packet to the last; the one meant if there was only one
    /// packet.
    pub(super) sent: Rate,
    /// Share of the packets that were lost.
    pub(super) loss: f64,
    /// Mean RTT; `None` if there was no sample.
    pub(super) rtt: Option<Span>,
    /// Growth of the RTT per time of sending, without unit.
    pub(super) gradient: f64,
}

#[derive(Clone, Copy, Debug)]
struct Interval {
    rate: Rate,
    first: u64,
    last: u64,
    first_sent: Time,
    last_sent: Time,
    packets: u32,
    acked: u32,
    /// Bytes of all packets but the last: they took the time from the first to the last.
    bytes_before_last: u64,
    last_bytes: u32,
    samples: Samples,
}

impl Interval {
    fn begin(rate: Rate, sent: &Sent) -> Self {
        Self {
            rate,
            first: sent.number,
            last: sent.number,
            first_sent: sent.now,
            last_sent: sent.now,
            packets: 1,
            acked: 0,
            bytes_before_last: 0,
            last_bytes: sent.bytes,
            samples: Samples::default(),
        }
    }

    fn add(&mut self, sent: &Sent) {
        self.last = sent.number;
        self.last_sent = sent.now;
        self.packets += 1;
        self.bytes_before_last += u64::from(self.last_bytes);
        self.last_bytes = sent.bytes;
    }

    fn outcome(&self) -> IntervalOutcome {
        let span = self.last_sent.since(self.first_sent);
        let sent = if span.is_zero() { self.rate } else { Rate::of(Bytes::new(self.bytes_before_last), span) };
        let lost = self.packets.saturating_sub(self.acked);
        IntervalOutcome {
            rate: self.rate,
            sent,
            loss: f64::from(lost) / f64::from(self.packets.max(1)),
            rtt: self.samples.mean().map(Span::from_secs_f64),
            gradient: self.samples.slope(),
        }
    }
}

/// Sends planned intervals one after the other and collects their outcomes.
#[derive(Clone, Debug)]
pub(super) struct Monitor {
    plan: [Rate; MAX_PLANNED],
    planned: usize,
    intervals: [Option<Interval>; MAX_PLANNED],
    begun: usize,
    /// The last one begun still takes packets.
    filling: bool,
    /// Largest transmission number delivered.
    highest: u64,
    /// Later transmissions that must be delivered before a packet counts as lost.
    reordering: u64,
}

impl Monitor {
    pub(super) fn new(reordering: u32) -> Self {
        Self {
            plan: [Rate::ZERO; MAX_PLANNED],
            planned: 0,
            intervals: [None; MAX_PLANNED],
            begun: 0,
            filling: false,
            highest: 0,
            reordering: u64::from(reordering),
        }
    }

    /// Forgets everything; the next packets are sent at these rates, an interval each. At most
    /// [`MAX_PLANNED`].
    pub(super) fn plan(&mut self, rates: &[Rate]) {
        self.planned = rates.len().min(MAX_PLANNED);
        self.plan[..self.planned].copy_from_slice(&rates[..self.planned]);
        self.intervals = [None; MAX_PLANNED];
        self.begun = 0;
        self.filling = false;
    }

    /// The rate to send at now: that of the interval being sent or next to be sent, or `otherwise`.
    pub(super) fn rate(&self, otherwise: Rate) -> Rate {
        if self.filling {
            self.plan[self.begun - 1]
        } else if self.begun < self.planned {
            self.plan[self.begun]
        } else {
            otherwise
        }
    }

    /// A packet left.
    pub(super) fn on_sent(&mut self, sent: &Sent, length: Length) {
        if self.filling
            && let Some(interval) = &mut self.intervals[self.begun - 1]
        {
            if !length.is_over(interval, sent.now) {
                interval.add(sent);
                return;
            }
            self.filling = false;
        }
        if self.begun < self.planned {
            self.intervals[self.begun] = Some(Interval::begin(self.plan[self.begun], sent));
            self.begun += 1;
            self.filling = true;
        }
    }

    pub(super) fn on_acked(&mut self, acked: &Acked) {
        self.highest = self.highest.max(acked.number);
        let owner = self.intervals[..self.begun].iter_mut().flatten();
        for interval in owner {
            if (interval.first..=interval.last).contains(&acked.number) {
                interval.acked = interval.acked.saturating_add(1).min(interval.packets);
                if let Some(rtt) = acked.rtt {
                    let time = acked.sent_at.since(interval.first_sent).as_secs_f64();
                    interval.samples.add(time, rtt.as_secs_f64());
                }
            }
        }
    }

    /// The outcomes of all planned intervals, once they are known. `length` as for
    /// [`on_sent`](Self::on_sent). An interval is given up when so much time has passed since its
    /// last packet left.
    pub(super) fn outcomes(
        &mut self,
        now: Time,
        length: Length,
        give_up: Span,
    ) -> Option<([Option<IntervalOutcome>; MAX_PLANNED], usize)> {
        if self.planned == 0 {
            return None;
        }
        if self.filling
            && let Some(interval) = &self.intervals[self.begun - 1]
            && length.is_over(interval, now)
        {
            self.filling = false;
        }
        if self.filling || self.begun < self.planned {
            return None;
        }
        let known = self.intervals[..self.planned].iter().flatten().all(|interval| {
            interval.acked >= interval.packets
                || self.highest >= interval.last.saturating_add(self.reordering)
                || now.since(interval.last_sent) > give_up
        });
        known.then(|| (self.intervals.map(|interval| interval.map(|interval| interval.outcome())), self.planned))
    }
}

/// What every rate-based control knows of the path, and how it takes over.
#[derive(Clone, Copy, Debug)]
pub(super) struct PathView {
    mss: u64,
    pub(super) srtt: Span,
    pub(super) min_rtt: Span,
    /// The last rate of delivery that the application did not limit.
    pub(super) delivery: Option<Rate>,
}

impl PathView {
    pub(super) fn new(mss: u32) -> Self {
        Self { mss: u64::from(mss.max(1)), srtt: Span::ZERO, min_rtt: Span::MAX, delivery: None }
    }

    pub(super) fn on_mss(&mut self, mss: NewMss) {
        self.mss = u64::from(mss.bytes());
    }

    pub(super) fn on_ack(&mut self, ack: &Ack) {
        self.srtt = ack.srtt;
        self.min_rtt = ack.min_rtt;
        if let Some(sample) = ack.rate.filter(|sample| !sample.app_limited && sample.delivered > 0) {
            self.delivery = Some(self.rate_of(sample.delivered, sample.interval));
        }
    }

    pub(super) fn rate_of(&self, packets: u32, span: Span) -> Rate {
        Rate::of(Bytes::new(self.mss.saturating_mul(u64::from(packets))), span)
    }

    /// So many packets per smoothed RTT, and never nothing.
    pub(super) fn least_rate(&self, packets: u32) -> Rate {
        let rate = if self.srtt.is_zero() { Rate::ZERO } else { self.rate_of(packets, self.srtt) };
        rate.max(Rate::from_bps(1))
    }

    /// The rate to begin with after a start that met no congestion: its window per smoothed RTT.
    pub(super) fn window_rate(&self, window: &Window) -> Rate {
        self.rate_of(window.cwnd, if self.srtt.is_zero() { Span::from_secs(1) } else { self.srtt })
    }

    /// The rate to begin with after congestion: that of delivery, if it is less.
    pub(super) fn delivered_rate(&self, window: &Window) -> Rate {
        let by_window = self.window_rate(window);
        self.delivery.map_or(by_window, |delivery| delivery.min(by_window))
    }

    /// A window that does not hold packets at this rate back: `times` what it sends in a smoothed
    /// RTT, at least `least`.
    pub(super) fn window(&self, rate: Rate, times: u32, least: u32) -> u32 {
        let bytes = rate.bytes_in(self.srtt).get().saturating_mul(u64::from(times));
        u32::try_from(bytes / self.mss).unwrap_or(u32::MAX).max(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowstart_control::testing::sent;

    const MS: Span = Span::from_millis(1);

    fn at(ms: u64) -> Time {
        Time::ZERO + MS * ms
    }

    fn acked(now: u64, number: u64, sent_at: u64) -> Acked {
        let (now, sent_at) = (at(now), at(sent_at));
        Acked { now, number, bytes: 1448, sent_at, rtt: Some(now.since(sent_at)), retransmitted: false }
    }

    fn mbps(n: u64) -> Rate {
        Rate::from_mbps(n)
    }

    /// A packet every millisecond, from number 0 at time 0.
    fn send(monitor: &mut Monitor, numbers: std::ops::Range<u64>, length: Span) {
        for number in numbers {
            monitor.on_sent(&sent(at(number), number), Length::of(length));
        }
    }

    #[test]
    fn planned_rates_follow_each_other_and_then_the_base_rate() {
        let mut monitor = Monitor::new(3);
        monitor.plan(&[mbps(1), mbps(2)]);
        let rates: Vec<u64> = (0..30)
            .map(|number| {
                let rate = monitor.rate(mbps(9));
                send(&mut monitor, number..number + 1, MS * 10);
                rate.as_bps() / 1_000_000
            })
            .collect();
        // 0 to 10 ms belong to the first interval; the rate changes with the packet that opens the
        // next.
        assert_eq!(&rates[..12], [1; 12]);
        assert_eq!(&rates[12..23], [2; 11]);
        assert_eq!(&rates[23..], [9; 7]);
    }

    #[test]
    fn an_interval_counts_its_packets_losses_and_delays() {
        let mut monitor = Monitor::new(3);
        monitor.plan(&[mbps(12)]);
        send(&mut monitor, 0..30, MS * 9);
        assert!(monitor.outcomes(at(30), Length::of(MS * 9), MS * 80).is_none());
        // The RTT grows by a tenth of a millisecond per millisecond; 3 and 7 are lost.
        for number in (0..14).filter(|n| ![3, 7].contains(n)) {
            let delay = Span::from_micros(100) * number;
            let mut acked = acked(number + 20, number, number);
            acked.rtt = Some(MS * 20 + delay);
            monitor.on_acked(&acked);
        }
        let (outcomes, count) = monitor.outcomes(at(40), Length::of(MS * 9), MS * 80).unwrap();
        let outcome = outcomes[0].unwrap();
        assert_eq!((count, outcome.rate), (1, mbps(12)));
        assert!((outcome.loss - 0.2).abs() < 1e-9);
        assert!((outcome.gradient - 0.1).abs() < 1e-6);
        // 1448 bytes per millisecond.
        assert_eq!(outcome.sent.as_bps(), 11_584_000);
        assert!((outcome.rtt.unwrap().as_millis_f64() - 20.4375).abs() < 1e-6);
    }

    #[test]
    fn an_interval_is_not_known_before_a_later_packet_tells_of_its_losses() {
        let mut monitor = Monitor::new(3);
        monitor.plan(&[mbps(12)]);
        send(&mut monitor, 0..30, MS * 9);
        for number in 0..9 {
            monitor.on_acked(&acked(number + 20, number, number));
        }
        assert!(monitor.outcomes(at(30), Length::of(MS * 9), MS * 80).is_none(), "the tenth may be on its way");
        monitor.on_acked(&acked(31, 11, 11));
        assert!(monitor.outcomes(at(31), Length::of(MS * 9), MS * 80).is_none(), "two later");
        monitor.on_acked(&acked(32, 12, 12));
        let (outcomes, _) = monitor.outcomes(at(32), Length::of(MS * 9), MS * 80).unwrap();
        assert!((outcomes[0].unwrap().loss - 0.1).abs() < 1e-9);
    }

    #[test]
    fn how_many_later_packets_tell_of_losses_is_a_constant() {
        for reordering in [1, 3, 5] {
            let mut monitor = Monitor::new(reordering);
            monitor.plan(&[mbps(12)]);
            send(&mut monitor, 0..30, MS * 9);
            let mut known = |number: u64| {
                monitor.on_acked(&acked(number + 20, number, number));
                monitor.outcomes(at(number + 20), Length::of(MS * 9), MS * 80).is_some()
            };
            // Packets 0 to 9 are the interval; nothing of it arrives.
            let last = 9 + u64::from(reordering);
            assert_eq!([last - 1, last].map(&mut known), [false, true], "{reordering}");
        }
    }

    #[test]
    fn an_interval_that_nothing_comes_back_from_is_given_up() {
        let mut monitor = Monitor::new(3);
        monitor.plan(&[mbps(12)]);
        send(&mut monitor, 0..5, MS * 3);
        assert!(monitor.outcomes(at(80), Length::of(MS * 3), MS * 80).is_none());
        let (outcomes, _) = monitor.outcomes(at(90), Length::of(MS * 3), MS * 80).unwrap();
        let outcome = outcomes[0].unwrap();
        assert_eq!((outcome.loss, outcome.rtt), (1.0, None));
    }

    #[test]
    fn an_interval_has_at_least_two_packets() {
        let mut monitor = Monitor::new(3);
        monitor.plan(&[mbps(1)]);
        monitor.on_sent(&sent(at(0), 0), Length::of(MS));
        monitor.on_sent(&sent(at(50), 1), Length::of(MS));
        monitor.on_sent(&sent(at(100), 2), Length::of(MS));
        assert_eq!(monitor.intervals[0].unwrap().packets, 2);
    }
}
