//! Keys of a flow that would have no influence beside others: refused, so that nobody believes
//! they had one.
//!
//! A value that is the default is no such key, whether it is written or not: files with all
//! effective parameters have them all.

use flowstart_congestion::{AvoidanceConfig, ControllerConfig, Pacing, StartConfig};
use flowstart_network::LossConfig;
use flowstart_transport::{EcnMode, LossDetection, ReceiverConfig, SenderConfig};
use flowstart_units::Span;

use crate::compile::algorithms;
use crate::error::Problem;
use crate::{Dialect, FlowSpec, Scenario};

impl Scenario {
    /// Refuses what flows say and would not heed, in a scenario that can be compiled.
    pub(super) fn check_heeded(&self) -> Result<(), Problem> {
        let within = |place: String| move |problem: Problem| problem.within(&place);
        for (index, flow) in self.flow.iter().enumerate() {
            heeded(flow, self.dialect).map_err(within(format!("flow[{index}]")))?;
        }
        for (index, arrivals) in self.arrivals.iter().enumerate() {
            heeded(&arrivals.flow, self.dialect).map_err(within(format!("arrivals[{index}].flow")))?;
        }
        for (index, web) in self.web.iter().enumerate() {
            heeded(&web.flow, self.dialect).map_err(within(format!("web[{index}].flow")))?;
        }
        Ok(())
    }

    /// What this scenario says without any influence on what `flowstart run` shows of it, though
    /// another flow over the same path may heed it, and what it leaves out that hardly anybody
    /// means to: a sentence each, for people.
    #[must_use]
    pub fn without_influence(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        let starts = self.flow.iter().enumerate().map(|(index, flow)| (format!("flow[{index}].start"), flow.start));
        let datagrams = self.udp.iter().enumerate().map(|(index, udp)| (format!("udp[{index}].start"), udp.start));
        let arrivals = self.arrivals.iter().enumerate();
        let arriving = arrivals.clone().map(|(index, it)| (format!("arrivals[{index}].flow.start"), it.flow.start));
        let late = starts.chain(datagrams).chain(arriving).filter(|(_, start)| *start >= self.duration);
        for (key, start) in late {
            let end = self.duration;
            sentences.push(if start > end {
                format!("{key}: nobody starts at {start}, since the run is over after {end}")
            } else {
                format!("{key}: who starts at {start} sends at that moment alone, since the run is over then")
            });
        }
        for (index, process) in arrivals {
            let start = process.flow.start;
            if process.most == Some(0) {
                sentences.push(format!("arrivals[{index}].most: nobody arrives, since 0 are the most that may"));
            } else if let Some(until) = process.until.filter(|until| *until <= start) {
                sentences.push(format!(
                    "arrivals[{index}].until: nobody arrives until {until}, since the first comes a gap after its \
                     flow's start, {start}"
                ));
            }
        }
        sentences.extend(self.back_at_once());
        let flows = self.flow.iter().chain(self.arrivals.iter().map(|arrivals| &arrivals.flow));
        let mut flows = flows.chain(self.web.iter().map(|web| &web.flow));
        let answered = flows.any(|flow| marks(flow).is_ok_and(|mode| mode != EcnMode::Off));
        if !answered && !self.udp.iter().any(|udp| udp.ecn) {
            let path = self.path.iter().map(|path| ("path.mark".to_owned(), path.mark));
            let links = self.link.iter().enumerate().map(|(index, link)| (format!("link[{index}].mark"), link.mark));
            for (key, _) in path.chain(links).filter(|(_, mark)| mark.0 != LossConfig::None) {
                sentences.push(format!("{key}: nothing is marked, since no flow has ECN"));
            }
        }
        sentences
    }

    /// Flows whose ACKs need no time on their way back, which is hardly what was meant.
    fn back_at_once(&self) -> Vec<String> {
        let flows = self.flow.iter().enumerate().map(|(index, flow)| (format!("flow[{index}]"), flow));
        let arrivals = self.arrivals.iter().enumerate();
        let arrivals = arrivals.map(|(index, arrivals)| (format!("arrivals[{index}].flow"), &arrivals.flow));
        let web = self.web.iter().enumerate().map(|(index, web)| (format!("web[{index}].flow"), &web.flow));
        let all = flows.chain(arrivals).chain(web).filter(|_| !self.link.is_empty());
        all.filter(|(_, flow)| flow.rtt.is_none() && flow.reverse.is_empty())
            .map(|(key, _)| {
                format!(
                    "{key}: its ACKs are back at once, since it has neither an `rtt` nor links in `reverse`; its round \
                     trip is the way there"
                )
            })
            .collect()
    }

