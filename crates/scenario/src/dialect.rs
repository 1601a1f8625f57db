//! Dialects: whose habits hosts and queues have where a scenario does not say.
//!
//! A dialect is a set of keys with their values, laid under what the file says before it is read:
//! a key that the file has, even at its default, is not touched.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use flowstart_units::Span;

use super::compile::algorithms;
use super::{FlowSpec, Scenario};

/// Whose habits flows and queues have where nothing else is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// Linux 6.x with the settings it comes with, and a clock of 250 ticks per second. Sender and
    /// receiver are what all scenarios have by default, written down: windows that grow by packets
    /// acknowledged, 16 quick ACKs, delayed ACKs from 40 ms, RACK-TLP, F-RTO, undo. Beyond that the
    /// receive window grows (`receive_window = "linux"`), new data leaves in bursts (`offload =
    /// "linux"`), and CUBIC goes by ticks, as many distributions set them (`avoidance.hz`, some
    /// have 1000): with an RTT of 3 ms an exact clock loses a third fewer packets, from 8 ms on as
    /// many.
    Linux,
    /// ns-3 (version of 2026) with its own defaults: delayed ACKs of 2 segments or 200 ms, the
    /// first segment acknowledged at once, no tail loss probes, no undo, timeouts by RFC 6298 of at
    /// least 1 s, SYNs after 3 s; NewReno grows by MSS^2/cwnd per ACK; HyStart's train must last
    /// for a whole RTT; RED is gentle and waits.
    Ns3,
}

/// Sender and receiver of Linux, its growing receive window and its bursts.
const LINUX: &str = r#"
receive_window = "linux"
offload = "linux"
sender = { kernel = "6.x", syn_timeout = "1 s", tail_loss_probe = true, rto_rule = "linux", min_rto = "200 ms", f_rto = true, undo = true, idle_restart = true, cwnd_validation = true, wake_divisor = 3 }
receiver = { ack_every = 2, ack_counting = "bytes", ack_delay = "40 ms", adaptive_delay = true, quick_acks = 16, compressed_sack_delay = "1 ms" }
"#;

/// [`flowstart_congestion::avoidance::cubic::CubicConfig::LINUX_HZ`], which a test compares.
const LINUX_CUBIC: &str = r#"
avoidance = { name = "cubic", hz = 250 }
"#;

/// Sender and receiver of ns-3: `TcpSocketBase` with its attributes' defaults. Duplicate ACKs are
/// answered one by one.
const NS3: &str = r#"
sender = { syn_timeout = "3 s", tail_loss_probe = false, rto_rule = "rfc6298", min_rto = "1 s", f_rto = false, undo = false, idle_restart = false, cwnd_validation = false, wake_divisor = 0 }
receiver = { ack_every = 2, ack_counting = "packets", ack_delay = "200 ms", adaptive_delay = false, quick_acks = 1, compressed_sack_delay = "0 s" }
"#;

/// `TcpCubic` with its own HyStart: `HystartConfig::ns3`.
const NS3_HYSTART: &str = r#"
flow_start = { name = "hystart", paced = true, max_cushion = "0 s", delay_divisor = 1, max_delay_threshold = "1 s", rtt_tick = "1 ms", round_ends_late = true }
"#;

/// `TcpNewReno::IncreaseWindow`: an ACK counts as one packet, however many it acknowledges.
const NS3_RENO: &str = r#"
sender = { kernel = "2.6.20" }
"#;

/// `RedQueueDisc` with `Gentle` and `Wait`.
const NS3_RED: &str = r#"
queue = { kind = "red", gentle = true, wait = true }
"#;

impl Dialect {
    /// The `sender.wake_divisor` of ns-3.
    pub(super) const NS3_WAKE_DIVISOR: u32 = 0;

