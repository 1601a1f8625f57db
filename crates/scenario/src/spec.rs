//! Values that can be written short as a string or in full as a table.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Serialize, Serializer};

use flowstart_network::{
    DropTailConfig, JitterConfig, Limit, LossConfig, QueueConfig, RateSchedule, RateStep, Threshold,
};
use flowstart_units::{Rate, Span, Time, parse_fraction};

use super::short::{FromLong, Short};
use super::{Buffer, FadingSpec, Problem, SpecError};

macro_rules! short {
    ($type:ident, $long:ty, $expecting:expr, $example:literal) => {
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_any(Short::<Self, $long>(PhantomData, $expecting))
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                let long = generator.subschema_for::<$long>();
                json_schema!({
                    "description": $expecting,
                    "examples": [$example],
                    "anyOf": [{ "type": "string" }, long],
                })
            }

            fn inline_schema() -> bool {
                true
            }
        }
    };
}

/// A queue discipline: a name, a name with its threshold, or a table of all constants. Limits that
/// can be told in packets or bytes are filled in from the path's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct QueueSpec(pub QueueConfig);

short!(
    QueueSpec,
    QueueConfig,
    "a queue such as \"drop_tail\", \"step_mark 1 ms\", \"step_mark 20 packets\" or \"fair_queuing\"",
    "step_mark 1 ms"
);

impl FromLong<QueueConfig> for QueueSpec {
    fn from_long(long: QueueConfig) -> Self {
        Self(long)
    }
}

impl Default for QueueSpec {
    fn default() -> Self {
        Self(QueueConfig::DropTail(DropTailConfig::default()))
    }
}

impl FromStr for QueueSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (name, rest) = text.trim().split_once(char::is_whitespace).unwrap_or((text.trim(), ""));
        let (name, rest) = (name.to_lowercase().replace('-', "_"), rest.trim());
        let no_more = |queue| {
            if rest.is_empty() { Ok(Self(queue)) } else { Err(SpecError::new(behind_its_name(queue, rest))) }
        };
        match name.as_str() {
            "drop_tail" | "droptail" | "fifo" => no_more(QueueConfig::DropTail(DropTailConfig::default())),
            "fair_queuing" | "fq" => no_more(QueueConfig::FairQueuing(Default::default())),
            "step_mark" => {
                let mut config = flowstart_network::StepMarkConfig::default();
                if !rest.is_empty() {
                    config.threshold = threshold(rest)?;
                }
                Ok(Self(QueueConfig::StepMark(config)))
            }
            _ => {
                if let Some(config) = QueueConfig::from_name(&name) {
                    return no_more(config);
                }
                let meant = crate::suggest::nearest(&name, QueueConfig::NAMES)
                    .map(|meant| format!("; did you mean \"{meant}\"?"))
                    .unwrap_or_default();
                let known = QueueConfig::NAMES.join(", ");
                Err(SpecError::new(format!("there is no queue \"{name}\"; there are {known}{meant}")))
            }
        }
    }
}

/// Why nothing may stand behind a queue's name: a size, which contestants of races have there, is a
/// key of its own in files.
fn behind_its_name(queue: QueueConfig, rest: &str) -> String {
    let name = queue.name();
    let refused = format!("{name} takes no \"{rest}\" behind its name");
    match rest.parse::<Buffer>() {
        Ok(size) if queue.takes_buffer() => {
            format!("{refused}; its size is a key beside it: queue = \"{name}\", buffer = \"{size}\"")
        }
        Ok(_) => {
            format!("{refused}; its limit is a key of its table: queue = {{ kind = \"{name}\", {} }}", limit_of(queue))
        }
        Err(_) => refused,
    }
}

/// How the limit of a queue is written in its table, with a usual value.
fn limit_of(mut queue: QueueConfig) -> &'static str {
    let name = queue.name();
    match queue.limit() {
        Limit::Packets(_) => "limit = 100",
        Limit::Bytes(_) if name == "host_fairness" => "memory = 150000",
        Limit::Bytes(_) => "limit = 150000",
        // The limit is all that drop-tail has.
        Limit::Either(_) if name == "drop_tail" => "packets = 100",
        Limit::Either(_) => "limit = { packets = 100 }",
    }
}

