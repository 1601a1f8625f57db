//! A path that carries less than is sent to it, seen without chirps.
//!
//! RTTs within a round trip rise by the difference between the times over which its ACKs came and
//! its packets left. Where that is more than a share, the packets came as fast as the path carries
//! them: that says which window fills it, often before one does. Where the RTTs are late by
//! HyStart's measure, too, it is full. Jitter and ACKs that come together last for less than a
//! round trip, so that only long stretches tell, and none with a pause in it: what leaves after a
//! pause is another burst.
//!
//! Such a stretch is the train of ACKs that HyStart looks for, seen wherever it begins. Packets
//! that left far apart make a long one, too, but no RTTs that rise. Jitter makes RTTs that rise by
//! chance, but twice as many packets then come in the same time: the path is what limits them only
//! if the round trip before had the same rate.

use flowstart_chirping::SaturationConfig;
use flowstart_control::{Ack, NewMss};
use flowstart_units::{Span, Time};

/// RTTs at either end of a stretch of which the one counts that says least.
const ENDS: usize = 3;

/// Watches the rate at which a path carries packets.
#[derive(Clone, Debug)]
pub(crate) struct Saturation {
    config: SaturationConfig,
    /// Time per packet in ns at which the path carried at least; `None` until packets came slower
    /// than they left.
    gap: Option<u64>,
    /// The round trip ends when a byte beyond this one is acknowledged.
    end: Option<u64>,
    /// It was full in the round trip before.
    was_full: bool,
    /// Time per packet in ns at which the packets of the round trip before came, if they came
    /// slower than they left.
    before: Option<u64>,
    /// Round trips begin with the first ACK of a burst.
    begins_with_burst: bool,
    round: Round,
}

/// What the ACKs of one round trip said so far.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    /// When the first came, and the largest of the first RTTs.
    first: Option<(Time, Span)>,
    /// When the last came.
    last: Time,
    /// Moments at which ACKs came, and packets delivered, without the first.
    moments: u32,
    packets: u64,
    recent: [Span; ENDS],
    full: bool,
    /// Time per packet in ns at which they came, if slower than they left.
    came: Option<u64>,
    /// Time for which packets have come slower than they left, at the rate of the round trip
    /// before; zero if they have not.
    train: Span,
}

impl Round {
    /// Takes in an ACK. Returns since when packets came and how much RTTs have risen since, once
    /// both can be told.
    fn take(&mut self, ack: &Ack, rtt: Span) -> Option<(Time, Span)> {
        self.recent.rotate_left(1);
        self.recent[ENDS - 1] = rtt;
        let Some((began, largest)) = self.first else {
            (self.first, self.last) = (Some((ack.now, rtt)), ack.now);
            return None;
        };
        self.packets += u64::from(ack.acked);
        self.moments += u32::from(ack.now > self.last);
        self.last = ack.now;
        if (self.moments as usize) < ENDS {
            self.first = Some((began, largest.max(rtt)));
            return None;
        }
        Some((began, self.least() - largest))
    }

    /// Mean time in ns between two moments at which ACKs came.
    fn spacing(&self) -> f64 {
        let lasted = self.first.map_or(Span::ZERO, |(began, _)| self.last.since(began));
        lasted.as_nanos() as f64 / f64::from(self.moments.max(1))
    }

    /// Smallest of the last RTTs.
    fn least(&self) -> Span {
        self.recent.into_iter().min().unwrap_or(Span::ZERO)
    }
}

impl Saturation {
    pub(crate) fn new(config: &SaturationConfig) -> Self {
        Self {
            config: config.clone(),
            gap: None,
            end: None,
            was_full: false,
            before: None,
            begins_with_burst: false,
            round: Round::default(),
        }
    }

    /// What was found before does not count any more.
    pub(crate) fn forget(&mut self) {
        (self.gap, self.end, self.was_full, self.round) = (None, None, false, Round::default());
        (self.before, self.begins_with_burst) = (None, false);
    }

