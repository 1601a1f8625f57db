//! From a scenario to the simulation of one run.

mod links;
mod traffic;

use flowstart_network::LinkConfig;
use flowstart_random::{Purpose, below};
use flowstart_simulator::{
    Access, ArrivalConfig, ConfigError, FlowConfig, Place, SessionConfig, SimulationConfig, Stop, Traffic, Workload,
};
use flowstart_units::{Rate, Span, Time};

use super::error::Problem;
use super::{PathSpec, Scenario};
use crate::suggest::nearest;
pub(super) use traffic::{algorithms, draws};

/// A scenario made into a simulation, and what its parts are called.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The simulation.
    pub simulation: SimulationConfig,
    /// What the flows of each group are; a flow's group is an index into this.
    pub groups: Vec<FlowLabel>,
    /// Names of the links.
    pub links: Vec<String>,
}

/// What a group of flows is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowLabel {
    /// Its name in the scenario, or its algorithm.
    pub name: String,
    /// "START+AVOIDANCE", or "udp".
    pub algorithm: String,
    /// Congestion control of the kernel that takes its place in real runs, if the scenario names
    /// one.
    pub kernel: Option<String>,
}

impl FlowLabel {
    /// What it is called in real runs: its name in the scenario, or what the kernel runs in its
    /// place, if the scenario says so, or its algorithm.
    #[must_use]
    pub fn real_name(&self) -> &str {
        let control = self.kernel.as_deref().filter(|_| self.name == self.algorithm);
        control.unwrap_or(&self.name)
    }
}

/// Most flows that a scenario may start by itself.
pub(super) const MOST_FLOWS: u64 = 1_000_000;
/// Connections of a flow at most: a start that looks for fair queuing has two.
const MOST_CONNECTIONS: usize = 2;

impl Scenario {
    /// The simulation of one run.
    ///
    /// # Errors
    /// What does not fit together: unknown link names, algorithms, impossible values.
    pub(super) fn compile(&self, run: u64) -> Result<Compiled, Problem> {
        let mut compiler = Compiler::new(self, run)?;
        for (index, flow) in self.flow.iter().enumerate() {
            compiler.add_tcp(flow).map_err(|problem| problem.within(&format!("flow[{index}]")))?;
        }
        for (index, udp) in self.udp.iter().enumerate() {
            compiler.add_udp(index, udp).map_err(|problem| problem.within(&format!("udp[{index}]")))?;
        }
        for (index, arrivals) in self.arrivals.iter().enumerate() {
            compiler.add_arrivals(index, arrivals).map_err(|problem| problem.within(&format!("arrivals[{index}]")))?;
        }
        for (index, web) in self.web.iter().enumerate() {
            compiler.add_web(index, web).map_err(|problem| problem.within(&format!("web[{index}]")))?;
        }
        if compiler.flows.is_empty() && compiler.arrivals.is_empty() && self.web.is_empty() {
            if self.flow.first().is_some_and(|flow| flow.count == 0) {
                let message = "0 flows send nothing, and nobody else does; the least is 1";
                return Err(Problem::at("count", message).within("flow[0]"));
            }
            return Err(Problem::at("flow", "nobody sends anything; add a [[flow]], [[udp]] or [[arrivals]]"));
        }
        let ends = |flow: &FlowConfig| match &flow.traffic {
            Traffic::Tcp(tcp) => matches!(tcp.workload, Workload::Sized(_) | Workload::Script(_)),
            Traffic::Udp(_) => false,
        };
        let anything_ends = compiler.flows.iter().any(ends) || !compiler.arrivals.is_empty() || !self.web.is_empty();
        if self.stop_when_complete && !anything_ends {
            let message = "nothing here has a size, so that the run would be over before it begins; give a [[flow]] \
                           `size` or `writes`, or leave this out";
            return Err(Problem::at("stop_when_complete", message));
        }
        if let Some(phases) = self.phases {
            compiler.move_starts(phases)?;
        }
        compiler.check_shapers()?;
        let end = Time::ZERO + self.duration;
        let simulation = SimulationConfig {
            links: compiler.links,
            ways: compiler.ways,
            flows: compiler.flows,
            arrivals: compiler.arrivals,
            sessions: compiler.sessions,
            stop: if self.stop_when_complete { Stop::WhenComplete(end) } else { Stop::At(end) },
            seed: self.seed,
            run,
        };
        let refused = |error: ConfigError| Problem::at(self.key_of(&simulation, &error.place), error.message);
        simulation.validate().map_err(refused)?;
        Ok(Compiled { simulation, groups: compiler.groups, links: compiler.names })
    }

