//! Scenario files: TOML that a person can write from memory, with units in strings.
//!
//! [`Scenario::parse`] reads one, [`Scenario::load`] also the files it names; `Scenario::compile`
//! makes the simulation of one run; [`Scenario::effective`] prints every parameter, defaults
//! included, as a scenario that reads back to the same.
//!
//! ```
//! use flowstart_scenario::Scenario;
//! use flowstart_simulator::Simulation;
//!
//! let text = r#"
//!     duration = "1 s"
//!     [path]
//!     capacity = "10 Mbit/s"
//!     rtt = "20 ms"
//!     [[flow]]
//! "#;
//! let compiled = Scenario::parse("example", text)?.simulation(0)?;
//! let (outcome, ()) = Simulation::new(&compiled.simulation, ()).expect("it compiled").run();
//! // One greedy flow: nearly all of 10 Mbit/s for nearly all of a second.
//! let delivered = outcome.flows[0].delivered.get();
//! assert!((1_000_000..1_250_000).contains(&delivered), "{delivered}");
//! # Ok::<(), flowstart_scenario::ScenarioError>(())
//! ```

mod buffer;
mod compile;
mod dialect;
mod docs;
mod error;
mod fading;
mod files;
mod flow;
mod heeded;
mod load;
mod memory;
mod part;
mod path;
mod profile;
mod quick_start;
mod rcp;
mod short;
mod sizes;
mod spec;
mod suggest;
mod ways;
mod web;
pub mod workload;

use std::path::Path as FilePath;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use flowstart_units::Span;

pub use buffer::Buffer;
pub use compile::{Compiled, FlowLabel};
pub use dialect::Dialect;
pub use docs::{GENERATED, describe_keys, scenario_page};
pub use error::{Problem, ScenarioError, SpecError};
pub use fading::FadingSpec;
pub use files::{parse_flow_list, read};
pub use flow::{ArrivalSpec, FlowSpec, OffloadKind, PacedSpec, ReceiveWindowKind, SpacingSpec, UdpSpec, WriteSpec};
pub use load::Load;
pub use part::PathPart;
pub use path::{LinkSpec, MergedAcks, PathSpec};
pub use profile::{PROFILES, Profile};
pub use quick_start::{AdmissionSpec, MiddleboxSpec, QuickStartSpec, TunnelSpec};
pub use rcp::RcpSpec;
pub use sizes::SizeSpec;
pub use spec::{JitterSpec, LossSpec, QueueSpec, RateSpec, StepSpec};
pub use suggest::nearest;
pub use ways::{WaySpec, name_of_way};
pub use web::WebSpec;

/// A whole scenario file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// What it is about, for headings; no influence on the result or its hash.
    #[serde(default)]
    pub title: String,
    /// How long is simulated.
    #[serde(default = "default_duration")]
    pub duration: Span,
    /// Stop as soon as all transfers of known size are complete.
    #[serde(default)]
    pub stop_when_complete: bool,
    /// Seed of all random streams.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// Independent repetitions, at least 1.
    #[serde(default = "default_runs")]
    pub runs: u64,
    /// In every run all flows but the first start later than they say, each by a random part of
    /// this: for results that depend on phases. `flowstart run FILE --phases 20` sets it to the
    /// base RTT.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases: Option<Span>,
    /// Whose habits flows and queues have where nothing else is said: `linux` or `ns3`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dialect: Option<Dialect>,
    /// A single bottleneck that all flows share. Either this or `[[link]]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathSpec>,
    /// What is recorded.
    #[serde(default)]
    pub output: OutputSpec,
    /// Links with names, for flows to choose their way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub link: Vec<LinkSpec>,
    /// TCP flows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flow: Vec<FlowSpec>,
    /// Datagram flows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub udp: Vec<UdpSpec>,
    /// TCP transfers that arrive at random.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arrivals: Vec<ArrivalSpec>,
    /// Users who fetch web pages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub web: Vec<WebSpec>,
}

/// What is recorded beside the summaries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OutputSpec {
    /// Width of the bins of the table `samples`; 0 records none.
    pub sample: Span,
    /// Record every data packet in the table `packets`.
    pub packets: bool,
}

impl Default for OutputSpec {
    fn default() -> Self {
        Self { sample: Span::from_millis(100), packets: false }
    }
}

