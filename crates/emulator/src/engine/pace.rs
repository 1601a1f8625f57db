//! How an engine uses the processor: it notices when it was away, and stays below the share that
//! the system leaves to real-time threads.
//!
//! Linux stops all real-time threads of a processor for the rest of a second when they have used
//! 950 ms of it (`sched_rt_runtime_us`, sched(7)). At 500 Mbit/s a packet of 1500 bytes leaves
//! every 24 us; an engine that handles it and watches the clock for the next never sleeps, so it
//! would stand still for 50 ms of every second. It rests in good time instead, for some
//! microseconds.

use flowstart_units::{Span, Time};

/// Notices times in which the engine should have looked at the clock and did not, for whatever
/// reason: the processor was taken away, or the kernel was long about something.
#[derive(Debug)]
pub(super) struct Looks {
    /// When the engine looked last, or the end of the sleep that it asked for.
    latest: Time,
    stall: Span,
    pub(super) stalls: u64,
    pub(super) longest: Span,
}

impl Looks {
    pub(super) fn new(now: Time, stall: Span) -> Self {
        Self { latest: now, stall, stalls: 0, longest: Span::ZERO }
    }

    /// The clock was looked at.
    #[inline]
    pub(super) fn at(&mut self, now: Time) {
        let away = now.since(self.latest);
        if away > self.stall {
            self.stalls += 1;
            self.longest = self.longest.max(away);
        }
        self.latest = now;
    }

    /// The engine will sleep until then.
    #[inline]
    pub(super) fn sleeps_until(&mut self, wake: Time) {
        self.latest = self.latest.max(wake);
    }
}

/// Of what the system allows to real-time threads, the share that an engine takes; the rest is for
/// others of ours on the same processor, senders above all.
const OF_THE_LIMIT: f64 = 0.9;
/// How much more than its share an engine may be awake at once, as a part of the system's period.
const AHEAD: u64 = 50;
/// A rest that is forced is at least so long: shorter ones cost more than they give.
const LEAST_REST: Span = Span::from_micros(50);

/// How often the thread's processor time is asked for at most, which takes a system call.
const ASKED_EVERY: Span = Span::from_micros(200);

/// Processor time that an engine may still use: a share of the time that passes, and no more than
/// `most` beyond it. The thread's own clock says what was used. How long it slept does not: going
/// to sleep and waking cost as much as many a short sleep lasts.
#[derive(Debug)]
pub(super) struct Budget {
    /// In 1/1024.
    share: i64,
    /// Both in nanoseconds times 1024.
    left: i64,
    most: i64,
    /// When the thread's clock was asked, and what it said in nanoseconds.
    asked: Time,
    used: u64,
}

const ONE: i64 = 1024;

impl Budget {
    /// Of an engine that may use this share of every such period and has used so much before;
    /// `None`: without limit.
    pub(super) fn new(now: Time, limit: Option<(f64, Span)>, used: u64) -> Self {
        let (share, most) = limit.map_or((ONE, 0), |(share, period)| {
            let share = (share * OF_THE_LIMIT * ONE as f64) as i64;
            (share.clamp(1, ONE), (period / AHEAD).as_nanos() as i64 * ONE)
        });
        Self { share, left: most, most, asked: now, used }
    }

    /// Asks the thread's clock how much was used, if that is not only just known.
    #[inline]
    pub(super) fn update(&mut self, now: Time, used: impl FnOnce() -> u64) {
        let passed = now.since(self.asked);
        if self.most == 0 || passed < ASKED_EVERY {
            return;
        }
        let used = used();
        let spent = used.saturating_sub(self.used) as i64;
        self.left = (self.left + passed.as_nanos() as i64 * self.share - spent * ONE).min(self.most);
        (self.asked, self.used) = (now, used);
    }

    /// True while there is enough left for watching the clock, which makes departures more precise
    /// and nothing else.
    #[inline]
    pub(super) fn may_spin(&self) -> bool {
        self.left * 2 >= self.most
    }

    /// How long the engine must sleep now; `None` while something is left.
    #[inline]
    pub(super) fn rest(&self) -> Option<Span> {
        let needed = || Span::from_nanos((-self.left / self.share) as u64);
        (self.left < 0).then(|| needed().max(LEAST_REST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Time {
        Time::ZERO + Span::from_micros(micros)
    }

    #[test]
    fn a_pause_is_noticed_wherever_in_a_pass_it_happens() {
        let mut looks = Looks::new(at(0), Span::from_millis(1));
        looks.at(at(900));
        looks.sleeps_until(at(5_000));
        looks.at(at(5_100));
        assert_eq!((looks.stalls, looks.longest), (0, Span::ZERO), "it asked for that sleep");
        // Between two packets of one pass.
        looks.at(at(55_100));
        // After a sleep that took too long.
        looks.sleeps_until(at(56_000));
        looks.at(at(58_000));
        assert_eq!((looks.stalls, looks.longest), (2, Span::from_millis(50)));
        // Woken early by a packet, then away.
        looks.sleeps_until(at(100_000));
        looks.at(at(60_000));
        looks.at(at(62_000));
        assert_eq!(looks.stalls, 3);
    }

    /// The processor time used in every second by an engine that works for `work` of every `gap`,
    /// and the longest rest that it had to take. Going to sleep and waking cost 4 us.
    fn used_per_second(limit: Option<(f64, Span)>, gap: u64, work: u64) -> (Vec<u64>, Span) {
        let mut budget = Budget::new(at(0), limit, 0);
        let (mut now, mut due, mut used, mut seconds, mut longest) = (0, 0, 0, vec![0; 4], Span::ZERO);
        while now < 4_000_000 {
            let (second, before) = ((now / 1_000_000) as usize, used);
            now += work;
            used += work;
            due += gap;
            budget.update(at(now), || used * 1000);
            let rest = budget.rest();
            longest = longest.max(rest.unwrap_or(Span::ZERO));
            let rest = rest.map_or(0, |rest| rest.as_nanos().div_ceil(1000));
            if rest > 0 || due > now && !budget.may_spin() {
                used += 4;
                now = (now + rest.max(4)).max(due);
            } else if due > now {
                used += due - now;
                now = due;
            }
            seconds[second] += used - before;
        }
        (seconds, longest)
    }

    #[test]
    fn an_engine_stays_below_what_the_system_leaves_to_real_time_threads_and_rests_briefly() {
        let limit = Some((0.95, Span::from_secs(1)));
        // Packets of 1500 bytes at 500 Mbit/s; rates that take nearly, or more than, all there is.
        for (gap, work) in [(24, 10), (24, 23), (10, 12)] {
            let (seconds, longest) = used_per_second(limit, gap, work);
            for used in seconds {
                assert!(used < 900_000, "{used} us of a second, {work} us per {gap} us");
                assert!(used > 800_000, "it uses what it may: {used} us");
            }
            assert!(longest < Span::from_micros(200), "{longest}");
        }
        let (seconds, longest) = used_per_second(None, 24, 10);
        assert!(seconds.into_iter().all(|used| used >= 999_900) && longest.is_zero());
    }
}
