//! What is looked at in a run, of the simulator or of the kernel, by the same code.

use flowstart_network::{DropReason, Packet};
use flowstart_simulator::{LinkId, Observer, Outcome};
use flowstart_units::{Span, Time};

use super::judge::{QUANTITIES, Values};

/// The bottleneck is the first link of every path.
const BOTTLENECK: LinkId = 0;

/// Watches one flow over one bottleneck.
pub(super) struct Watch {
    settled: Time,
    end: Time,
    waits: Vec<u64>,
    drops: u64,
    /// Bytes delivered when the start was over, and at the end.
    delivered: (u64, u64),
}

impl Watch {
    /// Rates and waits count from `settled` on.
    pub(super) fn new(settled: Span, duration: Span) -> Self {
        let (settled, end) = (Time::ZERO + settled, Time::ZERO + duration);
        Self { settled, end, waits: Vec::new(), drops: 0, delivered: (0, 0) }
    }

    /// What came out, in the order of [`QUANTITIES`].
    pub(super) fn values(mut self, outcome: &Outcome, rtt: Span) -> Values {
        let mut values = [None; QUANTITIES.len()];
        let ms = |nanoseconds: f64| Some(nanoseconds / 1e6);
        let bytes = self.delivered.1.saturating_sub(self.delivered.0);
        values[0] = Some(bytes as f64 * 8.0 / 1e6 / self.end.since(self.settled).as_secs_f64());
        self.waits.sort_unstable();
        if let Some(last) = self.waits.len().checked_sub(1) {
            let quantile = |share: f64| self.waits[(last as f64 * share) as usize] as f64;
            values[1] = ms(self.waits.iter().sum::<u64>() as f64 / self.waits.len() as f64);
            values[2] = ms(quantile(0.5));
            values[3] = ms(quantile(0.95));
        }
        values[4] = Some(self.drops as f64);
        if let Some(flow) = outcome.flows.first()
            && let Some(exit) = flow.start_exit
        {
            values[5] = Some(exit.now.since(flow.first_data).ratio(rtt));
            values[6] = Some(f64::from(exit.cwnd));
        }
        values
    }
}

impl Observer for Watch {
    fn dropped(&mut self, now: Time, link: LinkId, _: &Packet, _: Option<DropReason>) {
        self.drops += u64::from(link == BOTTLENECK && now < self.end);
    }

    fn transmitted(&mut self, now: Time, link: LinkId, _: &Packet, arrived: Time, _: Time) {
        if link == BOTTLENECK && now >= self.settled && now < self.end {
            self.waits.push(now.since(arrived).as_nanos());
        }
    }

    fn delivered(&mut self, now: Time, _: u32, total: u64) {
        if now < self.settled {
            self.delivered.0 = total;
        }
        if now < self.end {
            self.delivered.1 = total;
        }
    }
}