    /// Others say that the path carries a packet per `gap` ns.
    pub(crate) fn suggest(&mut self, gap: u64) {
        self.gap = Some(gap.max(1));
    }

    /// Takes in an ACK; `late` tells if an RTT is as late as ends a start.
    pub(crate) fn on_ack(&mut self, ack: &Ack, late: impl Fn(Span) -> bool) {
        if self.end.is_none_or(|end| ack.una > end) {
            (self.end, self.was_full, self.before) = (Some(ack.next), self.round.full, self.round.came);
            self.round = Round::default();
        }
        if self.is_pause(ack) {
            if !self.begins_with_burst {
                // Chirps were given up in the middle of a burst: it would be two round trips' from
                // now on.
                (self.end, self.begins_with_burst) = (Some(ack.next), true);
            }
            self.round = Round { full: self.round.full, came: self.round.came, ..Round::default() };
        }
        self.round.train = Span::ZERO;
        let Some((began, rise)) = ack.rtt.and_then(|rtt| self.round.take(ack, rtt)) else { return };
        let lasted = ack.now.since(began).as_nanos();
        let enough = self.round.moments >= self.config.moments
            && self.round.packets >= u64::from(self.config.packets)
            && lasted as f64 >= ack.min_rtt.as_nanos() as f64 * self.config.lasting;
        if !enough {
            return;
        }
        let came = (lasted / self.round.packets).max(1);
        // What came faster shows that there was room for it.
        self.gap = self.gap.map(|gap| gap.min(came));
        let share = 1.0 - 1.0 / self.config.behind;
        if rise.as_nanos() as f64 > lasted as f64 * share {
            self.gap = self.gap.or(Some(came));
            self.round.full |= late(self.round.least());
            self.round.came = Some(came);
            if self.before.is_some_and(|before| self.is_same(came, before)) {
                self.round.train = Span::from_nanos(lasted);
            }
        }
    }

    /// True if these times per packet differ by less than what tells packets that come slower from
    /// others.
    fn is_same(&self, one: u64, other: u64) -> bool {
        one.max(other) as f64 <= one.min(other) as f64 * self.config.behind
    }

    /// Time for which packets have come as fast as the path carries them by now; zero if they do
    /// not, or no other round trip says so.
    pub(crate) fn train(&self) -> Span {
        self.round.train
    }

    /// True if no ACK had come for so long that this one begins a stretch.
    fn is_pause(&self, ack: &Ack) -> bool {
        let share = ack.min_rtt.as_nanos() as f64 * self.config.pause;
        let longest = f64::max(share, self.round.spacing() * self.config.pause_moments);
        self.round.first.is_some() && ack.now.since(self.round.last).as_nanos() as f64 > longest
    }

    /// Packets that fill the path; `None` if nothing tells.
    fn pipe(&self, min_rtt: Span) -> Option<f64> {
        self.gap.map(|gap| min_rtt.as_nanos() as f64 / gap as f64)
    }

    /// For how many packets a window of `cwnd` grows by one.
    pub(crate) fn divisor(&self, cwnd: u32, min_rtt: Span) -> u32 {
        match self.pipe(min_rtt) {
            Some(pipe) if f64::from(cwnd) >= pipe => self.config.divisor.max(1),
            _ => 1,
        }
    }

    /// True if a window of `cwnd` is more than the path needs.
    pub(crate) fn is_full(&self, cwnd: u32, min_rtt: Span) -> bool {
        self.was_full && self.pipe(min_rtt).is_some_and(|pipe| f64::from(cwnd) >= pipe * self.config.full)
    }