fn default_duration() -> Span {
    Span::from_secs(10)
}

fn default_seed() -> u64 {
    1
}

fn default_runs() -> u64 {
    1
}

/// Largest seed: what tables, and scenario files themselves, can hold.
pub const MOST_SEED: u64 = i64::MAX as u64;

/// Most runs of one scenario.
const MOST_RUNS: u64 = 1_000_000;

impl Scenario {
    /// Reads a scenario. `name` is used in errors. Files that it names are not read; use
    /// [`Scenario::load`] for that.
    ///
    /// # Errors
    /// The first thing that is wrong, with its place in the text and what would be right.
    pub fn parse(name: &str, text: &str) -> Result<Self, ScenarioError> {
        let mut scenario = Self::understand(name, text)?;
        scenario.settle();
        scenario.check().map_err(|problem| problem.locate(name, text))?;
        Ok(scenario)
    }

    /// Reads a scenario and the traces and flow lists it names, relative to its folder, so that it
    /// stands for itself.
    ///
    /// # Errors
    /// A file that cannot be read, or the first thing that is wrong in one.
    pub fn load(path: &FilePath) -> Result<Self, ScenarioError> {
        let text = files::read(path)?;
        Self::read(&path.display().to_string(), &text, path.parent().unwrap_or(FilePath::new(".")))
    }

    /// The same of a text that did not come from a file; what it names is read relative to
    /// `folder`. `name` is used in errors.
    ///
    /// # Errors
    /// As [`Scenario::load`].
    pub fn read(name: &str, text: &str, folder: &FilePath) -> Result<Self, ScenarioError> {
        let scenario = Self::resolved(name, text, folder)?;
        scenario.check().map_err(|problem| problem.locate(name, text))?;
        Ok(scenario)
    }

    /// As [`Scenario::read`] for who brings flows of its own: a file with a path and nobody who
    /// sends is right, too.
    ///
    /// # Errors
    /// As [`Scenario::load`].
    pub fn read_surroundings(name: &str, text: &str, folder: &FilePath) -> Result<Self, ScenarioError> {
        let mut scenario = Self::resolved(name, text, folder)?;
        let nobody = scenario.flow.is_empty()
            && scenario.udp.is_empty()
            && scenario.arrivals.is_empty()
            && scenario.web.is_empty();
        if nobody && scenario.path.is_some() {
            // Somebody for whom the path is checked.
            scenario.flow = Self::parse("path", profile::SCENARIO)?.flow;
        }
        scenario.check().map_err(|problem| problem.locate(name, text))?;
        if nobody {
            scenario.flow.clear();
        }
        Ok(scenario)
    }

    /// What the text says, with the files it names and what follows from nothing being said.
    fn resolved(name: &str, text: &str, folder: &FilePath) -> Result<Self, ScenarioError> {
        let mut scenario = Self::understand(name, text)?;
        scenario.check_lists().map_err(|problem| problem.locate(name, text))?;
        scenario.resolve(folder)?;
        scenario.settle();
        Ok(scenario)
    }

    /// Reads a scenario that is a part of a larger document (or put together from several); `text`
    /// is the whole document, for errors. The files it names are read relative to `folder`. A
    /// queue with a limit of its own goes before a buffer, which another of the several may say.
    ///
    /// # Errors
    /// If a key or value is wrong, or a file cannot be read.
    pub fn from_table(
        name: &str,
        text: &str,
        table: toml::Spanned<toml::de::DeTable<'_>>,
        folder: Option<&FilePath>,
    ) -> Result<Self, ScenarioError> {
        let mut scenario = Self::understand_table(name, text, table.clone())?;
        scenario.check_lists().map_err(|problem| problem.locate_in(name, text, table.get_ref()))?;
        if let Some(folder) = folder {
            scenario.resolve(folder)?;
        }
        scenario.path.iter_mut().for_each(PathSpec::heed_limits);
        scenario.link.iter_mut().for_each(LinkSpec::heed_limits);
        scenario.settle();
        scenario.check().map_err(|problem| problem.locate_in(name, text, table.get_ref()))?;
        Ok(scenario)
    }

    /// What the text says, with the dialects it names.
    fn understand(name: &str, text: &str) -> Result<Self, ScenarioError> {
        let document = toml::de::DeTable::parse(text).map_err(|error| ScenarioError::from_toml(name, text, &error))?;
        Self::understand_table(name, text, document)
    }

