//! Options about a path, of every command that has one.

use std::path::Path;

use clap::Args;

use flowstart_race::MarkThreshold;
use flowstart_scenario::{Buffer, PathPart, PathSpec, Profile, WaySpec};
use flowstart_units::{Rate, Span};

use super::names::ProfileParser;
use crate::output::{Failure, note};

/// Options about a path: they override a scenario file's.
#[derive(Args, Debug)]
pub(crate) struct PathArgs {
    /// A path as people have it, by name or in a file of one's own (.toml); options below override
    /// it
    #[arg(long, value_name = "NAME", help_heading = "Path", value_parser = ProfileParser)]
    pub(crate) profile: Option<Profile>,
    /// Rate of the bottleneck; the mean of a profile's that changes [default: 100 Mbit/s]
    #[arg(long, alias = "rate", value_name = "RATE", allow_hyphen_values = true, help_heading = "Path")]
    pub(crate) capacity: Option<Rate>,
    /// Base round-trip time, propagation only [default: 20 ms]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, help_heading = "Path")]
    pub(crate) rtt: Option<Span>,
    /// Buffer of queues that do not name their own, in BDP, packets, bytes or time [default: 1 BDP]
    #[arg(long, value_name = "SIZE", allow_hyphen_values = true, help_heading = "Path")]
    pub(crate) buffer: Option<Buffer>,
    /// This many bottlenecks in parallel: connections are spread over them (load balancing)
    /// [default: 1]
    #[arg(long, value_name = "N", value_parser = ways, allow_hyphen_values = true, help_heading = "Path")]
    pub(crate) ways: Option<usize>,
    /// Set any key of the path as a profile's file would have it, in TOML, such as 'jitter = "2
    /// ms"' or 'medium.shaper.burst = "32 kB"'; may be repeated, and counts whatever other options
    /// say
    #[arg(long = "with", value_name = "KEY = VALUE", allow_hyphen_values = true, help_heading = "Path")]
    pub(crate) with: Vec<PathPart>,
}

/// A number of ways in parallel.
fn ways(text: &str) -> Result<usize, String> {
    const MOST: usize = 64;
    match text.parse() {
        Ok(ways) if (1..=MOST).contains(&ways) => Ok(ways),
        _ => Err(format!("\"{text}\" is not a number of ways between 1 and {MOST}")),
    }
}

/// The path with these keys of `--with`.
fn with(path: &PathSpec, parts: &[PathPart]) -> Result<PathSpec, Failure> {
    path.with(parts).map_err(|error| Failure::Usage(format!("--with {error}")))
}

impl PathArgs {
    /// Lays what was said over a path: its profile first, single keys last.
    pub(crate) fn lay_over(&self, path: &mut PathSpec) -> Result<(), Failure> {
        PathPart::each_once(&self.with).map_err(|error| Failure::Usage(format!("--with {error}")))?;
        if let Some(profile) = &self.profile {
            *path = profile.path.clone();
        }
        if let Some(rtt) = self.rtt {
            // Ways that are longer or shorter than the first stay so by as much.
            let before = path.delay.unwrap_or(path.rtt / 2);
            for delay in path.ways.iter_mut().filter_map(|way| way.delay.as_mut()) {
                *delay = (rtt / 2 + *delay) - before;
            }
            path.rtt = rtt;
            // It was half of the other RTT, or stood in the file for that one.
            path.delay = None;
        }
        // The mean of a capacity may be taken over round trips: those that count in the end.
        let own_rtt: Vec<PathPart> = self.with.iter().filter(|part| part.name() == "rtt").cloned().collect();
        path.rtt = with(path, &own_rtt)?.rtt;
        match (self.profile.is_some(), self.capacity) {
            (true, Some(capacity)) => *path = path.scaled_to(capacity),
            (false, Some(capacity)) => path.capacity = path.capacity.with_nominal(capacity),
            (_, None) => {}
        }
        path.buffer = self.buffer.or(path.buffer);
        if let Some(ways) = self.ways {
            path.ways = vec![WaySpec::default(); ways - 1];
        }
        self.set_keys(path)
    }