fn threshold(text: &str) -> Result<Threshold, SpecError> {
    match text.parse::<super::Buffer>() {
        Ok(super::Buffer::Time(span)) => Ok(Threshold::Sojourn(span)),
        Ok(super::Buffer::Packets(packets)) => Ok(Threshold::Packets(packets)),
        Ok(super::Buffer::Bytes(bytes)) => Ok(Threshold::Bytes(bytes.get())),
        _ => Err(SpecError::new(format!(
            "\"{text}\" is not a marking threshold; it looks like \"1 ms\", \"20 packets\" or \"12500 B\""
        ))),
    }
}

impl QueueSpec {
    /// The queue with the limits of a buffer, if it takes them; limits of its own win.
    #[must_use]
    pub fn with_buffer(self, packets: Option<u64>, bytes: Option<u64>) -> QueueConfig {
        let mut config = self.0;
        if config.takes_buffer()
            && let Limit::Either(limit) = config.limit()
        {
            *limit = DropTailConfig { packets, bytes };
        }
        config
    }

    /// Refuses a size that stands beside a queue with a limit of its own, which would not heed it.
    /// `key` is what the size is called.
    pub(super) fn check_buffer(self, key: &str, buffer: Option<Buffer>) -> Result<(), Problem> {
        let Some(buffer) = buffer.filter(|_| !self.0.takes_buffer()) else { return Ok(()) };
        let mut config = self.0;
        let name = config.name();
        let write = limit_of(config);
        let own = match config.limit() {
            Limit::Packets(limit) => format!("{limit} packets"),
            Limit::Bytes(limit) => format!("{limit} B"),
            Limit::Either(limit) => {
                let both = limit.packets.map(|n| format!("{n} packets")).into_iter();
                both.chain(limit.bytes.map(|n| format!("{n} B"))).collect::<Vec<_>>().join(" and ")
            }
        };
        Err(Problem::at(
            key,
            format!(
                "\"{buffer}\" would have no influence on {name}, which has a limit of its own ({own}); leave one of \
                 the two out, or give the limit there: queue = {{ kind = \"{name}\", {write} }}"
            ),
        ))
    }

    /// True if the queue draws random numbers.
    #[must_use]
    pub fn is_random(&self) -> bool {
        self.0.is_random()
    }
}

/// A process that picks packets: a share, a period, or a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct LossSpec(pub LossConfig);

short!(LossSpec, LossConfig, "a share such as \"0.1 %\", a period such as \"every 100\", or \"none\"", "0.1 %");

impl FromLong<LossConfig> for LossSpec {
    fn from_long(long: LossConfig) -> Self {
        Self(long)
    }
}

impl FromStr for LossSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let text = text.trim();
        if text == "none" {
            return Ok(Self(LossConfig::None));
        }
        if let Some(period) = text.strip_prefix("every") {
            let every = period.trim().parse().ok().filter(|every| *every > 0);
            return match every {
                Some(every) => Ok(Self(LossConfig::Periodic { every })),
                None => Err(SpecError::new(format!("\"{text}\" is not a period; it looks like \"every 100\""))),
            };
        }
        let probability = parse_fraction(text)?;
        Ok(Self(if probability == 0.0 { LossConfig::None } else { LossConfig::Bernoulli { probability } }))
    }
}

impl LossSpec {
    /// True if random numbers are drawn.
    #[must_use]
    pub fn is_random(&self) -> bool {
        self.0.is_random()
    }
}

/// Jitter: the largest extra delay, without reordering, or a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct JitterSpec(pub JitterConfig);

short!(JitterSpec, JitterConfig, "the largest extra delay such as \"2 ms\"", "2 ms");

impl FromLong<JitterConfig> for JitterSpec {
    fn from_long(long: JitterConfig) -> Self {
        Self(long)
    }
}

impl FromStr for JitterSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        Ok(Self(JitterConfig { spread: text.parse()?, reorder: false }))
    }
}

