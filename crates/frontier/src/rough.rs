//! Rough paths: the kinds of the rough grid, from `rough.toml` and the profiles.

use std::sync::{LazyLock, Mutex, PoisonError};

use serde::Deserialize;

use flowstart_scenario::{PathSpec, Profile, QueueSpec, SpecError, UdpSpec};
use flowstart_units::{Rate, Span};

/// A kind of rough path.
#[derive(Debug)]
pub(crate) struct Rough {
    /// Its name.
    pub(crate) name: String,
    /// The largest capacity at which it makes sense.
    pub(crate) most: Rate,
    /// The queue that makes it what it is, in place of one that is drawn.
    pub(crate) queue: Option<QueueSpec>,
    /// Datagrams that belong to it, at the capacity of its file.
    udp: Vec<UdpSpec>,
    profile: Profile,
}

impl Rough {
    /// The path at this capacity.
    pub(crate) fn path(&self, capacity: Rate) -> PathSpec {
        self.profile.with_capacity(capacity)
    }

    /// The path at this capacity and round-trip time, over which the mean of a capacity that does
    /// not repeat is taken.
    pub(crate) fn path_over(&self, capacity: Rate, rtt: Span) -> PathSpec {
        PathSpec { rtt, delay: None, ..self.profile.path.clone() }.scaled_to(capacity)
    }

    /// The datagrams that belong to it at this capacity: they take the same share of it.
    pub(crate) fn datagrams(&self, capacity: Rate) -> Vec<UdpSpec> {
        let before = self.profile.path.mean_capacity().as_bps().max(1);
        let scaled = |udp: &UdpSpec| {
            let rate = udp.rate.mul_f64(capacity.as_bps() as f64 / before as f64).max(Rate::from_bps(1));
            UdpSpec { rate, ..udp.clone() }
        };
        self.udp.iter().map(scaled).collect()
    }

    /// The path as its file has it.
    pub(crate) fn as_is(&self) -> &PathSpec {
        &self.profile.path
    }

    /// A profile.
    fn of_profile(name: &str, profile: Profile) -> Self {
        Self { name: name.to_owned(), most: Rate::UNLIMITED, queue: None, udp: Vec::new(), profile }
    }
}

/// The file of kinds.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    kind: Vec<Kind>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Kind {
    name: String,
    #[serde(default = "unlimited")]
    most: Rate,
    path: PathSpec,
    #[serde(default)]
    udp: Vec<UdpSpec>,
}

fn unlimited() -> Rate {
    Rate::UNLIMITED
}

/// The kinds of the grid, and behind them the profiles under their names.
static ROUGH: LazyLock<(Vec<Rough>, usize)> = LazyLock::new(|| {
    let file: Result<File, _> = toml::from_str(include_str!("../rough.toml"));
    let kinds = file.map_or_else(|_| Vec::new(), |file| file.kind);
    let mut rough: Vec<Rough> = kinds
        .into_iter()
        .map(|kind| {
            let queue = Some(kind.path.queue).filter(|queue| *queue != QueueSpec::default());
            let profile = Profile { name: kind.name.clone(), about: String::new(), path: kind.path };
            Rough { name: kind.name, most: kind.most, queue, udp: kind.udp, profile }
        })
        .collect();
    let own = rough.len();
    rough.extend(Profile::all().into_iter().map(|profile| Rough::of_profile(&profile.name.clone(), profile)));
    (rough, own)
});

/// The kinds of the rough grid.
pub(crate) fn kinds() -> &'static [Rough] {
    &ROUGH.0[..ROUGH.1]
}

/// The profiles.
pub(crate) fn profiles() -> &'static [Rough] {
    &ROUGH.0[ROUGH.1..]
}

/// Kinds and profiles.
pub(crate) fn all() -> &'static [Rough] {
    &ROUGH.0
}

/// The names of the rough grid's paths: its kinds, and behind them the profiles.
#[must_use]
pub fn rough_names() -> Vec<&'static str> {
    all().iter().map(|rough| rough.name.as_str()).collect()
}

/// The path of one of [`rough_names`], at a capacity of one's own or at that of its file. A kind
/// that makes no sense at such a capacity has the largest at which it does. Datagrams that belong
/// to a kind are no part of its path.
#[must_use]
pub fn rough_path(name: &str, capacity: Option<Rate>) -> Option<PathSpec> {
    let rough = all().iter().find(|rough| rough.name == name)?;
    Some(match capacity {
        Some(capacity) => rough.path(capacity.min(rough.most)),
        None => rough.profile.path.clone(),
    })
}

/// Profiles from files, as long as the program runs.
static OWN: Mutex<Vec<&'static Rough>> = Mutex::new(Vec::new());

