//! Policers: two stretches with much loss and the same throughput are taken for one, and its rate
//! is the bandwidth for a while (`bbr_lt_bw_sampling`).

use flowstart_units::{Bytes, Rate, Time};

use super::config::BbrConfig;

/// What an ACK told, as far as policers are concerned.
#[derive(Clone, Copy, Debug)]
pub(super) struct Report {
    pub(super) now: Time,
    /// Packets delivered and lost so far.
    pub(super) delivered: u64,
    pub(super) lost: u64,
    /// Packets of this ACK were declared lost.
    pub(super) losses: bool,
    pub(super) round: bool,
    pub(super) app_limited: bool,
    /// The flow is in its cycles.
    pub(super) cycling: bool,
}

/// Looks for policers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Policer {
    sampling: bool,
    /// The throughput of the last stretch, or the policer's.
    rate: Option<Rate>,
    in_use: bool,
    rounds: u32,
    since: Time,
    delivered: u64,
    lost: u64,
}

impl Policer {
    /// The rate of the policer, if there seems to be one.
    #[inline]
    pub(super) fn rate(&self) -> Option<Rate> {
        self.rate.filter(|_| self.in_use)
    }

    fn begin_stretch(&mut self, report: &Report) {
        (self.since, self.delivered, self.lost) = (report.now, report.delivered, report.lost);
        self.rounds = 0;
    }

    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Takes an ACK in; true if the policer's rate was used for long enough and cycles begin anew.
    pub(super) fn on_ack(&mut self, report: &Report, mss: u64, config: &BbrConfig) -> bool {
        if config.policer_use_rounds == 0 {
            return false;
        }
        if self.in_use {
            self.rounds += u32::from(report.cycling && report.round);
            let over = self.rounds >= config.policer_use_rounds;
            if over {
                self.forget();
            }
            return over;
        }
        if !self.sampling {
            if !report.losses {
                return false;
            }
            // A stretch begins and ends with a loss: the policer's bucket is empty at both.
            self.begin_stretch(report);
            self.sampling = true;
        }
        if report.app_limited {
            self.forget();
            return false;
        }
        self.rounds += u32::from(report.round);
        if self.rounds < config.policer_rounds {
            return false;
        }
        if self.rounds > config.policer_rounds.saturating_mul(config.policer_stretch) {
            self.forget();
            return false;
        }
        let delivered = report.delivered.saturating_sub(self.delivered);
        let lost = report.lost.saturating_sub(self.lost);
        let span = report.now.since(self.since);
        let many = lost as f64 >= config.policer_loss_share * delivered as f64;
        if report.losses && delivered > 0 && many && span.as_micros() >= 1_000 {
            self.end_stretch(Rate::of(Bytes::new(delivered.saturating_mul(mss)), span), report, config);
        }
        false
    }

    fn end_stretch(&mut self, rate: Rate, report: &Report, config: &BbrConfig) {
        if let Some(before) = self.rate {
            let apart = rate.as_bps().abs_diff(before.as_bps());
            let alike = apart as f64 <= config.policer_ratio * before.as_bps() as f64;
            if alike || apart <= config.policer_difference.as_bps() {
                self.rate = Some(Rate::from_bps(rate.as_bps().midpoint(before.as_bps())));
                self.in_use = true;
                self.rounds = 0;
                return;
            }
        }
        self.rate = Some(rate);
        self.begin_stretch(report);
    }
}

#[cfg(test)]
mod tests {
    use flowstart_units::Span;

    use super::*;

    const MSS: u64 = 1_000;

    /// Round trips of 100 ms, in each of which so many packets are delivered and lost.
    fn feed(policer: &mut Policer, from: u64, rounds: u64, delivered: u64, lost: u64) -> u64 {
        let config = BbrConfig::default();
        for round in from..from + rounds {
            let report = Report {
                now: Time::ZERO + Span::from_millis(100 * round),
                delivered: delivered * round,
                lost: lost * round,
                losses: lost > 0,
                round: true,
                app_limited: false,
                cycling: true,
            };
            policer.on_ack(&report, MSS, &config);
        }
        from + rounds
    }

    #[test]
    fn two_stretches_with_a_fifth_lost_and_the_same_throughput_are_a_policer() {
        let mut policer = Policer::default();
        let next = feed(&mut policer, 1, 4, 100, 20);
        assert_eq!(policer.rate(), None);
        // The second stretch, and it is the same.
        let next = feed(&mut policer, next, 4, 100, 20);
        // 100 packets of 1000 bytes in 100 ms.
        assert_eq!(policer.rate(), Some(Rate::from_mbps(8)));
        feed(&mut policer, next, 47, 100, 0);
        assert!(policer.rate().is_some());
        feed(&mut policer, next + 47, 1, 100, 0);
        assert_eq!(policer.rate(), None, "after 48 round trips it looks anew");
    }

