//! Who races: a flow start, a congestion avoidance, a queue, and how its authors run it.

use std::fmt;
use std::str::FromStr;

use flowstart_congestion::{AvoidanceConfig, Pacing, StartConfig, joint_name};
use flowstart_transport::{EcnMode, ReceiverConfig, SenderConfig};

use super::RaceError;
use super::carrier::Subject;
use super::path::QueueChoice;
use flowstart_scenario::{Dialect, FlowSpec, nearest};

/// When the receiver acknowledges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Acks {
    /// As Linux: quick ACKs at the beginning, then one for every second segment or after 40 ms; on
    /// hosts of another dialect as that has it.
    Delayed,
    /// Every segment at once, as in the experiments of the paced chirping authors, who switch
    /// delayed ACKs off at the receiver.
    EverySegment,
}

/// One contestant.
#[derive(Clone, Debug, PartialEq)]
pub struct Contestant {
    /// How it starts.
    pub start: StartConfig,
    /// How it goes on.
    pub avoidance: AvoidanceConfig,
    /// The queue it meets; `None` for the one the path has, or else its [usual](Self::usual_queue)
    /// one.
    pub queue: Option<QueueChoice>,
    /// Whether packets leave spaced in time where neither start nor avoidance says so itself.
    pub pacing: Pacing,
    /// When the receiver acknowledges.
    pub acks: Acks,
    /// How it uses congestion marks.
    pub ecn: EcnMode,
    /// Whose habits its hosts have, as in a scenario whose flow has this dialect; `None` for those
    /// that flows of scenarios have by default. What a dialect says of queues is the path's.
    pub dialect: Option<Dialect>,
    /// Share of routers in percent that know Quick-Start; `None` for the path's.
    pub aware_percent: Option<u32>,
    /// The words after its slashes.
    pub asked: Asked,
}

/// What somebody wrote, be it how the authors run it or not. It is no part of what a contestant is:
/// two that are run alike are equal.
#[derive(Clone, Debug, Default)]
pub struct Asked(Vec<String>);

impl PartialEq for Asked {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// Short names for a whole contestant, and what they mean.
pub const ALIASES: &[(&str, &str)] = &[
    ("cubic", "hystart+cubic"),
    ("reno", "slow_start+reno"),
    ("dctcp", "slow_start+dctcp"),
    ("scalable", "slow_start+scalable"),
    ("slow_start", "slow_start+cubic"),
    ("hystart", "hystart+cubic"),
    ("hystart++", "hystart_plus_plus+cubic"),
    ("hystart_plus_plus", "hystart_plus_plus+cubic"),
    ("paced_chirping", "paced_chirping+dctcp"),
    ("adaptive_chirping", "adaptive_chirping+cubic"),
    ("bbr", "built_in+bbr"),
    ("bbr3", "built_in+bbr3"),
];

/// Words after a slash that change how a contestant is run.
pub const MODIFIERS: &[(&str, &str)] = &[
    ("paced", "packets leave spaced, at Linux's pacing rates"),
    ("unpaced", "packets leave as the window opens"),
    ("ack1", "the receiver acknowledges every segment at once"),
    ("ack2", "the receiver delays ACKs as Linux does, or with /ns3 as ns-3"),
    ("ecn", "ECN-capable, answers marks as RFC 3168"),
    ("noecn", "not ECN-capable"),
    (
        "linux",
        "new data leaves in bursts, what is pushed is acknowledged at once, and the receive window grows, as on Linux",
    ),
    (
        "ns3",
        "hosts as ns-3's: its HyStart and NewReno, ACKs after 200 ms, timeouts of at least 1 s, no tail loss probes, no \
         undo; the queue stays the path's",
    ),
    ("aware0", "no router knows Quick-Start"),
    ("aware50", "each router knows Quick-Start in half of the runs, drawn at random"),
    ("aware100", "every router knows Quick-Start"),
];

/// The race without arguments; each over its usual queue.
pub const DEFAULT: &[&str] = &[
    "hystart+cubic",
    "slow_start+cubic",
    "hystart_plus_plus+cubic",
    "slow_start+dctcp",
    "paced_chirping+dctcp",
    "paced_chirping+cubic",
    "adaptive_chirping+cubic",
    "adaptive_chirping+delay_target",
];

impl Contestant {
    /// True if its start or its congestion avoidance is one that somebody brought along.
    pub(crate) fn is_own(&self) -> bool {
        matches!(self.start, StartConfig::Own(_)) || matches!(self.avoidance, AvoidanceConfig::Own(_))
    }