    /// Its name, as scenario files have it and contestants of races behind a slash.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Linux => "linux",
            Self::Ns3 => "ns3",
        }
    }

    /// A greedy flow with this start and avoidance and these habits: what a scenario file makes of
    /// a flow that names its algorithms and a dialect and says nothing else.
    #[must_use]
    #[expect(clippy::expect_used, reason = "of constants, all of which a test reads")]
    pub fn greedy(self, start: &str, avoidance: &str) -> FlowSpec {
        let mut flow = DeTable::new();
        self.flow(start, avoidance).for_each(|under| lay_under(&mut flow, under));
        let deserializer = toml::de::Deserializer::from(Spanned::new(0..0, flow));
        let spec = FlowSpec::deserialize(deserializer).expect("a dialect is a flow");
        FlowSpec { algorithm: Some(format!("{start}+{avoidance}")), ..spec }
    }

    /// The timeout of a SYN that it sets.
    pub(super) fn syn_timeout(self) -> Option<Span> {
        let sender = table(if self == Self::Ns3 { NS3 } else { LINUX }).remove("sender")?;
        sender.get_ref().as_table()?.get("syn_timeout")?.get_ref().as_str()?.parse().ok()
    }

    /// What is laid under a flow that has this start and avoidance.
    fn flow(self, start: &str, avoidance: &str) -> impl Iterator<Item = DeTable<'static>> {
        let parts = match self {
            Self::Linux => [Some(LINUX), (avoidance == "cubic").then_some(LINUX_CUBIC), None],
            Self::Ns3 => {
                [Some(NS3), (start == "hystart").then_some(NS3_HYSTART), (avoidance == "reno").then_some(NS3_RENO)]
            }
        };
        parts.into_iter().flatten().map(table)
    }

    /// What is laid under a queue of this kind, as a table.
    fn queue(self, kind: &str) -> Option<Spanned<DeValue<'static>>> {
        match self {
            Self::Ns3 if kind == "red" => table(NS3_RED).remove("queue"),
            _ => None,
        }
    }
}

/// Keys that a dialect sets, and where a flow may have said the same with figures of its own.
const SAID_OTHERWISE: [(&str, [&str; 2]); 3] = [
    ("offload", ["sender", "offload"]),
    ("receive_window", ["receiver", "window"]),
    ("receive_window", ["receiver", "receive_buffer"]),
];

/// Whether a flow has the key `inner` in its table `outer`.
fn says(flow: &DeTable<'_>, [outer, inner]: [&str; 2]) -> bool {
    flow.get(outer).and_then(|value| value.get_ref().as_table()).is_some_and(|table| table.contains_key(inner))
}

fn table(text: &'static str) -> DeTable<'static> {
    // Constants, which a test reads.
    DeTable::parse(text).map(Spanned::into_inner).unwrap_or_default()
}

/// Puts what `under` says into `table` wherever that says nothing.
fn lay_under<'i>(table: &mut DeTable<'i>, under: DeTable<'i>) {
    for (key, value) in under {
        match (table.get_mut(key.get_ref().as_ref()).map(Spanned::get_mut), value) {
            (None, value) => {
                table.insert(key, value);
            }
            (Some(DeValue::Table(inner)), value) => {
                if let DeValue::Table(value) = value.into_inner() {
                    lay_under(inner, value);
                }
            }
            // The name of an algorithm instead of its table.
            (Some(name @ DeValue::String(_)), value)
                if value.get_ref().is_table() && ["flow_start", "avoidance"].contains(&key.get_ref().as_ref()) =>
            {
                *name = value.into_inner();
            }
            _ => {}
        }
    }
}

/// The tables of a list, or of one table's `key`.
fn tables<'t, 'i>(document: &'t mut DeTable<'i>, key: &str) -> impl Iterator<Item = &'t mut DeTable<'i>> {
    let items = match document.get_mut(key).map(Spanned::get_mut) {
        Some(DeValue::Array(items)) => items.iter_mut().map(Spanned::get_mut).collect(),
        Some(one) => vec![one],
        None => Vec::new(),
    };
    items.into_iter().filter_map(|item| match item {
        DeValue::Table(table) => Some(table),
        _ => None,
    })
}

impl Scenario {
    /// Lays the dialects that this scenario names under the document it was read from. `false` if
    /// it names none.
    pub(super) fn lay_dialects(&self, document: &mut DeTable<'_>) -> bool {
        let specs = self.flow.iter().chain(self.arrivals.iter().map(|arrivals| &arrivals.flow));
        let mut specs = specs.chain(self.web.iter().map(|web| &web.flow));
        if self.dialect.is_none() && specs.all(|spec| spec.dialect.is_none()) {
            return false;
        }
        for (flow, spec) in tables(document, "flow").zip(&self.flow) {
            self.lay_under_flow(flow, spec);
        }
        for (arrivals, spec) in tables(document, "arrivals").zip(&self.arrivals) {
            tables(arrivals, "flow").for_each(|flow| self.lay_under_flow(flow, &spec.flow));
        }
        for (web, spec) in tables(document, "web").zip(&self.web) {
            tables(web, "flow").for_each(|flow| self.lay_under_flow(flow, &spec.flow));
        }
        if let Some(dialect) = self.dialect {
            tables(document, "path").for_each(|path| {
                lay_under_queue(dialect, path, "queue");
                lay_under_queue(dialect, path, "reverse_queue");
            });
            tables(document, "link").for_each(|link| lay_under_queue(dialect, link, "queue"));
        }
        true
    }

