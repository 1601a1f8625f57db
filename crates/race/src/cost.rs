//! How many packets a race will simulate, roughly: for telling people what they ask for, and for
//! the order of work.

use flowstart_units::{Bytes, Span};

use super::Race;

/// RTT0 that a transfer takes beyond its ideal time on a path of ordinary size.
const TRANSFER_RTTS: u64 = 15;

/// Estimated data packets of one run; off by a factor of two now and then, more where somebody
/// starves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunPackets {
    /// With the newcomers of one contestant, and its transfers.
    pub with: f64,
    /// Without newcomers, which contestants over the same queue share.
    pub without: f64,
}

impl Race {
    /// Of one run in which others take this share of the capacity.
    #[must_use]
    pub fn packets_of_run(&self, load: f64) -> RunPackets {
        let packets = |span: Span| span.ratio(self.service());
        let before = self.effective_warm_up() + self.effective_phase() / 2;
        let watched = self.run_length();
        let transfer = |size: &Bytes| {
            let own = size.get() as f64 / f64::from(super::MSS);
            own + load * packets(before + self.ideal(*size) + self.base_rtt() * TRANSFER_RTTS)
        };
        let start = load * packets(before) + packets(watched);
        RunPackets {
            with: start + self.sizes.iter().map(transfer).sum::<f64>(),
            without: load * packets(before + watched),
        }
    }

    /// Estimated data packets of all runs.
    #[must_use]
    pub fn packets(&self) -> f64 {
        let datagrams = self.others.udp.iter().map(|udp| udp.rate.as_bps()).fold(0, u64::saturating_add);
        // Greedy flows fill the path; datagrams take their rate.
        let load = match self.others.tcp_flows() {
            0 => (datagrams as f64 / self.capacity().as_bps().max(1) as f64).min(1.0),
            _ => 1.0,
        };
        let queues: std::collections::BTreeSet<String> =
            self.contestants.iter().map(|contestant| self.queue_name(contestant)).collect();
        let RunPackets { with, without } = self.packets_of_run(load);
        let baselines = without * queues.len() as f64;
        f64::from(self.effective_runs()) * (with * self.contestants.len() as f64 + baselines)
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
