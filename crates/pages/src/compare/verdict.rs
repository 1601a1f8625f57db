//! Who was fastest, and at what cost, in sentences that need no table.

use flowstart_measure::Estimate;
use flowstart_race::measures::{
    ADDED_DELAY, COMPLETION, DEFICIT, DELAY_P99, EXIT_RTTS, LOST_AFTER, LOST_BEFORE, LOST_OTHERS, SLOWDOWN_MEAN,
    START_OWN_DELAY, TIME_TO,
};
use flowstart_race::{ContestantResult, Measure, RaceResult, exit_name};
use flowstart_units::Bytes;

/// Most queueing delay (99th percentile), in ms, of whoever counts as costing nobody anything.
const FREE_DELAY_MS: f64 = 5.0;

/// By what the contestants are ranked: how long transfers take, else what was not carried.
pub(super) fn rank_measure(result: &RaceResult) -> Measure {
    if result.race.sizes.is_empty() { DEFICIT.measure() } else { SLOWDOWN_MEAN.measure() }
}

/// The size in the middle: what is named of the transfers.
pub(super) fn example_size(result: &RaceResult) -> Option<Bytes> {
    let mut sizes = result.race.sizes.clone();
    sizes.sort_unstable();
    sizes.get(sizes.len() / 2).copied()
}

/// Who was fastest, and who of those that cost nobody anything, in one line.
pub(super) fn answer(result: &RaceResult) -> String {
    let rank = rank_measure(result);
    let estimate = |c: &ContestantResult| c.estimate(rank);
    let Some(fastest) = least(result.contestants.iter(), estimate) else { return String::new() };
    let short = |c: &ContestantResult| {
        let size = example_size(result);
        match size.and_then(|size| Some((size, c.estimate(COMPLETION.of(size))?.mean))) {
            Some((size, ms)) => format!("{} ({size} in {})", c.label, milliseconds(ms)),
            None => c.label.clone(),
        }
    };
    let alike = alike(result, fastest).len();
    let others = if alike == 0 { String::new() } else { format!(", and {alike} as fast") };
    let first = format!("Fastest: {}{others}", short(fastest));
    match least(result.contestants.iter().filter(|c| is_free(result, c)), estimate) {
        Some(best) if std::ptr::eq(best, fastest) => {
            format!("{first}, with less than {FREE_DELAY_MS:.0} ms of delay and no losses.")
        }
        Some(best) => {
            format!("{first}. Fastest with less than {FREE_DELAY_MS:.0} ms of delay and no losses: {}.", short(best))
        }
        None if !cost_is_known(result) => format!("{first}."),
        None => format!("{first}. Nobody stays below {FREE_DELAY_MS:.0} ms of delay without losses."),
    }
}

/// Those that cannot be told from the fastest.
fn alike<'a>(result: &'a RaceResult, fastest: &ContestantResult) -> Vec<&'a str> {
    let rank = rank_measure(result);
    let Some(best) = fastest.estimate(rank) else { return Vec::new() };
    let others = result.contestants.iter().filter(|c| !std::ptr::eq(*c, fastest));
    let same = others.filter(|c| c.estimate(rank).is_some_and(|other| !differ(&best, &other)));
    same.map(|c| c.label.as_str()).collect()
}

/// The sentences, the most important first.
pub(super) fn verdict(result: &RaceResult) -> Vec<String> {
    let rank = rank_measure(result);
    let estimate = |c: &ContestantResult| c.estimate(rank);
    let Some(fastest) = least(result.contestants.iter(), estimate) else {
        return vec!["Nobody finished what was to be measured.".to_owned()];
    };
    let mut sentences = vec![fastest_sentence(result, fastest)];
    let free: Vec<&ContestantResult> = result.contestants.iter().filter(|c| is_free(result, c)).collect();
    let limit = format!(
        "{FREE_DELAY_MS:.0} ms {} and without losses",
        if result.race.has_others() {
            "more delay for the others (99th percentile)"
        } else {
            "of queueing delay (99th percentile)"
        }
    );
    match least(free.iter().copied(), estimate) {
        Some(best) if std::ptr::eq(best, fastest) => {
            sentences.push(format!("It costs nobody anything: it stays below {limit}."));
        }
        Some(best) => {
            let speed = speed(result, best);
            sentences.push(format!("Cheapest: of those below {limit}, {} is the fastest: {speed}.", best.label));
        }
        None if !cost_is_known(result) => {}
        None => sentences.push(format!("Nobody stays below {limit}.")),
    }
    let slowest = result.contestants.iter().filter_map(|c| Some((c, estimate(c)?.mean)));
    if let Some((slowest, _)) = slowest.max_by(|a, b| a.1.total_cmp(&b.1))
        && result.contestants.len() > 2
        && !std::ptr::eq(slowest, fastest)
    {
        sentences.push(format!("Slowest: {}: {}{}.", slowest.label, speed(result, slowest), exit(slowest)));
    }
    sentences
}