/// From a time on, a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StepSpec {
    /// Since the start of the run, or of the repetition.
    pub at: Span,
    /// From then on; 0 is an outage.
    pub rate: Rate,
}

/// A capacity: a rate, a list of steps, or a table with steps and a period or with a Mahimahi
/// trace.
#[derive(Clone, Debug, PartialEq)]
pub enum RateSpec {
    /// Always the same.
    Constant(Rate),
    /// Steps, repeated if there is a period.
    Steps(Vec<StepSpec>, Option<Span>),
    /// A Mahimahi trace in a file, not read yet.
    Trace(String),
    /// It fades at random.
    Fading(FadingSpec),
}

/// The forms of a capacity in full.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
enum LongRate {
    /// Steps in order of time, the first at 0.
    Steps(Vec<StepSpec>),
    /// Steps that repeat.
    Periodic {
        /// Steps in order of time, the first at 0.
        steps: Vec<StepSpec>,
        /// Length of a repetition.
        period: Span,
    },
    /// A Mahimahi trace.
    Trace {
        /// Its file, relative to the scenario.
        trace: String,
    },
    /// A rate that fades at random.
    Fading(FadingSpec),
}

/// What a capacity may be.
const RATES: &str =
    "a rate such as \"100 Mbit/s\", a list of { at, rate }, { trace = \"FILE\" }, or { mean, spread, correlation }";

short!(RateSpec, LongRate, RATES, "100 Mbit/s");

/// The keys of all tables that are capacities.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct RateKeys {
    steps: Option<Vec<StepSpec>>,
    period: Option<Span>,
    trace: Option<String>,
    mean: Option<Rate>,
    spread: Option<f64>,
    correlation: Option<Span>,
    step: Option<Span>,
}

impl RateKeys {
    /// The one form that the keys are of.
    fn form(self) -> Result<LongRate, String> {
        let fades = self.spread.is_some() || self.correlation.is_some() || self.step.is_some();
        match self {
            Self { trace: Some(trace), steps: None, period: None, mean: None, .. } if !fades => {
                Ok(LongRate::Trace { trace })
            }
            Self { trace: Some(_), .. } => Err("a capacity with a `trace` has no other keys".to_owned()),
            Self { steps: Some(steps), period: Some(period), mean: None, .. } if !fades => {
                Ok(LongRate::Periodic { steps, period })
            }
            Self { steps: Some(_), period: None, mean: None, .. } if !fades => {
                let message = "a capacity with `steps` needs a `period` after which they repeat, such as \"1 s\"; steps \
                               that do not repeat are a list without a table: capacity = [{ at, rate }, ...]";
                Err(message.to_owned())
            }
            Self { steps: Some(_), .. } => Err("a capacity with `steps` has a `period` and no other keys".to_owned()),
            Self { period: Some(_), .. } => {
                Err("a capacity with a `period` needs the `steps` that repeat, a list of { at, rate }".to_owned())
            }
            Self { mean: Some(mean), spread: Some(spread), correlation: Some(correlation), step, .. } => {
                let step = step.unwrap_or(FadingSpec::USUAL_STEP);
                Ok(LongRate::Fading(FadingSpec { mean, spread, correlation, step }))
            }
            Self { mean, spread, correlation, .. } if fades || mean.is_some() => {
                let needs =
                    [("mean", mean.is_none()), ("spread", spread.is_none()), ("correlation", correlation.is_none())];
                let missing: Vec<String> =
                    needs.into_iter().filter(|(_, missing)| *missing).map(|(key, _)| format!("`{key}`")).collect();
                Err(format!(
                    "a capacity that fades needs {} too: {{ mean = \"50 Mbit/s\", spread = 0.5, correlation = \"100 ms\" }}",
                    missing.join(" and ")
                ))
            }
            _ => Err(format!("a table without keys is no capacity; it is {RATES}")),
        }
    }
}

// By hand, as an untagged enum says neither which key is wrong nor which is missing.
impl<'de> Deserialize<'de> for LongRate {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Forms;