    fn understand_table(
        name: &str,
        text: &str,
        mut document: toml::Spanned<toml::de::DeTable<'_>>,
    ) -> Result<Self, ScenarioError> {
        let scenario: Self = error::read(name, text, document.clone())?;
        if scenario.lay_dialects(document.get_mut()) { error::read(name, text, document) } else { Ok(scenario) }
    }

    /// Every parameter, defaults included, as a scenario file.
    #[must_use]
    pub fn effective(&self) -> String {
        // Serialization fails only for maps with keys that are not strings, of which there are
        // none.
        toml::to_string(self).unwrap_or_else(|error| format!("# not printable: {error}\n"))
    }

    /// Hash of the effective parameters without the title: the first 16 hexadecimal digits of
    /// BLAKE3.
    #[must_use]
    pub fn hash(&self) -> String {
        let untitled = Self { title: String::new(), ..self.clone() };
        blake3::hash(untitled.effective().as_bytes()).to_hex()[..16].to_owned()
    }

    /// True if some random process has a part in the result; otherwise one run says all.
    #[must_use]
    pub fn is_random(&self) -> bool {
        let path = self.path.iter().any(|path| {
            path.loss.is_random()
                || path.mark.is_random()
                || path.jitter.is_some()
                || path.queue.is_random()
                || path.capacity.is_random()
                || path.medium.is_random()
                || path.reverse_queue.is_random()
                || path.reverse_jitter.is_some()
                || path.reverse_medium.is_random()
                || path.reverse_capacity.as_ref().is_some_and(RateSpec::is_random)
                || !path.ways.is_empty()
                || path.quick_start.is_random()
        });
        let links = self.link.iter().any(|link| {
            link.loss.is_random()
                || link.mark.is_random()
                || link.jitter.is_some()
                || link.queue.is_random()
                || link.capacity.is_random()
                || !link.ways.is_empty()
                || link.medium.is_random()
                || link.quick_start.is_random()
        });
        let poisson = SpacingSpec::Poisson;
        path || links
            || self.phases.is_some()
            || self.udp.iter().any(|udp| udp.spacing == poisson)
            || self.flow.iter().any(compile::draws)
            || self.flow.iter().any(|flow| flow.paced.as_ref().is_some_and(|paced| paced.spacing == poisson))
            || !self.arrivals.is_empty()
            || !self.web.is_empty()
    }

    /// Writes down what follows from nothing being said, so that [`Scenario::effective`] shows it.
    /// Scenarios that were read are settled.
    pub fn settle(&mut self) {
        self.path.iter_mut().for_each(PathSpec::settle);
        self.link.iter_mut().for_each(LinkSpec::settle);
    }

    /// How far starts are moved if nothing else is said: the base RTT, after which phases repeat.
    /// With
    /// `[[link]]` tables it is the longest of the flows'; 10 ms if none has one.
    #[must_use]
    pub fn usual_phases(&self) -> Span {
        let on_links = || {
            let simulation = self.simulation(0).ok()?.simulation;
            let rtts = simulation.flows.iter().filter_map(|flow| {
                let links = flow.forward.iter().chain(&flow.reverse).map(|link| simulation.links[*link].delay);
                let beside = flow.access.delay + flow.tail_delay + flow.return_delay;
                matches!(flow.traffic, flowstart_simulator::Traffic::Tcp(_)).then(|| links.sum::<Span>() + beside)
            });
            rtts.max().filter(|rtt| !rtt.is_zero())
        };
        self.path.as_ref().map(|path| path.rtt).or_else(on_links).unwrap_or(Span::from_millis(10))
    }

    fn check(&self) -> Result<(), error::Problem> {
        if self.duration.is_zero() {
            return Err(error::Problem::at("duration", "a scenario must last longer than 0"));
        }
        if self.seed > MOST_SEED {
            return Err(error::Problem::at("seed", format!("a seed is a whole number between 0 and {MOST_SEED}")));
        }
        if self.runs == 0 || self.runs > MOST_RUNS {
            return Err(error::Problem::at("runs", format!("runs must be between 1 and {MOST_RUNS}")));
        }
        self.check_memory()?;
        let compiled = self.compile(0)?;
        self.check_heeded()?;
        self.check_flight(&compiled.simulation)
    }
}

#[cfg(test)]
mod tests;