/// "Fastest: NAME: how fast. Its cost: what. Not told apart from it: whom."
fn fastest_sentence(result: &RaceResult, fastest: &ContestantResult) -> String {
    let mut sentence =
        format!("Fastest: {}: {}. Its cost: {}.", fastest.label, speed(result, fastest), cost(result, fastest));
    let same = alike(result, fastest);
    if !same.is_empty() {
        sentence.push_str(&format!(" As fast, as far as can be told: {}.", same.join(", ")));
    }
    sentence
}

/// Whether two means lie further apart than chance: than both half intervals together.
fn differ(a: &Estimate, b: &Estimate) -> bool {
    (a.mean - b.mean).abs() > a.half_width.unwrap_or(0.0) + b.half_width.unwrap_or(0.0)
}

/// "1 MB takes 157 ms (1.69 times the ideal), 90 % of the capacity are used after 4.9 RTT".
fn speed(result: &RaceResult, c: &ContestantResult) -> String {
    let mean = |measure: Measure| c.estimate(measure).map(|estimate| estimate.mean);
    let mut parts = Vec::new();
    if let Some((size, ms)) = example_size(result).and_then(|size| Some((size, mean(COMPLETION.of(size))?))) {
        parts.push(format!("{size} takes {}", milliseconds(ms)));
    }
    if let Some(slowdown) = mean(SLOWDOWN_MEAN.measure()) {
        parts.push(format!("transfers take {slowdown:.2} times the ideal on average"));
    }
    let share = if result.race.has_others() || result.race.flows > 1 { "its share" } else { "the capacity" };
    let horizon = result.race.reference().horizon_rtts();
    match mean(TIME_TO.at(90)) {
        Some(rtts) if rtts < horizon => parts.push(format!("90 % of {share} is reached after {rtts:.1} RTT")),
        Some(_) => parts.push(format!("90 % of {share} is not reached within {horizon:.0} RTT")),
        None => {}
    }
    if parts.is_empty() { "nothing could be measured".to_owned() } else { parts.join(", ") }
}

pub(super) fn milliseconds(ms: f64) -> String {
    match ms {
        ms if ms >= 10_000.0 => format!("{:.1} s", ms / 1e3),
        ms if ms >= 1000.0 => format!("{:.2} s", ms / 1e3),
        ms if ms >= 10.0 => format!("{ms:.0} ms"),
        ms if ms >= 1.0 => format!("{ms:.1} ms"),
        ms if ms >= 0.01 => format!("{:.0} µs", ms * 1e3),
        ms => format!("{:.1} µs", ms * 1e3),
    }
}

/// "up to 20.0 ms of queueing delay (99th percentile), 17 packets lost".
fn cost(result: &RaceResult, c: &ContestantResult) -> String {
    let mean = |measure: Measure| c.estimate(measure).map(|estimate| estimate.mean);
    let mut parts = Vec::new();
    if result.race.has_others() {
        if let Some(added) = mean(ADDED_DELAY.at(99)) {
            parts.push(format!("{added:.1} ms more delay for the others (99th percentile)"));
        }
        if let Some(lost) = mean(LOST_OTHERS.measure()) {
            parts.push(format!("{} packets of theirs lost", count(lost)));
        }
    } else if let Some(delay) = mean(DELAY_P99.measure()) {
        let horizon = result.race.reference().horizon_rtts();
        let start = mean(START_OWN_DELAY.at(99)).map(|start| format!("{start:.1} ms of queueing delay in its start, "));
        let start = start.unwrap_or_default();
        parts.push(format!("{start}{delay:.1} ms over {horizon:.0} RTT (99th percentile)"));
    }
    if let Some(lost) = lost(c) {
        parts.push(match lost {
            0.0 => "none of its own packets lost".to_owned(),
            lost => format!("{} of its own packets lost", count(lost)),
        });
    }
    if parts.is_empty() { "not measured".to_owned() } else { parts.join(", ") }
}

fn count(packets: f64) -> String {
    match packets {
        0.0 => "no".to_owned(),
        n if n.fract() == 0.0 || n >= 10.0 => format!("{n:.0}"),
        n => format!("{n:.1}"),
    }
}

/// Its packets that were lost, before and after the exit.
fn lost(c: &ContestantResult) -> Option<f64> {
    let both = [LOST_BEFORE.measure(), LOST_AFTER.measure()].map(|m| c.estimate(m).map(|estimate| estimate.mean));
    both.iter().any(Option::is_some).then(|| both.into_iter().flatten().sum())
}

