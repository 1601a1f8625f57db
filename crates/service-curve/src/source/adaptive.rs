//! An adaptive window in a loop of fixed delays: the simulation of Section III of the paper,
//! without queues.

use std::collections::VecDeque;

use flowstart_units::{Span, Time};

use crate::stats::SplitMix64;
use crate::{Error, Probability};

/// Which ACKs carry a mark.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Marking {
    /// Each with this probability, independently.
    Bernoulli(Probability),
    /// Every so-many-th; 0 never.
    Periodic(u64),
}

/// When an ACK without a mark makes the window grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Growth {
    /// Always: the window does not depend on what the application sends.
    #[default]
    Always,
    /// Only if the window kept a packet from being sent just before (congestion window validation,
    /// RFC 7661).
    WhenLimited,
    /// Never, nor does a mark halve it: a static window.
    Never,
}

/// An adaptive window loop. The default is that of Figure 5a of the paper.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdaptiveLoopConfig {
    /// Time from sender to receiver; default 5 ms (derived from the paper's rate of 4143 packets
    /// per second).
    pub latency: Span,
    /// Time from sending a packet to its ACK; default 10 ms (derived).
    pub round_trip: Span,
    /// Default: one in a thousand at random (derived).
    pub marking: Marking,
    /// Default: always.
    pub growth: Growth,
    /// Window at the start in packets, at least 1; default 10 (RFC 6928).
    pub initial_window: f64,
    /// What a mark multiplies the window by, above 0, at most 1; default 1/2. The window stays at
    /// least one packet.
    pub decrease: f64,
}

impl Default for AdaptiveLoopConfig {
    fn default() -> Self {
        Self {
            latency: Span::from_millis(5),
            round_trip: Span::from_millis(10),
            marking: Marking::Bernoulli(Probability::ONE_PERMILLE),
            growth: Growth::Always,
            initial_window: 10.0,
            decrease: 0.5,
        }
    }
}

/// One packet that went through.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sent {
    /// When the window let it go.
    pub sent: Time,
    /// From its arrival at the sender to the receiver.
    pub delay: Span,
    /// The window when it was sent, in packets.
    pub window: f64,
}

/// Packets that arrive at a sender with a window: one ACK per packet, +1/w per ACK, times
/// `decrease` per mark. An iterator over the packets; ends with the arrivals.
///
/// Exactly: packet i may leave if i - k + 1 <= w, k being the number of ACKs processed; at its time
/// all ACKs before that time have been processed; while there is no room, time goes on to the next
/// ACK and just that one is processed. One random number per ACK.
#[derive(Clone, Debug)]
pub struct AdaptiveLoop<A> {
    config: AdaptiveLoopConfig,
    arrivals: A,
    random: SplitMix64,
    window: f64,
    /// When the packets that are not yet acknowledged left.
    flying: VecDeque<Time>,
    acked: u64,
    last: Time,
}

impl<A: Iterator<Item = Time>> AdaptiveLoop<A> {
    /// A loop that is fed `arrivals` (in order of time; `std::iter::repeat(Time::ZERO)` always has
    /// data).
    ///
    /// # Errors
    /// [`Error::InvalidConfig`] naming the field.
    pub fn new(config: AdaptiveLoopConfig, arrivals: A, seed: u64) -> Result<Self, Error> {
        if !(config.initial_window >= 1.0 && config.initial_window.is_finite()) {
            return Err(Error::InvalidConfig("initial_window", "at least one packet"));
        }
        if !(config.decrease > 0.0 && config.decrease <= 1.0) {
            return Err(Error::InvalidConfig("decrease", "above 0, at most 1"));
        }
        Ok(Self {
            config,
            arrivals,
            random: SplitMix64::new(seed),
            window: config.initial_window,
            flying: VecDeque::new(),
            acked: 0,
            last: Time::ZERO,
        })
    }

    /// The delays alone, as [`crate::probe_rate`] wants them.
    pub fn delays(self) -> impl Iterator<Item = Span> {
        self.map(|packet| packet.delay)
    }

    fn room(&self) -> bool {
        (self.flying.len() + 1) as f64 <= self.window
    }

    fn acknowledge(&mut self) {
        let limited = !self.room();
        let marked = match self.config.marking {
            Marking::Bernoulli(p) => self.random.unit() < p.get(),
            Marking::Periodic(every) => every > 0 && self.acked % every == every - 1,
        };
        match self.config.growth {
            Growth::Never => {}
            _ if marked => self.window = (self.window * self.config.decrease).max(1.0),
            Growth::WhenLimited if !limited => {}
            _ => self.window += 1.0 / self.window,
        }
        self.acked += 1;
        self.flying.pop_front();
    }
}