    /// A flow list says when which flow of what size starts, and the flow that names it does not.
    pub(super) fn check_lists(&self) -> Result<(), Problem> {
        for (index, flow) in self.flow.iter().enumerate().filter(|(_, flow)| flow.list.is_some()) {
            let written = [
                ("size", flow.size.is_some()),
                ("start", !flow.start.is_zero()),
                ("count", flow.count != 1),
                ("every", !flow.every.is_zero()),
                ("paced", flow.paced.is_some()),
                ("writes", !flow.writes.is_empty()),
            ];
            if let Some((key, _)) = written.into_iter().find(|(_, written)| *written) {
                let message = "would have no influence, since `list` says what is sent and when; leave one of them out";
                return Err(Problem::at(format!("flow[{index}].{key}"), message));
            }
        }
        Ok(())
    }
}

fn heeded(flow: &FlowSpec, dialect: Option<Dialect>) -> Result<(), Problem> {
    let wrong = |key: &str, message: String| Err(Problem::at(key, message));
    if flow.count == 1 && !flow.every.is_zero() {
        return wrong("every", "one flow has no other to start after it; give a `count`, or leave this out".to_owned());
    }
    if let Some(rtt) = flow.sender.handshake_rtt.filter(|_| flow.sender.handshake) {
        let message = format!(
            "\"{rtt}\" would have no influence, since the handshake gives the first sample itself; add \
             `handshake = false`, or leave this out"
        );
        return wrong("sender.handshake_rtt", message);
    }
    let plain = SenderConfig::default();
    // What a dialect sets was not written.
    let of_dialect = || flow.dialect.or(dialect).and_then(Dialect::syn_timeout) == Some(flow.sender.syn_timeout);
    let opening = [
        ("sender.syn_timeout", flow.sender.syn_timeout != plain.syn_timeout && !of_dialect()),
        ("sender.syn_bytes", flow.sender.syn_bytes != plain.syn_bytes),
        ("receiver.syn_bytes", flow.receiver.syn_bytes != ReceiverConfig::default().syn_bytes),
    ];
    if let Some((key, _)) = opening.into_iter().find(|(_, written)| *written && !flow.sender.handshake) {
        let message = "would have no influence, since no handshake opens the connection; remove `handshake = false`, \
                       or leave this out";
        return wrong(key, message.to_owned());
    }
    if flow.sender.peer_window.is_some() && flow.sender.handshake {
        let message = "would have no influence, since the answer to the handshake says how much the receiver takes; \
                       add `handshake = false`, or leave this out";
        return wrong("sender.peer_window", message.to_owned());
    }
    let (start, avoidance) = algorithms(flow)?;
    if flow.sender.request_timeout != plain.request_timeout && !(start.asks_routers() && flow.sender.handshake) {
        let message = "would have no influence, since no SYN asks the routers for a rate; name a start that asks, such \
                       as \"quick_start\", or leave this out";
        return wrong("sender.request_timeout", message.to_owned());
    }
    let waits = [
        ("sender.reorder_window_divisor", flow.sender.reorder_window_divisor != plain.reorder_window_divisor),
        ("sender.reorder_steps_max", flow.sender.reorder_steps_max != plain.reorder_steps_max),
        ("sender.reorder_persist", flow.sender.reorder_persist != plain.reorder_persist),
    ];
    if let (LossDetection::NewReno, Some((key, _))) =
        (flow.sender.loss_detection, waits.into_iter().find(|(_, written)| *written))
    {
        let message = "would have no influence, since `loss_detection = \"new_reno\"` counts duplicate ACKs and does \
                       not wait for reordered packets; leave one of them out";
        return wrong(key, message.to_owned());
    }
    if let Some(most) = flow.receiver.ack_aggregation_most.filter(|_| flow.receiver.ack_aggregation.is_none()) {
        let message = format!(
            "{most} would have no influence without `receiver.ack_aggregation`, the time for which ACKs are held \
             back; add it, or leave this out"
        );
        return wrong("receiver.ack_aggregation_most", message);
    }
    if let Some((key, message)) = idle(flow, &start, &avoidance) {
        return wrong(key, message);
    }
    let mode = marks(flow)?;
    if flow.sender.ect1 && mode == EcnMode::Off {
        let message = "would have no influence, since this flow has no ECN; write the flow's `ecn`, such as ecn = \
                       \"dctcp\", or leave this out";
        return wrong("sender.ect1", message.to_owned());
    }
    starts_itself(flow)
}

