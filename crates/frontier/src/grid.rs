//! The grid, and the race of one contestant in one of its cells.

use std::fmt;

use flowstart_network::{JitterConfig, LossConfig, QueueConfig};
use flowstart_units::{Bytes, Rate, Span};

use flowstart_measure::Reference;
use flowstart_race::{Background, Contestant, MarkThreshold, Others, QueueChoice, Race};
use flowstart_scenario::{Buffer, JitterSpec, LossSpec, PathPart, QueueSpec, UdpSpec};

use super::kinds::{LoadKind, PathKind};
use super::with::laid_over;
use super::{Sampled, Seeds, rough};

/// Share of lost packets on a path with [`PathKind::Loss`].
const LOSS: f64 = 0.001;
/// Largest extra delay with [`PathKind::Jitter`], in percent of the RTT.
const JITTER_PERCENT: u64 = 5;
/// Share of the capacity that datagrams take, in percent.
const UDP_PERCENT: u64 = 20;

/// One cell of the grid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cell {
    /// Rate of the bottleneck.
    pub capacity: Rate,
    /// Base round-trip time, propagation only.
    pub rtt: Span,
    /// Size of a drop-tail queue's buffer. A marking queue has at least the 1000 packets of a Linux
    /// device queue.
    pub buffer: Buffer,
    /// The queue of contestants that name none; `None` for their usual one.
    pub queue: Option<QueueSpec>,
    /// What is unpleasant about the path.
    pub path: PathKind,
    /// Who else is on it.
    pub load: LoadKind,
    /// Whether everything of a profile's path is as it says, and not capacity, RTT and queue the
    /// cell's own.
    pub as_is: bool,
    /// Keys of the path that go before all others.
    pub with: &'static [PathPart],
}

impl Cell {
    /// The path of a profile as it is. `None` if the path is no profile.
    fn as_is(path: PathKind, load: LoadKind, with: &'static [PathPart]) -> Option<Self> {
        let PathKind::Rough(name) = path else { return None };
        let spec = laid_over(rough::named(name)?.as_is(), with);
        Some(Self {
            capacity: spec.mean_capacity(),
            rtt: spec.rtt,
            buffer: spec.buffer.unwrap_or(Buffer::Bdp(1.0)),
            queue: Some(spec.queue).filter(|queue| *queue != QueueSpec::default()),
            path,
            load,
            as_is: true,
            with,
        })
    }

    /// The queue if the cell has one, else the buffer.
    #[must_use]
    pub fn room(&self) -> String {
        self.queue.map_or_else(|| self.buffer.to_string(), |queue| queue.0.name().to_owned())
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}, {}, {}, {}", self.capacity, self.rtt, self.room(), self.path, self.load)
    }
}

/// Sizes of the timed transfers (M7).
pub const SIZES: [Bytes; 5] =
    [Bytes::new(30_000), Bytes::new(100_000), Bytes::new(1_000_000), Bytes::new(10_000_000), Bytes::new(100_000_000)];
/// A transfer that takes more round trips than this at the fair share is left out of a cell: it
/// says nothing about the start.
const MOST_TRANSFER_RTTS: u64 = 200;

/// Packets' times above which a marking queue marks, if that is more than 1 ms: a slower link would
/// mark a packet that waits for a single other one (RFC 9332 appendix A.1 has a minimum in packets
/// for the same reason).
const MARK_PACKETS: u64 = 2;

/// How long datagrams are sent before the newcomer comes: two RTT0 until they arrive everywhere and
/// the ten whose mean is q̄0 (M4).
const UDP_WARM_UP_RTTS: u64 = 12;
/// How long the greedy flow runs before: at least this many RTT0 (slow start fills 250 000 packets
/// in 15), up to this time, …
const GREEDY_WARM_UP_RTTS: u64 = 30;
const GREEDY_WARM_UP: Span = Span::from_secs(10);
/// … but for no more packets than this beyond the round trips.
const GREEDY_WARM_UP_PACKETS: u64 = 200_000;
/// The web's transfers, and how long they come before the newcomer does.
const WEB: &str = "flow = { algorithm = \"hystart+cubic\" }\nload = \"30 %\"\n\
                   sizes = { kind = \"log_normal\", median = \"30 kB\", sigma = 1.5, min = \"3 kB\", max = \"3 MB\" }\n";
const WEB_WARM_UP: Span = Span::from_secs(2);
/// Round trips and [`WEB_WARM_UP`] after the newcomer may have come the last of them begins.
const WEB_RTTS: u64 = 100;
/// Newcomers come at a random moment within half of that, or a third of the round trips.
const PHASE_SHARE: u64 = 2;
const PHASE_RTTS: u64 = 10;

