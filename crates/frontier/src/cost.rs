//! How many packets a piece of work will simulate, roughly: for the order of work and for telling
//! people what they ask for.

use flowstart_race::RunPackets;

use super::{Cell, Frontier, LoadKind, Work, rough};

/// Share of the capacity that others take; what a kind of path brings on the way back counts too.
fn share_of(cell: &Cell) -> f64 {
    let load = match cell.load {
        LoadKind::Idle => 0.0,
        LoadKind::Greedy | LoadKind::Bbr | LoadKind::Dctcp => 1.0,
        LoadKind::Udp => 0.2,
        LoadKind::Web => 0.3,
    };
    let datagrams = rough::named(cell.path.name()).map_or(Vec::new(), |rough| rough.datagrams(cell.capacity));
    let rate: u64 = datagrams.iter().map(|udp| udp.rate.as_bps()).sum();
    load + rate as f64 / cell.capacity.as_bps().max(1) as f64
}

impl Work {
    /// Estimated data packets: off by a factor of two now and then.
    #[must_use]
    pub fn packets(&self) -> f64 {
        self.packets_of_run().with
    }

    fn packets_of_run(&self) -> RunPackets {
        self.race().packets_of_run(share_of(&self.cell))
    }
}

impl Frontier {
    /// Estimated data packets of all this work.
    #[must_use]
    pub fn packets(works: &[Work]) -> f64 {
        let mut sum = 0.0;
        let mut last = None;
        for work in works {
            sum += work.packets();
            // The run without newcomers is shared by all contestants over the same kind of queue;
            // counted once per cell and seed.
            let place = (work.cell_number, work.seed);
            if last != Some(place) && work.contestant_number == 0 {
                sum += work.packets_of_run().without;
            }
            last = Some(place);
        }
        sum
    }
}
