//! Who is there before the newcomers come, and what of the path is left.

use flowstart_scenario::{ArrivalSpec, FlowSpec, UdpSpec};
use flowstart_units::{Rate, Span};

/// Who is there before the newcomers come, as in a scenario file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Others {
    /// TCP flows.
    pub flow: Vec<FlowSpec>,
    /// Datagram flows.
    pub udp: Vec<UdpSpec>,
    /// Transfers that arrive at random.
    pub arrivals: Vec<ArrivalSpec>,
}

/// The link of a path that newcomers share, as `forward` calls it.
const BOTTLENECK: &str = "bottleneck";

impl Others {
    /// True if nobody is there.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.flow.is_empty() && self.udp.is_empty() && self.arrivals.is_empty()
    }

    /// TCP flows in all.
    #[must_use]
    pub fn tcp_flows(&self) -> u32 {
        self.flow.iter().map(|flow| flow.count).fold(0, u32::saturating_add)
    }

    /// An equal share of a path for so many newcomers that are watched for the time from the first
    /// of these moments to the second. Datagram flows take their rates. Of TCP flows the greedy
    /// ones share; paced ones take their rates, but not more than a share. Whoever begins after the
    /// first moment or ends before the second does not count, nor do transfers and writes of fewer
    /// bytes than the path carries until then, arrivals, and who goes the other way (`forward`
    /// without the bottleneck). Zero if datagrams take it all.
    #[must_use]
    pub fn share(&self, capacity: Rate, newcomers: u64, watched: (Span, Span)) -> Rate {
        share(capacity, newcomers, &self.sharing(capacity, watched))
    }

    /// Those who [share](Self::share) a path with newcomers that are watched for this time: TCP
    /// flows, then datagrams, each in the order of the file.
    pub(crate) fn sharing(&self, capacity: Rate, (from, to): (Span, Span)) -> Vec<Sharer> {
        let stays =
            |start: Span, lasting: Option<Span>| start <= from && lasting.is_none_or(|lasting| start + lasting >= to);
        let here = |forward: &[String]| forward.is_empty() || forward.iter().any(|link| link == BOTTLENECK);
        let mut sharers = Vec::new();
        let mut before = 0_u32;
        for flow in &self.flow {
            let to_send = match (flow.size, flow.writes.is_empty(), &flow.list) {
                (Some(size), ..) => Some(size.get()),
                (None, false, _) => {
                    Some(flow.writes.iter().map(|write| write.bytes.get()).fold(0, u64::saturating_add))
                }
                (None, true, Some(_)) => Some(0),
                (None, true, None) => None,
            };
            let wants = flow.paced.as_ref().map_or(Wants::Everything, |paced| Wants::Paced(paced.rate));
            for number in 0..flow.count {
                let start = flow.start + flow.every * u64::from(number);
                let endless = to_send.is_none_or(|bytes| bytes >= capacity.bytes_in(to - start).get());
                let lasting = flow.paced.as_ref().and_then(|paced| paced.lasting);
                if here(&flow.forward) && endless && stays(start, lasting) {
                    let number = before.saturating_add(number);
                    sharers.push(Sharer { number, wants, way: flow.ways.first().copied() });
                }
            }
            before = before.saturating_add(flow.count);
        }
        for (number, udp) in (0..).zip(&self.udp) {
            if here(&udp.forward) && stays(udp.start, udp.lasting) {
                sharers.push(Sharer { number, wants: Wants::Datagrams(udp.rate), way: udp.way });
            }
        }
        sharers
    }
}

/// One of the others who shares a path with newcomers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sharer {
    /// Its place among the others' TCP flows, or among their datagram flows.
    pub(crate) number: u32,
    /// What it takes.
    pub(crate) wants: Wants,
    /// The way that it says it takes, from 1; drawn if it says none.
    pub(crate) way: Option<u32>,
}