    /// The key of the file that says what stands at a place of the simulation made of it.
    fn key_of(&self, simulation: &SimulationConfig, place: &str) -> String {
        if place.ends_with(".access.rate") {
            return "path.access".to_owned();
        }
        let flow = place.strip_prefix("flows[").and_then(|rest| rest.split_once("]."));
        let Some((number, rest)) = flow else { return place.to_owned() };
        let Some(flow) = number.parse().ok().and_then(|number: usize| simulation.flows.get(number)) else {
            return place.to_owned();
        };
        // Groups are the tables of the file, in order: those with flows, then those with datagrams.
        let group = flow.group as usize;
        let key = match (&flow.traffic, rest) {
            (Traffic::Tcp(tcp), "workload") => match tcp.workload {
                Workload::Paced { .. } => "paced",
                Workload::Script(_) => "writes",
                _ => "size",
            },
            _ => rest.strip_prefix("udp.").or(rest.strip_prefix("place.")).unwrap_or(rest),
        };
        match group.checked_sub(self.flow.len()) {
            None => format!("flow[{group}].{key}"),
            Some(number) => format!("udp[{number}].{key}"),
        }
    }

    /// The simulation of run number `run`, for a scenario that was read without errors.
    ///
    /// # Errors
    /// A sentence if the scenario was changed since into one that cannot be simulated.
    pub fn simulation(&self, run: u64) -> Result<Compiled, super::ScenarioError> {
        self.compile(run).map_err(|problem| problem.locate("scenario", ""))
    }
}

/// Traffic whose random numbers depend on nothing but its own table: adding other traffic leaves
/// them alone. Flows have their numbers from 0.
#[derive(Clone, Copy)]
enum Kind {
    Datagrams = 1,
    Arrivals = 2,
}

impl Kind {
    /// The number to draw by of the first flow of the table with this place; there is room for 2^32
    /// more.
    const fn number(self, table: usize) -> u64 {
        (self as u64) << 56 | (table as u64) << 32
    }
}

struct Compiler<'a> {
    scenario: &'a Scenario,
    run: u64,
    path: Option<&'a PathSpec>,
    links: Vec<LinkConfig>,
    names: Vec<String>,
    /// Groups of links in parallel.
    ways: Vec<Vec<usize>>,
    /// Names of hosts; a host's number is its place here.
    hosts: Vec<String>,
    flows: Vec<FlowConfig>,
    arrivals: Vec<ArrivalConfig>,
    sessions: Vec<SessionConfig>,
    groups: Vec<FlowLabel>,
}

impl<'a> Compiler<'a> {
    fn new(scenario: &'a Scenario, run: u64) -> Result<Self, Problem> {
        let mut compiler = Self {
            scenario,
            run,
            path: scenario.path.as_ref(),
            links: Vec::new(),
            names: Vec::new(),
            ways: Vec::new(),
            hosts: Vec::new(),
            flows: Vec::new(),
            arrivals: Vec::new(),
            sessions: Vec::new(),
            groups: Vec::new(),
        };
        match (&scenario.path, scenario.link.as_slice()) {
            (Some(_), [_, ..]) => {
                return Err(Problem::at("link", "a scenario has either one [path] or several [[link]], not both"));
            }
            (None, []) => {
                return Err(Problem::at(
                    "path",
                    "there is no way; add a [path] with capacity and rtt, or [[link]] tables",
                ));
            }
            (Some(path), []) => compiler.add_path(path).map_err(|problem| problem.within("path"))?,
            (None, links) => {
                for (index, link) in links.iter().enumerate() {
                    compiler.add_link(link).map_err(|problem| problem.within(&format!("link[{index}]")))?;
                }
            }
        }
        Ok(compiler)
    }

    /// Flows but the first start later, by a random part of this.
    fn move_starts(&mut self, phases: Span) -> Result<(), Problem> {
        if self.flows.len() < 2 {
            return Err(Problem::at("phases", "there is no second flow whose start could be moved"));
        }
        if phases.is_zero() {
            let message = "0 moves no start; give a time above 0 within which flows start later, or leave this out";
            return Err(Problem::at("phases", message));
        }
        for (number, flow) in self.flows.iter_mut().enumerate().skip(1) {
            let number = flow.place.number.unwrap_or(number as u64);
            let mut random = Purpose::Phase.stream(self.scenario.seed, self.run, number);
            flow.start += Span::from_nanos(below(&mut random, phases.as_nanos()));
        }
        Ok(())
    }