/// A key whose work another key, or the algorithms, leave undone, and why.
fn idle(flow: &FlowSpec, start: &StartConfig, avoidance: &AvoidanceConfig) -> Option<(&'static str, String)> {
    let (sender, receiver) = (&flow.sender, &flow.receiver);
    let (plain, usual) = (SenderConfig::default(), ReceiverConfig::default());
    // A race's scenario has what a dialect sets without its name.
    let woken = [plain.wake_divisor, Dialect::NS3_WAKE_DIVISOR].contains(&sender.wake_divisor);
    let saved = receiver.compressed_sack_count != usual.compressed_sack_count;
    let share = receiver.compressed_sack_rtt_percent;
    let wait = receiver.compressed_sack_delay;
    // A longer `ack_delay` needs a longer one.
    let longest = receiver.ack_delay_max != usual.ack_delay_max && receiver.ack_delay <= usual.ack_delay_max;
    let endless = "the send buffer has no end; give a `send_buffer`, or leave this out";
    let counts = "`loss_detection = \"new_reno\"` has neither a timer for reordered packets nor tail loss probes; leave \
                  one of them out";
    let at_once = "`compressed_sack_delay = \"0 s\"` holds no ACK back; leave one of them out";
    let no_share = "`compressed_sack_rtt_percent = 0` holds no ACK back; leave one of them out";
    let fixed = "with `adaptive_delay = false` an ACK waits for `ack_delay`; leave one of them out";
    let keys = [
        ("sender.wake_divisor", !woken && sender.send_buffer.is_none(), endless),
        (
            "sender.timer_slack",
            sender.timer_slack != plain.timer_slack && sender.loss_detection == LossDetection::NewReno,
            counts,
        ),
        ("receiver.compressed_sack_count", saved && wait.is_zero(), at_once),
        ("receiver.compressed_sack_rtt_percent", share != usual.compressed_sack_rtt_percent && wait.is_zero(), at_once),
        ("receiver.compressed_sack_count", saved && share == 0, no_share),
        ("receiver.compressed_sack_delay", wait != usual.compressed_sack_delay && share == 0, no_share),
        ("receiver.ack_delay_max", longest && !receiver.adaptive_delay, fixed),
    ];
    if let Some((key, _, why)) = keys.into_iter().find(|(_, idle, _)| *idle) {
        return Some((key, format!("would have no influence, since {why}")));
    }
    if sender.reduction != plain.reduction && *start == StartConfig::BuiltIn && avoidance.brings_start() {
        let name = avoidance.name();
        let message =
            format!("would have no influence, since {name} sets the window in recoveries itself; leave it out");
        return Some(("sender.reduction", message));
    }
    if flow.left_behind_rtts != ControllerConfig::LEFT_BEHIND_RTTS {
        let why = if !leaves_rate(start) {
            format!("{} leaves no rate behind", start.name())
        } else if flow.pacing != Pacing::Off {
            "`pacing` has a rate of its own".to_owned()
        } else {
            return None;
        };
        return Some(("left_behind_rtts", format!("would have no influence, since {why}; leave one of them out")));
    }
    None
}

/// True if a start may end with a rate at which packets leave for a while.
fn leaves_rate(start: &StartConfig) -> bool {
    start.chirps()
        || start.connections() > 1
        || matches!(start, StartConfig::BbrStart(_) | StartConfig::TwoFlowProbe(_) | StartConfig::Own(_))
}

/// How the flow uses marks. What its ends say is to be said alike, and not otherwise by the flow.
fn marks(flow: &FlowSpec) -> Result<EcnMode, Problem> {
    let (_, avoidance) = algorithms(flow)?;
    let ends = [("sender.ecn", flow.sender.ecn), ("receiver.ecn", flow.receiver.ecn)];
    let of_the_flow = flow.ecn.or_else(|| avoidance.wants_ecn().then_some(EcnMode::Dctcp));
    let Some(mode) = of_the_flow else {
        let [(_, sender), (_, receiver)] = ends;
        if sender == receiver {
            return Ok(sender);
        }
        // Who is not at the default was written.
        let (key, mode) = ends[usize::from(receiver != EcnMode::Off)];
        let message = format!(
            "the sender's is \"{}\" and the receiver's \"{}\", and both ends must be set alike; write ecn = \"{}\" in \
             the flow, which sets both",
            word(sender),
            word(receiver),
            word(mode)
        );
        return Err(Problem::at(key, message));
    };
    let other = ends.into_iter().find(|(_, end)| ![EcnMode::Off, mode].contains(end));
    match other {
        None => Ok(mode),
        Some((key, end)) if flow.ecn.is_some() => {
            let message = format!(
                "\"{}\" would have no influence, since the flow's `ecn` says \"{}\" for both ends; leave one of them out",
                word(end),
                word(mode)
            );
            Err(Problem::at(key, message))
        }
        Some((key, end)) => {
            let message = format!(
                "\"{}\" would have no influence, since {} sets \"{}\" at both ends; write ecn = \"{0}\" in the flow \
                 instead",
                word(end),
                avoidance.name(),
                word(mode)
            );
            Err(Problem::at(key, message))
        }
    }
}

