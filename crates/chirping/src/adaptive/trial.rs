//! What chirps found is on trial for a while after the start.
//!
//! Behind a token bucket they find the rate of the wire, or a peak rate, as long as there are
//! tokens. When those are spent packets come more slowly than that and queue. On a path that is
//! what chirps took it for, no queue grows while the avoidance takes over.

use flowstart_control::{Ack, Afterwards, ExitReason, InvalidConfig, NewMss, Repair};
use flowstart_units::{Span, Time};

use super::super::schedule::{exit, packets_in};
use super::saturation::SaturationConfig;

/// When the window that chirps found turns out to be too large once the start is over. How long
/// packets must come more slowly than they left, and by how much, stands in
/// [`SaturationConfig`]. The source is this project's own measurements (`docs/frontier.md`).
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields, default)
)]
pub struct TrialConfig {
    /// Round trips after the start for which its window is on trial where there is no noise, 0 ..=
    /// 100; default 2: one until a full window has left, one for its ACKs. 0: no trial.
    pub rounds: f64,
    /// The window is too large if packets come slower than chirps have said by this factor, at
    /// least 1; default 1.25.
    pub slower: f64,
    /// The window is then what fills the path at the rate at which they come, times this, at least
    /// 1; default 1.43: CUBIC keeps 0.7 of it after the losses that are on their way (RFC 9438).
    pub window: f64,
    /// A packet that the start has lost is answered by that window already if it has at most so
    /// many packets, any number; default 64. Larger ones are cut again, as after any loss: behind a
    /// policer chirps find the line, and half of what they find is lost.
    pub answered: u32,
    /// For so many packets that are delivered after the start ACKs tell what the receiver keeps
    /// back, any number; default 64. Receivers acknowledge the first packets of a connection one by
    /// one, and a window without what they keep back later waits for their timer.
    pub kept_back: u32,
}

impl Default for TrialConfig {
    fn default() -> Self {
        Self { rounds: 2.0, slower: 1.25, window: 1.43, answered: 64, kept_back: 64 }
    }
}

impl TrialConfig {
    pub(super) fn validate(&self) -> Result<(), InvalidConfig> {
        let check = InvalidConfig::unless;
        check((0.0..=100.0).contains(&self.rounds), "rounds", "between 0 and 100")?;
        check(self.slower >= 1.0 && self.slower.is_finite(), "slower", "at least 1")?;
        check(self.window >= 1.0 && self.window.is_finite(), "window", "at least 1")
    }
}

/// Packets that keep a path full that holds `held` whole ones: those, one more, and what the
/// receiver keeps back. Six of 6.6 with a delayed ACK fill 70 % of it.
pub(super) fn filling(held: u32, kept_back: u32) -> u32 {
    held.saturating_add(1).saturating_add(kept_back)
}

/// ACKs that come while RTTs rise: when the first of them came, packets delivered by then, its RTT.
#[derive(Clone, Copy, Debug)]
struct Rising {
    since: Time,
    delivered: u64,
    rtt: Span,
}

/// A window on trial.
#[derive(Clone, Debug)]
pub(super) struct Trial {
    config: TrialConfig,
    path: SaturationConfig,
    /// Time per packet in ns that the chirps have found.
    gap: u64,
    /// Packets that the path holds by that.
    held: u32,
    /// Packets that the receiver keeps back at most, as far as ACKs have told it.
    kept_back: u32,
    /// Packets that will be delivered when ACKs tell no more of that.
    told: u64,
    /// The window in packets that fills the path.
    window: u32,
    until: Time,
    rising: Option<Rising>,
    /// First byte of the stream that the start did not send.
    end: u64,
    /// First byte that is not acknowledged.
    una: u64,
}

impl Trial {
    /// The start is over with this ACK; the path takes a packet per `gap` ns by what chirps said,
    /// and the receiver was seen to keep so many packets back.
    pub(super) fn new(config: &TrialConfig, path: &SaturationConfig, gap: u64, kept_back: u32, ack: &Ack) -> Self {
        let until = ack.now + Span::from_nanos((ack.srtt.as_nanos() as f64 * config.rounds) as u64);
        let held = packets_in(ack.min_rtt, gap);
        let told = ack.delivered.saturating_add(u64::from(config.kept_back));
        let window = filling(held, kept_back);
        let (config, path) = (config.clone(), path.clone());
        Self { config, path, gap, held, kept_back, told, window, until, rising: None, end: ack.next, una: ack.una }
    }

