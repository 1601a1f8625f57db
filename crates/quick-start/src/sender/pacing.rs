//! When the packets of the Quick-Start phase may leave.

use flowstart_units::{Bytes, Rate, Span, Time};

use super::PacingConfig;

/// The timers of Scharf and Strotbek: a number of packets released over one RTT in steps that a
/// coarse clock can make.
///
/// Three cases: fewer packets than ticks and a chunk of 1, one timer per packet; at least as many
/// packets as ticks, one timer per tick, what does not divide is spread; otherwise the chunk limits
/// the number of timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timers {
    packets: u32,
    ticks: u64,
    timers: u64,
    tick: Span,
}

impl Timers {
    /// `packets` over `rtt`, at least `chunk` at once, on a clock of period `tick`.
    #[must_use]
    pub fn new(packets: u32, rtt: Span, tick: Span, chunk: u32) -> Self {
        let tick = tick.max(Span::from_nanos(1));
        let ticks = rtt.whole(tick).max(1);
        let timers = u64::from(packets / chunk.max(1)).min(ticks).max(1);
        Self { packets, ticks, timers, tick }
    }

    /// Number of timers.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.timers
    }

    /// When timer `index` expires, since the beginning of the phase; the first at once.
    #[must_use]
    pub fn due(&self, index: u64) -> Span {
        let tick = u128::from(index.min(self.timers)) * u128::from(self.ticks) / u128::from(self.timers);
        self.tick * u64::try_from(tick).unwrap_or(u64::MAX)
    }

    /// Packets that the first `timers` timers release together.
    #[must_use]
    pub fn released(&self, timers: u64) -> u32 {
        (u128::from(self.packets) * u128::from(timers.min(self.timers)) / u128::from(self.timers)) as u32
    }

    /// How many timers have expired `elapsed` after the beginning.
    fn expired(&self, elapsed: Span) -> u64 {
        let ticks = u128::from(elapsed.whole(self.tick));
        // Timer i is due at tick floor(i * ticks / timers).
        let due = ((ticks + 1) * u128::from(self.timers)).div_ceil(u128::from(self.ticks));
        u64::try_from(due).unwrap_or(u64::MAX).min(self.timers)
    }
}

/// What the pacing says to the next packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowance {
    /// It may leave now.
    Now,
    /// Not before this time.
    At(Time),
    /// Not in this phase: the window is used up.
    Closed,
}

/// A Quick-Start phase being paced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pacer {
    began: Time,
    /// Packets of the phase that have left. Those in flight do not tell: what was sent before
    /// arrives meanwhile.
    sent: u32,
    /// Window of the phase in packets.
    window: u32,
    /// Packets that leave at once.
    burst: u32,
    rule: Rule,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    Departures {
        rate: Rate,
        next: Time,
        /// Packets whose gaps shrink, and how many of them are still to leave.
        ramp: u32,
        left: u32,
    },
    Timers(Timers),
}

impl Pacer {
    /// A phase that begins at `now` with `in_flight` packets under way, opens the window to
    /// `window` packets, and sends at `rate` for about an `rtt`.
    #[must_use]
    pub fn new(config: PacingConfig, now: Time, window: u32, in_flight: u32, rate: Rate, rtt: Span) -> Self {
        let rule = match config {
            PacingConfig::Departures => Rule::Departures { rate, next: now, ramp: 0, left: 0 },
            PacingConfig::Timers { tick, chunk } => {
                Rule::Timers(Timers::new(window.saturating_sub(in_flight), rtt, tick, chunk))
            }
        };
        Self { began: now, sent: 0, window, burst: 0, rule }
    }

    /// The first `packets` leave at once. Those behind them leave when they would have left anyway,
    /// so that the mean rate over the phase stays.
    #[must_use]
    pub fn with_burst(self, packets: u32) -> Self {
        Self { burst: packets, ..self }
    }

    /// The first `packets` are a chirp: their gaps shrink evenly from twice that of the rate, and
    /// never below it. Timers have no chirp.
    #[must_use]
    pub fn with_ramp(mut self, packets: u32) -> Self {
        if let Rule::Departures { ramp, left, .. } = &mut self.rule {
            (*ramp, *left) = (packets, packets);
        }
        self
    }

