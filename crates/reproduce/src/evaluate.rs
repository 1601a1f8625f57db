//! From the record of a run to the value of a measure.

use flowstart_quick_start::model::{Link, Start, Transfer};
use flowstart_simulator::{FlowOutcome, Outcome, Traffic};
use flowstart_units::{Rate, Span, Time};

use super::measure::{Measure, Statistic};
use super::quantity::{Bound, Measured};
use super::record::{LinkRecord, Recorder};
use flowstart_measure::Egress;
use flowstart_scenario::{Compiled, Scenario};

/// One run, over.
pub(super) struct Run<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) compiled: &'a Compiled,
    pub(super) outcome: &'a Outcome,
    pub(super) record: &'a Recorder,
}

impl Run<'_> {
    /// The base RTT of the path; zero without one.
    pub(super) fn rtt(&self) -> Span {
        self.scenario.path.as_ref().map_or(Span::ZERO, |path| path.rtt)
    }

    fn end(&self) -> Span {
        self.outcome.ended.since(Time::ZERO)
    }

    /// The name of a flow.
    pub(super) fn name(&self, flow: &FlowOutcome) -> &str {
        self.compiled.groups.get(flow.group as usize).map_or("", |group| group.name.as_str())
    }

    /// The flows of a name, all for `None`.
    pub(super) fn flows<'b>(&'b self, name: Option<&'b str>) -> impl Iterator<Item = (u32, &'b FlowOutcome)> + 'b {
        let all = self.outcome.flows.iter().enumerate();
        all.map(|(id, flow)| (id as u32, flow)).filter(move |(_, flow)| name.is_none_or(|name| self.name(flow) == name))
    }

    pub(super) fn link(&self, name: Option<&str>) -> Option<&LinkRecord> {
        let number = name.map_or(Some(0), |name| self.compiled.links.iter().position(|known| known == name))?;
        self.record.links.get(number)?.as_ref()
    }

    /// The series of egress that belong to a name.
    fn egress<'b>(&self, link: &'b LinkRecord, name: Option<&str>) -> Vec<&'b Egress> {
        let mut wanted: Vec<usize> = match name {
            None => (0..link.egress.len()).collect(),
            Some(_) => self.flows(name).map(|(id, _)| self.record.series_of(id)).collect(),
        };
        wanted.sort_unstable();
        wanted.dedup();
        wanted.into_iter().filter_map(|series| link.egress.get(series)).collect()
    }

    /// The value; `None` if there is nothing to measure, for instance no such transfer.
    pub(super) fn evaluate(&self, measure: &Measure) -> Option<Measured> {
        let in_window = |from: &Option<Span>, until: &Option<Span>| {
            (from.unwrap_or(Span::ZERO), until.unwrap_or(Span::MAX).min(self.end()))
        };
        let time = |seconds: f64, rtts: bool| if rtts { seconds / self.rtt().as_secs_f64() } else { seconds };
        let mean = |values: Vec<f64>| Statistic::Mean.of(&mut { values });
        let value = match measure {
            Measure::CompletionTime { flow, smallest, largest, statistic } => {
                let fits = |flow: &&FlowOutcome| {
                    flow.size.is_some_and(|size| {
                        smallest.is_none_or(|least| size >= least) && largest.is_none_or(|most| size <= most)
                    })
                };
                let mut times: Vec<f64> = self
                    .flows(flow.as_deref())
                    .map(|(_, flow)| flow)
                    .filter(fits)
                    .filter_map(|flow| Some(flow.completed?.since(flow.first_data).as_secs_f64()))
                    .collect();
                statistic.of(&mut times)?
            }
            Measure::CompletionToModel { flow, grant } => {
                let flows = self.flows(flow.as_deref());
                mean(flows.filter_map(|(id, flow)| self.to_model(id, flow, *grant)).collect())?
            }
            Measure::PageTime { flow, statistic } => {
                let name = |group: u32| self.compiled.groups.get(group as usize).map(|group| group.name.as_str());
                let sessions = self
                    .outcome
                    .sessions
                    .iter()
                    .filter(|session| flow.is_none() || name(session.group) == flow.as_deref());
                let pages = sessions.flat_map(|session| &session.pages);
                let mut times: Vec<f64> = pages.map(|page| page.done.since(page.began).as_secs_f64()).collect();
                statistic.of(&mut times)?
            }
            Measure::GrantedRate { link } => {
                let (requests, granted) = self.link(link.as_deref())?.requests;
                (requests > 0).then(|| granted as f64 / requests as f64)?
            }
            Measure::Completed { flow } => {
                self.flows(flow.as_deref()).filter(|(_, flow)| flow.completed.is_some()).count() as f64
            }
            Measure::QueueDelay { link, flow, from, until, statistic } => {
                let (from, until) = in_window(from, until);
                let (from, until) = (Time::ZERO + from, Time::ZERO + until);
                let whose = |id: u32| match flow {
                    None => true,
                    Some(name) => self.outcome.flows.get(id as usize).is_some_and(|flow| self.name(flow) == name),
                };
                let waits = &self.link(link.as_deref())?.waits;
                let mut values: Vec<f64> = waits
                    .iter()
                    .filter(|wait| (from..until).contains(&wait.arrived) && whose(wait.flow))
                    .map(|wait| wait.waited.as_secs_f64())
                    .collect();
                statistic.of(&mut values)?
            }
            Measure::RoundTrip { link, flow, from, until, statistic } => {
                let (from, until) = in_window(from, until);
                let (from, until) = (Time::ZERO + from, Time::ZERO + until);
                let whose = |id: u32| match flow {
                    None => true,
                    Some(name) => self.outcome.flows.get(id as usize).is_some_and(|flow| self.name(flow) == name),
                };
                let waits = self.link(link.as_deref())?.waits.iter();
                let mut values: Vec<f64> = waits
                    .filter(|wait| (from..until).contains(&wait.arrived) && whose(wait.flow))
                    .map(|wait| (self.rtt() + wait.waited + Span::from_nanos(wait.transmission.into())).as_secs_f64())
                    .collect();
                statistic.of(&mut values)?
            }
            Measure::SmoothedRtt { flow, from, until, statistic } => {
                let (from, until) = in_window(from, until);
                // Of the first connection: the second is over soon.
                let flows = self.flows(flow.as_deref()).filter(|(_, flow)| flow.companion_of.is_none());
                let changes = flows.filter_map(|(id, _)| self.record.srtt.get(id as usize));
                window(changes, Time::ZERO + from, Time::ZERO + until, *statistic)? / 1e6
            }
            Measure::Isolation { flow, is, at_end } => {
                let flows = self.flows(flow.as_deref()).filter(|(_, flow)| flow.companion_of.is_none());
                let later = |flow: &FlowOutcome| flow.revised.filter(|_| *at_end);
                let found = |flow: &FlowOutcome| later(flow).or(flow.decision).map(|decision| decision.isolation);
                let queue = self.compiled.simulation.links.first().map(|link| &link.queue);
                mean(flows.map(|(_, flow)| f64::from(u8::from(is.is(found(flow), queue)))).collect())?
            }
            Measure::IsolationTime { flow, rtts } => {
                let after = |flow: &FlowOutcome| Some(flow.decision?.now.since(flow.first_data).as_secs_f64());
                time(mean(self.flows(flow.as_deref()).filter_map(|(_, flow)| after(flow)).collect())?, *rtts)
            }
            Measure::IsolationChange { flow, after } => {
                let since = Time::ZERO + *after;
                let late = |flow: &FlowOutcome| Some(flow.revised?.now.since(since).as_secs_f64());
                mean(self.flows(flow.as_deref()).filter_map(|(_, flow)| late(flow)).collect())?
            }
            Measure::IsolationRatio { flow } => {
                let flows = self.flows(flow.as_deref());
                mean(flows.filter_map(|(_, flow)| flow.decision.map(|decision| decision.ratio)).collect())?
            }
            Measure::IsolationRate { flow } => {
                let peak = self.compiled.simulation.links.first()?.rate.peak().as_bps() as f64;
                let told = |flow: &FlowOutcome| Some(flow.decision?.rate.as_bps() as f64 / peak);
                mean(self.flows(flow.as_deref()).filter_map(|(_, flow)| told(flow)).collect())?
            }
            Measure::DropsInStart { flow } => {
                self.flows(flow.as_deref()).map(|(_, flow)| flow.dropped_in_start).sum::<u64>() as f64
            }
            Measure::Throughput { link, flow, from, until } => {
                let (from, until) = in_window(from, until);
                let link = self.link(link.as_deref())?;
                let bytes: f64 =
                    self.egress(link, flow.as_deref()).into_iter().map(|egress| sum_within(egress, from, until)).sum();
                let seconds = (until - from).as_secs_f64();
                (seconds > 0.0).then(|| bytes * 8.0 / seconds)?
            }
            Measure::TimeToRate { .. } => return self.time_to_rate(measure),
            Measure::ExitTime { flow, rtts } => {
                let after = |flow: &FlowOutcome| Some(flow.start_exit?.now.since(flow.first_data).as_secs_f64());
                time(mean(self.flows(flow.as_deref()).filter_map(|(_, flow)| after(flow)).collect())?, *rtts)
            }
            Measure::ExitWindow { flow, of_bdp } => {
                let windows = self.flows(flow.as_deref()).filter_map(|(id, flow)| {
                    Some((f64::from(flow.start_exit?.cwnd), f64::from(self.packet_bytes(id))))
                });
                let values = windows.map(|(packets, bytes)| match of_bdp {
                    None => packets,
                    Some(rate) => packets * bytes * 8.0 / (rate.as_bps() as f64 * self.rtt().as_secs_f64()),
                });
                mean(values.collect())?
            }
            Measure::Window { flow, from, until, statistic } => {
                let (from, until) = in_window(from, until);
                let windows = self.flows(flow.as_deref()).filter_map(|(id, _)| self.record.cwnd.get(id as usize));
                window(windows, Time::ZERO + from, Time::ZERO + until, *statistic)?
            }
            Measure::Drops { link, from, until } => {
                let (from, until) = in_window(from, until);
                sum_within(&self.link(link.as_deref())?.drops, from, until)
            }
            Measure::Marks { link, from, until } => {
                let (from, until) = in_window(from, until);
                sum_within(&self.link(link.as_deref())?.marks, from, until)
            }
            Measure::DropInterval { link, from, until, rtts } => {
                let (from, until) = in_window(from, until);
                let episodes = episodes(&self.link(link.as_deref())?.drops, from, until, self.rtt() * EPISODE_RTTS);
                let (first, last) = (episodes.first()?, episodes.last()?);
                if episodes.len() < 2 {
                    // One episode: the interval is at least what is left on either side.
                    let side = (*first - from).max(until - *first).as_secs_f64();
                    return Some(Measured { value: time(side, *rtts), bound: Bound::AtLeast });
                }
                time((*last - *first).as_secs_f64() / (episodes.len() - 1) as f64, *rtts)
            }
            Measure::Retransmissions { flow } => {
                self.flows(flow.as_deref()).map(|(_, flow)| flow.retransmitted).sum::<u64>() as f64
            }
            Measure::Timeouts { flow } => {
                self.flows(flow.as_deref()).map(|(_, flow)| flow.timeouts).sum::<u64>() as f64
            }
            // Those by probing are not of one simulation.
            _ => return None,
        };
        Some(Measured::exact(value))
    }

    /// What a flow sends.
    fn traffic(&self, flow: u32) -> Option<&Traffic> {
        let simulation = &self.compiled.simulation;
        let configs = simulation.flows.iter().chain(simulation.arrivals.iter().map(|arrivals| &arrivals.flow));
        let group = self.outcome.flows.get(flow as usize).map(|flow| flow.group);
        configs.into_iter().find(|config| Some(config.group) == group).map(|config| &config.traffic)
    }

    /// How many times as long as by the model a transfer took.
    fn to_model(&self, id: u32, flow: &FlowOutcome, grant: Option<Rate>) -> Option<f64> {
        let Some(Traffic::Tcp(tcp)) = self.traffic(id) else { return None };
        let (packet, headers) = (self.packet_bytes(id), u32::from(tcp.sender.header_bytes));
        let rate = self.compiled.simulation.links.first()?.rate.peak();
        let link = Link { rate, rtt: self.rtt(), packet, headers };
        let start = Start { initial_window: tcp.controller.initial_window, growth: 2.0, threshold: None };
        let (model, size) = (Transfer::new(link, start), flow.size?);
        let expected = grant.map_or(model.slow_start(size), |grant| model.quick_start(size, grant));
        let took = flow.completed?.since(flow.first_data) + self.rtt() / 2;
        Some(took.as_secs_f64() / expected)
    }

    /// Bytes of a full packet of a flow on the wire.
    fn packet_bytes(&self, flow: u32) -> u32 {
        match self.traffic(flow) {
            Some(Traffic::Tcp(tcp)) => tcp.sender.mss.saturating_add(tcp.sender.header_bytes.into()),
            Some(Traffic::Udp(udp)) => u32::from(udp.packet),
            None => 0,
        }
    }

    fn time_to_rate(&self, measure: &Measure) -> Option<Measured> {
        let Measure::TimeToRate { link, flow, rate, since, over, hold, rtts } = measure else { return None };
        let first = || self.flows(flow.as_deref()).map(|(_, flow)| flow.first_data).min();
        let since = match (since, flow) {
            (Some(since), _) => *since,
            (None, Some(_)) => first().filter(|at| *at != Time::NEVER)?.since(Time::ZERO),
            (None, None) => Span::ZERO,
        };
        let link = self.link(link.as_deref())?;
        let over = over.unwrap_or(self.rtt());
        let hold = hold.unwrap_or(self.rtt() * HOLD_RTTS);
        let bin = self.record.bin;
        let series = self.egress(link, flow.as_deref());
        let bins = (self.end().as_nanos() / bin.as_nanos()) as usize;
        let width = (over.as_nanos() / bin.as_nanos()).max(1) as usize;
        let hold = hold.as_nanos().div_ceil(bin.as_nanos()) as usize;
        // Totals by the end of each bin.
        let mut totals = vec![0_u64; bins + 1];
        for index in 0..bins {
            let bytes: u64 = series.iter().filter_map(|egress| egress.bytes().get(index)).sum();
            totals[index + 1] = totals[index] + bytes;
        }
        let needed = rate.as_bps() as f64 / 8.0 * (bin * width as u64).as_secs_f64();
        let reached = |end: usize| (totals[end] - totals[end.saturating_sub(width)]) as f64 >= needed;
        let begin = since.as_nanos().div_ceil(bin.as_nanos()) as usize;
        let scale = if *rtts { self.rtt().as_secs_f64() } else { 1.0 };
        let after = |end: usize| (bin * end as u64).as_secs_f64() - since.as_secs_f64();
        let mut run = 0;
        for end in begin + width..=bins {
            run = if reached(end) { run + 1 } else { 0 };
            if run > hold {
                return Some(Measured::exact(after(end - hold) / scale));
            }
        }
        let left = self.end().as_secs_f64() - since.as_secs_f64();
        Some(Measured { value: left.max(0.0) / scale, bound: Bound::AtLeast })
    }
}

