//! A figure's attainable rates: how a flow of a scenario, or a window in a loop, is probed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use flowstart_network::LossConfig;
use flowstart_random::mix;
use flowstart_service_curve::stats::Sides;
use flowstart_service_curve::{
    AdaptiveLoop, AdaptiveLoopConfig, ConstantRate, Growth, Marking, Probability, ProbeConfig, RateProbe, StaticWindow,
    WindowedLink, probe_rate,
};
use flowstart_units::{Bytes, Rate, Span, Time};

use super::error::ReproduceError;
use flowstart_probing::{Passage, Train, TrainConfig};
use flowstart_scenario::{Compiled, FlowSpec, LossSpec, PacedSpec, Problem, Scenario, SpacingSpec};

/// `[probe]`: instead of one simulation per run there is one per probing rate, in which a flow's
/// application writes at that rate; from the delays of its messages comes a service curve (Luebben
/// and Fidler, arXiv 1609.00653). Pieces in `[vary.FACTOR.LEVEL]` reach it as `probe`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProbeSpec {
    /// The name of the scenario's flow that probes; one flow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow: Option<String>,
    /// A window in a loop without a network, in place of the scenario.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<LoopSpec>,
    /// Probing rates are the multiples of this, payload.
    pub step: Rate,
    /// Up to this one.
    pub up_to: Rate,
    /// Bytes of a packet in a loop; a scenario's flow writes full segments.
    #[serde(default = "full_packet")]
    pub packet: Bytes,
    /// Independent samples per rate with `--full`; default 750 (paper).
    #[serde(default = "paper_samples")]
    pub samples: usize,
    /// Independent samples per rate otherwise.
    #[serde(default = "quick_samples")]
    pub quick_samples: usize,
    /// How long a rate is measured at most with `--full`, after the warm-up.
    #[serde(default = "lasting")]
    pub lasting: Span,
    /// How long otherwise.
    #[serde(default = "quick_lasting")]
    pub quick_lasting: Span,
    /// How long it is watched at least, for distributions and correlations.
    #[serde(default)]
    pub least: Span,
    /// How long a connection runs before it is watched.
    #[serde(default = "warm_up")]
    pub warm_up: Span,
    /// The probability with which each rate's delay quantile may be exceeded, 0 to below 1.
    #[serde(default = "one_percent")]
    pub epsilon: f64,
    /// Distance of the moments at which the congestion window is looked at.
    #[serde(default = "window_every")]
    pub window_every: Span,
    /// Mean rate of the film whose delay is bounded.
    #[serde(default = "film_rate")]
    pub film: Rate,
    /// How often the film is sent through a loop with `--full`, to see what its packets meet.
    #[serde(default = "replays")]
    pub replays: usize,
    /// How often otherwise.
    #[serde(default = "quick_replays")]
    pub quick_replays: usize,
}

/// A flow control without a network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum LoopSpec {
    /// A window of fixed size in front of a link.
    StaticWindow {
        /// Capacity of the link; without it only the window limits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        capacity: Option<Rate>,
        /// From sender to receiver.
        latency: Span,
        /// With the way back.
        round_trip: Span,
        /// Size of the window.
        window: Bytes,
    },
    /// A window that grows by one packet per round trip and is halved by every mark; nothing queues
    /// in the network.
    AdaptiveWindow {
        /// From sender to receiver.
        latency: Span,
        /// With the way back.
        round_trip: Span,
        /// Which ACKs carry a mark: a share, or "every N".
        mark: LossSpec,
        /// The window grows only while it is used up.
        #[serde(default)]
        when_limited: bool,
    },
}

/// A variant that is probed.
#[derive(Clone, Debug, PartialEq)]
pub struct Probing {
    /// How.
    pub spec: ProbeSpec,
    /// The scenario with the flow; `None` for a loop.
    pub scenario: Option<Scenario>,
    /// Seed of the sampling and of a loop's marks.
    pub seed: u64,
}

/// What one rate gave.
pub(super) struct Probed {
    pub(super) probe: RateProbe,
    /// Where the delay arose; not of a loop.
    pub(super) passage: Option<Passage>,
    pub(super) data_packets: u64,
    pub(super) seconds: f64,
}

fn full_packet() -> Bytes {
    Bytes::new(1500)
}

fn paper_samples() -> usize {
    750
}

fn quick_samples() -> usize {
    150
}

fn lasting() -> Span {
    Span::from_secs(3_000)
}

fn quick_lasting() -> Span {
    Span::from_secs(600)
}

fn warm_up() -> Span {
    Span::from_secs(10)
}

fn one_percent() -> f64 {
    0.01
}

fn window_every() -> Span {
    Span::from_millis(20)
}

fn film_rate() -> Rate {
    Rate::from_mbps(4)
}

fn replays() -> usize {
    1_500
}

fn quick_replays() -> usize {
    300
}

/// Most replays of the film.
const MOST_REPLAYS: usize = 100_000;
/// Most probing rates of a variant.
const MOST_RATES: u64 = 1_000;
/// Longest measurement of one rate.
const LONGEST: Span = Span::from_secs(1_000_000);

