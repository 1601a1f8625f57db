//! Whether what a train lost was lost at a policer. Its bucket lets a burst pass at the rate of the
//! link before it, and from the bucket's end on so many packets as its own rate is of that rate:
//! losses begin at once and go on evenly, which those at random do not. A buffer that is full
//! begins to lose as suddenly. But the link behind it is busy all the time, where a policer leaves
//! a hole for each packet; and lone packets are lost with the train's at a policer, and not in a
//! queue of their own.

use alloc::vec::Vec;

use flowstart_units::{Span, Time};

use super::config::PolicingConfig;

/// Logarithm of the number of ways to choose so many of these.
fn ln_choose(of: usize, chosen: usize) -> f64 {
    let ln_factorial = |n: usize| libm::lgamma(n as f64 + 1.0);
    ln_factorial(of) - ln_factorial(chosen) - ln_factorial(of - chosen)
}

/// Probability that of `lost` packets among `all`, if each is as likely as any other, at least
/// `late` are among the last `last` (hypergeometric).
fn at_least_late(all: usize, last: usize, lost: usize, late: usize) -> f64 {
    let ways = ln_choose(all, lost);
    (late..=lost.min(last))
        .filter(|late| lost - late <= all - last)
        .map(|late| libm::exp(ln_choose(last, late) + ln_choose(all - last, lost - late) - ways))
        .sum()
}

/// Probability that of `lost` packets among `all`, if each is as likely as any other, no two are
/// closer together than `apart`.
fn nowhere_closer(all: usize, lost: usize, apart: usize) -> f64 {
    let room = all.checked_sub(lost.saturating_sub(1) * apart.saturating_sub(1));
    let ways = room.filter(|room| *room >= lost).map(|room| ln_choose(room, lost) - ln_choose(all, lost));
    ways.map_or(0.0, libm::exp)
}

/// A lone packet: when it arrived, or would have at the earliest if it was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lone {
    pub(super) at: Time,
    pub(super) lost: bool,
}

/// What became of a train and of the lone packets among it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passed<'a> {
    /// When its packets arrived, in the order in which they left; `None` for those that were lost.
    pub(super) train: &'a [Option<Time>],
    pub(super) lone: &'a [Lone],
    /// By how much arrivals are uncertain.
    pub(super) jitter: Span,
    /// The train stood in a queue when its losses began: without one no buffer was full, although
    /// lone packets arrived.
    pub(super) queued: bool,
    /// Packets of each group of lone ones, which may be served before the first loss or behind it.
    pub(super) group: u32,
    /// Probability that a lone packet in a queue of its own is lost.
    pub(super) lone_lost: f64,
}

/// Losses that begin within a train.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Onset {
    /// The first packet of those among which they are more frequent.
    pub(super) from: usize,
    /// Probability that losses at random look so much like a beginning, or are so even.
    pub(super) error: f64,
}

