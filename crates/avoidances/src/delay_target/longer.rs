//! A path may become longer, and what it takes longer looks like a queue.
//!
//! Where there is a queue, what is delivered is the capacity: it does not fall with the rate, or
//! the queue does. A delay that stays while less and less is delivered is the path's, and what was
//! delivered at first with that delay was delivered without a queue.

use flowstart_units::{Rate, Span};

use super::config::DelayTargetConfig;

/// Round trips in a row with a delay that stays.
#[derive(Clone, Copy, Debug, Default)]
struct Rounds {
    count: u32,
    /// Their smallest RTTs: the least and the most of these.
    least: Span,
    most: Span,
    /// The most that was delivered in one of them, and what was in the last.
    carried: Rate,
    last: Rate,
}

/// Whether the path became longer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Longer(Option<Rounds>);

impl Longer {
    pub(super) const NEW: Self = Self(None);

    /// Takes in a round trip without losses whose smallest RTT was `least`, by `above` seconds more
    /// than a path without a queue has and than is aimed at.
    pub(super) fn on_round(&mut self, config: &DelayTargetConfig, least: Span, above: f64, delivery: Rate) {
        let first = Rounds { count: 1, least, most: least, carried: delivery, last: delivery };
        let rounds = self.0.map_or(first, |before| Rounds {
            count: before.count.saturating_add(1),
            least: before.least.min(least),
            most: before.most.max(least),
            carried: before.carried.max(delivery),
            last: delivery,
        });
        let differ = rounds.most.checked_sub(rounds.least).unwrap_or(Span::ZERO).as_secs_f64();
        self.0 = Some(if differ > above * config.longer_spread { first } else { rounds });
    }

    /// The RTT of a path that became longer, and what it was seen to carry without a queue.
    pub(super) fn found(&self, config: &DelayTargetConfig) -> Option<(Span, Rate)> {
        let long = |rounds: &Rounds| config.longer_rounds > 0 && rounds.count >= config.longer_rounds;
        let fell =
            |rounds: &Rounds| rounds.last.as_bps() as f64 <= rounds.carried.as_bps() as f64 * config.longer_share;
        self.0.filter(|rounds| long(rounds) && fell(rounds)).map(|rounds| (rounds.least, rounds.carried))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The RTT in ms and the rate in Mbit/s of a path that became longer, after round trips with
    /// such a smallest RTT in us, of which 50 ms are without a queue, and such a delivery in
    /// Mbit/s.
    fn found(rounds: &[(u64, u64)]) -> Option<(f64, u64)> {
        let config = DelayTargetConfig::default();
        let mut longer = Longer::NEW;
        for &(rtt_us, mbps) in rounds {
            let above = (rtt_us - 50_000) as f64 / 1e6;
            longer.on_round(&config, Span::from_micros(rtt_us), above, Rate::from_mbps(mbps));
        }
        longer.found(&config).map(|(rtt, carried)| (rtt.as_secs_f64() * 1e3, carried.as_bps() / 1_000_000))
    }

    #[test]
    fn a_delay_that_stays_while_less_and_less_is_delivered_is_the_paths() {
        let falls = [(53_000, 40), (53_100, 36), (53_000, 33), (53_200, 30)];
        assert_eq!(found(&falls), None, "not by enough");
        assert_eq!(found(&[&falls[..], &[(53_000, 28)]].concat()), Some((53.0, 40)));
        assert_eq!(found(&[(53_000, 40), (53_000, 30), (53_000, 20)]), None, "too few");
        assert_eq!(found(&[(53_000, 40); 40]), None, "it is delivered");
    }

    /// A queue that is there, whatever is sent, delivers the capacity; one of a capacity that fell
    /// grows and then goes away.
    #[test]
    fn a_delay_that_changes_is_a_queue() {
        let queue = [(60_000, 100), (70_000, 40), (78_000, 10), (80_000, 10), (72_000, 10), (60_000, 10), (52_000, 10)];
        for end in 1..=queue.len() {
            assert_eq!(found(&queue[..end]), None, "{end}");
        }
        let drains = [(54_000, 40), (53_800, 36), (53_500, 32), (52_900, 28), (52_000, 25)];
        assert_eq!(found(&drains), None);
    }

    #[test]
    fn zero_rounds_are_never() {
        let config = DelayTargetConfig { longer_rounds: 0, ..DelayTargetConfig::default() };
        let mut longer = Longer::NEW;
        for mbps in [40, 30, 20, 10] {
            longer.on_round(&config, Span::from_millis(53), 0.003, Rate::from_mbps(mbps));
        }
        assert_eq!(longer.found(&config), None);
    }
}