impl Cell {
    /// The race of this contestant alone (and the others of the cell) over this cell. One run; its
    /// number is 0.
    #[must_use]
    pub fn race(&self, contestant: &Contestant, seed: u64) -> Race {
        let contestant = Contestant { acks: self.path.acks(), ..contestant.clone() };
        // A queue of the cell's own takes the place of the usual one, not of one that is asked for.
        let usual = Some(contestant.usual_queue()).filter(|_| self.queue.is_none());
        let marks = matches!(contestant.queue.or(usual), Some(QueueChoice::StepMark(_)));
        let mut race = Race { seed, runs: Some(1), contestants: vec![contestant], ..Race::default() };
        match self.path {
            PathKind::Rough(name) => {
                if let Some(rough) = rough::named(name) {
                    let path = || rough.path_over(self.capacity, self.rtt);
                    race.path = if self.as_is { rough.as_is().clone() } else { path() };
                }
            }
            _ => race.set_capacity(self.capacity),
        }
        if !self.as_is {
            (race.path.rtt, race.path.delay) = (self.rtt, None);
        }
        race.mark = MarkThreshold::Sojourn((race.service() * MARK_PACKETS).max(Span::from_millis(1)));
        if !self.as_is {
            self.set_queue(&mut race);
        }
        match self.path {
            PathKind::Clean | PathKind::DelayedAcks | PathKind::Rough(_) => {}
            PathKind::Loss => race.path.loss = LossSpec(LossConfig::Bernoulli { probability: LOSS }),
            PathKind::Jitter => {
                let spread = self.rtt.mul_ratio(JITTER_PERCENT, 100);
                race.path.jitter = Some(JitterSpec(JitterConfig { spread, reorder: false }));
            }
        }
        race.path = laid_over(&race.path, self.with);
        self.set_others(&mut race, marks);
        if let Some(rough) = rough::named(self.path.name()).filter(|_| !self.as_is) {
            race.others.udp.extend(rough.datagrams(self.capacity));
        }
        if self.load == LoadKind::Idle && race.has_others() {
            race.warm_up = Some(race.base_rtt() * UDP_WARM_UP_RTTS);
        }
        race.sizes = Self::sizes(&race.reference());
        race
    }

    /// The cell's queue instead of the path's.
    fn set_queue(&self, race: &mut Race) {
        race.path.queue = match self.queue {
            // A step is where it is for contestants that bring one, and as much fits before it.
            Some(QueueSpec(QueueConfig::StepMark(_))) => {
                let packet = u64::from(race.packet());
                let step = QueueChoice::StepMark(None);
                QueueSpec(step.config(self.buffer, race.mark, self.capacity, self.rtt, packet))
            }
            own => own.unwrap_or(race.path.queue),
        };
        // A queue that has a limit of its own is no cell's buffer.
        race.path.buffer = race.path.queue.0.takes_buffer().then_some(self.buffer);
    }

    /// The others, and how long they run before the newcomer comes.
    fn set_others(&self, race: &mut Race, marks: bool) {
        race.others = self.others(marks);
        let rtt = race.base_rtt();
        let (warm_up, phase) = match self.load {
            LoadKind::Idle => (Span::ZERO, Span::ZERO),
            LoadKind::Udp => (rtt * UDP_WARM_UP_RTTS, Span::ZERO),
            LoadKind::Web => (WEB_WARM_UP.max(rtt * UDP_WARM_UP_RTTS), WEB_WARM_UP / PHASE_SHARE),
            LoadKind::Greedy | LoadKind::Bbr | LoadKind::Dctcp => {
                let some = GREEDY_WARM_UP.min(race.service() * GREEDY_WARM_UP_PACKETS);
                ((rtt * GREEDY_WARM_UP_RTTS).max(some), (rtt * PHASE_RTTS).max(some / PHASE_SHARE))
            }
        };
        (race.warm_up, race.phase) = (Some(warm_up), Some(phase));
        for arrivals in &mut race.others.arrivals {
            // A run ends when all transfers are complete, so they must end sooner or later.
            arrivals.until = Some(warm_up + phase + rtt * WEB_RTTS + WEB_WARM_UP);
        }
    }

    /// Transfers that are over in time at the fair share.
    fn sizes(reference: &Reference) -> Vec<Bytes> {
        let longest = reference.base_rtt * MOST_TRANSFER_RTTS;
        SIZES.into_iter().filter(|size| reference.fair_share.transmission_time(*size) <= longest).collect()
    }