impl Passed<'_> {
    /// Where losses begin to be more frequent than before, or the first of them if what is odd
    /// about them is that they are so even; `None` without losses.
    pub(super) fn onset(&self) -> Option<Onset> {
        let all = self.train.len();
        let places: Vec<usize> = (0..all).filter(|place| self.train[*place].is_none()).collect();
        let lost = places.len();
        let late = |(before, from): (usize, &usize)| Onset {
            from: *from,
            // Each of them might be the least by chance.
            error: at_least_late(all, all - from, lost, lost - before) * lost as f64,
        };
        let apart = places.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap_or(1);
        let even = Onset { from: *places.first()?, error: nowhere_closer(all, lost, apart) };
        let each = places.iter().enumerate().map(late).chain([even]);
        let least = each.min_by(|one, other| one.error.total_cmp(&other.error))?;
        // And so might either of the two.
        Some(Onset { error: (least.error * 2.0).min(1.0), ..least })
    }

    /// How many times likelier what came from a packet on is behind a policer than behind a full
    /// buffer of the train's own, as a logarithm.
    pub(super) fn log_odds(&self, from: usize, config: &PolicingConfig) -> f64 {
        let tail = &self.train[from..];
        let lost = tail.iter().filter(|at| at.is_none()).count();
        // Laplace's rule of succession.
        let share = (lost + 1) as f64 / (tail.len() + 2) as f64;
        // Those that overtook the train met what the packets before them met.
        let begun = self.train[..from].iter().flatten().next_back().copied();
        let fates = self.lone.iter().filter(|lone| begun.is_none_or(|begun| lone.at > begun)).map(|lone| {
            if lone.lost {
                return libm::log(share / self.lone_lost);
            }
            let kept = libm::log((1.0 - share) / (1.0 - self.lone_lost));
            if self.queued { kept } else { 0.0 }
        });
        fates.sum::<f64>() + self.log_odds_of_times(from, config).unwrap_or(0.0)
    }

    /// The same by the times of arrival alone: behind a policer a lost packet takes its time.
    fn log_odds_of_times(&self, from: usize, config: &PolicingConfig) -> Option<f64> {
        let (head, tail) = self.train.split_at(from);
        let window = (config.pace as usize).max(tail.len()).min(head.len());
        let mut before = head[head.len() - window..].iter().flatten();
        let begin = *before.next()?;
        let onset = *before.next_back()?;
        let end = *tail.iter().flatten().next_back()?;
        let arrived = |from: Time, until: Time| {
            let lone = self.lone.iter().filter(|lone| !lone.lost).map(|lone| lone.at);
            let all = self.train.iter().flatten().copied().chain(lone);
            all.filter(|at| *at > from && *at <= until).count() as f64
        };
        let per_packet = onset.since(begin).as_secs_f64() / arrived(begin, onset).max(1.0);
        let last = tail.iter().rposition(Option::is_some)?;
        let holes = tail[..last].iter().filter(|at| at.is_none()).count()
            + self.lone.iter().filter(|lone| lone.lost && lone.at > onset && lone.at <= end).count();
        let without = per_packet * arrived(onset, end);
        let with = without + per_packet * holes as f64;
        let took = end.since(onset).as_secs_f64();
        let group = per_packet * f64::from(self.group);
        let width = self.jitter.as_secs_f64() + with * config.width + group;
        let density = |distance: f64| {
            let distance = distance.max(0.0) / width;
            libm::exp(-0.5 * distance * distance).max(config.outlier)
        };
        (width > 0.0).then(|| libm::log(density(with - took) / density(took - without)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn at(micros: u64) -> Time {
        Time::ZERO + Span::from_micros(micros)
    }

    fn passed<'a>(train: &'a [Option<Time>], lone: &'a [Lone]) -> Passed<'a> {
        Passed { train, lone, jitter: Span::ZERO, queued: true, group: 2, lone_lost: 0.05 }
    }

    /// Packets that a link serves every 12 us, of which a policer behind it drops two in five from
    /// packet `from` on.
    fn behind_a_policer(from: u64, packets: u64) -> Vec<Option<Time>> {
        let lost = |place: u64| place >= from && matches!((place - from) % 5, 0 | 2);
        (0..packets).map(|place| (!lost(place)).then(|| at(place * 12))).collect()
    }

    /// The same losses in front of the link, whose buffer is full.
    fn in_a_full_buffer(from: u64, packets: u64) -> Vec<Option<Time>> {
        let mut served = 0..;
        let each = behind_a_policer(from, packets).into_iter();
        each.map(|arrived| arrived.and_then(|_| served.next()).map(|nth: u64| at(nth * 12))).collect()
    }

    #[test]
    fn the_chance_of_late_losses_is_that_of_draws_without_putting_back() {
        let close = |value: f64, expected: f64| assert!((value - expected).abs() < 1e-9, "{value} {expected}");
        // Of the six pairs among four one lies in the last two, and five touch them.
        close(at_least_late(4, 2, 2, 2), 1.0 / 6.0);
        close(at_least_late(4, 2, 2, 1), 5.0 / 6.0);
        close(at_least_late(4, 2, 2, 0), 1.0);
        // Three of three among the last ten of 200: 120 of 1 313 400 ways.
        close(at_least_late(200, 10, 3, 3), 120.0 / 1_313_400.0);
        close(at_least_late(4, 3, 4, 3), 1.0);
    }

    #[test]
    fn losses_at_random_begin_late_no_more_often_than_the_error_says() {
        for (packets, percent) in [(60, 5.0), (200, 1.0), (200, 5.0), (400, 5.0)] {
            let mut random = Random::new(packets);
            let runs = 2000;
            let late = (0..runs)
                .filter(|_| {
                    let train: Vec<_> =
                        (0..packets).map(|place| (random.unit() * 100.0 >= percent).then(|| at(place))).collect();
                    passed(&train, &[]).onset().is_some_and(|onset| onset.error <= 0.01)
                })
                .count();
            assert!(late <= runs / 100, "{packets} {percent}: {late}");
        }
    }

    #[test]
    fn where_a_bucket_ends_losses_begin() {
        let onset = |from, packets| passed(&behind_a_policer(from, packets), &[]).onset().unwrap();
        let early = onset(143, 200);
        assert!(early.from == 143 && early.error < 1e-9, "{early:?}");
        // Three losses among the last eight are enough.
        assert!(onset(143, 150).error < 1e-3, "{:?}", onset(143, 150));
        assert_eq!(passed(&behind_a_policer(200, 200), &[]).onset(), None);
    }

    /// Seen behind a policer of 920 Mbit/s with 8 kB and a card of 1 Gbit/s: 16 of 250, none of
    /// them closer than ten to another.
    #[test]
    fn losses_that_are_even_are_not_at_random_wherever_they_begin() {
        let close = |value: f64, expected: f64| assert!((value - expected).abs() < 1e-9, "{value} {expected}");
        // Of the ten pairs among five six are no neighbours, three are apart by three and more.
        close(nowhere_closer(5, 2, 2), 0.6);
        close(nowhere_closer(5, 2, 3), 0.3);
        close(nowhere_closer(5, 2, 1), 1.0);
        close(nowhere_closer(5, 4, 3), 0.0);
        let train: Vec<_> = (0..250).map(|place| (place < 55 || place % 12 != 0).then(|| at(place * 12))).collect();
        let onset = passed(&train, &[]).onset().unwrap();
        assert!(onset.from == 60 && onset.error < 1e-5, "{onset:?}");
    }

    #[test]
    fn a_loss_before_the_end_of_the_bucket_does_not_hide_it() {
        let mut train = behind_a_policer(143, 200);
        train[20] = None;
        let onset = passed(&train, &[]).onset().unwrap();
        assert!(onset.from == 143 && onset.error < 1e-9, "{onset:?}");
    }

    #[test]
    fn a_policer_leaves_holes_and_a_full_buffer_none() {
        let config = PolicingConfig::default();
        let enough = libm::log(config.odds);
        for packets in [160, 200, 300] {
            let holes = passed(&behind_a_policer(143, packets), &[]).log_odds(143, &config);
            let none = passed(&in_a_full_buffer(143, packets), &[]).log_odds(143, &config);
            assert!(holes > enough && none < -enough, "{packets}: {holes} {none}");
        }
        // Where ACKs come at any time within a millisecond neither is seen.
        let train = behind_a_policer(143, 160);
        let hidden = Passed { jitter: Span::from_millis(1), ..passed(&train, &[]) };
        assert!(hidden.log_odds(143, &config).abs() < 0.1);
    }

    /// The first half of what came before the losses took twice the time.
    #[test]
    fn how_many_packets_tell_the_pace_is_a_constant() {
        let mut train: Vec<Option<Time>> = (0..71).map(|place| Some(at(place * 200))).collect();
        train.extend((0..72).map(|place| Some(at(14_200 + place * 100))));
        train.extend((1..21).map(|place| (place % 2 == 0).then(|| at(21_300 + place * 100))));
        let odds = |pace| {
            let config = PolicingConfig { pace, ..PolicingConfig::default() };
            passed(&train, &[]).log_odds(143, &config)
        };
        assert!(odds(32) > 0.0, "{}", odds(32));
        assert!(odds(143) < odds(32), "{} {}", odds(143), odds(32));
    }

    #[test]
    fn lone_packets_that_are_lost_speak_for_a_policer_and_those_that_arrive_against_it() {
        let config = PolicingConfig::default();
        let train = behind_a_policer(143, 200);
        let odds = |lone: &[Lone]| {
            let passed = Passed { jitter: Span::from_secs(1), ..passed(&train, lone) };
            passed.log_odds(143, &config)
        };
        let alone = odds(&[]);
        let lone = |micros, lost| Lone { at: at(micros), lost };
        // Of the 57 packets from there on 23 were lost: 24/59 to 0.05, and 35/59 to 0.95.
        let expected = libm::log(24.0 / 59.0 / 0.05);
        assert!((odds(&[lone(2000, true)]) - alone - expected).abs() < 0.01, "{}", odds(&[lone(2000, true)]));
        let expected = libm::log(35.0 / 59.0 / 0.95);
        assert!((odds(&[lone(2000, false)]) - alone - expected).abs() < 0.01, "{}", odds(&[lone(2000, false)]));
        let kept = [lone(2000, false)];
        let passed = Passed { queued: false, jitter: Span::from_secs(1), ..passed(&train, &kept) };
        assert!((passed.log_odds(143, &config) - alone).abs() < 0.01, "without a queue");
        // One that overtook the train and came before its losses began.
        assert!((odds(&[lone(1000, false)]) - alone).abs() < 0.01);
    }
}