    /// The window that the path needs where this ACK tells that the receiver keeps more back than
    /// was known, if it has more than `cwnd` packets.
    fn kept_back(&mut self, ack: &Ack, cwnd: u32) -> Option<u32> {
        let kept_back = ack.acked.saturating_sub(1);
        if kept_back <= self.kept_back || ack.delivered > self.told || ack.repair != Repair::Nothing {
            return None;
        }
        self.kept_back = kept_back;
        self.window = filling(self.held, kept_back);
        (self.window > cwnd).then_some(self.window)
    }

    /// Takes in an ACK after the start; the window is of `cwnd` packets of `mss` bytes.
    pub(super) fn on_ack(&mut self, ack: &Ack, cwnd: u32, mss: u32) -> Afterwards {
        self.una = ack.una;
        if let Some(window) = self.kept_back(ack, cwnd) {
            return Afterwards::Corrected(exit(ExitReason::PipeFull, window, self.gap, mss));
        }
        if ack.now >= self.until {
            self.end = 0;
            return if ack.delivered < self.told { Afterwards::Open } else { Afterwards::Settled };
        }
        let Some(rtt) = ack.rtt else { return Afterwards::Open };
        let now = Rising { since: ack.now, delivered: ack.delivered, rtt };
        let Some(Rising { since, delivered, rtt: before }) = self.rising.filter(|rising| rtt > rising.rtt) else {
            self.rising = Some(now);
            return Afterwards::Open;
        };
        let (lasted, packets) = (ack.now.since(since).as_nanos(), ack.delivered.saturating_sub(delivered));
        let least = ack.min_rtt.as_nanos() as f64 * self.path.lasting;
        if packets < u64::from(self.path.packets) || (lasted as f64) < least {
            return Afterwards::Open;
        }
        let came = (lasted / packets).max(1);
        let window = (f64::from(packets_in(ack.min_rtt, came)) * self.config.window) as u32;
        let queues = (rtt - before).as_nanos() as f64 >= lasted as f64 * (1.0 - 1.0 / self.path.behind);
        if queues && came as f64 >= self.gap as f64 * self.config.slower && window < cwnd {
            (self.until, self.told, self.end) = (ack.now, 0, 0);
            return Afterwards::Corrected(exit(ExitReason::RatePlateau, window, came, mss));
        }
        if !queues {
            self.rising = Some(now);
        }
        Afterwards::Open
    }

    /// A packet was lost while the window is of `cwnd` packets. The threshold, if the start has
    /// sent it and nothing was lost before: what the start sent too much of it has answered
    /// already, with its window. `None` if the avoidance is to answer.
    pub(super) fn on_loss(&mut self, cwnd: u32) -> Option<u32> {
        let answered = self.una < self.end && self.window <= self.config.answered;
        self.end = 0;
        answered.then_some(self.window.min(cwnd))
    }