    fn others(&self, marks: bool) -> Others {
        let mut others = Others::default();
        match self.load {
            LoadKind::Idle => {}
            LoadKind::Web => others.arrivals.extend(toml::from_str(WEB).ok()),
            LoadKind::Greedy | LoadKind::Bbr | LoadKind::Dctcp => {
                let name = match (self.load, marks) {
                    (LoadKind::Bbr, _) => "bbr",
                    (LoadKind::Dctcp, _) | (_, true) => "dctcp",
                    (_, false) => "cubic",
                };
                if let Ok(mut background) = name.parse::<Background>() {
                    background.flow.acks = self.path.acks();
                    others.flow.push(background.spec(0));
                }
            }
            LoadKind::Udp => {
                let rate = self.capacity.mul_ratio(UDP_PERCENT, 100);
                others.udp.push(UdpSpec { ecn: marks, ..UdpSpec::poisson(rate, Bytes::new(1500)) });
            }
        }
        others
    }
}

/// Which cells: every combination.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// Rates of the bottleneck.
    pub capacities: Vec<Rate>,
    /// Base round-trip times.
    pub rtts: Vec<Span>,
    /// Buffers of drop-tail queues.
    pub buffers: Vec<Buffer>,
    /// Paths.
    pub paths: Vec<PathKind>,
    /// Loads.
    pub loads: Vec<LoadKind>,
    /// Not every combination, but for every path, capacity and RTT one of the buffers, queues and
    /// loads, and of those cells this half.
    pub sampled: Option<Sampled>,
    /// Not every combination, but paths of profiles as they are, with every load: capacities, RTTs
    /// and buffers are those of the profiles.
    pub as_is: bool,
    /// Keys of the path that every cell has, whatever else it is. As long as the program runs, as
    /// cells are copied.
    pub with: &'static [PathPart],
}

impl Grid {
    /// The whole grid: 1080 cells.
    #[must_use]
    pub fn full() -> Self {
        Self {
            capacities: [5, 20, 100, 500, 1000, 10_000].map(Rate::from_mbps).to_vec(),
            rtts: [5, 20, 50, 100, 300].map(Span::from_millis).to_vec(),
            buffers: [0.25, 1.0, 4.0].map(Buffer::Bdp).to_vec(),
            paths: PathKind::ALL.to_vec(),
            loads: vec![LoadKind::Idle, LoadKind::Greedy, LoadKind::Udp],
            sampled: None,
            as_is: false,
            with: &[],
        }
    }

    /// The rough grid: every kind of rough path at 5, 20, 80, 300 and 1000 Mbit/s (as far as the
    /// kind goes) and 10, 30, 70 and 150 ms, each with one of eight queues and one of five loads,
    /// half of them idle. Which one, and which half a cell belongs to, is drawn once and for all.
    /// DCTCP is only beside queues that mark: where another was drawn with it, that is the step.
    #[must_use]
    pub fn rough(half: Seeds) -> Self {
        let queues = ["pie", "codel", "fq_codel", "dual_pi2", "step_mark"];
        Self {
            capacities: [5, 20, 80, 300, 1000].map(Rate::from_mbps).to_vec(),
            rtts: [10, 30, 70, 150].map(Span::from_millis).to_vec(),
            buffers: [0.5, 1.0, 4.0].map(Buffer::Bdp).to_vec(),
            paths: PathKind::rough(),
            loads: vec![LoadKind::Idle, LoadKind::Greedy, LoadKind::Bbr, LoadKind::Web, LoadKind::Dctcp],
            sampled: Some(Sampled { queues: queues.iter().filter_map(|name| name.parse().ok()).collect(), half }),
            as_is: false,
            with: &[],
        }
    }

    /// Every profile as it is (its own capacity, round-trip time and queue), with nobody else.
    #[must_use]
    pub fn profiles() -> Self {
        Self {
            capacities: Vec::new(),
            rtts: Vec::new(),
            buffers: Vec::new(),
            paths: rough::profiles().iter().map(|rough| PathKind::Rough(&rough.name)).collect(),
            loads: vec![LoadKind::Idle],
            sampled: None,
            as_is: true,
            with: &[],
        }
    }

    /// The quick one of the rough grids: 20 and 80 Mbit/s, 30 and 70 ms.
    #[must_use]
    pub fn quick_rough(half: Seeds) -> Self {
        Self {
            capacities: [20, 80].map(Rate::from_mbps).to_vec(),
            rtts: [30, 70].map(Span::from_millis).to_vec(),
            ..Self::rough(half)
        }
    }

    /// The quick one: 20, 100 and 500 Mbit/s, 20 and 100 ms, buffers of 0.25 and 1 BDP, every path
    /// and load: 144 cells.
    #[must_use]
    pub fn quick() -> Self {
        Self {
            capacities: [20, 100, 500].map(Rate::from_mbps).to_vec(),
            rtts: [20, 100].map(Span::from_millis).to_vec(),
            buffers: [0.25, 1.0].map(Buffer::Bdp).to_vec(),
            ..Self::full()
        }
    }

