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
    let Some(fastest) = least(ranked(result), estimate) else { return String::new() };
    let short = |c: &ContestantResult| {
        let size = example_size(result);
        match size.and_then(|size| Some((size, c.estimate(COMPLETION.of(size))?.mean))) {
            Some((size, ms)) => format!("{} ({size} in {})", c.label, milliseconds(ms)),
            None => c.label.clone(),
        }
    };
    let others = match alike(result, fastest).len() {
        0 => String::new(),
        _ if by_chance(result) => " in one run".to_owned(),
        alike => format!(", and {alike} as fast"),
    };
    let first = format!("Fastest: {}{others}", short(fastest));
    match least(ranked(result).filter(|c| is_free(result, c)), estimate) {
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

/// Those who can be ranked: who has a value in as many runs as anybody. Whoever was too slow in
/// some has a mean over the others alone.
pub(super) fn ranked(result: &RaceResult) -> impl Iterator<Item = &ContestantResult> {
    let rank = rank_measure(result);
    let runs = move |c: &ContestantResult| c.estimate(rank).map_or(0, |estimate| estimate.runs);
    let most = result.contestants.iter().map(runs).max().unwrap_or(0);
    result.contestants.iter().filter(move |c| runs(c) == most)
}

/// True if chance may have decided: runs differ, and of nobody there is more than one.
pub(super) fn by_chance(result: &RaceResult) -> bool {
    let runs = result.contestants.iter().map(ContestantResult::counted_runs);
    result.race.is_random() && runs.max().unwrap_or(0) < 2
}

/// Those that cannot be told from the fastest.
fn alike<'a>(result: &'a RaceResult, fastest: &ContestantResult) -> Vec<&'a str> {
    let others = result.contestants.iter().filter(|c| !std::ptr::eq(*c, fastest));
    let same = others.filter(|c| c.estimate(rank_measure(result)).is_some() && !differ(result, fastest, c));
    same.map(|c| c.label.as_str()).collect()
}

/// The sentences, the most important first.
pub(super) fn verdict(result: &RaceResult) -> Vec<String> {
    let rank = rank_measure(result);
    let estimate = |c: &ContestantResult| c.estimate(rank);
    let Some(fastest) = least(ranked(result), estimate) else {
        return vec!["Nobody finished what was to be measured.".to_owned()];
    };
    let mut sentences = vec![fastest_sentence(result, fastest)];
    let free: Vec<&ContestantResult> = ranked(result).filter(|c| is_free(result, c)).collect();
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
        && differ(result, fastest, slowest)
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
    if by_chance(result) && !same.is_empty() {
        sentence.push_str(" One run: chance may have decided.");
    } else if !same.is_empty() {
        sentence.push_str(&format!(" As fast, as far as can be told: {}.", same.join(", ")));
    }
    sentence
}

/// Whether two contestants are further apart than chance (95 %): by their differences run by run
/// where runs share random numbers, else by their means. Without randomness any difference is one.
fn differ(result: &RaceResult, one: &ContestantResult, other: &ContestantResult) -> bool {
    let rank = rank_measure(result);
    let Some((a, b)) = one.estimate(rank).zip(other.estimate(rank)) else { return false };
    if !result.race.is_random() {
        return a.mean != b.mean;
    }
    let (ours, theirs) = one.paired(other, rank);
    if !result.race.world.is_real()
        && ours.len() > 1
        && let Some(difference) = Estimate::of_paired(&ours, &theirs)
    {
        return difference.differs_from_zero();
    }
    let apart = (a.mean - b.mean).abs();
    // A difference's half width, squared, is the sum of both, squared.
    a.half_width.zip(b.half_width).is_some_and(|(a_half, b_half)| apart * apart > a_half * a_half + b_half * b_half)
}

/// " (in 6 of 10 runs)" for a number that not all runs have, else nothing.
fn in_runs(c: &ContestantResult, of: &Estimate) -> String {
    let all = c.counted_runs();
    if of.runs < all { format!(" (in {} of {all} runs)", of.runs) } else { String::new() }
}