/// Base RTTs that a rate must be kept unless something else is said.
const HOLD_RTTS: u64 = 2;
/// Drops within this many base RTTs are one episode: a loss is known after one and repaired after two.
const EPISODE_RTTS: u64 = 2;

/// What lies in bins within [from, until), those at the edges in proportion.
fn sum_within(egress: &Egress, from: Span, until: Span) -> f64 {
    let bin = egress.bin().as_nanos().max(1) as f64;
    let (from, until) = (from.as_nanos() as f64 / bin, until.as_nanos() as f64 / bin);
    let first = from as usize;
    let inside = egress.bytes().iter().enumerate().skip(first).take_while(|(index, _)| (*index as f64) < until);
    inside.map(|(index, bytes)| ((index as f64 + 1.0).min(until) - (index as f64).max(from)) * *bytes as f64).sum()
}

/// When episodes of drops began.
fn episodes(drops: &Egress, from: Span, until: Span, apart: Span) -> Vec<Span> {
    let mut begins: Vec<Span> = Vec::new();
    let mut last: Option<Span> = None;
    for (index, count) in drops.bytes().iter().enumerate().filter(|(_, count)| **count > 0) {
        let at = drops.bin() * index as u64;
        if *count == 0 || at < from || at >= until {
            continue;
        }
        if last.is_none_or(|last| at - last > apart) {
            begins.push(at);
        }
        last = Some(at);
    }
    begins
}

