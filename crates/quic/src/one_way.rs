//! Times of another machine's clock as times of this one's: how long something took one way.
//!
//! Nobody can tell from messages alone how far two clocks are apart: a way there that is longer
//! than the way back looks like clocks that differ by half of that. What can be known is the
//! smallest round trip, and half of it is taken for each way; so times are wrong by half the
//! difference of the two ways, which is half of the round trip at most. A way there that takes
//! longer for a while is told from a clock that drifts, because the news from the other clock is
//! looked at all the time: the quickest of the last seconds says how far the clocks are apart.

use std::collections::VecDeque;

use flowstart_units::{Span, Time};

/// How far another clock is from this one, from its news.
#[derive(Clone, Debug, Default)]
pub struct OneWay {
    /// News that none after it was quicker than: when it was heard, and how many nanoseconds that
    /// was after the other clock's time in it. Both increase.
    quickest: VecDeque<(Time, i128)>,
    /// When the first news was heard, and the quickest within a window from then on, as above.
    first: Option<(Time, (Time, i128))>,
}

impl OneWay {
    /// The clocks are compared over so long: a clock that drifts by d makes times wrong by this
    /// times d, 0.25 ms for 50 ppm. A queue on the way back that is there all that time counts as a
    /// longer way there.
    pub const WINDOW: Span = Span::from_secs(5);

    /// At `heard` of this clock came news that was `told` (nanoseconds) by the other one. To be
    /// called in the order of hearing.
    pub fn hear(&mut self, heard: Time, told: u64) {
        let apart = i128::from(heard.as_nanos()) - i128::from(told);
        let (since, least) = self.first.get_or_insert((heard, (heard, apart)));
        if heard.since(*since) <= Self::WINDOW && apart < least.1 {
            *least = (heard, apart);
        }
        while self.quickest.back().is_some_and(|(_, other)| *other >= apart) {
            self.quickest.pop_back();
        }
        self.quickest.push_back((heard, apart));
        while self.quickest.front().is_some_and(|(at, _)| heard.since(*at) > Self::WINDOW) {
            self.quickest.pop_front();
        }
    }

    /// The time of this clock at which the other one said `there` (nanoseconds), if news takes half
    /// of `rtt`, the smallest round trip, back; `None` before any news.
    #[must_use]
    pub fn here(&self, there: u64, rtt: Span) -> Option<Time> {
        let (_, apart) = self.quickest.front()?;
        let here = i128::from(there) + apart - i128::from(rtt.as_nanos() / 2);
        // Before this clock began nothing was.
        Some(Time::from_nanos(u64::try_from(here.max(0)).unwrap_or(u64::MAX)))
    }

    /// By how much the other clock is slower than this one, in millionths; below zero if it is
    /// faster. `None` if the quickest of the first window and of the last are not a window apart.
    /// It is as exact as those two took equally long.
    #[must_use]
    pub fn drift(&self) -> Option<f64> {
        let ((_, (before, least)), (at, apart)) = (self.first?, self.quickest.front()?);
        let between = at.since(before);
        (between >= Self::WINDOW).then(|| (apart - least) as f64 / 1e3 / between.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowstart_random::SplitMix64;

    fn ms(ms: u64) -> u64 {
        ms * 1_000_000
    }

    fn at(millis: u64) -> Time {
        Time::from_nanos(ms(millis))
    }

    #[test]
    fn the_quickest_news_counts_and_half_of_the_round_trip_is_its_way() {
        let mut clocks = OneWay::default();
        assert_eq!((clocks.here(5, Span::ZERO), clocks.drift()), (None, None));
        // The other clock is 500 ms behind, and news takes 30, 20 and 90 ms.
        for (sent, took) in [(1000, 30), (1100, 20), (1200, 90)] {
            clocks.hear(at(sent + took), ms(sent - 500));
        }
        assert_eq!(clocks.here(ms(650), Span::from_millis(40)), Some(at(1150)));
        // With twice the round trip the clocks would be 20 ms nearer.
        assert_eq!(clocks.here(ms(650), Span::from_millis(80)), Some(at(1130)));
        assert_eq!(clocks.here(0, Span::from_secs(9)), Some(Time::ZERO));
        clocks.hear(at(9000), ms(8400));
        assert_eq!(clocks.here(ms(650), Span::from_millis(40)), Some(at(1230)), "the quickest is too long ago");
    }

    #[test]
    fn times_are_wrong_by_the_unknown_way_back_and_what_clocks_drift_in_a_window_and_no_more() {
        for seed in 0..200 {
            let mut random = SplitMix64::new(seed);
            let mut below = move |most: u64| random.next_u64() % most.max(1);
            let (offset, back) = (below(ms(5000)), below(ms(100)));
            let parts_per_million = below(401) as i128 - 200;
            // The other clock's time of one of this clock's.
            let there = |here: u64| {
                let drifted = i128::from(here) + i128::from(here) * parts_per_million / 1_000_000;
                u64::try_from(drifted).unwrap() + offset
            };
            let (mut clocks, mut now) = (OneWay::default(), ms(1));
            let rtt = Span::from_nanos(2 * back);
            for news in 0..2000_u64 {
                now += ms(10) + below(ms(80));
                // One in ten is not held up; news never overtakes other news for longer than a gap.
                let held = if news % 10 == 0 { 0 } else { below(ms(10)) };
                clocks.hear(Time::from_nanos(now + back + held), there(now));
                let found = clocks.here(there(now), rtt).unwrap();
                let wrong = i128::from(found.as_nanos()) - i128::from(now);
                let drifts = i128::from(OneWay::WINDOW.as_nanos() + ms(200)) * parts_per_million.abs() / 1_000_000;
                // Before the first that was not held up nobody knows.
                assert!(wrong >= -drifts - 2 && wrong <= drifts + 2, "{seed}: {wrong} ns, {parts_per_million} ppm");
            }
            let drift = clocks.drift().unwrap();
            assert!((drift + parts_per_million as f64).abs() < 3.0, "{seed}: {drift} and {parts_per_million} ppm");
        }
    }

    #[test]
    fn whatever_another_machine_says_nothing_overflows() {
        let mut clocks = OneWay::default();
        for told in [u64::MAX, 0, 1, u64::MAX] {
            clocks.hear(Time::from_nanos(u64::MAX), told);
            for there in [0, u64::MAX] {
                assert!(clocks.here(there, Span::MAX).is_some());
            }
        }
        clocks.hear(Time::ZERO, u64::MAX);
        assert!(clocks.drift().is_none_or(f64::is_finite));
    }
}