    fn lay_under_flow(&self, flow: &mut DeTable<'_>, spec: &FlowSpec) {
        // What is wrong with the algorithms is said later.
        let (Some(dialect), Ok((start, avoidance))) = (spec.dialect.or(self.dialect), algorithms(spec)) else { return };
        for mut under in dialect.flow(start.name(), avoidance.name()) {
            for (ours, _) in SAID_OTHERWISE.iter().filter(|(_, theirs)| says(flow, *theirs)) {
                under.remove(*ours);
            }
            lay_under(flow, under);
        }
    }
}

fn lay_under_queue(dialect: Dialect, link: &mut DeTable<'_>, key: &str) {
    let Some(queue) = link.get_mut(key).map(Spanned::get_mut) else { return };
    let kind = match queue {
        DeValue::String(name) => Some(name.trim().to_lowercase()),
        DeValue::Table(table) => table.get("kind").and_then(|kind| kind.get_ref().as_str()).map(str::to_owned),
        _ => None,
    };
    let Some(under) = kind.and_then(|kind| dialect.queue(&kind)) else { return };
    match (queue, under.into_inner()) {
        (DeValue::Table(table), DeValue::Table(under)) => lay_under(table, under),
        (name, under) => *name = under,
    }
}

#[cfg(test)]
mod tests {
    use flowstart_congestion::StartConfig;
    use flowstart_network::QueueConfig;
    use flowstart_transport::Kernel;
    use flowstart_units::Span;

    use super::*;

