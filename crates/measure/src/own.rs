//! Waits of some flows' packets, and nothing else.

use std::ops::Range;

use flowstart_network::Packet;
use flowstart_simulator::{FlowId, LinkId, Observer};
use flowstart_units::{Span, Time};

use super::delay::{DelaySample, DelaySamples, quantile};
use super::packet::payload;

/// Records how long the data packets of some flows wait at one link, in bounded memory.
#[derive(Clone, Debug)]
pub struct OwnWaits {
    link: LinkId,
    flows: [Range<FlowId>; 2],
    samples: DelaySamples,
}

/// Most waits kept (1.5 MB); see [`DelaySamples`].
const SAMPLE_LIMIT: usize = 1 << 16;

impl OwnWaits {
    /// Of these flows and their second connections at this link.
    #[must_use]
    pub fn new(link: LinkId, flows: [Range<FlowId>; 2]) -> Self {
        Self { link, flows, samples: DelaySamples::new(SAMPLE_LIMIT) }
    }

    /// The `p`-quantile (0 ..= 1) by nearest rank; `None` if no packet passed.
    #[must_use]
    pub fn quantile(&self, p: f64) -> Option<Span> {
        let mut waits: Vec<Span> = self.samples.samples().iter().map(|sample| sample.waited).collect();
        quantile(&mut waits, p)
    }
}

impl Observer for OwnWaits {
    #[inline]
    fn transmitted(&mut self, now: Time, link: LinkId, packet: &Packet, arrived: Time, _done: Time) {
        let own = |flow| self.flows.iter().any(|flows| flows.contains(&flow));
        if link == self.link && payload(packet).is_some() && own(packet.flow) {
            self.samples.push(DelaySample { arrived, waited: now.since(arrived), own: true });
        }
    }
}
