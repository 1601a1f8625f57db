//! Looks at the queue after the answer. Whoever has a queue needs no trains: a lone packet behind
//! any of its packets tells whether others wait for that queue. It carries data, which the
//! connection sends again if the look comes to nothing.
//!
//! A connection in charge of CUBIC has a queue most of the time, its own or a shared one; one that
//! keeps its own queue short gets one that is worth a look when the bottleneck becomes a shared
//! one. Looks cost two packets each.

use alloc::collections::VecDeque;

use flowstart_units::{Span, Time};

use crate::answer::Isolation;
use crate::smallest::Smallest;
use crate::{Acked, Departure, Sent};

use super::config::TrainProbeConfig;
use super::evidence::Evidence;
use super::scale::Scale;
use super::side::{Newest, round_trip};

/// ACKs of the neighbour and those before it that are remembered: two with different RTTs are
/// needed.
const REMEMBERED: usize = 8;

/// Lone packets and their neighbour.
#[derive(Clone, Debug)]
struct Look {
    at: Time,
    /// The packet of connection 0 that left last before them.
    neighbour: u64,
    /// Its fate is known.
    settled: bool,
    /// Numbers and RTTs of the lone packets that have left.
    lone: [Option<(u64, Option<Span>)>; 2],
}

/// The looks of a connection.
#[derive(Clone, Debug)]
pub(super) struct Watch {
    config: TrainProbeConfig,
    smallest: Smallest,
    /// What the detector measured.
    jitter: Span,
    /// By how much a packet was under way for longer than one that overtook it, at most: in this
    /// half of the window of the smallest RTT and in the one before.
    reordering: [Span; 2],
    /// The packet of connection 0 that left last of those that have arrived.
    newest: Option<Newest>,
    /// Time the bottleneck takes for a packet of this connection.
    service: Span,
    /// Packets counted for it, and since when.
    counted: (u32, Time),
    /// The queueing delay of the last packet acknowledged.
    excess: Span,
    /// No look before.
    next: Time,
    /// Least time between looks.
    interval: Span,
    /// The avoidance does not use any more that the queue is the flow's own.
    gave_up: bool,
    look: Option<Look>,
    /// ACKs of connection 0: number and RTT.
    recent: VecDeque<(u64, Span)>,
}

impl Watch {
    /// From `now` on, with what the detector measured.
    pub(super) fn new(config: &TrainProbeConfig, now: Time, scale: Scale) -> Self {
        let mut smallest = Smallest::new();
        smallest.add(now, scale.smallest, config.watch.min_rtt_window / 2);
        Self {
            config: *config,
            smallest,
            jitter: scale.jitter,
            reordering: [Span::ZERO; 2],
            newest: None,
            service: scale.service,
            counted: (0, now),
            excess: Span::ZERO,
            next: now,
            interval: config.watch.interval,
            gave_up: false,
            look: None,
            recent: VecDeque::with_capacity(REMEMBERED),
        }
    }

    pub(super) fn scale(&self) -> Scale {
        let [now, before] = self.reordering;
        Scale { smallest: self.smallest.get(), service: self.service, jitter: self.jitter.max(now).max(before) }
    }

    /// The smallest RTT of late.
    pub(super) fn smallest(&self) -> Span {
        self.smallest.get()
    }

    /// Lone packets leave at once; connection 0 is not directed.
    pub(super) fn departure(&self, connection: usize) -> Departure {
        match &self.look {
            Some(look) if connection == 1 && self.left(look) < self.config.lone => Departure::At(look.at),
            _ => Departure::Hold,
        }
    }

    /// True until all is known of a look, or it is given up.
    pub(super) fn is_looking(&self) -> bool {
        self.look.is_some()
    }

    fn left(&self, look: &Look) -> u32 {
        look.lone.iter().flatten().count() as u32
    }

    pub(super) fn on_sent(&mut self, connection: usize, sent: &Sent) {
        let is_due = sent.now >= self.next && !sent.retransmission;
        if connection == 0 && self.look.is_none() && is_due && self.scale().is_queue(self.excess, &self.config) {
            self.look = Some(Look { at: sent.now, neighbour: sent.number, settled: false, lone: [None; 2] });
        } else if connection == 1
            && let Some(look) = &mut self.look
        {
            // One that could not leave at once met another queue, and a repair is of another look.
            let late = sent.now.since(look.at) > self.service;
            match look.lone.iter_mut().find(|lone| lone.is_none()) {
                Some(slot) if !late && !sent.retransmission => *slot = Some((sent.number, None)),
                _ => self.end(sent.now),
            }
        }
    }