    /// Its cells, the last of the lists first to change.
    #[must_use]
    pub fn cells(&self) -> Vec<Cell> {
        if let Some(sampled) = &self.sampled {
            return self.sample(sampled);
        }
        let mut cells = Vec::new();
        if self.as_is {
            for &path in &self.paths {
                cells.extend(self.loads.iter().filter_map(|&load| Cell::as_is(path, load, self.with)));
            }
            return cells;
        }
        for &capacity in &self.capacities {
            for &rtt in &self.rtts {
                for &buffer in &self.buffers {
                    for &path in &self.paths {
                        let queue = rough::named(path.name()).and_then(|rough| rough.queue);
                        let cell =
                            |&load| Cell { capacity, rtt, buffer, queue, path, load, as_is: false, with: self.with };
                        cells.extend(self.loads.iter().map(cell));
                    }
                }
            }
        }
        cells
    }
}

#[cfg(test)]
mod tests {
    use flowstart_race::Acks;

    use super::*;

    #[test]
    fn the_whole_grid_has_1080_cells_and_every_one_of_them_can_be_raced() {
        let cells = Grid::full().cells();
        assert_eq!(cells.len(), 1080);
        assert_eq!(Grid::quick().cells().len(), 144);
        for name in ["hystart+cubic", "slow_start+dctcp"] {
            for cell in &cells {
                let race = cell.race(&name.parse().unwrap(), 1);
                race.validate().unwrap_or_else(|error| panic!("{cell}: {error}"));
                assert!(race.sizes.len() >= 2, "{cell}: {:?}", race.sizes);
            }
        }
    }

    #[test]
    fn a_cell_sets_acks_loss_jitter_and_load_and_leaves_the_rest_to_the_contestant() {
        let mut cell = Grid::quick().cells()[0];
        let contestant: Contestant = "slow_start+dctcp".parse().unwrap();
        assert!(cell.race(&contestant, 1).contestants[0].acks == Acks::EverySegment);
        (cell.path, cell.load) = (PathKind::DelayedAcks, LoadKind::Greedy);
        let race = cell.race(&contestant, 1);
        assert_eq!(race.contestants[0].acks, Acks::Delayed);
        assert_eq!(race.others.flow[0].algorithm.as_deref(), Some("slow_start+dctcp"));
        assert_eq!(race.others.flow[0].receiver, race.contestants[0].receiver());
        // Over a queue that all share, all meet the same others.
        cell.queue = Some("pie".parse().unwrap());
        let cubic: Contestant = "cubic".parse().unwrap();
        assert_eq!(cell.race(&contestant, 1).others.flow[0].algorithm, cell.race(&cubic, 1).others.flow[0].algorithm);
        cell.queue = None;
        (cell.path, cell.load) = (PathKind::Jitter, LoadKind::Udp);
        let race = cell.race(&contestant, 1);
        assert_eq!(race.path.jitter.unwrap().0.spread, Span::from_millis(1));
        assert_eq!(race.reference().fair_share, Rate::from_mbps(16));
        cell.path = PathKind::Loss;
        assert!(cell.race(&contestant, 1).path.loss.is_random());
    }

    #[test]
    fn profiles_as_they_are_are_raced_over_with_everything_their_files_say() {
        let cells = Grid::profiles().cells();
        assert_eq!(cells.len(), flowstart_scenario::PROFILES.len());
        for cell in &cells {
            let profile: flowstart_scenario::Profile = cell.path.name().parse().unwrap();
            let race = cell.race(&"hystart+cubic".parse().unwrap(), 1);
            assert_eq!(race.path, profile.path);
            assert_eq!((cell.capacity, cell.rtt), (profile.path.capacity.nominal(), profile.path.rtt));
            race.validate().unwrap_or_else(|error| panic!("{cell}: {error}"));
            // At another capacity everything that goes with it differs.
            let elsewhere = Cell { capacity: Rate::from_mbps(7), as_is: false, ..*cell };
            assert_eq!(elsewhere.race(&"cubic".parse().unwrap(), 1).path.capacity.nominal(), Rate::from_mbps(7));
        }
        let grid = Grid { loads: vec![LoadKind::Idle, LoadKind::Web], ..Grid::profiles() };
        assert_eq!(grid.cells().len(), 2 * cells.len());
        // What is no profile has no path of its own.
        assert!(Grid { paths: vec![PathKind::Clean], ..grid }.cells().is_empty());
    }

    #[test]
    fn transfers_that_would_take_too_long_are_left_out() {
        let mut cell = Grid::full().cells()[0];
        (cell.capacity, cell.rtt) = (Rate::from_mbps(5), Span::from_millis(5));
        let contestant: Contestant = "cubic".parse().unwrap();
        assert_eq!(cell.race(&contestant, 1).sizes, SIZES[..2]);
        cell.capacity = Rate::from_mbps(10_000);
        cell.rtt = Span::from_millis(300);
        assert_eq!(cell.race(&contestant, 1).sizes, SIZES);
    }
}