/// A mode as files have it.
fn word(mode: EcnMode) -> &'static str {
    match mode {
        EcnMode::Off => "off",
        EcnMode::Classic => "classic",
        EcnMode::Dctcp => "dctcp",
        EcnMode::Accurate => "accurate",
    }
}

/// A control that starts the flow by itself paces it from the first ACK on and has no threshold.
fn starts_itself(flow: &FlowSpec) -> Result<(), Problem> {
    let (start, avoidance) = algorithms(flow)?;
    if start != StartConfig::BuiltIn || !avoidance.brings_start() {
        return Ok(());
    }
    let name = avoidance.name();
    // How much of its gap a late packet gets back is heeded at any rate.
    let late = |pacing: Pacing| pacing.catch_up(Span::from_micros(1));
    // So is the spacing of a first window, which leaves before there is a rate.
    let first = matches!(flow.pacing, Pacing::Window { unpaced_packets, .. }
        if unpaced_packets >= u64::from(flow.initial_window));
    if first && late(flow.pacing) == late(Pacing::Off) {
        let message = format!("would have no influence, since {name} paces at its own rate; leave it out");
        return Err(Problem::at("pacing", message));
    }
    if let Some(threshold) = flow.initial_ssthresh {
        let message = format!(
            "{threshold} would have no influence, since {name} starts without a threshold; leave it out, or name a \
             start that has one, such as \"hystart+{name}\""
        );
        return Err(Problem::at("initial_ssthresh", message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(flow: &str) -> Result<Scenario, String> {
        let text = format!("[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"20 ms\"\n[[flow]]\n{flow}\n");
        Scenario::parse("test.toml", &text).map_err(|error| error.to_string())
    }

    /// It is refused at this line, with these words, in one sentence.
    #[track_caller]
    fn refused(flow: &str, line: usize, parts: &[&str]) {
        let message = read(flow).err().unwrap_or_else(|| panic!("accepted: {flow}"));
        assert!(message.starts_with(&format!("test.toml:{line}:")), "{flow}: {message}");
        assert!(parts.iter().all(|part| message.contains(part)), "{flow}: {message}");
        assert!(!message.contains('\n'), "{message}");
    }

    /// It is read, and so is what it prints with all defaults.
    #[track_caller]
    fn taken(flow: &str) {
        let scenario = read(flow).unwrap_or_else(|error| panic!("{flow}: {error}"));
        let again = Scenario::parse("effective.toml", &scenario.effective()).unwrap_or_else(|e| panic!("{flow}: {e}"));
        assert_eq!(again, scenario, "{flow}");
    }

    #[test]
    fn ends_that_do_not_use_marks_alike_are_refused_at_the_one_that_was_written() {
        let half = "both ends must be set alike; write ecn = \"classic\" in the flow, which sets both";
        refused("sender = { ecn = \"classic\" }", 5, &["flow[0].sender.ecn: the sender's is \"classic\"", half]);
        refused("\nreceiver.ecn = \"classic\"", 6, &["flow[0].receiver.ecn: ", "the receiver's \"classic\"", half]);
        let both = "sender.ecn = \"classic\"\nreceiver.ecn = \"accurate\"";
        refused(both, 6, &["the sender's is \"classic\" and the receiver's \"accurate\"", "ecn = \"accurate\""]);
        for mode in ["off", "classic", "dctcp", "accurate"] {
            taken(&format!("sender.ecn = \"{mode}\"\nreceiver.ecn = \"{mode}\""));
            taken(&format!("ecn = \"{mode}\"\nsender.ecn = \"{mode}\"\nreceiver.ecn = \"{mode}\""));
            taken(&format!("ecn = \"{mode}\"\nsender.ecn = \"off\"\nreceiver.ecn = \"off\""));
        }
        taken("algorithm = \"slow_start+dctcp\"\nsender.ecn = \"dctcp\"");
    }

    #[test]
    fn marks_of_an_end_beside_other_ones_of_the_flow_are_refused() {
        refused("ecn = \"off\"\nsender.ecn = \"classic\"", 6, &["the flow's `ecn` says \"off\"", "leave one of them"]);
        refused("ecn = \"dctcp\"\nreceiver.ecn = \"classic\"", 6, &["the flow's `ecn` says \"dctcp\""]);
        let dctcp = "algorithm = \"slow_start+dctcp\"\nsender.ecn = \"accurate\"\nreceiver.ecn = \"accurate\"";
        refused(dctcp, 6, &["dctcp sets \"dctcp\" at both ends", "write ecn = \"accurate\" in the flow"]);
        refused("sender.ect1 = true", 5, &["flow[0].sender.ect1: ", "no ECN"]);
        refused("algorithm = \"dctcp\"\necn = \"off\"\nsender.ect1 = true", 7, &["no ECN"]);
        taken("sender.ect1 = false");
        for marks in
            ["algorithm = \"dctcp\"", "ecn = \"accurate\"", "receiver.ecn = \"classic\"\nsender.ecn = \"classic\""]
        {
            taken(&format!("{marks}\nsender.ect1 = true"));
        }
    }

    #[test]
    fn keys_that_need_another_are_refused_without_it() {
        refused("sender.handshake_rtt = \"50 ms\"", 5, &["\"50 ms\" would have no influence", "`handshake = false`"]);
        taken("sender = { handshake = false, handshake_rtt = \"50 ms\" }");
        let most = "receiver = { ack_aggregation_most = 2 }";
        refused(most, 5, &["2 would have no influence without `receiver.ack_aggregation`"]);
        taken("receiver = { ack_aggregation = \"1 ms\", ack_aggregation_most = 2 }");
        for flow in ["every = \"1 s\"", "every = \"1 s\"\ncount = 1"] {
            refused(flow, 5, &["flow[0].every: one flow has no other to start after it"]);
        }
        taken("every = \"1 s\"\ncount = 2");
        taken("every = \"0 s\"\ncount = 1");
    }

    #[test]
    fn keys_whose_work_others_leave_undone_are_refused() {
        refused(
            "sender.wake_divisor = 5",
            5,
            &["flow[0].sender.wake_divisor: would have no influence", "`send_buffer`"],
        );
        taken("sender = { wake_divisor = 5, send_buffer = \"100 kB\" }");
        // As ns-3 has it; a race's scenario does not say whose it is.
        taken("sender.wake_divisor = 0");
        taken("dialect = \"ns3\"");
        let new_reno = "sender.loss_detection = \"new_reno\"";
        let slack = "sender.timer_slack = \"5 ms\"";
        refused(&format!("{new_reno}\n{slack}"), 6, &["flow[0].sender.timer_slack: ", "new_reno"]);
        taken(slack);
        taken("sender = { timer_slack = \"5 ms\", tail_loss_probe = false }");
        // It says what is so.
        taken(&format!("{new_reno}\nsender.tail_loss_probe = false"));
        let (count, percent) = ("receiver.compressed_sack_count = 9", "receiver.compressed_sack_rtt_percent = 9");
        let (never, longer) = ("receiver.compressed_sack_delay = \"0 s\"", "receiver.compressed_sack_delay = \"3 ms\"");
        for key in [count, percent] {
            let name = key.split_once(" =").unwrap().0;
            refused(&format!("{never}\n{key}"), 6, &[name, "`compressed_sack_delay = \"0 s\"` holds no ACK back"]);
            refused(&format!("dialect = \"ns3\"\n{key}"), 6, &[name, "holds no ACK back"]);
            taken(key);
        }
        let no_share = "receiver.compressed_sack_rtt_percent = 0";
        for key in [count, longer] {
            let name = key.split_once(" =").unwrap().0;
            refused(&format!("{no_share}\n{key}"), 6, &[name, "`compressed_sack_rtt_percent = 0` holds no ACK back"]);
            taken(key);
        }
        taken(never);
        taken(no_share);
        let (fixed, most) = ("receiver.adaptive_delay = false", "receiver.ack_delay_max = \"100 ms\"");
        refused(&format!("{fixed}\n{most}"), 6, &["flow[0].receiver.ack_delay_max: ", "waits for `ack_delay`"]);
        taken(most);
        taken(fixed);
        // Without it the delay would be out of its range.
        taken(&format!("{fixed}\nreceiver.ack_delay = \"500 ms\"\nreceiver.ack_delay_max = \"500 ms\""));
    }

    #[test]
    fn how_a_window_shrinks_is_refused_where_the_avoidance_sets_it_from_the_first_packet_on() {
        for reduction in ["immediate", "proportional_rfc9937"] {
            let key = format!("sender.reduction = \"{reduction}\"");
            for name in ["bbr", "bbr3"] {
                let own = format!("since {name} sets the window in recoveries itself");
                refused(&format!("algorithm = \"{name}\"\n{key}"), 6, &["flow[0].sender.reduction: ", &own]);
                // Its start is one whose window shrinks so.
                taken(&format!("algorithm = \"hystart+{name}\"\n{key}"));
            }
            taken(&key);
            taken(&format!("algorithm = \"built_in+cubic\"\n{key}"));
        }
    }

    #[test]
    fn how_long_a_rate_holds_that_no_start_leaves_is_refused() {
        let key = "left_behind_rtts = 5";
        for start in ["hystart", "slow_start", "built_in", "rapid_start"] {
            let wanted = format!("flow[0].left_behind_rtts: would have no influence, since {start} leaves no rate");
            refused(&format!("algorithm = \"{start}+cubic\"\n{key}"), 6, &[&wanted]);
        }
        for start in ["paced_chirping", "two_gap_chirping", "adaptive_chirping", "bbr_start", "fair_queuing_probe"] {
            let flow = format!("algorithm = \"{start}+cubic\"\n{key}");
            taken(&flow);
            refused(&format!("{flow}\npacing = \"on\""), 6, &["`pacing` has a rate of its own"]);
        }
        taken("left_behind_rtts = 2");
        let heard = |flow: &str| {
            let flows = read(flow).unwrap().simulation(0).unwrap().simulation.flows;
            let flowstart_simulator::Traffic::Tcp(tcp) = &flows[0].traffic else { panic!() };
            tcp.controller.left_behind_rtts
        };
        let chirps = "algorithm = \"adaptive_chirping+cubic\"";
        assert_eq!([chirps.to_owned(), format!("{chirps}\n{key}")].map(|flow| heard(&flow)), [2, 5]);
    }

    #[test]
    fn what_concerns_an_opening_is_refused_where_there_is_none() {
        for key in ["sender.syn_timeout = \"2 s\"", "sender.syn_bytes = 40", "receiver.syn_bytes = 40"] {
            let name = key.split_once(" =").unwrap().0;
            let place = format!("flow[0].{name}: would have no influence, since no handshake");
            refused(&format!("sender.handshake = false\n{key}"), 6, &[&place, "remove `handshake = false`"]);
            taken(key);
        }
        taken("dialect = \"ns3\"\nsender.handshake = false");
    }

    #[test]
    fn keys_of_what_a_flow_does_not_do_are_refused() {
        let window = "sender.peer_window = \"20 kB\"";
        refused(window, 5, &["flow[0].sender.peer_window: would have no influence", "`handshake = false`"]);
        taken(&format!("sender.handshake = false\n{window}"));
        let timeout = "sender.request_timeout = \"1 s\"";
        refused(timeout, 5, &["flow[0].sender.request_timeout: would have no influence", "\"quick_start\""]);
        let asks = "algorithm = \"quick_start+cubic\"";
        taken(&format!("{asks}\n{timeout}"));
        refused(&format!("{asks}\nsender.handshake = false\n{timeout}"), 7, &["no SYN asks"]);
        for key in ["reorder_window_divisor", "reorder_steps_max", "reorder_persist"] {
            let key = format!("sender.{key} = 2");
            refused(&format!("sender.loss_detection = \"new_reno\"\n{key}"), 6, &["does not wait", "new_reno"]);
            taken(&key);
        }
    }

    #[test]
    fn starts_after_the_end_and_marks_that_nobody_can_have_are_told() {
        let told = |flow: &str| read(flow).unwrap().without_influence();
        assert!(told("").is_empty());
        let late = told("start = \"9 s\"\n[[flow]]\nstart = \"10 s\"\n[[udp]]\nrate = \"1 Mbit/s\"\nstart = \"20 s\"");
        assert_eq!(
            late,
            [
                "flow[1].start: who starts at 10 s sends at that moment alone, since the run is over then",
                "udp[0].start: nobody starts at 20 s, since the run is over after 10 s"
            ]
        );
        let marked = |flow: &str| {
            let text = format!("[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"20 ms\"\nmark = \"1 %\"\n[[flow]]\n{flow}\n");
            Scenario::parse("test.toml", &text).unwrap().without_influence()
        };
        assert_eq!(marked(""), ["path.mark: nothing is marked, since no flow has ECN"]);
        for flow in ["ecn = \"classic\"", "algorithm = \"dctcp\"", "[[udp]]\nrate = \"1 Mbit/s\"\necn = true"] {
            assert!(marked(flow).is_empty(), "{flow}");
        }
    }

    #[test]
    fn a_limit_of_one_flow_above_that_of_all_is_refused() {
        let read = |path: &str| {
            let path = format!("[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"20 ms\"\n{path}\n[[flow]]\n");
            Scenario::parse("test.toml", &path).map_err(|error| error.to_string())
        };
        let queue =
            |most: u64| format!("queue = {{ kind = \"drr\", flow_limit = {most}, limit = {{ packets = 50 }} }}");
        let message = read(&queue(51)).unwrap_err();
        assert!(message.starts_with("test.toml:4:") && message.contains("path.queue: a flow_limit of 51"), "{message}");
        assert!(read(&queue(50)).is_ok() && read("queue = \"drr\"").is_ok());
        let buffer = "queue = { kind = \"drr\", flow_limit = 51 }\nbuffer = \"50 packets\"";
        assert!(read(buffer).unwrap_err().contains("of all flows the queue holds 50 packets"));
        assert!(read(&buffer.replace("50 packets", "60 kB")).is_ok());
    }

    /// They named the place in the simulation, which is none in the file.
    #[test]
    fn what_a_simulation_refuses_is_told_at_the_key_of_the_file() {
        let path = "[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"20 ms\"\n";
        for (text, wanted) in [
            (format!("{path}[[udp]]\nrate = \"0 bit/s\"\n"), "test.toml:5:8: udp[0].rate: datagrams need"),
            (
                format!("{path}[[flow]]\ncount = 3\n[[udp]]\nrate = \"1 Mbit/s\"\npacket = \"9 B\"\n"),
                "test.toml:8:10: udp[0].packet: a",
            ),
            (format!("{path}access = \"0 bit/s\"\n[[flow]]\n"), "test.toml:4:10: path.access: an access link"),
            (
                format!("{path}[[flow]]\n[[flow]]\npaced = {{ rate = \"0 bit/s\", message = \"1 kB\" }}\n"),
                "test.toml:6:9: flow[1].paced: paced writes",
            ),
            // They came once per nanosecond, whatever was asked for.
            (
                format!("{path}[[flow]]\n[[flow]]\npaced = {{ rate = \"8100 Gbit/s\", message = \"1 kB\" }}\n"),
                "test.toml:6:9: flow[1].paced: 8100 Gbit/s would be more than 1 kB in a nanosecond",
            ),
            (
                format!("{path}[[udp]]\nrate = \"20000 Gbit/s\"\n"),
                "test.toml:5:8: udp[0].rate: 20000 Gbit/s would be more than 1.5 kB in a nanosecond",
            ),
            (
                format!(
                    "{path}[[flow]]\nwrites = [{{ after = \"1 s\", bytes = \"1 B\" }}, {{ after = \"0 s\", bytes = \"1 B\" }}]\n"
                ),
                "test.toml:5:10: flow[0].writes: the writes",
            ),
        ] {
            let message = Scenario::parse("test.toml", &text).unwrap_err().to_string();
            assert!(message.starts_with(wanted), "{message}");
        }
    }

    #[test]
    fn what_a_flow_list_says_is_not_said_beside_it() {
        let folder = std::env::temp_dir();
        for key in
            ["size = \"1 kB\"", "start = \"1 s\"", "count = 2", "paced = { rate = \"1 Mbit/s\", message = \"1 kB\" }"]
        {
            let text =
                format!("[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"20 ms\"\n[[flow]]\nlist = \"none.csv\"\n{key}\n");
            let message = Scenario::read("test.toml", &text, &folder).unwrap_err().to_string();
            let name = key.split_once(" =").unwrap().0;
            assert!(message.starts_with("test.toml:6:"), "{message}");
            assert!(message.contains(&format!("flow[0].{name}: would have no influence, since `list`")), "{message}");
        }
    }

    #[test]
    fn seeds_that_tables_cannot_hold_and_phases_that_move_nothing_are_refused() {
        let path = "[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"20 ms\"\n[[flow]]\n[[flow]]\n";
        let read = |key: &str| Scenario::parse("test.toml", &format!("{key}\n{path}")).map_err(|e| e.to_string());
        assert!(read("seed = 9223372036854775807").is_ok());
        let message = read("seed = 9223372036854775808").unwrap_err();
        assert!(message.contains("seed") && message.contains("between 0 and 9223372036854775807"), "{message}");
        let message = read("phases = \"0 ms\"").unwrap_err();
        assert!(message.starts_with("test.toml:1:") && message.contains("phases: 0 moves no start"), "{message}");
    }

    #[test]
    fn keys_of_ends_out_of_their_range_are_refused_by_name() {
        for (end, key, must) in [
            ("sender", "max_rto = \"0 s\"", "more than zero"),
            ("sender", "min_rto = \"0 s\"", "more than zero"),
            ("sender", "min_rto = \"121 s\"", "at most `max_rto`"),
            ("sender", "syn_timeout = \"0 s\"", "more than zero"),
            ("sender", "reorder_window_divisor = 0", "at least 1"),
            ("sender", "send_buffer = \"0 B\"", "at least 1 byte"),
            ("receiver", "initial_mss = 0", "at least 1 byte"),
            ("receiver", "ack_every = 0", "at least 1 segment"),
            ("receiver", "ack_delay = \"201 ms\"", "at most `ack_delay_max`"),
            ("receiver", "receive_buffer = \"0 B\"", "at least 1 byte"),
        ] {
            let field = key.split_once(" =").unwrap().0;
            refused(&format!("{end}.{key}"), 5, &[&format!("flow[0].{end}.{field}: {field} must be {must}")]);
        }
    }

    #[test]
    fn what_is_pushed_is_acknowledged_at_once_with_bursts_unless_the_file_says_otherwise() {
        let acknowledged = |flow: &str| {
            let scenario = read(flow).unwrap();
            let again = Scenario::parse("effective.toml", &scenario.effective()).unwrap();
            assert_eq!(again, scenario);
            let flows = again.simulation(0).unwrap().simulation.flows;
            let flowstart_simulator::Traffic::Tcp(tcp) = &flows[0].traffic else { panic!() };
            tcp.receiver.ack_pushed
        };
        assert_eq!(acknowledged(""), None);
        for bursts in ["offload = \"linux\"", "dialect = \"linux\"", "sender.offload = {}"] {
            assert_eq!(acknowledged(bursts), Some(true), "{bursts}");
            assert_eq!(acknowledged(&format!("{bursts}\nreceiver.ack_pushed = false")), Some(false), "{bursts}");
        }
    }

    #[test]
    fn what_a_control_with_a_start_of_its_own_does_not_heed_is_refused() {
        for name in ["bbr", "bbr3"] {
            for algorithm in [format!("algorithm = \"{name}\""), format!("avoidance = {{ name = \"{name}\" }}")] {
                let own = format!("since {name} paces at its own rate");
                refused(&format!("{algorithm}\npacing = \"on\""), 6, &[&own, "flow[0].pacing"]);
                let pacing = "pacing = { start_percent = 300, catch_up_percent = 50 }";
                refused(&format!("{algorithm}\n{pacing}"), 6, &[&own]);
                let least = format!("since {name} starts without a threshold");
                refused(&format!("{algorithm}\ninitial_ssthresh = 30"), 6, &[&least, "flow[0].initial_ssthresh: 30"]);
                taken(&format!("{algorithm}\npacing = \"off\""));
                taken(&format!("{algorithm}\npacing = {{ catch_up_percent = 0 }}"));
                taken(&format!("{algorithm}\npacing = \"on\"\ninitial_window = 40"));
                taken(&format!("{algorithm}\npacing = {{ unpaced_packets = 0 }}"));
            }
            taken(&format!("algorithm = \"hystart+{name}\"\npacing = \"on\"\ninitial_ssthresh = 30"));
            taken(&format!("algorithm = \"bbr_start+{name}\"\npacing = \"on\"\ninitial_ssthresh = 30"));
        }
        taken("algorithm = \"hystart+cubic\"\npacing = \"on\"\ninitial_ssthresh = 30");
    }

    #[test]
    fn flows_of_arrivals_and_of_users_are_looked_at_too() {
        let path = "[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"20 ms\"\n";
        let sizes = "mean_gap = \"1 s\"\nsizes = { kind = \"fixed\", size = \"1 kB\" }";
        let flow = "flow = { sender = { ecn = \"classic\" } }";
        for (text, key) in [
            (format!("{path}[[arrivals]]\n{sizes}\n{flow}\n"), "test.toml:7:27: arrivals[0].flow.sender.ecn: "),
            (format!("{path}[[web]]\nusers = 1\n{flow}\n"), "test.toml:6:27: web[0].flow.sender.ecn: "),
        ] {
            let message = Scenario::parse("test.toml", &text).unwrap_err().to_string();
            assert!(message.starts_with(key) && message.contains("set alike"), "{message}");
        }
    }
}