    /// The contestant as its authors run it: the authors' chirping with an ACK for every segment
    /// (the papers' experiments switch delayed ACKs off) and the published detector of fair queuing
    /// (its transport does so), all others with Linux's ACKs; all unpaced after the start, as Linux
    /// runs Reno, CUBIC and DCTCP and as Windows runs HyStart++; ECN where the avoidance asks for
    /// it.
    #[must_use]
    pub fn new(start: StartConfig, avoidance: AvoidanceConfig, queue: Option<QueueChoice>) -> Self {
        let ecn = avoidance.wants_ecn();
        let acks = if start.wants_every_ack() { Acks::EverySegment } else { Acks::Delayed };
        let ecn = if ecn { EcnMode::Dctcp } else { EcnMode::Off };
        Self {
            start,
            avoidance,
            queue,
            pacing: Pacing::Off,
            acks,
            ecn,
            dialect: None,
            aware_percent: None,
            asked: Asked::default(),
        }
    }

    /// The queue it is usually run over: one that marks if its avoidance asks for marks, else one
    /// that drops.
    #[must_use]
    pub fn usual_queue(&self) -> QueueChoice {
        if self.avoidance.wants_ecn() { QueueChoice::StepMark(None) } else { QueueChoice::DropTail(None) }
    }

    /// `START+AVOIDANCE`, with what differs from how its authors run it.
    #[must_use]
    pub fn name(&self) -> String {
        let modifiers = self.modifiers().into_iter().map(|(_, word)| word);
        std::iter::once(joint_name(&self.start, &self.avoidance)).chain(modifiers).collect::<Vec<_>>().join("/")
    }

    /// What differs from how its authors run it, in the words that are written behind a slash.
    pub(crate) fn modifiers(&self) -> Vec<(Subject, String)> {
        let usual = Self::new(self.start.clone(), self.avoidance.clone(), None);
        let mut list = Vec::new();
        let mut say = |differs: bool, subject, word: &str| list.extend(differs.then(|| (subject, word.to_owned())));
        let unpaced = self.pacing == Pacing::Off;
        say(self.pacing != usual.pacing, Subject::Pacing, if unpaced { "unpaced" } else { "paced" });
        let every = self.acks == Acks::EverySegment;
        say(self.acks != usual.acks, Subject::Acks, if every { "ack1" } else { "ack2" });
        let off = self.ecn == EcnMode::Off;
        say(self.ecn != usual.ecn, Subject::Ecn, if off { "noecn" } else { "ecn" });
        if let Some(dialect) = self.dialect {
            say(true, Subject::Dialect(dialect), dialect.name());
        }
        let percent = self.aware_percent.unwrap_or_default();
        say(self.aware_percent.is_some(), Subject::Aware, &format!("aware{percent}"));
        list
    }

    /// The words that it was named with, in lower case.
    pub(crate) fn asked(&self) -> impl Iterator<Item = &str> {
        self.asked.0.iter().map(String::as_str)
    }

    /// What a scenario's flow has on its hosts; `None` for the defaults.
    pub(crate) fn habits(&self) -> Option<FlowSpec> {
        self.dialect.map(|dialect| dialect.greedy(self.start.name(), self.avoidance.name()))
    }

    /// The sending endpoint: Linux's constants, or its dialect's.
    #[must_use]
    pub fn sender(&self) -> SenderConfig {
        SenderConfig { ecn: self.ecn, ..self.habits().map(|flow| flow.sender).unwrap_or_default() }
    }