impl<A: Iterator<Item = Time>> Iterator for AdaptiveLoop<A> {
    type Item = Sent;
    fn next(&mut self) -> Option<Sent> {
        let arrival = self.arrivals.next()?;
        let mut now = arrival.max(self.last);
        while let Some(oldest) = self.flying.front() {
            let ack = *oldest + self.config.round_trip;
            if ack >= now {
                if self.room() {
                    break;
                }
                now = ack;
            }
            self.acknowledge();
        }
        self.flying.push_back(now);
        self.last = now;
        Some(Sent { sent: now, delay: now.since(arrival) + self.config.latency, window: self.window })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: AdaptiveLoopConfig = AdaptiveLoopConfig {
        latency: Span::from_millis(5),
        round_trip: Span::from_millis(10),
        marking: Marking::Periodic(3),
        growth: Growth::Always,
        initial_window: 4.0,
        decrease: 0.5,
    };

    /// When the packets of an application that always has data leave, in milliseconds.
    fn leaving(config: AdaptiveLoopConfig, count: usize) -> Vec<u64> {
        let packets = AdaptiveLoop::new(config, std::iter::repeat(Time::ZERO), 1).unwrap();
        packets.take(count).map(|packet| packet.sent.as_nanos() / 1_000_000).collect()
    }

    #[test]
    fn the_window_grows_by_its_inverse_with_every_ack_and_every_third_halves_it() {
        // By hand: 4, 4.25, 4.49, halved 2.24, 2.69, 3.06, halved 1.53, 2.18.
        assert_eq!(leaving(CONFIG, 9), [0, 0, 0, 0, 10, 10, 20, 20, 30]);
        let packets = AdaptiveLoop::new(CONFIG, std::iter::repeat(Time::ZERO), 1).unwrap();
        let windows: Vec<f64> = packets.take(6).map(|packet| (packet.window * 100.0).round()).collect();
        assert_eq!(windows, [400.0, 400.0, 400.0, 400.0, 425.0, 449.0]);
        let packets = AdaptiveLoop::new(CONFIG, std::iter::repeat(Time::ZERO), 1).unwrap();
        assert!(packets.take(9).all(|packet| packet.delay == packet.sent.since(Time::ZERO) + CONFIG.latency));
    }

    #[test]
    fn a_window_without_marks_only_grows_and_a_static_one_stays() {
        let never = AdaptiveLoopConfig { marking: Marking::Periodic(0), ..CONFIG };
        // Rounds of 4 packets, then of 5: 4 + 4 * 1/4 and so on.
        assert_eq!(leaving(never, 13), [0, 0, 0, 0, 10, 10, 10, 10, 20, 20, 20, 20, 20]);
        let fixed = AdaptiveLoopConfig { growth: Growth::Never, ..CONFIG };
        assert_eq!(leaving(fixed, 12), [0, 0, 0, 0, 10, 10, 10, 10, 20, 20, 20, 20]);
    }

    #[test]
    fn a_window_that_is_not_used_up_grows_only_if_it_grows_always() {
        let window = |growth| {
            let config = AdaptiveLoopConfig { growth, marking: Marking::Periodic(0), ..CONFIG };
            let slow = (0_u64..50).map(|n| Time::from_nanos(n * 20_000_000));
            AdaptiveLoop::new(config, slow, 1).unwrap().last().unwrap().window
        };
        assert_eq!(window(Growth::WhenLimited), 4.0);
        assert!(window(Growth::Always) > 10.0);
    }

    #[test]
    fn windows_of_less_than_a_packet_and_decreases_that_increase_are_refused() {
        let new = |initial_window, decrease| {
            let config = AdaptiveLoopConfig { initial_window, decrease, ..CONFIG };
            AdaptiveLoop::new(config, std::iter::repeat(Time::ZERO), 1).is_ok()
        };
        assert!(new(1.0, 1.0) && new(1.0, 1e-9));
        for (window, decrease) in [(0.99, 0.5), (f64::INFINITY, 0.5), (f64::NAN, 0.5), (4.0, 0.0), (4.0, 1.01)] {
            assert!(!new(window, decrease), "{window} {decrease}");
        }
        // However many marks, a packet may leave.
        let marked = AdaptiveLoopConfig { marking: Marking::Periodic(1), ..CONFIG };
        assert_eq!(leaving(marked, 8)[5..], [20, 30, 40]);
    }
}