impl LoopSpec {
    fn marking(mark: &LossSpec) -> Option<Marking> {
        match mark.0 {
            LossConfig::None => Some(Marking::Periodic(0)),
            LossConfig::Bernoulli { probability } => Probability::new(probability).ok().map(Marking::Bernoulli),
            LossConfig::Periodic { every } => Some(Marking::Periodic(every)),
            LossConfig::GilbertElliott { .. } => None,
        }
    }

    /// The static window, if it is one.
    pub(super) fn static_window(&self) -> Option<StaticWindow> {
        match self {
            Self::StaticWindow { capacity, latency, round_trip, window } => Some(StaticWindow {
                capacity: capacity.unwrap_or(Rate::UNLIMITED),
                latency: *latency,
                round_trip: *round_trip,
                window: *window,
            }),
            Self::AdaptiveWindow { .. } => None,
        }
    }

    /// The delays of packets handed over at `arrivals`, in order of time; they end with the
    /// arrivals.
    ///
    /// # Errors
    /// What is wrong.
    pub(super) fn delays<'a>(
        &self,
        packet: Bytes,
        arrivals: impl Iterator<Item = Time> + 'a,
        seed: u64,
    ) -> Result<Box<dyn Iterator<Item = Span> + 'a>, Problem> {
        let wrong = |error: flowstart_service_curve::Error| Problem::at("through", error.to_string());
        match self {
            Self::StaticWindow { .. } => {
                let window = self.static_window().ok_or_else(|| Problem::at("through", "is no static window"))?;
                Ok(Box::new(WindowedLink::new(window, packet, arrivals).map_err(wrong)?))
            }
            Self::AdaptiveWindow { latency, round_trip, mark, when_limited } => {
                let unknown =
                    || Problem::at("through.mark", "is a share such as \"0.1 %\" or a period: \"every 1000\"");
                let config = AdaptiveLoopConfig {
                    latency: *latency,
                    round_trip: *round_trip,
                    marking: Self::marking(mark).ok_or_else(unknown)?,
                    growth: if *when_limited { Growth::WhenLimited } else { Growth::Always },
                    ..AdaptiveLoopConfig::default()
                };
                Ok(Box::new(AdaptiveLoop::new(config, arrivals, seed).map_err(wrong)?.delays()))
            }
        }
    }
}

impl Probing {
    /// The probing rates, increasing.
    pub(super) fn rates(&self) -> Vec<Rate> {
        let step = self.spec.step.as_bps();
        let count = self.spec.up_to.as_bps().checked_div(step).unwrap_or(0).min(MOST_RATES);
        (1..=count).map(|n| Rate::from_bps(n * step)).collect()
    }

    /// Everything that has an influence on the result, as text.
    pub(super) fn effective(&self) -> String {
        let spec = toml::to_string(&self.spec).unwrap_or_else(|error| format!("# not printable: {error}\n"));
        let scenario = self.scenario.as_ref();
        let untitled = scenario.map(|scenario| Scenario { title: String::new(), ..scenario.clone() }.effective());
        format!("{}{spec}", untitled.unwrap_or_default())
    }

    /// Uses other random numbers.
    pub(super) fn seed(&mut self, seed: u64) {
        self.seed = seed;
        if let Some(scenario) = &mut self.scenario {
            scenario.seed = seed;
        }
    }

    /// The procedure: the paper's own. The runs test is one-sided: too few runs count against
    /// independence, too many do not. Queues of greedy flows are nearly periodic, and samples at
    /// regular distances of something periodic alternate.
    pub(super) fn procedure(&self, packet: Bytes, full: bool, run: u64) -> Result<ProbeConfig, Problem> {
        let spec = &self.spec;
        let epsilon = Probability::new(spec.epsilon).map_err(|error| Problem::at("epsilon", error.to_string()))?;
        Ok(ProbeConfig {
            samples: if full { spec.samples } else { spec.quick_samples },
            epsilon,
            // A figure that says 0 is about a flow control without chance: the largest delay
            // counts.
            deterministic: epsilon == Probability::ZERO,
            packet,
            warm_up: spec.warm_up,
            sides: Sides::TooFew,
            // Not the stream of the marks.
            seed: mix(self.loop_seed(run)),
            ..ProbeConfig::paper()
        })
    }

    /// The seed of the sampling and of a loop's marks in a run: successive numbers for the runs of
    /// a seed, far from those of the next.
    pub(super) fn loop_seed(&self, run: u64) -> u64 {
        (self.seed.wrapping_sub(1) << 32).wrapping_add(run).wrapping_add(1)
    }

    fn lasting(&self, full: bool) -> Span {
        let lasting = if full { self.spec.lasting } else { self.spec.quick_lasting };
        lasting.max(self.spec.least)
    }