    /// The receiving endpoint.
    #[must_use]
    pub fn receiver(&self) -> ReceiverConfig {
        let delayed = self.habits().map(|flow| flow.receiver).unwrap_or_default();
        let config = match self.acks {
            Acks::Delayed => delayed,
            Acks::EverySegment => {
                let ReceiverConfig { ack_every, quick_acks, compressed_sack_delay, .. } =
                    ReceiverConfig::every_segment();
                ReceiverConfig { ack_every, quick_acks, compressed_sack_delay, ..delayed }
            }
        };
        ReceiverConfig { ecn: self.ecn, ..config }
    }

    /// How it is run, in a few words: ACKs, pacing, ECN.
    #[must_use]
    pub fn conditions(&self) -> String {
        let acks = match self.acks {
            Acks::Delayed if self.dialect == Some(Dialect::Ns3) => "delayed ACKs (ns-3)",
            Acks::Delayed => "quick then delayed ACKs (Linux)",
            Acks::EverySegment => "an ACK for every segment",
        };
        let ecn = match self.ecn {
            EcnMode::Off => "no ECN",
            EcnMode::Classic => "ECN (RFC 3168)",
            EcnMode::Dctcp => "ECN (RFC 8257)",
            EcnMode::Accurate => "accurate ECN",
        };
        let bursts = if self.dialect == Some(Dialect::Linux) { ", in bursts (Linux)" } else { "" };
        format!("{acks}, {}{bursts}, {ecn}", self.spacing())
    }

    /// Who decides when its packets leave, in a few words.
    fn spacing(&self) -> String {
        let usual = if self.pacing == Pacing::Off { "unpaced" } else { "paced (Linux)" };
        let at_first = self.start.sends();
        match self.avoidance.spaces() {
            Some(own) if self.start == StartConfig::BuiltIn => own.to_owned(),
            Some(own) => format!("{}, {own} after the start", at_first.unwrap_or(usual)),
            None => at_first.map_or(usual.to_owned(), |at_first| format!("{at_first}, {usual} after the start")),
        }
    }

    /// The default race, with the queues' sizes left to the race.
    #[must_use]
    pub fn defaults() -> Vec<Self> {
        DEFAULT.iter().filter_map(|text| text.parse().ok()).collect()
    }

    /// What can be named without a queue and without changes: the short names, and every start with
    /// every avoidance.
    #[must_use]
    pub fn names() -> Vec<String> {
        let short = ALIASES.iter().map(|(name, _)| (*name).to_owned());
        let joint = |start| AvoidanceConfig::NAMES.iter().map(move |avoidance| format!("{start}+{avoidance}"));
        short.chain(StartConfig::NAMES.iter().flat_map(joint)).collect()
    }

