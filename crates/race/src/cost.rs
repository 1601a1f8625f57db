//! How many packets a race will simulate, roughly: for telling people what they ask for.

use flowstart_units::Span;

use super::Race;
use super::build::AFTER_HORIZON_RTTS;

/// RTT0 that a transfer takes beyond its ideal time on a path of ordinary size.
const TRANSFER_RTTS: u64 = 15;

impl Race {
    /// Estimated data packets of all runs; off by a factor of two now and then, more where somebody
    /// starves.
    #[must_use]
    pub fn packets(&self) -> f64 {
        let rtt = self.base_rtt();
        let packets = |span: Span| span.ratio(self.service());
        let datagrams = self.others.udp.iter().map(|udp| udp.rate.as_bps()).fold(0, u64::saturating_add);
        // Greedy flows fill the path; datagrams take their rate.
        let load = match self.others.tcp_flows() {
            0 => (datagrams as f64 / self.capacity().as_bps().max(1) as f64).min(1.0),
            _ => 1.0,
        };
        let before = self.effective_warm_up() + self.effective_phase() / 2;
        let watched = self.horizon() + rtt * (AFTER_HORIZON_RTTS + 2);
        let transfer = |size: &flowstart_units::Bytes| {
            let own = size.get() as f64 / f64::from(super::MSS);
            own + load * packets(before + self.ideal(*size) + rtt * TRANSFER_RTTS)
        };
        let start = load * packets(before) + packets(watched);
        // Contestants over the same queue share the run without newcomers.
        let queues: std::collections::BTreeSet<String> =
            self.contestants.iter().map(|contestant| self.queue_name(contestant)).collect();
        let baselines = if self.has_others() { load * packets(before + watched) * queues.len() as f64 } else { 0.0 };
        let each = start + self.sizes.iter().map(transfer).sum::<f64>();
        f64::from(self.effective_runs()) * (each * self.contestants.len() as f64 + baselines)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Race, RunOptions};

    #[test]
    fn what_is_estimated_is_off_by_less_than_a_factor_of_two() {
        for background in ["", "2 cubic"] {
            let contestants = ["cubic", "slow_start+reno"].iter().map(|name| name.parse().unwrap()).collect();
            let mut race = Race { contestants, runs: Some(2), ..Race::default() };
            if !background.is_empty() {
                let background: crate::Background = background.parse().unwrap();
                race.others.flow.push(background.spec(0));
            }
            let simulated = race.run(&RunOptions::default()).unwrap().data_packets as f64;
            let ratio = race.packets() / simulated;
            assert!((0.5..2.0).contains(&ratio), "{background}: {ratio:.2}");
        }
    }
}