        impl<'de> Visitor<'de> for Forms {
            type Value = LongRate;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(RATES)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<LongRate, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(seq)).map(LongRate::Steps)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<LongRate, A::Error> {
                RateKeys::deserialize(MapAccessDeserializer::new(map))?.form().map_err(de::Error::custom)
            }
        }

        deserializer.deserialize_any(Forms)
    }
}

impl FromLong<LongRate> for RateSpec {
    fn from_long(long: LongRate) -> Self {
        match long {
            LongRate::Steps(steps) => Self::Steps(steps, None),
            LongRate::Periodic { steps, period } => Self::Steps(steps, Some(period)),
            LongRate::Trace { trace } => Self::Trace(trace),
            LongRate::Fading(fading) => Self::Fading(fading),
        }
    }
}

impl FromStr for RateSpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        Ok(Self::Constant(text.parse()?))
    }
}

impl Serialize for RateSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let long = match self.clone() {
            Self::Constant(rate) => return rate.serialize(serializer),
            Self::Steps(steps, None) => LongRate::Steps(steps),
            Self::Steps(steps, Some(period)) => LongRate::Periodic { steps, period },
            Self::Trace(trace) => LongRate::Trace { trace },
            Self::Fading(fading) => LongRate::Fading(fading),
        };
        long.serialize(serializer)
    }
}

impl RateSpec {
    /// The schedule; what is random about it is drawn with this seed.
    ///
    /// # Errors
    /// A trace that has not been read, a fading rate that makes no sense.
    pub fn schedule(&self, seed: u64) -> Result<RateSchedule, SpecError> {
        match self {
            Self::Constant(rate) => Ok(RateSchedule::Constant(*rate)),
            Self::Steps(steps, period) => Ok(RateSchedule::Steps {
                steps: steps.iter().map(|step| RateStep { at: Time::ZERO + step.at, rate: step.rate }).collect(),
                period: *period,
            }),
            Self::Trace(file) => Err(SpecError::new(format!("the trace \"{file}\" has not been read"))),
            Self::Fading(fading) => fading.schedule(seed),
        }
    }

    /// The rate that buffers in BDP refer to: the largest, of a fading one the mean.
    #[must_use]
    pub fn nominal(&self) -> Rate {
        match self {
            Self::Constant(rate) => *rate,
            Self::Steps(steps, _) => steps.iter().map(|step| step.rate).max().unwrap_or(Rate::ZERO),
            Self::Trace(_) => Rate::ZERO,
            Self::Fading(fading) => fading.mean,
        }
    }

    /// The mean rate: over a period if it repeats, else between these times since the start of the
    /// run (the rate of the first moment if none lies between). Zero for a trace that has not been
    /// read.
    #[must_use]
    pub fn mean(&self, from: Span, to: Span) -> Rate {
        let Self::Steps(steps, period) = self else { return self.nominal() };
        let (from, to) = period.map_or((from, to.max(from + Span::from_nanos(1))), |period| (Span::ZERO, period));
        let ends = steps.iter().skip(1).map(|step| step.at).chain([Span::MAX]);
        let work = steps.iter().zip(ends).map(|(step, end)| {
            let time = end.min(to) - step.at.max(from);
            u128::from(step.rate.as_bps()).saturating_mul(u128::from(time.as_nanos()))
        });
        let mean = work.fold(0, u128::saturating_add) / u128::from((to - from).as_nanos().max(1));
        Rate::from_bps(u64::try_from(mean).unwrap_or(u64::MAX))
    }

    /// True if random numbers are drawn.
    #[must_use]
    pub fn is_random(&self) -> bool {
        matches!(self, Self::Fading(_))
    }

    /// A schedule that came from a trace.
    #[must_use]
    pub fn from_schedule(schedule: &RateSchedule) -> Self {
        match schedule {
            RateSchedule::Constant(rate) => Self::Constant(*rate),
            RateSchedule::Steps { steps, period } => Self::Steps(
                steps.iter().map(|step| StepSpec { at: step.at.since(Time::ZERO), rate: step.rate }).collect(),
                *period,
            ),
        }
    }
}