    fn modify(&mut self, word: &str) -> Result<(), RaceError> {
        if let Some(before) = self.asked.0.iter().find(|before| opposed(before, word)) {
            return Err(RaceError::new(if before == word {
                format!("the modifier \"/{word}\" stands twice; once is enough")
            } else {
                format!("the modifiers \"/{before}\" and \"/{word}\" exclude each other; leave one of them out")
            }));
        }
        match word {
            "paced" => self.pacing = Pacing::LINUX,
            "unpaced" => self.pacing = Pacing::Off,
            "ack1" => self.acks = Acks::EverySegment,
            "ack2" => self.acks = Acks::Delayed,
            "ecn" => self.ecn = if self.avoidance.wants_ecn() { EcnMode::Dctcp } else { EcnMode::Classic },
            "noecn" => self.ecn = EcnMode::Off,
            "linux" => self.dialect = Some(Dialect::Linux),
            "ns3" => self.dialect = Some(Dialect::Ns3),
            "aware0" => self.aware_percent = Some(0),
            "aware50" => self.aware_percent = Some(50),
            "aware100" => self.aware_percent = Some(100),
            _ => {
                let known: Vec<&str> = MODIFIERS.iter().map(|(word, _)| *word).collect();
                let suggestion =
                    nearest(word, known.iter().copied()).map_or(String::new(), |n| format!(", did you mean \"/{n}\"?"));
                return Err(RaceError::new(format!(
                    "unknown modifier \"/{word}\"{suggestion} (known: {})",
                    known.iter().map(|word| format!("/{word}")).collect::<Vec<_>>().join(", ")
                )));
            }
        }
        Ok(())
    }
}

/// True if the two modifiers say something about the same.
fn opposed(one: &str, other: &str) -> bool {
    let groups = [
        ["paced", "unpaced"].as_slice(),
        &["ack1", "ack2"],
        &["ecn", "noecn"],
        &["linux", "ns3"],
        &["aware0", "aware50", "aware100"],
    ];
    one == other || groups.iter().any(|group| group.contains(&one) && group.contains(&other))
}

/// The meaning of a name without a plus: an alias, or a flow start in front of CUBIC.
fn alias(name: &str) -> Result<String, RaceError> {
    let canonical = name.to_lowercase().replace(['-', ' '], "_");
    let meaning =
        |name: &str| ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, meaning)| (*meaning).to_owned());
    // A control may have several names, of which one stands there.
    let control = || AvoidanceConfig::from_name(&canonical).ok().and_then(|control| meaning(control.name()));
    if let Some(meaning) = meaning(&canonical).or_else(control) {
        return Ok(meaning);
    }
    // The start of a control that has one of its own is no start for another.
    if let Ok(start) = StartConfig::from_name(&canonical)
        && start.name() != "built_in"
    {
        return Ok(format!("{canonical}+cubic"));
    }
    let known: Vec<&str> = ALIASES.iter().map(|(alias, _)| *alias).collect();
    let suggestion =
        nearest(&canonical, known.iter().copied()).map_or(String::new(), |n| format!(", did you mean \"{n}\"?"));
    Err(RaceError::new(format!(
        "unknown contestant \"{name}\"{suggestion} (known: {}, a flow start alone, which is in front of cubic, or START+AVOIDANCE@QUEUE such as \"paced_chirping+cubic@drop_tail 1 BDP\")",
        known.join(", ")
    )))
}

impl FromStr for Contestant {
    type Err = RaceError;

    /// Reads `START+AVOIDANCE[/MODIFIER...][@QUEUE]`. In place of `START+AVOIDANCE` an
    /// [alias](ALIASES) may stand, or a start alone, which is in front of CUBIC.
    fn from_str(text: &str) -> Result<Self, RaceError> {
        let (who, queue) = match text.split_once('@') {
            Some((who, queue)) => (who, Some(queue.parse()?)),
            None => (text, None),
        };
        let mut words = who.split('/').map(str::trim);
        let name = words.next().unwrap_or_default();
        // "hystart++" ends in plus signs of its own.
        let protected = name.replace("++", "_plus_plus");
        let whole = if protected.contains('+') { protected } else { alias(name)? };
        let (start, avoidance) = whole.split_once('+').unwrap_or((&whole, ""));
        let start = StartConfig::from_name(start.trim()).map_err(|error| RaceError::new(error.to_string()))?;
        let avoidance =
            AvoidanceConfig::from_name(avoidance.trim()).map_err(|error| RaceError::new(error.to_string()))?;
        let mut contestant = Self::new(start, avoidance, queue);
        for word in words {
            let word = word.to_lowercase();
            contestant.modify(&word)?;
            contestant.asked.0.push(word);
        }
        Ok(contestant)
    }
}