/// A statistic of windows that hold from one change to the next.
fn window<'a>(
    windows: impl Iterator<Item = &'a Vec<(Time, u32)>>,
    from: Time,
    until: Time,
    statistic: Statistic,
) -> Option<f64> {
    let mut pieces: Vec<(f64, f64)> = Vec::new();
    for changes in windows {
        for (index, (at, cwnd)) in changes.iter().enumerate() {
            let next = changes.get(index + 1).map_or(until, |next| next.0);
            let held = next.min(until).since((*at).max(from)).as_secs_f64();
            if held > 0.0 {
                pieces.push((f64::from(*cwnd), held));
            }
        }
    }
    let total: f64 = pieces.iter().map(|(_, held)| held).sum();
    if total <= 0.0 {
        return None;
    }
    match statistic {
        Statistic::Mean => Some(pieces.iter().map(|(cwnd, held)| cwnd * held).sum::<f64>() / total),
        Statistic::Quantile(p) => {
            pieces.sort_by(|a, b| a.0.total_cmp(&b.0));
            let mut passed = 0.0;
            let reached = pieces.iter().find(|(_, held)| {
                passed += held;
                passed >= p * total * (1.0 - 1e-12)
            });
            reached.or(pieces.last()).map(|(cwnd, _)| *cwnd)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_at_the_edges_of_a_window_count_in_proportion() {
        let mut egress = Egress::new(Span::from_millis(10), Span::from_millis(40), 100);
        for index in 0..4 {
            egress.add(Span::from_millis(10 * index), 100);
        }
        let sum = |from, until| sum_within(&egress, Span::from_millis(from), Span::from_millis(until));
        assert!((sum(0, 40) - 400.0).abs() < 1e-9);
        assert!((sum(5, 25) - 200.0).abs() < 1e-9);
        assert!((sum(12, 15) - 30.0).abs() < 1e-9);
        assert_eq!(sum(50, 60), 0.0);
    }

    #[test]
    fn drops_close_together_are_one_episode() {
        let mut drops = Egress::new(Span::from_millis(1), Span::from_secs(1), 1000);
        for at in [100, 110, 130, 500, 900, 905] {
            drops.add(Span::from_millis(at), 1);
        }
        let begins = episodes(&drops, Span::ZERO, Span::from_secs(1), Span::from_millis(40));
        assert_eq!(begins, [100, 500, 900].map(Span::from_millis));
    }

    #[test]
    fn windows_count_for_as_long_as_they_held() {
        let ms = |n: u64| Time::ZERO + Span::from_millis(n);
        let changes = vec![(ms(0), 10), (ms(100), 20), (ms(300), 40)];
        let of = |statistic| window([&changes].into_iter(), ms(0), ms(400), statistic).unwrap();
        assert!((of(Statistic::Mean) - (10.0 + 40.0 + 40.0) / 4.0).abs() < 1e-9);
        assert_eq!(of(Statistic::Quantile(0.0)), 10.0);
        assert_eq!(of(Statistic::Quantile(0.5)), 20.0);
        assert_eq!(of(Statistic::Quantile(1.0)), 40.0);
        assert_eq!(window([&changes].into_iter(), ms(500), ms(600), Statistic::Mean), Some(40.0));
        assert_eq!(window([&changes].into_iter(), ms(0), ms(0), Statistic::Mean), None);
    }
}