    /// The window of the phase when it is fully open, in packets.
    #[must_use]
    pub fn window(&self) -> u32 {
        self.window
    }

    /// Whether another packet may leave while `in_flight` packets are under way.
    #[must_use]
    pub fn allowance(&self, now: Time, in_flight: u32) -> Allowance {
        if in_flight >= self.window {
            return Allowance::Closed;
        }
        if self.sent < self.burst {
            return Allowance::Now;
        }
        match &self.rule {
            Rule::Departures { next, .. } if *next > now => Allowance::At(*next),
            Rule::Departures { .. } => Allowance::Now,
            Rule::Timers(timers) => {
                let expired = timers.expired(now.since(self.began));
                if self.sent < timers.released(expired) {
                    Allowance::Now
                } else if expired < timers.count() {
                    Allowance::At(self.began + timers.due(expired))
                } else {
                    Allowance::Closed
                }
            }
        }
    }

    /// A packet of `bytes` on the wire left.
    pub fn on_sent(&mut self, now: Time, bytes: u32) {
        self.sent = self.sent.saturating_add(1);
        if let Rule::Departures { rate, next, ramp, left } = &mut self.rule {
            let gap = rate.transmission_time(Bytes::new(u64::from(bytes)));
            let more = if *left > 0 { gap.mul_ratio(u64::from(*left), u64::from(*ramp)) } else { Span::ZERO };
            *next = now.max(*next) + gap + more;
            *left = left.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn chunks(timers: &Timers) -> Vec<u32> {
        (0..timers.count()).map(|i| timers.released(i + 1) - timers.released(i)).collect()
    }

    fn paper(packets: u32, ms: u64, chunk: u32) -> Timers {
        Timers::new(packets, Span::from_millis(ms), Span::from_millis(1), chunk)
    }

    #[test]
    fn the_number_of_timers_and_their_packets_are_those_of_the_vectors() {
        let timers = paper(42, 100, 3);
        assert_eq!(chunks(&timers), [3; 14]);
        assert_eq!(
            (timers.due(1), timers.due(7), timers.due(13)),
            (Span::from_millis(7), Span::from_millis(50), Span::from_millis(92))
        );
        let timers = paper(85, 200, 3);
        let of = |chunks: &[u32], n| chunks.iter().filter(|c| **c == n).count();
        assert_eq!((chunks(&timers).len(), of(&chunks(&timers), 3), of(&chunks(&timers), 4)), (28, 27, 1));
        assert_eq!(chunks(&paper(10, 100, 3)), [3, 3, 4]);
        let timers = chunks(&paper(350, 100, 3));
        assert_eq!((timers.len(), of(&timers, 3), of(&timers, 4)), (100, 50, 50));
        let timers = chunks(&paper(10_922, 100, 3));
        assert_eq!((timers.len(), of(&timers, 109), of(&timers, 110)), (100, 78, 22));
    }

    #[test]
    fn with_a_chunk_of_one_and_few_packets_each_has_its_own_timer() {
        let timers = paper(10, 100, 1);
        assert_eq!(chunks(&timers), [1; 10]);
        assert_eq!(timers.due(3), Span::from_millis(30));
    }

    /// When the packets of a phase of 42 at 5.12 Mbit/s leave, in microseconds.
    fn departures(mut pacer: Pacer) -> Vec<u64> {
        let (mut now, mut times) = (Time::ZERO, Vec::new());
        loop {
            match pacer.allowance(now, times.len() as u32) {
                Allowance::Now => {
                    pacer.on_sent(now, 1500);
                    times.push(now.since(Time::ZERO).as_nanos() / 1000);
                }
                Allowance::At(time) => now = time,
                Allowance::Closed => return times,
            }
        }
    }

    fn phase() -> Pacer {
        let (rate, rtt) = (Rate::from_bps(5_120_000), Span::from_millis(100));
        Pacer::new(PacingConfig::Departures, Time::ZERO, 42, 0, rate, rtt)
    }

    #[test]
    fn a_burst_leaves_at_once_and_the_rest_when_it_would_have_left_anyway() {
        let (plain, burst) = (departures(phase()), departures(phase().with_burst(10)));
        assert_eq!((&burst[..10], &burst[10..]), (&[0; 10][..], &plain[10..]));
        let timers = Pacer { rule: Rule::Timers(paper(42, 100, 3)), ..phase() };
        assert_eq!((departures(timers)[3], departures(timers.with_burst(10))[9]), (7000, 0));
    }

    #[test]
    fn what_was_sent_before_the_phase_makes_no_room_for_more_when_it_arrives() {
        let (rate, rtt) = (Rate::from_bps(5_120_000), Span::from_millis(100));
        for (config, second) in [(PacingConfig::Departures, 2_343_750), (PacingConfig::PAPER, 8_000_000)] {
            let mut pacer = Pacer::new(config, Time::ZERO, 42, 5, rate, rtt);
            let first = if config == PacingConfig::PAPER { 3 } else { 1 };
            for _ in 0..first {
                assert_eq!(pacer.allowance(Time::ZERO, 5), Allowance::Now);
                pacer.on_sent(Time::ZERO, 1500);
            }
            // The five of before have arrived. 37 packets are 12 timers' worth.
            let next = Time::ZERO + Span::from_nanos(second);
            assert_eq!(pacer.allowance(Time::ZERO, first), Allowance::At(next), "{config:?}");
        }
    }

    #[test]
    fn a_ramp_begins_with_half_of_the_rate_and_ends_with_the_whole() {
        let times = departures(phase().with_ramp(8));
        let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        // 12,000 bits at 5.12 Mbit/s are 2343 microseconds.
        assert_eq!((gaps[0], gaps[4]), (4687, 3515));
        assert!(gaps[..9].is_sorted_by(|a, b| a >= b) && gaps[8..].iter().all(|gap| (2343..=2344).contains(gap)));
    }

    proptest! {
        #[test]
        fn timers_release_everything_within_the_rtt_and_never_more_than_a_chunk_and_one(
            packets in 1_u32..20_000, ms in 1_u64..1000, chunk in 1_u32..8,
        ) {
            let timers = paper(packets, ms, chunk);
            prop_assert_eq!(timers.released(timers.count()), packets);
            prop_assert!(timers.due(timers.count() - 1) < Span::from_millis(ms));
            let most = packets.div_ceil(timers.count() as u32);
            prop_assert!(chunks(&timers).iter().all(|c| *c == most || *c + 1 == most));
            prop_assert!(u64::from(packets) > ms * u64::from(chunk) || packets < chunk || most < 2 * chunk);
            for index in 0..timers.count() {
                prop_assert_eq!(timers.expired(timers.due(index)) , index + 1, "timers of different ticks");
                if index > 0 {
                    prop_assert!(timers.expired(timers.due(index) - Span::from_nanos(1)) == index);
                }
            }
        }

        #[test]
        fn the_first_rtt_never_carries_more_than_the_rate_and_a_chunk(
            n in 1_u8..=15, ms in 2_u64..300, paper: bool,
        ) {
            let code = crate::RateCode::new(n).unwrap();
            let rtt = Span::from_millis(ms);
            let window = code.window(rtt, 1500).min(20_000);
            let config = if paper { PacingConfig::PAPER } else { PacingConfig::Departures };
            let mut pacer = Pacer::new(config, Time::ZERO, window, 0, code.rate(), rtt);
            let (mut now, mut sent) = (Time::ZERO, 0);
            loop {
                match pacer.allowance(now, sent) {
                    Allowance::Now => {
                        sent += 1;
                        pacer.on_sent(now, 1500);
                        let bytes = Bytes::new(u64::from(sent) * 1500);
                        let most = code.rate().bytes_in(now.since(Time::ZERO) + Span::from_millis(1));
                        // Timers come a tick early at most, and in chunks of up to two times M less
                        // one.
                        prop_assert!(bytes <= most + Bytes::new(1500 * 6), "{bytes} > {most}");
                    }
                    Allowance::At(time) => {
                        prop_assert!(time > now);
                        now = time;
                    }
                    Allowance::Closed => break,
                }
            }
            prop_assert_eq!(sent, window);
            prop_assert!(now < Time::ZERO + rtt || window == 0);
        }
    }
}