    fn find(&self, key: &str, names: &[String]) -> Result<Vec<usize>, Problem> {
        names
            .iter()
            .enumerate()
            .map(|(position, name)| {
                self.names.iter().position(|known| known == name).ok_or_else(|| {
                    let meant = nearest(name, self.names.iter().map(String::as_str))
                        .map(|meant| format!("; did you mean \"{meant}\"?"))
                        .unwrap_or_default();
                    let known = self.names.join(", ");
                    Problem::at(
                        format!("{key}[{position}]"),
                        format!("there is no link \"{name}\"; there are {known}{meant}"),
                    )
                })
            })
            .collect()
    }

    /// Which of several ways the connections of a flow take (`key` says so, from 1), and between
    /// which hosts it runs.
    fn place(
        &mut self,
        flow: &FlowConfig,
        key: &str,
        ways: &[u32],
        hosts: [Option<&String>; 2],
    ) -> Result<Place, Problem> {
        let on_path = |group: &&Vec<usize>| flow.forward.iter().chain(&flow.reverse).any(|link| *link == group[0]);
        let most = self.ways.iter().filter(on_path).map(Vec::len).min();
        match (most, ways.iter().find(|way| **way == 0 || **way as usize > most.unwrap_or(0))) {
            (None, Some(_)) => return Err(Problem::at(key, "there are no ways in parallel on its path")),
            (Some(most), Some(way)) => {
                return Err(Problem::at(key, format!("there is no way {way} on its path; they are 1 to {most}")));
            }
            (_, None) => {}
        }
        if ways.len() > MOST_CONNECTIONS {
            let message = format!(
                "{} numbers are more than a flow has connections, which are {MOST_CONNECTIONS} at most; leave out the \
                 others",
                ways.len()
            );
            return Err(Problem::at(key, message));
        }
        let [source, destination] = hosts.map(|name| name.map(|name| self.host(name)));
        Ok(Place { ways: ways.iter().map(|way| way - 1).collect(), source, destination, number: None })
    }

    fn host(&mut self, name: &String) -> u32 {
        let known = self.hosts.iter().position(|host| host == name);
        known.unwrap_or_else(|| {
            self.hosts.push(name.clone());
            self.hosts.len() - 1
        }) as u32
    }

    /// The way of a flow: links and the delays beside them.
    fn way(
        &self,
        forward: &[String],
        reverse: &[String],
        rtt: Option<Span>,
        traffic: Traffic,
    ) -> Result<FlowConfig, Problem> {
        let mut flow = FlowConfig {
            forward: self.find("forward", forward)?,
            reverse: self.find("reverse", reverse)?,
            access: Access { rate: Rate::UNLIMITED, delay: Span::ZERO },
            tail_delay: Span::ZERO,
            return_delay: Span::ZERO,
            start: Time::ZERO,
            traffic,
            group: self.groups.len() as u32,
            place: Place::default(),
        };
        if let Some(path) = self.path {
            let rtt = rtt.unwrap_or(path.rtt);
            if flow.forward.is_empty() {
                flow.forward = vec![0];
            }
            // What is sent over the way back alone has the path the other way round.
            let turned = path.reverse_capacity.is_some() && flow.forward == [1];
            if flow.reverse.is_empty() && path.reverse_capacity.is_some() {
                flow.reverse = vec![usize::from(!turned)];
            }
            let delay = self.links[0].delay;
            let Some(rest) = rtt.checked_sub(delay) else {
                return Err(Problem::at("rtt", format!("is shorter than the delay of the bottleneck, {delay}")));
            };
            // Half of the way there lies before the bottleneck unless the bottleneck covers it.
            let before = (rtt / 2) - delay;
            if turned {
                // The bottleneck's own delay counts only if the ACKs cross it.
                let missing = if flow.reverse.contains(&1) { delay } else { Span::ZERO };
                flow.tail_delay = rest - before;
                flow.return_delay = before + missing;
            } else {
                flow.access.delay = before;
                flow.return_delay = rest - before;
            }
            if let Some(rate) = path.access {
                flow.access.rate = rate;
            }
        } else {
            if flow.forward.is_empty() {
                return Err(Problem::at("forward", "with [[link]] tables a flow names the links on its way"));
            }
            let propagation: Span = flow.forward.iter().chain(&flow.reverse).map(|link| self.links[*link].delay).sum();
            if let Some(rtt) = rtt {
                let Some(rest) = rtt.checked_sub(propagation) else {
                    return Err(Problem::at(
                        "rtt",
                        format!("is shorter than the delay of the links on the way, {propagation}"),
                    ));
                };
                flow.access.delay = rest / 2;
                flow.return_delay = rest - flow.access.delay;
            }
        }
        Ok(flow)
    }
}
