//! What is recorded of one link.

use flowstart_units::Span;

use super::BIN_LIMIT;
use super::asked::{Asked, LinkAsked, Parts};
use crate::delay::quantile;
use crate::egress::Egress;
use crate::thinned::Thinned;
use crate::wait::Wait;

/// What happened at a link.
#[derive(Clone, Debug)]
pub struct LinkRecord {
    pub(super) waits: Thinned<Wait>,
    pub(super) drops: Egress,
    pub(super) series: Option<Box<LinkSeries>>,
    pub(super) overhead: u32,
}

/// What happened at a link, per flow and per bin.
#[derive(Clone, Debug)]
pub struct LinkSeries {
    /// Longest wait by time of arrival, one per bin.
    pub longest: Vec<Span>,
    /// Bytes that left the link (data packets on the wire), per flow; the last one is for all
    /// without a series of their own.
    pub egress: Vec<Egress>,
    /// Data packets that left with a congestion mark.
    pub marks: Egress,
    /// Requests for a rate that arrived, and the sum in bit/s of what was left of them when they
    /// departed.
    pub requests: (u64, u64),
}

impl LinkRecord {
    pub(super) fn new<P: Parts>(asked: &Asked, link: &LinkAsked) -> Self {
        let bins = Egress::new(asked.bin, asked.record, BIN_LIMIT);
        let series = || LinkSeries {
            longest: vec![Span::ZERO; bins.bytes().len()],
            egress: vec![bins.clone(); asked.flow_limit + 1],
            marks: bins.clone(),
            requests: (0, 0),
        };
        Self {
            waits: Thinned::new(asked.wait_limit),
            series: P::LINK_SERIES.then(|| Box::new(series())),
            overhead: link.overhead,
            drops: bins,
        }
    }

    /// Waits of data packets, in order of departure.
    #[must_use]
    pub fn waits(&self) -> &[Wait] {
        self.waits.samples()
    }

    /// One wait stands for this many packets.
    #[must_use]
    pub fn stride(&self) -> u64 {
        self.waits.stride()
    }

    /// The `p`-quantile (0 ..= 1) of all waits by nearest rank; `None` if no packet passed.
    #[must_use]
    pub fn wait_quantile(&self, p: f64) -> Option<Span> {
        let mut waits: Vec<Span> = self.waits().iter().map(|wait| wait.waited).collect();
        quantile(&mut waits, p)
    }

    /// Data packets of all flows that were dropped, counted instead of bytes: by the queue, with
    /// [`Parts::LINK_SERIES`] by the loss process too.
    #[must_use]
    pub fn drops(&self) -> &Egress {
        &self.drops
    }

    /// What happened per flow and per bin, with [`Parts::LINK_SERIES`].
    #[must_use]
    pub fn series(&self) -> Option<&LinkSeries> {
        self.series.as_deref()
    }
}
