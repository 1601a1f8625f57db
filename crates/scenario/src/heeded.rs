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
mod tests;