    fn scenario(top: &str, flow: &str, path: &str) -> Scenario {
        let text = format!("{top}\n[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"20 ms\"\n{path}\n[[flow]]\n{flow}\n");
        let scenario = Scenario::parse("test.toml", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let again = Scenario::parse("effective.toml", &scenario.effective()).unwrap();
        assert_eq!(again, scenario, "{}", scenario.effective());
        scenario
    }

    #[test]
    fn every_dialect_is_a_table() {
        for text in [LINUX, LINUX_CUBIC, NS3, NS3_HYSTART, NS3_RENO, NS3_RED] {
            assert!(!DeTable::parse(text).unwrap().get_ref().is_empty(), "{text}");
        }
        assert!(table(NS3).contains_key("sender"));
    }

    #[test]
    fn a_flow_of_a_dialect_is_that_of_a_file_that_says_nothing_else() {
        use flowstart_congestion::AvoidanceConfig;
        for dialect in [Dialect::Linux, Dialect::Ns3] {
            for start in StartConfig::NAMES {
                for avoidance in AvoidanceConfig::NAMES {
                    let top = format!("dialect = \"{}\"", dialect.name());
                    let read = scenario(&top, &format!("algorithm = \"{start}+{avoidance}\""), "");
                    assert_eq!(dialect.greedy(start, avoidance), read.flow[0], "{start}+{avoidance}");
                }
            }
        }
    }

    fn simulated(scenario: &Scenario) -> String {
        format!("{:?}", scenario.simulation(0).unwrap().simulation)
    }

    #[test]
    fn the_linux_dialect_is_what_flows_have_anyway_with_its_window_its_bursts_and_its_ticks() {
        let linux = simulated(&scenario("dialect = \"linux\"", "", ""));
        let hz = flowstart_congestion::avoidance::cubic::CubicConfig::LINUX_HZ;
        let ticks = format!("avoidance = {{ name = \"cubic\", hz = {hz} }}\n");
        let said = format!("{ticks}receive_window = \"linux\"\noffload = \"linux\"");
        assert_eq!(linux, simulated(&scenario("", &said, "")));
        for named in ["algorithm = \"hystart+cubic\"", "avoidance = \"cubic\"", "avoidance = { name = \"cubic\" }"] {
            assert_eq!(linux, simulated(&scenario("dialect = \"linux\"", named, "")), "{named}");
        }
        let own = "avoidance = { name = \"cubic\", hz = 1000 }";
        assert_ne!(linux, simulated(&scenario("dialect = \"linux\"", own, "")));
        let reno = "algorithm = \"slow_start+reno\"\n";
        let said = format!("{reno}receive_window = \"linux\"\noffload = \"linux\"");
        assert_eq!(simulated(&scenario("dialect = \"linux\"", reno, "")), simulated(&scenario("", &said, "")));
        let without =
            "receive_window = \"none\"\noffload = \"none\"\navoidance = { name = \"cubic\", hz = 1000000000 }";
        let exact = "avoidance = { name = \"cubic\", hz = 1000000000 }";
        assert_eq!(simulated(&scenario("", exact, "")), simulated(&scenario("dialect = \"linux\"", without, "")));
        assert_ne!(linux, simulated(&scenario("", "", "")));
    }

    #[test]
    fn figures_of_ones_own_are_left_alone_by_the_linux_dialect() {
        for (own, key) in [
            ("sender = { offload = { window_divisor = 4 } }\nreceive_window = \"none\"", "offload"),
            ("receiver = { window = { rules = \"6.1\" } }\noffload = \"none\"", "window"),
            ("receiver = { receive_buffer = \"300 kB\" }\noffload = \"none\"", "buffer"),
        ] {
            let linux = simulated(&scenario("dialect = \"linux\"", own, ""));
            let ticks = format!("{own}\navoidance = {{ name = \"cubic\", hz = 250 }}");
            assert_eq!(linux, simulated(&scenario("", &ticks, "")), "{key}");
        }
    }

    #[test]
    fn ns3_sets_start_ends_and_queue_together_and_the_file_has_the_last_word() {
        let ns3 = scenario("dialect = \"ns3\"", "receiver = { quick_acks = 16 }", "queue = \"red\"");
        let flow = &ns3.flow[0];
        let StartConfig::Hystart(start) = flow.flow_start.as_ref().unwrap() else { panic!() };
        assert_eq!(*start, flowstart_congestion::start::hystart::HystartConfig::ns3());
        assert_eq!((flow.receiver.quick_acks, flow.receiver.ack_delay), (16, Span::from_millis(200)));
        assert_eq!((flow.sender.kernel, flow.sender.undo), (Kernel::Linux6, false));
        let QueueConfig::Red(red) = ns3.path.as_ref().unwrap().queue.0 else { panic!() };
        assert!(red.gentle && red.wait);
        let queue = "queue = { kind = \"red\", gentle = false }";
        let QueueConfig::Red(red) = scenario("dialect = \"ns3\"", "", queue).path.unwrap().queue.0 else { panic!() };
        assert!(!red.gentle && red.wait);
    }

    #[test]
    fn a_flow_may_speak_another_dialect_than_its_file() {
        let reno = "algorithm = \"slow_start+reno\"";
        let ns3 = scenario("", &format!("{reno}\ndialect = \"ns3\""), "");
        assert_eq!(ns3.flow[0].sender.kernel, Kernel::Linux2_6_20);
        let linux = scenario("dialect = \"ns3\"", &format!("{reno}\ndialect = \"linux\""), "");
        assert_eq!((linux.flow[0].sender.kernel, linux.flow[0].receiver.quick_acks), (Kernel::Linux6, 16));
        let own = scenario("dialect = \"ns3\"", "flow_start = { name = \"hystart\", paced = false }", "");
        let Some(StartConfig::Hystart(start)) = &own.flow[0].flow_start else { panic!() };
        assert_eq!((start.paced, start.round_ends_late), (Some(false), true));
        let named = scenario("dialect = \"ns3\"", "flow_start = \"hystart\"\navoidance = \"cubic\"", "");
        assert!(matches!(&named.flow[0].flow_start, Some(StartConfig::Hystart(start)) if start.round_ends_late));
    }

    #[test]
    fn the_timeout_of_a_syn_stands_in_the_text() {
        assert_eq!(Dialect::Ns3.syn_timeout(), Some(Span::from_secs(3)));
        assert_eq!(Dialect::Linux.syn_timeout(), Some(Span::from_secs(1)));
    }

    #[test]
    fn an_unknown_dialect_is_refused_with_those_there_are() {
        let text = "dialect = \"ns2\"\n[path]\ncapacity = \"1 Mbit/s\"\nrtt = \"1 ms\"\n[[flow]]\n";
        let error = Scenario::parse("test.toml", text).unwrap_err().to_string();
        assert!(
            error.contains("test.toml:1:11") && error.contains("`linux`") && error.contains("did you mean `ns3`"),
            "{error}"
        );
    }
}