/// The profile in a file, from now on known by the file's name.
pub(crate) fn from_file(file: &str) -> Result<&'static str, SpecError> {
    let profile: Profile = file.parse()?;
    let rough: &'static Rough = Box::leak(Box::new(Rough::of_profile(file, profile)));
    OWN.lock().unwrap_or_else(PoisonError::into_inner).push(rough);
    Ok(&rough.name)
}

/// That of this name.
pub(crate) fn named(name: &str) -> Option<&'static Rough> {
    let own = || OWN.lock().unwrap_or_else(PoisonError::into_inner).iter().find(|rough| rough.name == name).copied();
    all().iter().find(|rough| rough.name == name).or_else(own)
}

#[cfg(test)]
mod tests {
    use flowstart_race::{Contestant, measures::COMPLETION};
    use flowstart_units::Bytes;

    use super::*;
    use crate::{Cell, LoadKind, PathKind};

    fn cell(name: &'static str, mbps: u64) -> Cell {
        Cell {
            capacity: Rate::from_mbps(mbps),
            rtt: Span::from_millis(30),
            buffer: flowstart_scenario::Buffer::Bdp(1.0),
            queue: named(name).unwrap().queue,
            path: PathKind::Rough(&named(name).unwrap().name),
            load: LoadKind::Idle,
            as_is: false,
            with: &[],
        }
    }

    #[test]
    fn datagrams_of_a_kind_keep_their_share_of_the_capacity_and_of_the_way_back() {
        let contestant: Contestant = "hystart+cubic".parse().unwrap();
        let race = cell("back_traffic_80", 20).race(&contestant, 1);
        let [udp] = race.others.udp.as_slice() else { panic!("one stream") };
        assert_eq!((udp.rate, udp.forward.as_slice()), (Rate::from_bps(1_600_000), &["reverse".to_owned()][..]));
        // The way there is the newcomer's alone, and the way back is full of them when he comes.
        assert_eq!(race.reference().fair_share, Rate::from_mbps(20));
        assert!(race.newcomers_at(0) > race.base_rtt() * 10);
        let busy = cell("host_fairness_busy", 20).race(&contestant, 1);
        assert_eq!(busy.reference().fair_share, Rate::from_mbps(16));
        assert!(busy.others.udp.iter().all(|udp| udp.from.as_deref() == Some("neighbour")));
        let none = cell("slow_back_20", 20).race(&contestant, 1);
        assert!(none.others.is_empty() && none.newcomers_at(0).is_zero());
    }

    #[test]
    fn traffic_on_the_way_back_makes_transfers_slower() {
        let size = Bytes::new(100_000);
        let time = |busy: bool| {
            let mut race = cell("back_traffic_80", 20).race(&"hystart+cubic".parse().unwrap(), 1);
            race.sizes = vec![size];
            if !busy {
                race.others.udp.clear();
            }
            let result = race.run(&flowstart_race::RunOptions::default()).unwrap();
            result.contestants[0].estimate(COMPLETION.of(size)).unwrap().mean
        };
        let (busy, alone) = (time(true), time(false));
        assert!(busy > alone + 5.0, "{busy} ms, {alone} ms");
    }

    /// A recorded link is at its highest moment many times as fast as in the mean.
    #[test]
    fn cells_over_a_link_in_steps_have_their_capacity_in_the_mean() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("steps.toml");
        let text = "about = \"mostly silent\"\n[path]\nrtt = \"20 ms\"\ncapacity = { period = \"1 s\", steps = [\
                    { at = \"0 s\", rate = \"0 bit/s\" }, { at = \"900 ms\", rate = \"40 Mbit/s\" }] }\n";
        std::fs::write(&file, text).unwrap();
        let name = from_file(file.to_str().unwrap()).unwrap();
        let cubic = "cubic".parse().unwrap();
        let race = |cell: Cell| (cell.capacity, cell.race(&cubic, 1).capacity());
        assert_eq!(race(cell(name, 20)), (Rate::from_mbps(20), Rate::from_mbps(20)));
        let grid = crate::Grid { paths: vec![PathKind::Rough(name)], ..crate::Grid::profiles() };
        assert_eq!(race(grid.cells()[0]), (Rate::from_mbps(4), Rate::from_mbps(4)));
    }

    #[test]
    fn paths_have_the_capacity_that_is_asked_for_if_it_makes_sense() {
        let nominal = |name, capacity| rough_path(name, capacity).unwrap().capacity.nominal();
        assert_eq!(nominal("wifi", None), Rate::from_mbps(150));
        let bounded = kinds().iter().find(|kind| !kind.most.is_unlimited()).unwrap();
        for name in rough_names() {
            let most = named(name).unwrap().most;
            assert_eq!(nominal(name, Some(Rate::from_mbps(7))), Rate::from_mbps(7).min(most), "{name}");
        }
        assert_eq!(nominal(&bounded.name, Some(Rate::from_mbps(100_000))), bounded.most);
        assert!(rough_path("none", None).is_none());
    }
}