    /// Sets the keys of `--with`.
    pub(crate) fn set_keys(&self, path: &mut PathSpec) -> Result<(), Failure> {
        *path = with(path, &self.with)?;
        Ok(())
    }

    /// Refuses what `--with` says of a path if it makes that one nobody can send over.
    pub(crate) fn check_keys(&self, path: &PathSpec) -> Result<(), Failure> {
        path.check_keys(&self.with).map_err(|error| Failure::Usage(format!("--with {error}")))
    }

    /// Refuses a profile beside a scenario file, each of which has a path.
    pub(crate) fn one_path(&self, scenario: Option<&Path>) -> Result<(), Failure> {
        match (&self.profile, scenario) {
            (Some(profile), Some(file)) => Err(Failure::Usage(format!(
                "--profile {} and {} each bring a path; leave one of them out",
                profile.name,
                file.display()
            ))),
            _ => Ok(()),
        }
    }

    /// Whether `--with` names this key of the path.
    pub(crate) fn sets(&self, key: &str) -> bool {
        self.with.iter().any(|part| part.name() == key)
    }

    /// Says which options count for nothing, as `--with` says otherwise: of these keys, and of
    /// those that every path has options for.
    pub(crate) fn tell_overridden(&self, more: &[(&str, bool)]) {
        let own = [
            ("capacity", self.capacity.is_some()),
            ("rtt", self.rtt.is_some()),
            ("buffer", self.buffer.is_some()),
            ("ways", self.ways.is_some()),
        ];
        for (key, _) in own.iter().chain(more).filter(|(key, given)| *given && self.sets(key)) {
            note(&format!("--with {key} counts, and not --{}", key.replace('_', "-")));
        }
    }
}

/// Options about the path of a race.
#[derive(Args, Debug)]
pub(crate) struct RacePathArgs {
    #[command(flatten)]
    pub(crate) path: PathArgs,
    /// Threshold of marking queues, in time, packets or bytes [default: 1 ms]
    #[arg(long, value_name = "THRESHOLD", allow_hyphen_values = true, help_heading = "Path")]
    pub(crate) mark: Option<MarkThreshold>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capacity_that_changes_is_scaled_by_the_round_trips_that_count() {
        const STEPS: &str = "about = \"steps\"\n[path]\nrtt = \"20 ms\"\nreverse_capacity = \"8 Mbit/s\"\n\
                             capacity = [{ at = \"0 s\", rate = \"5 Mbit/s\" }, { at = \"600 ms\", rate = \"50 Mbit/s\" }]";
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("steps.toml");
        std::fs::write(&file, STEPS).unwrap();
        let profile: Profile = file.to_str().unwrap().parse().unwrap();
        let mean = |rtt: Option<&str>, with: &[&str]| {
            let args = PathArgs {
                profile: Some(profile.clone()),
                capacity: Some(Rate::from_mbps(10)),
                rtt: rtt.map(|rtt| rtt.parse().unwrap()),
                buffer: None,
                ways: None,
                with: with.iter().map(|part| part.parse().unwrap()).collect(),
            };
            let mut path = profile.path.clone();
            args.lay_over(&mut path).unwrap();
            (path.rtt, path.mean_capacity().as_mbps_f64().round(), path.reverse_capacity)
        };
        assert_eq!(mean(None, &["rtt = \"100 ms\""]), mean(Some("100 ms"), &[]));
        for (rtt, with) in [
            (None, vec![]),
            (Some("100 ms"), vec![]),
            (None, vec!["rtt = \"100 ms\""]),
            (Some("50 ms"), vec!["rtt = \"100 ms\""]),
        ] {
            assert_eq!(mean(rtt, &with).1, 10.0, "{rtt:?} {with:?}");
        }
    }
}