/// What a flow takes of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wants {
    /// A share.
    Everything,
    /// A TCP flow, this rate or a share.
    Paced(Rate),
    /// This rate, whatever is left for others.
    Datagrams(Rate),
}

/// The share that each of so many newcomers has beside these.
pub(crate) fn share(capacity: Rate, newcomers: u64, others: &[Sharer]) -> Rate {
    let mut left = capacity.as_bps();
    let mut sharing = newcomers.max(1);
    let mut paced: Vec<u64> = Vec::new();
    for other in others {
        match other.wants {
            Wants::Everything => sharing += 1,
            Wants::Paced(rate) => paced.push(rate.as_bps()),
            Wants::Datagrams(rate) => left = left.saturating_sub(rate.as_bps()),
        }
    }
    // Those that want less than a share leave the rest of it to the others (max-min fairness).
    paced.sort_unstable();
    for (number, rate) in paced.iter().enumerate() {
        let all = sharing + (paced.len() - number) as u64;
        if *rate >= left / all {
            return Rate::from_bps(left / all);
        }
        left -= rate;
    }
    Rate::from_bps(left / sharing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowstart_scenario::Scenario;

    #[test]
    fn only_those_who_are_there_take_their_share() {
        let share = |flows: &str| {
            let text = format!(
                "duration = \"1 s\"\n[path]\ncapacity = \"20 Mbit/s\"\nrtt = \"40 ms\"\n\
                 reverse_capacity = \"10 Mbit/s\"\n{flows}"
            );
            let scenario = Scenario::parse("test", &text).unwrap();
            let others = Others { flow: scenario.flow, udp: scenario.udp, arrivals: scenario.arrivals };
            others.share(Rate::from_mbps(20), 1, (Span::from_secs(10), Span::from_secs(20))).as_mbps_f64()
        };
        for (flows, mbps) in [
            ("[[flow]]", 10.0),
            ("[[flow]]\ncount = 3", 5.0),
            // Not there yet, not there any more.
            ("[[flow]]\nstart = \"1000 s\"", 20.0),
            ("[[flow]]\ncount = 3\nevery = \"6 s\"", 20.0 / 3.0),
            ("[[flow]]\nsize = \"10 kB\"", 20.0),
            ("[[flow]]\nsize = \"49 MB\"", 20.0),
            ("[[flow]]\nsize = \"50 MB\"", 10.0),
            ("[[flow]]\nwrites = [{ after = \"0 s\", bytes = \"1 kB\" }]", 20.0),
            ("[[udp]]\nrate = \"15 Mbit/s\"", 5.0),
            ("[[udp]]\nrate = \"15 Mbit/s\"\nlasting = \"1 s\"", 20.0),
            ("[[udp]]\nrate = \"15 Mbit/s\"\nstart = \"11 s\"", 20.0),
            ("[[udp]]\nrate = \"30 Mbit/s\"", 0.0),
            // On the way back.
            ("[[udp]]\nrate = \"4 Mbit/s\"\nforward = [\"reverse\"]", 20.0),
            ("[[udp]]\nrate = \"4 Mbit/s\"\nforward = [\"bottleneck\"]", 16.0),
            ("[[flow]]\nforward = [\"reverse\"]\nreverse = [\"bottleneck\"]", 20.0),
            // What wants less than a share.
            ("[[flow]]\npaced = { rate = \"1 Mbit/s\", message = \"1 kB\" }", 19.0),
            ("[[flow]]\npaced = { rate = \"15 Mbit/s\", message = \"1 kB\" }", 10.0),
            ("[[flow]]\npaced = { rate = \"1 Mbit/s\", message = \"1 kB\", lasting = \"2 s\" }", 20.0),
            ("[[flow]]\ncount = 2\npaced = { rate = \"2 Mbit/s\", message = \"1 kB\" }\n[[flow]]", 8.0),
        ] {
            assert!((share(flows) - mbps).abs() < 1e-5, "{flows}: {}", share(flows));
        }
    }
}