impl fmt::Display for Contestant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())?;
        match self.queue {
            Some(queue) => write!(f, "@{queue}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use flowstart_units::Span;

    use super::*;
    use crate::path::MarkThreshold;

    fn read(text: &str) -> Contestant {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    /// `bbr1` was unknown, and known in scenario files.
    #[test]
    fn every_name_of_a_control_is_that_control() {
        for (name, meant) in
            [("bbr1", "bbr"), ("BBR v1", "bbr"), ("bbr_v3", "bbr3"), ("newreno", "reno"), ("stcp", "scalable")]
        {
            assert_eq!(read(name), read(meant), "{name}");
        }
        assert_eq!(read("hystart+bbr1"), read("hystart+bbr"));
    }

    #[test]
    fn modifiers_that_stand_twice_or_exclude_each_other_are_refused() {
        let message = |text: &str| text.parse::<Contestant>().unwrap_err().to_string();
        assert_eq!(
            message("cubic/ack1/ack2"),
            "the modifiers \"/ack1\" and \"/ack2\" exclude each other; leave one of them out"
        );
        assert!(message("cubic/ecn/noecn").contains("\"/ecn\" and \"/noecn\" exclude each other"));
        assert!(message("bbr/paced/linux/unpaced").contains("\"/paced\" and \"/unpaced\" exclude each other"));
        assert!(message("quick_start+cubic/aware0/aware100").contains("exclude each other"));
        assert!(message("cubic/linux/ns3").contains("\"/linux\" and \"/ns3\" exclude each other"));
        assert_eq!(message("cubic/linux/Linux"), "the modifier \"/linux\" stands twice; once is enough");
        assert!("cubic/paced/ack1/ecn/linux".parse::<Contestant>().is_ok());
    }

    #[test]
    fn a_contestant_reads_as_start_avoidance_and_queue() {
        let c = read("paced_chirping+dctcp@step_mark 1ms");
        assert_eq!((c.start.name(), c.avoidance.name()), ("paced_chirping", "dctcp"));
        assert_eq!(c.queue, Some(QueueChoice::StepMark(Some(MarkThreshold::Sojourn(Span::from_millis(1))))));
        assert_eq!((c.acks, c.ecn), (Acks::EverySegment, EcnMode::Dctcp));
        assert_eq!(c.to_string(), "paced_chirping+dctcp@step_mark 1 ms");
    }

    #[test]
    fn what_is_printed_reads_back() {
        for text in DEFAULT.iter().copied().chain([
            "cubic/paced",
            "dctcp/noecn/ack1",
            "reno/ecn@step_mark",
            "hystart++",
            "bbr/linux",
            "hystart++/ack1/ns3",
        ]) {
            let contestant = read(text);
            assert_eq!(contestant.to_string().parse(), Ok(contestant), "{text}");
        }
    }

    #[test]
    fn an_alias_is_run_as_its_authors_do() {
        assert_eq!(read("cubic"), read("hystart+cubic"));
        assert_eq!(read("HyStart++"), read("hystart_plus_plus+cubic"));
        assert_eq!(read("hystart++ + cubic"), read("hystart_plus_plus+cubic"));
        assert_eq!(read("dctcp"), read("slow_start+dctcp"));
        assert_eq!(read("paced-chirping").avoidance.name(), "dctcp");
        assert_eq!(read("paced_chirping+cubic").ecn, EcnMode::Off, "delay only");
    }

    #[test]
    fn every_alias_and_every_default_is_a_contestant() {
        for (alias, meaning) in ALIASES {
            assert_eq!(read(alias), read(meaning));
        }
        assert_eq!(read("search/paced"), read("search+cubic/paced"));
        assert_eq!(read("Careful-Resume"), read("careful_resume+cubic"));
        assert_eq!(Contestant::defaults().len(), DEFAULT.len());
        for (modifier, _) in MODIFIERS {
            read(&format!("cubic/{modifier}"));
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest_one() {
        let says = |text: &str, part: &str| {
            let message = text.parse::<Contestant>().unwrap_err().to_string();
            assert!(message.contains(part), "{text}: {message}");
        };
        says("cubik", "did you mean \"cubic\"?");
        says("paced_chriping+dctcp", "did you mean \"paced_chirping\"?");
        says("hystart+cubbic", "did you mean \"cubic\"?");
        says("cubic/pacd", "did you mean \"/paced\"?");
        says("cubic@droptial", "did you mean \"drop_tail\"?");
        says("", "unknown contestant");
        says("built_in", "unknown contestant");
        says("+", "unknown flow start");
    }

    proptest::proptest! {
        #[test]
        fn parsing_is_total(text in "\\PC{0,32}") {
            let _ = text.parse::<Contestant>();
        }
    }
}