    pub(crate) fn on_mss(&mut self, mss: NewMss) {
        let scaled = |gap: Option<u64>| gap.map(|gap| mss.gap(gap));
        (self.gap, self.before, self.round.came) = (scaled(self.gap), scaled(self.before), scaled(self.round.came));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowstart_control::testing::ack;

    const MIN_RTT: Span = Span::from_millis(40);

    /// A round trip of `packets` that left at one per `sent` and came at one per `came`, one ACK
    /// each, behind a queue of `queue`, where every second RTT but the first ten is longer by
    /// `noise`.
    fn round(path: &mut Saturation, packets: u64, [sent, came, queue, noise]: [Span; 4]) {
        let before = path.end.unwrap_or(0);
        for n in 0..packets {
            let rise = (came - sent) * n;
            let noise = if n % 2 == 0 || n < 10 { Span::ZERO } else { noise };
            let rtt = Some(MIN_RTT + queue + rise + noise);
            let (now, una) = (Time::ZERO + Span::from_secs(before + 1) + came * n, before + n + 1);
            let ack = Ack { now, rtt, min_rtt: MIN_RTT, una, next: before + packets, ..ack(1) };
            path.on_ack(&ack, |rtt| rtt > MIN_RTT + Span::from_millis(5));
        }
    }

    fn us(n: u64) -> Span {
        Span::from_micros(n)
    }

    fn new() -> Saturation {
        Saturation::new(&SaturationConfig::default())
    }

    /// 100 packets of 400 us fill 40 ms.
    #[test]
    fn packets_that_come_slower_than_they_left_tell_what_fills_the_path() {
        let mut path = new();
        round(&mut path, 60, [us(200), us(400), us(0), us(0)]);
        assert_eq!((path.divisor(99, MIN_RTT), path.divisor(100, MIN_RTT)), (1, 4));
        assert!(!path.is_full(1000, MIN_RTT), "one round trip says so");
        round(&mut path, 60, [us(200), us(400), us(0), us(0)]);
        round(&mut path, 1, [us(200), us(400), us(0), us(0)]);
        assert_eq!([124, 125].map(|cwnd| path.is_full(cwnd, MIN_RTT)), [false, true]);
    }

    #[test]
    fn what_came_faster_since_corrects_it_and_what_came_slower_does_not() {
        let mut path = new();
        round(&mut path, 60, [us(200), us(400), us(0), us(0)]);
        round(&mut path, 60, [us(800), us(800), us(0), us(0)]);
        assert_eq!((path.divisor(99, MIN_RTT), path.divisor(100, MIN_RTT)), (1, 4));
        round(&mut path, 100, [us(200), us(200), us(0), us(0)]);
        assert_eq!((path.divisor(199, MIN_RTT), path.divisor(200, MIN_RTT)), (1, 4));
    }

    /// 500 packets of 80 us fill 40 ms: RTTs that rise by 2 ms end no start.
    #[test]
    fn what_fills_the_path_is_told_before_it_is_full() {
        let mut path = new();
        round(&mut path, 100, [us(60), us(80), us(0), us(0)]);
        assert_eq!((path.divisor(499, MIN_RTT), path.divisor(500, MIN_RTT)), (1, 4));
        round(&mut path, 100, [us(60), us(80), us(0), us(0)]);
        round(&mut path, 1, [us(60), us(80), us(0), us(0)]);
        assert!(!path.is_full(u32::MAX, MIN_RTT));
    }

    /// Two bursts of 40 packets, each of them later by 20 us than the one before; behind the first
    /// all are later by 10 ms. With a pause of 5 ms, an eighth of the smallest RTT, it is one
    /// stretch, or with ACKs that come 16 times less often.
    #[test]
    fn what_is_later_behind_a_pause_says_nothing() {
        for (pause, between, divisor) in [(4990, 200, 4), (5010, 200, 1), (12_700, 800, 4), (12_900, 800, 1)] {
            let mut path = new();
            let mut now = Time::ZERO;
            for n in 0..80_u64 {
                now += us(if n == 40 { pause } else { between });
                let rtt = Some(MIN_RTT + us(n * 20) + us(if n < 40 { 0 } else { 10_000 }));
                path.on_ack(&Ack { now, rtt, min_rtt: MIN_RTT, una: 1, next: 100, ..ack(1) }, |_| true);
            }
            assert_eq!(path.divisor(u32::MAX, MIN_RTT), divisor, "{pause} {between}");
        }
    }

    /// What comes of a train of 60 packets, 400 us each, behind one that left and came at these
    /// times.
    fn train_behind(left: u64, came: u64) -> Span {
        let mut path = new();
        round(&mut path, 60, [us(left), us(came), us(0), us(0)]);
        round(&mut path, 60, [us(200), us(400), us(0), us(0)]);
        path.train()
    }

    #[test]
    fn a_train_counts_if_the_one_before_came_at_its_rate_and_slower_than_it_left() {
        assert_eq!([train_behind(200, 400), train_behind(170, 340)], [us(23_600); 2]);
        assert_eq!(train_behind(160, 320), Span::ZERO, "slower by a quarter");
        assert_eq!(train_behind(250, 500), Span::ZERO, "faster by a quarter");
        assert_eq!(train_behind(400, 400), Span::ZERO, "as fast as it left");
        let mut path = new();
        round(&mut path, 60, [us(200), us(400), us(0), us(0)]);
        assert_eq!(path.train(), Span::ZERO, "no other one");
        round(&mut path, 60, [us(200), us(400), us(0), us(0)]);
        let now = path.round.last + us(400);
        path.on_ack(&Ack { now, rtt: Some(MIN_RTT), min_rtt: MIN_RTT, una: 120, next: 120, ..ack(1) }, |_| false);
        assert_eq!(path.train(), Span::ZERO, "the queue is gone");
        round(&mut path, 60, [us(400), us(400), us(20_000), us(0)]);
        assert_eq!(path.train(), Span::ZERO, "it came as fast as it left");
    }

    /// HyStart takes over in the middle of a burst of 40 packets; those behind it have 60 each.
    #[test]
    fn a_train_is_seen_from_the_beginning_of_a_burst_on() {
        let mut path = new();
        for una in 20..=160_u64 {
            let burst = (una + 19) / 60;
            let place = (una + 19) % 60;
            let now = Time::ZERO + Span::from_millis(60) * burst + us(400) * place;
            let ack =
                Ack { now, rtt: Some(MIN_RTT + us(200) * place), min_rtt: MIN_RTT, una, next: una + 60, ..ack(1) };
            path.on_ack(&ack, |_| false);
        }
        // The round trip begins behind the first ACK of the burst.
        assert_eq!(path.train(), us(23_200));
    }

    #[test]
    fn what_was_forgotten_tells_nothing() {
        let mut path = new();
        round(&mut path, 60, [us(200), us(400), us(0), us(0)]);
        path.forget();
        assert_eq!(path.divisor(u32::MAX, MIN_RTT), 1);
    }

    #[test]
    fn a_queue_that_stands_noise_few_packets_and_short_stretches_tell_nothing() {
        for (packets, times) in [
            // As long a queue at the end as at the beginning.
            (60, [us(400), us(400), us(20_000), us(0)]),
            // It rises by less than a sixth of the time in which the packets came.
            (60, [us(340), us(400), us(10_000), us(0)]),
            // RTTs of which every second is as short as ever.
            (60, [us(400), us(400), us(0), us(20_000)]),
            (16, [us(200), us(1000), us(0), us(0)]),
            // 5.9 ms, of 6.
            (60, [us(1), us(100), us(0), us(0)]),
        ] {
            let mut path = new();
            round(&mut path, packets, times);
            assert_eq!(path.divisor(u32::MAX, MIN_RTT), 1, "{packets} {times:?}");
        }
    }

    #[test]
    fn what_comes_at_few_moments_tells_nothing() {
        for (batch, divisor) in [(8, 1), (7, 4)] {
            let mut path = new();
            for n in 0..64 {
                let came = us(400) * (n / batch * batch);
                let rtt = Some(MIN_RTT + us(200) * n);
                let ack = Ack { now: Time::ZERO + came, rtt, min_rtt: MIN_RTT, una: 1, next: 100, ..ack(1) };
                path.on_ack(&ack, |_| true);
            }
            assert_eq!(path.divisor(u32::MAX, MIN_RTT), divisor, "{batch}");
        }
    }
}