    /// The flow that probes, in the scenario.
    fn flow<'a>(&self, scenario: &'a mut Scenario) -> Option<&'a mut FlowSpec> {
        scenario.flow.iter_mut().find(|flow| flow.name.is_some() && flow.name == self.spec.flow)
    }

    /// Checks what can be checked without running.
    pub(super) fn check(&self) -> Result<(), Problem> {
        let spec = &self.spec;
        if self.rates().is_empty() {
            return Err(Problem::at("step", "leaves no probing rate; it is above 0 and at most up_to"));
        }
        if spec.up_to.as_bps() / spec.step.as_bps() > MOST_RATES {
            return Err(Problem::at("step", format!("makes more than {MOST_RATES} probing rates")));
        }
        for (key, lasting) in [("lasting", spec.lasting), ("quick_lasting", spec.quick_lasting), ("least", spec.least)]
        {
            if lasting > LONGEST {
                return Err(Problem::at(key, format!("is at most {LONGEST}")));
            }
        }
        for (key, replays) in [("replays", spec.replays), ("quick_replays", spec.quick_replays)] {
            if replays > MOST_REPLAYS {
                return Err(Problem::at(key, format!("is at most {MOST_REPLAYS}")));
            }
        }
        for full in [true, false] {
            let procedure = self.procedure(spec.packet, full, 0)?;
            procedure.validate().map_err(|error| Problem::at("samples", error.to_string()))?;
        }
        match (&self.scenario, &spec.through) {
            (_, Some(through)) => through.delays(spec.packet, std::iter::empty(), 0).map(drop),
            (None, None) => Err(Problem::at("flow", "needs a [scenario] with this flow")),
            (Some(scenario), None) => {
                let mut scenario = scenario.clone();
                let Some(flow) = self.flow(&mut scenario) else {
                    let names: Vec<&str> = scenario.flow.iter().filter_map(|flow| flow.name.as_deref()).collect();
                    return Err(Problem::at(
                        "flow",
                        format!("names the flow that probes; there are {}", names.join(", ")),
                    ));
                };
                if flow.count != 1 {
                    return Err(Problem::at("flow", "is one flow, not several of a name"));
                }
                Ok(())
            }
        }
    }

    /// Probes one rate; `None` once it is not wanted any more.
    ///
    /// # Errors
    /// What is wrong with the scenario or the loop.
    pub(super) fn probe(
        &self,
        rate: Rate,
        run: u64,
        full: bool,
        unwanted: &dyn Fn() -> bool,
    ) -> Result<Option<Probed>, ReproduceError> {
        let text = |problem: Problem| problem.locate("probe", "").to_string();
        let lasting = self.lasting(full);
        if let Some(through) = &self.spec.through {
            let config = self.procedure(self.spec.packet, full, run).map_err(text)?;
            let end = Time::ZERO + config.warm_up + lasting;
            let mut asked = 0_u64;
            let arrivals = ConstantRate::new(rate, self.spec.packet).take_while(|at| {
                asked += 1;
                *at < end && !(asked.is_multiple_of(LOOK_EVERY) && unwanted())
            });
            let delays = through.delays(self.spec.packet, arrivals, self.loop_seed(run)).map_err(text)?;
            let probe = probe_rate(rate, delays, &config).map_err(|error| error.to_string())?;
            let (data_packets, gap) = (probe.packets, rate.transmission_time(self.spec.packet).as_secs_f64());
            let seconds = gap * data_packets as f64;
            return Ok((!unwanted()).then_some(Probed { probe, passage: None, data_packets, seconds }));
        }
        let Some(mut scenario) = self.scenario.clone() else { return Ok(None) };
        let Some(flow) = self.flow(&mut scenario) else { return Ok(None) };
        let (message, start) = (Bytes::new(u64::from(flow.sender.mss)), Time::ZERO + flow.start);
        flow.paced = Some(PacedSpec { rate, message, spacing: SpacingSpec::Constant, lasting: None });
        let config = self.procedure(message, full, run).map_err(text)?;
        let from = start + config.warm_up;
        scenario.duration = (from + lasting).since(Time::ZERO);
        let compiled = scenario.simulation(run).map_err(|error| error.to_string())?;
        let Some(flow) = self.flow_id(&compiled) else { return Ok(None) };
        let train = TrainConfig { flow, start, rate, message: message.get() };
        let passage = Passage::new(from, self.spec.window_every);
        let mut train = Train::new(&compiled.simulation, train, Some(passage), unwanted)?;
        let probe = probe_rate(rate, train.by_ref(), &config).map_err(|error| error.to_string())?;
        train.skip_to(from + self.spec.least);
        if unwanted() {
            return Ok(None);
        }
        let (seconds, data_packets) = (train.now().since(Time::ZERO).as_secs_f64(), train.packets());
        Ok(Some(Probed { probe, passage: train.take_passage(), data_packets, seconds }))
    }

    /// The number of the flow that probes, in a simulation.
    fn flow_id(&self, compiled: &Compiled) -> Option<u32> {
        let name = self.spec.flow.as_deref();
        let group = compiled.groups.iter().position(|group| Some(group.name.as_str()) == name)?;
        let place = compiled.simulation.flows.iter().position(|flow| flow.group as usize == group)?;
        u32::try_from(place).ok()
    }
}

/// Packets of a loop between looks at whether they are still wanted.
const LOOK_EVERY: u64 = 1 << 16;
