//! How many packets a piece of work will simulate, roughly: for the order of work and for telling
//! people what they ask for.

use flowstart_units::Span;

use flowstart_race::Race;

use super::{Cell, Frontier, LoadKind, Work, rough};

/// RTT0 after the horizon that are simulated too, and the handshake.
const BEYOND_HORIZON_RTTS: u64 = 14;
/// RTT0 that a transfer takes beyond its ideal time, in the middle of the grid.
const TRANSFER_RTTS: u64 = 15;

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
        let race = self.race();
        let rtt = race.base_rtt();
        let load = share_of(&self.cell);
        let packets = |span: Span| span.ratio(race.service());
        let before = race.effective_warm_up() + race.effective_phase() / 2;
        let watched = race.horizon() + rtt * BEYOND_HORIZON_RTTS;
        let transfers: f64 = race
            .sizes
            .iter()
            .map(|size| own(&race, size.get()) + load * packets(before + race.ideal(*size) + rtt * TRANSFER_RTTS))
            .sum();
        load * packets(before) + packets(watched) + transfers
    }

    /// Estimated data packets of the run without the newcomer.
    fn baseline_packets(&self) -> f64 {
        let race = self.race();
        let span = race.effective_warm_up()
            + race.effective_phase() / 2
            + race.horizon()
            + race.base_rtt() * BEYOND_HORIZON_RTTS;
        share_of(&self.cell) * span.ratio(race.service())
    }
}

fn own(race: &Race, bytes: u64) -> f64 {
    bytes as f64 / f64::from(race.packet())
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
                sum += work.baseline_packets();
            }
            last = Some(place);
        }
        sum
    }
}