/// "1 MB takes 157 ms (1.69 times the ideal), 90 % of the capacity are used after 4.9 RTT".
fn speed(result: &RaceResult, c: &ContestantResult) -> String {
    let mut parts = Vec::new();
    if let Some((size, ms)) = example_size(result).and_then(|size| Some((size, c.estimate(COMPLETION.of(size))?))) {
        parts.push(format!("{size} takes {}{}", milliseconds(ms.mean), in_runs(c, &ms)));
    }
    if let Some(slowdown) = c.estimate(SLOWDOWN_MEAN.measure()) {
        let runs = in_runs(c, &slowdown);
        parts.push(format!("transfers take {:.2} times the ideal on average{runs}", slowdown.mean));
    }
    let share = if result.race.has_others() || result.race.flows > 1 { "its share" } else { "the capacity" };
    let horizon = result.race.reference().horizon_rtts();
    // Whoever does not get there within the horizon has the horizon as its value.
    let all = c.values(TIME_TO.at(90));
    let reached: Vec<f64> = all.iter().copied().filter(|rtts| *rtts < horizon).collect();
    match Estimate::of(&reached) {
        Some(rtts) => {
            let runs = if reached.len() < all.len() {
                format!(" in {} of {} runs", reached.len(), all.len())
            } else {
                String::new()
            };
            parts.push(format!("90 % of {share} is reached after {:.1} RTT{runs}", rtts.mean));
        }
        None if !all.is_empty() => parts.push(format!("90 % of {share} is not reached within {horizon:.0} RTT")),
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
    use flowstart_race::{Race, RunOptions, World};

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

    /// A contestant with its values, run by run, of the measure that ranks it and of how long it
    /// takes to 90 %.
    type Values<'a> = (&'a str, &'a [Option<f64>], &'a [f64]);

    /// These contestants in this order.
    fn with_values(runs: u32, all: &[Values<'_>]) -> RaceResult {
        let contestants = all.iter().map(|(name, ..)| name.parse().unwrap()).collect();
        let background: flowstart_race::Background = "cubic".parse().unwrap();
        let others = flowstart_race::Others { flow: vec![background.spec(0)], ..flowstart_race::Others::default() };
        let race =
            Race { contestants, others, sizes: vec![Bytes::new(1_000_000)], runs: Some(runs), ..Race::default() };
        let of = |(name, ranks, times): &Values<'_>| {
            let run = |(number, rank): (usize, &Option<f64>)| {
                let rank =
                    rank.map(|rank| [(SLOWDOWN_MEAN.measure(), rank), (COMPLETION.of(Bytes::new(1_000_000)), rank)]);
                let mut values: Vec<(Measure, f64)> = rank.into_iter().flatten().collect();
                values.extend(times.get(number).map(|time| (TIME_TO.at(90), *time)));
                flowstart_race::RunRecord { run: number as u64, values, exits: Vec::new(), complete: true }
            };
            ContestantResult {
                contestant: name.parse().unwrap(),
                label: (*name).to_owned(),
                runs: ranks.iter().enumerate().map(run).collect(),
                series: None,
            }
        };
        let contestants = all.iter().map(of).collect();
        RaceResult { race, contestants, complete: true, simulations: (1, 1), data_packets: 0, simulated_seconds: 0.0 }
    }

    const SPREAD: [f64; 5] = [1.0, 9.0, 3.0, 7.0, 5.0];

    fn all(values: impl IntoIterator<Item = f64>) -> Vec<Option<f64>> {
        values.into_iter().map(Some).collect()
    }

    /// Means 5 and 6 with intervals of 4 each were as fast as far as could be told, and one run of
    /// five is 1 slower whatever it is.
    #[test]
    fn contestants_are_told_apart_by_their_differences_run_by_run() {
        let (best, slower) = (all(SPREAD), all(SPREAD.map(|value| value + 1.0)));
        // As far in the mean, and not in every run.
        let mixed = all([9.0, 1.0, 8.0, 2.0, 10.0]);
        let race = with_values(5, &[("cubic", &best, &[]), ("reno", &slower, &[]), ("bbr", &mixed, &[])]);
        let said = verdict(&race);
        assert!(said[0].starts_with("Fastest: cubic: ") && said[0].ends_with("can be told: bbr."), "{said:#?}");
        assert!(answer(&race).starts_with("Fastest: cubic (1 MB in 5.0 ms), and 1 as fast"), "{}", answer(&race));
        // Runs of real races have nothing in common.
        let real = RaceResult { race: Race { world: World::Kernel, ..race.race.clone() }, ..race };
        assert!(verdict(&real)[0].ends_with("can be told: reno, bbr."), "{:#?}", verdict(&real));
    }

    /// The sum of both half intervals is a rule of 99.5 %.
    #[test]
    fn where_runs_are_not_paired_means_are_told_apart_by_the_interval_of_their_difference() {
        // Intervals of 1.96 each: 3 apart is more than 2.78, and less than 3.93.
        let (one, other) = (all([1.0, 2.0, 3.0, 4.0, 5.0]), all([4.0, 5.0, 6.0, 7.0, 8.0]));
        let race = with_values(5, &[("cubic", &one, &[]), ("reno", &other, &[])]);
        let real = RaceResult { race: Race { world: World::Kernel, ..race.race.clone() }, ..race };
        assert!(!verdict(&real)[0].contains("As fast"), "{:#?}", verdict(&real));
    }

    /// Everybody but the first counted as slower, and one as the slowest.
    #[test]
    fn after_one_run_of_a_random_race_nobody_is_told_apart() {
        let race =
            with_values(1, &[("cubic", &[Some(1.0)], &[]), ("reno", &[Some(2.0)], &[]), ("bbr", &[Some(3.0)], &[])]);
        let said = verdict(&race);
        assert!(said[0].ends_with("One run: chance may have decided."), "{said:#?}");
        assert!(said.iter().all(|sentence| !sentence.starts_with("Slowest")), "{said:#?}");
        assert!(answer(&race).starts_with("Fastest: cubic (1 MB in 1.0 ms) in one run"), "{}", answer(&race));
    }

    /// Who was too slow in four runs of ten had the smallest mean of the others.
    #[test]
    fn who_lacks_a_value_in_some_runs_is_ranked_before_nobody_and_is_said_to() {
        let (short, whole) = ([Some(1.0), None, Some(2.0), None], all([5.0, 6.0, 7.0, 8.0]));
        let race = with_values(4, &[("cubic", &short, &[]), ("reno", &whole, &[]), ("bbr", &whole, &[])]);
        let said = verdict(&race);
        assert!(said[0].starts_with("Fastest: reno: "), "{said:#?}");
        let colors = super::super::tables::colors(&race, &mut flowstart_report::Palette::new());
        let order = |result: &RaceResult| -> Vec<_> {
            let table = super::super::tables::ranking(result, &colors);
            table.rows.iter().filter_map(|row| row.cells[0].main()).collect()
        };
        assert_eq!(order(&race), ["reno", "bbr", "cubic"]);
        let stars = super::super::tables::ranking(&race, &colors).to_markdown();
        assert!(!stars.contains("**1.5"), "{stars}");
        let remarks = super::super::tables::over_fewer_runs(&race);
        assert!(
            remarks[0].contains(": 1 MB: cubic 2 of 4; mean / ideal: cubic 2 of 4. Whoever was too late"),
            "{remarks:?}"
        );
        let lacking = with_values(4, &[("cubic", &short, &[]), ("reno", &short, &[])]);
        let said = verdict(&lacking);
        assert!(said[0].contains("1 MB takes 1.5 ms (in 2 of 4 runs), transfers take 1.50 times"), "{said:#?}");
    }

    /// "23.9 RTT" was no run's time, with 40 for the two that did not get there.
    #[test]
    fn of_runs_that_never_get_to_speed_it_is_said_how_many_do() {
        let ranks = all([1.0; 5]);
        let said = |times: &[f64]| verdict(&with_values(5, &[("cubic", &ranks, times)]))[0].clone();
        let some = said(&[40.0, 13.1, 40.0, 12.0, 14.6]);
        assert!(some.contains("90 % of its share is reached after 13.2 RTT in 3 of 5 runs."), "{some}");
        assert!(said(&[1.0, 2.0, 3.0, 4.0, 5.0]).contains("is reached after 3.0 RTT."));
        let race = with_values(5, &[("cubic", &ranks, &[40.0, 13.1, 40.0, 12.0, 14.6])]);
        let remarks = super::super::tables::over_fewer_runs(&race);
        assert_eq!(remarks, ["Column \"to 90 %\": not within 40 RTT, which count as 40: cubic in 2 of 5."]);
        assert!(said(&[40.0; 5]).contains("90 % of its share is not reached within 40 RTT."));
    }

    #[test]
    fn equals_are_named_as_such() {
        let contestants = ["cubic", "cubic"].iter().map(|name| name.parse().unwrap()).collect();
        let race = Race { contestants, sizes: Vec::new(), ..Race::default() };
        let said = verdict(&race.run(&RunOptions::default()).unwrap());
        assert!(said[0].contains("As fast, as far as can be told: hystart+cubic #2"), "{said:#?}");
    }
}