    pub(super) fn on_mss(&mut self, mss: NewMss) {
        self.window = mss.packets(self.window);
        self.held = mss.packets(self.held);
        self.gap = mss.gap(self.gap);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowstart_control::testing::ack;

    fn us(n: u64) -> Span {
        Span::from_micros(n)
    }

    /// What becomes of a window of `cwnd` packets that chirps found at a packet per 25 us, 40 ms,
    /// where ACKs come every `came` us, each RTT longer than the one before by `later` us.
    fn after(cwnd: u32, came: u64, later: u64) -> Option<(u64, u32)> {
        let first = Ack { srtt: us(40_000), min_rtt: us(40_000), ..ack(1) };
        let mut trial = Trial::new(&TrialConfig::default(), &SaturationConfig::default(), 25_000, 0, &first);
        (0..2000).find_map(|n| {
            let (now, rtt) = (first.now + us(came) * n, Some(us(40_000) + us(later) * n));
            match trial.on_ack(&Ack { now, rtt, delivered: n, ..first }, cwnd, 1448) {
                Afterwards::Corrected(exit) => Some((n, exit.cwnd)),
                Afterwards::Settled => Some((n, cwnd)),
                Afterwards::Open => None,
            }
        })
    }

    /// A packet per 100 us fills the path with 400. Six milliseconds tell, of 40.
    #[test]
    fn packets_that_come_slower_than_chirps_said_and_queue_correct_the_window() {
        assert_eq!(after(1600, 100, 75), Some((60, 572)));
    }

    #[test]
    fn a_window_stays_where_nothing_queues_or_comes_slower_or_it_is_small() {
        // 80 ms.
        assert_eq!(after(1600, 100, 0), Some((800, 1600)));
        assert_eq!(after(1600, 100, 16), Some((800, 1600)), "less than a sixth");
        assert_eq!(after(572, 100, 75), Some((800, 572)));
        assert_eq!(after(1600, 30, 10), None, "not slower by a quarter, and not over");
    }

    /// A window that chirps found where the path holds `held` packets; the start has sent bytes up
    /// to 3000, of which 1000 are acknowledged, and a thousand packets were delivered.
    fn on_trial(held: u64) -> (Trial, Ack) {
        let ack = Ack { srtt: us(40_000), min_rtt: us(40_000), una: 1000, next: 3000, delivered: 1000, ..ack(1) };
        let gap = 40_000_000 / held;
        (Trial::new(&TrialConfig::default(), &SaturationConfig::default(), gap, 0, &ack), ack)
    }

    #[test]
    fn what_the_start_lost_has_been_answered_with_its_window_what_the_avoidance_loses_has_not() {
        let (mut trial, ack) = on_trial(8);
        assert_eq!([12, 9, 7].map(|cwnd| on_trial(8).0.on_loss(cwnd)), [Some(9), Some(9), Some(7)]);
        trial.on_ack(&Ack { una: 2999, ..ack }, 9, 1000);
        assert_eq!([trial.on_loss(9), trial.on_loss(9)], [Some(9), None], "once");
        let (mut trial, _) = on_trial(8);
        trial.on_ack(&Ack { una: 3000, ..ack }, 9, 1000);
        assert_eq!(trial.on_loss(9), None);
        let (mut trial, _) = on_trial(8);
        trial.on_ack(&Ack { now: ack.now + us(80_000), ..ack }, 9, 1000);
        assert_eq!(trial.on_loss(9), None, "two round trips later");
        assert_eq!([63, 64].map(|held| on_trial(held).0.on_loss(1000)), [Some(64), None]);
        let (mut trial, _) = on_trial(59);
        trial.on_mss(NewMss::new(1000, 1500));
        assert_eq!(trial.on_loss(1000), Some(40), "as many bytes");
    }

    /// The window after an ACK for so many packets, if it corrects one of `cwnd`.
    fn after_ack_of(trial: &mut Trial, ack: &Ack, acked: u32, cwnd: u32) -> Option<u32> {
        match trial.on_ack(&Ack { acked, ..*ack }, cwnd, 1448) {
            Afterwards::Corrected(exit) => Some(exit.cwnd),
            Afterwards::Open | Afterwards::Settled => None,
        }
    }

    /// Six packets fit. A timer tells of seven that were kept back, later an ACK of sixteen.
    #[test]
    fn what_a_receiver_keeps_back_only_later_is_given_to_the_window_then() {
        let (mut trial, ack) = on_trial(6);
        assert_eq!(after_ack_of(&mut trial, &ack, 1, 7), None);
        assert_eq!(after_ack_of(&mut trial, &ack, 7, 7), Some(13));
        assert_eq!(after_ack_of(&mut trial, &ack, 7, 7), None, "known");
        let repaired = Ack { repair: Repair::Losses, ..ack };
        assert_eq!(after_ack_of(&mut trial, &repaired, 16, 13), None, "a hole was filled");
        assert_eq!(after_ack_of(&mut trial, &ack, 16, 30), None, "the window has room");
        assert_eq!(trial.on_loss(40), Some(22), "and that is what fits");
        let (mut trial, ack) = on_trial(6);
        trial.on_mss(NewMss::new(1000, 1500));
        assert_eq!(after_ack_of(&mut trial, &ack, 7, 4), Some(11), "four of the larger ones fit");
        let (mut trial, ack) = on_trial(6);
        let later = Ack { now: ack.now + us(100_000), delivered: 1064, ..ack };
        assert_eq!(after_ack_of(&mut trial, &later, 16, 7), Some(22), "later than two round trips");
        let (mut trial, _) = on_trial(6);
        let much_later = Ack { delivered: 1065, ..later };
        assert_eq!(trial.on_ack(&Ack { acked: 16, ..much_later }, 7, 1448), Afterwards::Settled);
    }

    #[test]
    fn a_window_that_was_too_large_has_answered_no_loss_and_is_not_raised_again() {
        let (mut trial, first) = on_trial(60);
        let corrected = (0..40).any(|n| {
            let (now, rtt) = (first.now + us(2000) * n, Some(us(40_000) + us(1500) * n));
            let ack = Ack { now, rtt, delivered: first.delivered + n, ..first };
            matches!(trial.on_ack(&ack, 100, 1448), Afterwards::Corrected(_))
        });
        assert!(corrected);
        assert_eq!((after_ack_of(&mut trial, &first, 60, 30), trial.on_loss(30)), (None, None));
    }
}