/// The delay that a contestant costs.
fn delay_measure(result: &RaceResult) -> Measure {
    if result.race.has_others() { ADDED_DELAY.at(99) } else { DELAY_P99.measure() }
}

/// Whether anybody's cost was measured; not in a race that was interrupted early.
fn cost_is_known(result: &RaceResult) -> bool {
    result.contestants.iter().any(|c| c.estimate(delay_measure(result)).is_some())
}

fn is_free(result: &RaceResult, c: &ContestantResult) -> bool {
    let kept = c.estimate(delay_measure(result)).is_some_and(|estimate| estimate.mean <= FREE_DELAY_MS);
    let others = c.estimate(LOST_OTHERS.measure()).is_none_or(|estimate| estimate.mean == 0.0);
    kept && lost(c) == Some(0.0) && others
}

/// ", its start ended after 1.1 RTT (marks)".
fn exit(c: &ContestantResult) -> String {
    let Some(rtts) = c.estimate(EXIT_RTTS.measure()) else { return String::new() };
    match c.exits().first() {
        Some((Some(reason), _)) => {
            format!("; its start ended after {:.1} RTT because of: {}", rtts.mean, exit_name(Some(*reason)))
        }
        _ => String::new(),
    }
}

/// Who has the smallest mean; the first of equals.
fn least<'a>(
    contestants: impl Iterator<Item = &'a ContestantResult>,
    estimate: impl Fn(&ContestantResult) -> Option<Estimate>,
) -> Option<&'a ContestantResult> {
    contestants
        .filter_map(|c| Some((c, estimate(c)?.mean)))
        .reduce(|best, next| if next.1 < best.1 { next } else { best })
        .map(|(c, _)| c)
}

#[cfg(test)]
mod tests {
    use flowstart_race::{Race, RunOptions};

    use super::*;

    #[test]
    fn the_default_race_is_summed_up_in_three_sentences() {
        let said = verdict(&Race::default().run(&RunOptions::default()).unwrap());
        assert_eq!(said.len(), 3, "{said:#?}");
        assert!(!said[0].contains("no of its own"), "{said:#?}");
        assert!(said[0].starts_with("Fastest: ") && said[0].contains("Its cost: "), "{said:#?}");
        assert!(said[1].contains("adaptive_chirping+delay_target is the fastest"), "{said:#?}");
        assert!(said[2].starts_with("Slowest: slow_start+dctcp") && said[2].contains("marks"), "{said:#?}");
    }

    #[test]
    fn the_answer_is_one_line_with_the_fastest_and_the_fastest_that_costs_nothing() {
        let race = |contestants: &str| Race {
            contestants: contestants.split(',').map(|name| name.parse().unwrap()).collect(),
            ..Race::default()
        };
        let said = |race: Race| answer(&race.run(&RunOptions::default()).unwrap());
        let both = said(race("cubic,paced_chirping"));
        assert!(both.starts_with("Fastest: hystart+cubic (1 MB in ") || both.starts_with("Fastest: paced"), "{both}");
        assert!(both.contains("paced_chirping+dctcp"), "{both}");
        let alone = said(race("slow_start+cubic"));
        assert!(alone.ends_with("Nobody stays below 5 ms of delay without losses."), "{alone}");
    }

    #[test]
    fn of_a_cost_that_nobody_measured_nothing_is_said() {
        let race = Race { contestants: vec!["slow_start+cubic".parse().unwrap()], ..Race::default() };
        let mut result = race.run(&RunOptions::default()).unwrap();
        let delays = DELAY_P99.measure();
        for contestant in &mut result.contestants {
            for run in &mut contestant.runs {
                run.values.retain(|(measure, _)| *measure != delays);
            }
        }
        assert!(!answer(&result).contains("Nobody"), "{}", answer(&result));
        assert!(verdict(&result).iter().all(|sentence| !sentence.contains("Nobody")), "{:#?}", verdict(&result));
    }

    #[test]
    fn times_have_two_digits_or_more_however_short_they_are() {
        let shown = [0.004, 0.0834, 0.4, 3.34, 138.4, 1234.0, 12_345.0].map(milliseconds);
        assert_eq!(shown, ["4.0 µs", "83 µs", "400 µs", "3.3 ms", "138 ms", "1.23 s", "12.3 s"]);
    }

    #[test]
    fn equals_are_named_as_such() {
        let contestants = ["cubic", "cubic"].iter().map(|name| name.parse().unwrap()).collect();
        let race = Race { contestants, sizes: Vec::new(), ..Race::default() };
        let said = verdict(&race.run(&RunOptions::default()).unwrap());
        assert!(said[0].contains("As fast, as far as can be told: hystart+cubic #2"), "{said:#?}");
    }
}