    /// Ends a look; the next one is not at once.
    fn end(&mut self, now: Time) {
        self.look = None;
        self.next = now + self.interval;
    }

    /// This is what the queue is taken for.
    pub(super) fn take_for(&mut self, isolation: Isolation) {
        let config = &self.config.watch;
        let short = isolation == Isolation::Isolated && !self.gave_up;
        self.interval = if short { config.interval_isolated } else { config.interval };
    }

    /// The queue is not kept short any more, be it the flow's own or not.
    pub(super) fn on_given_up(&mut self) {
        self.gave_up = true;
        self.take_for(Isolation::Shared);
    }

    /// A packet of a connection was delivered. Adds what a look told to the evidence; true if there
    /// is more.
    pub(super) fn on_acked(&mut self, connection: usize, acked: &Acked, evidence: &mut Evidence) -> bool {
        let rtt = round_trip(acked);
        // A path that has reordered once, at a handover say, is not one that does for ever.
        if !acked.retransmitted && self.smallest.add(acked.now, rtt, self.config.watch.min_rtt_window / 2) {
            self.reordering = [Span::ZERO, self.reordering[0]];
        }
        if connection == 0 {
            match self.newest.filter(|newest| acked.sent_at < newest.sent) {
                _ if acked.retransmitted => {}
                // By so much reordering changes delays.
                Some(newest) => {
                    let service = Some(self.service).filter(|service| !service.is_zero());
                    let most_space = u64::from(self.config.most_space);
                    self.reordering[0] = self.reordering[0].max(newest.overtook(acked, service, most_space));
                }
                None => self.newest = Some(Newest::new(acked)),
            }
            self.count(acked.now);
            self.excess = self.scale().excess(rtt);
        }
        let Some(look) = &mut self.look else {
            if connection == 0 {
                self.remember(acked.number, rtt);
            }
            return false;
        };
        if acked.retransmitted || acked.now.since(look.at) > rtt.mul_f64(self.config.watch.patience_rtts) {
            self.end(acked.now);
            return false;
        }
        if connection == 0 {
            look.settled |= acked.number >= look.neighbour;
            if acked.number <= look.neighbour {
                self.remember(acked.number, rtt);
            }
        } else if let Some((_, slot)) = look.lone.iter_mut().flatten().find(|(number, _)| *number == acked.number) {
            *slot = Some(rtt);
        }
        self.judge(acked.now, evidence)
    }

    fn judge(&mut self, now: Time, evidence: &mut Evidence) -> bool {
        let Some(look) = &self.look else { return false };
        let all = look.lone.iter().flatten().filter(|(_, rtt)| rtt.is_some()).count() as u32 == self.config.lone;
        if !(look.settled && all) {
            return false;
        }
        let rtts = look.lone.map(|lone| lone.and_then(|(_, rtt)| rtt));
        let delay = self.delay_before(look.neighbour).map(|rtt| self.scale().excess(rtt));
        self.end(now);
        let scale = self.scale();
        let ratio = delay
            .filter(|delay| scale.is_queue(*delay, &self.config))
            .zip(scale.waited(rtts))
            .and_then(|(delay, waited)| scale.ratio(waited, delay, &self.config));
        if let Some((ratio, noise)) = ratio {
            evidence.fade(libm::pow(0.5, 1.0 / self.config.watch.memory), self.config.isolated_error);
            evidence.ratio(ratio, noise);
        }
        ratio.is_some()
    }

    /// The RTT of the last packet up to the neighbour that arrived, or if its ACK was held back
    /// what it follows from that of an earlier one.
    fn delay_before(&self, neighbour: u64) -> Option<Span> {
        let mut known = self.recent.iter().rev().filter(|(number, _)| *number <= neighbour);
        let (last, rtt) = *known.next()?;
        let (earlier, before) = *known.find(|(number, other)| *number < last && *other != rtt)?;
        Some(rtt.min(before + self.service * (last - earlier)))
    }

    fn remember(&mut self, number: u64, rtt: Span) {
        match self.recent.back_mut() {
            // Packets of one ACK share its RTT.
            Some(last) if last.1 == rtt => last.0 = last.0.max(number),
            _ => {
                if self.recent.len() >= REMEMBERED {
                    self.recent.pop_front();
                }
                self.recent.push_back((number, rtt));
            }
        }
    }

    fn count(&mut self, now: Time) {
        let (count, since) = &mut self.counted;
        *count += 1;
        if *count >= self.config.watch.service_packets {
            self.service = (now.since(*since) / u64::from(*count)).max(Span::from_micros(1));
            (*count, *since) = (0, now);
        }
    }
}

#[cfg(test)]
mod tests;