    #[test]
    fn a_fifth_must_be_lost() {
        let mut policer = Policer::default();
        feed(&mut policer, 1, 40, 100, 19);
        assert_eq!(policer.rate(), None);
    }

    #[test]
    fn stretches_that_differ_by_more_than_an_eighth_are_none() {
        let mut policer = Policer::default();
        let mut total = 0;
        let config = BbrConfig::default();
        for round in 1..60_u64 {
            // Every four rounds another rate.
            total += if (round / 4) % 2 == 0 { 100 } else { 130 };
            let now = Time::ZERO + Span::from_millis(100 * round);
            let (losses, lost) = (true, total / 4);
            let report = Report { now, delivered: total, lost, losses, round: true, app_limited: false, cycling: true };
            policer.on_ack(&report, MSS, &config);
        }
        assert_eq!(policer.rate(), None);
    }

    /// An ACK at this time with a round trip of its own.
    fn round(ms: u64, delivered: u64, lost: u64) -> Report {
        let now = Time::ZERO + Span::from_millis(ms);
        Report { now, delivered, lost, losses: true, round: true, app_limited: false, cycling: true }
    }

    /// After a loss and so many round trips, the last of which is this.
    fn after(rounds: u32, last: Report) -> Policer {
        after_with(&BbrConfig::default(), rounds, last)
    }

    fn after_with(config: &BbrConfig, rounds: u32, last: Report) -> Policer {
        let mut policer = Policer::default();
        policer.on_ack(&round(0, 0, 0), MSS, config);
        for _ in 2..rounds {
            policer.on_ack(&Report { losses: false, ..round(50, 0, 0) }, MSS, config);
        }
        policer.on_ack(&last, MSS, config);
        policer
    }

    /// `bbr_lt_bw_sampling`: `4 * bbr_lt_intvl_min_rtts`, `bbr_lt_loss_thresh`, a millisecond.
    #[test]
    fn a_stretch_lasts_for_four_to_sixteen_round_trips_and_a_millisecond_and_ends_with_a_loss() {
        let ends = |rounds, last| after(rounds, last).rate.is_some();
        assert_eq!([3, 4, 16, 17].map(|rounds| ends(rounds, round(100, 256, 50))), [false, true, true, false]);
        assert!(!ends(4, round(100, 256, 49)), "less than 50 of 256");
        assert!(!ends(4, Report { losses: false, ..round(100, 256, 50) }));
        let micros = |n| Report { now: Time::ZERO + Span::from_micros(n), ..round(0, 256, 50) };
        assert_eq!([999, 1_000].map(|n| ends(4, micros(n))), [false, true]);
        let config = BbrConfig { policer_stretch: 2, ..BbrConfig::default() };
        let ends_sooner = |rounds| after_with(&config, rounds, round(100, 256, 50)).rate.is_some();
        assert_eq!([8, 9].map(ends_sooner), [true, false], "twice as many as it has at least");
        let limited = after(4, Report { app_limited: true, ..round(100, 256, 50) });
        assert!(!limited.sampling && limited.rate.is_none());
    }

    /// `bbr_lt_bw_interval_done`: 4 kbit/s or an eighth apart, and the mean of both is used.
    #[test]
    fn two_stretches_that_are_alike_give_their_mean() {
        let used = |before: u64, now: u64| {
            let mut policer = Policer { rate: Some(Rate::from_bps(before)), ..Policer::default() };
            policer.end_stretch(Rate::from_bps(now), &round(0, 0, 0), &BbrConfig::default());
            policer.rate().map(Rate::as_bps)
        };
        assert_eq!([used(8_000_000, 9_000_000), used(8_000_000, 9_000_001)], [Some(8_500_000), None]);
        assert_eq!([used(8_000, 12_000), used(8_000, 12_001)], [Some(10_000), None]);
    }

    #[test]
    fn only_round_trips_of_cycles_count_while_the_rate_is_used() {
        let mut policer = Policer { rate: Some(Rate::from_mbps(8)), in_use: true, ..Policer::default() };
        let config = BbrConfig::default();
        for _ in 0..100 {
            assert!(!policer.on_ack(&Report { cycling: false, ..round(1, 1, 0) }, MSS, &config));
        }
        let over = (1..=48).map(|_| policer.on_ack(&round(1, 1, 0), MSS, &config)).filter(|over| *over).count();
        assert_eq!((over, policer.rate()), (1, None));
    }
}
