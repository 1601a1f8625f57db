//! Who answers marks, and who does not: queues that fit both, and what happens where they do not.
//!
//! A queue that marks from 1 ms on is only short if everybody who meets it answers marks. Beside a
//! flow that does not, the queue is as long as its buffer, every packet of the others is marked,
//! and they starve (10 MB beside two such flows take minutes instead of a second).

use flowstart_network::QueueConfig;
use flowstart_scenario::QueueSpec;
use flowstart_simulator::Traffic;
use flowstart_transport::EcnMode;

use crate::{Contestant, Purpose, QueueChoice, Race, RaceError};

/// Gives contestants that answer marks a drop-tail queue if there are flows that do not, unless a
/// queue was asked for. Returns a sentence about everything a reader would not expect.
///
/// # Errors
/// If the race cannot be simulated.
pub fn fit_to_marks(race: &mut Race) -> Result<Vec<String>, RaceError> {
    let mut warnings = Vec::new();
    let Some(first) = race.contestants.first() else { return Ok(warnings) };
    let (deaf, hearing) = others(race, first)?;
    let open = race.path.queue == QueueSpec::default();
    let mut moved = Vec::new();
    for index in 0..race.contestants.len() {
        let contestant = &race.contestants[index];
        let (name, answers) = (contestant.name(), contestant.ecn != EcnMode::Off);
        let marks = marks_alone(race, contestant);
        if deaf && answers && marks && open && contestant.queue.is_none() {
            race.contestants[index].queue = Some(QueueChoice::DropTail(None));
            moved.push(name);
        } else if deaf && answers && marks {
            warnings.push(format!(
                "{name} answers the marks of its queue and the background does not, so the background keeps the queue \
                 full and {name} starves."
            ));
        } else if hearing && !answers && marks {
            warnings.push(format!(
                "{name} does not answer the marks of its queue and the background does, so {name} keeps the queue full \
                 and the background starves."
            ));
        } else if hearing && matches!(queue(race, contestant), QueueConfig::DropTail(_)) {
            warnings.push(format!(
                "The background answers marks, but the queue of {name} only drops: there the background works as if \
                 without ECN."
            ));
        }
    }
    if !moved.is_empty() {
        warnings.push(format!(
            "{} over drop_tail, not over a queue that marks: the background answers no marks and would keep it full. \
             A background that answers them: --background '2 cubic/ecn'; the queue that marks all the same: \
             -C '{}@step_mark'.",
            moved.join(", "),
            moved[0]
        ));
    }
    Ok(warnings)
}

/// Whether some of those who are there before answer no marks, and whether some do.
fn others(race: &Race, contestant: &Contestant) -> Result<(bool, bool), RaceError> {
    let simulation = race.simulation(contestant, Purpose::Start, 0)?;
    let others = simulation.flows.iter().take(race.others.tcp_flows() as usize);
    let modes: Vec<EcnMode> = others
        .filter_map(|flow| match &flow.traffic {
            Traffic::Tcp(tcp) => Some(tcp.sender.ecn),
            Traffic::Udp(_) => None,
        })
        .collect();
    Ok((modes.contains(&EcnMode::Off), modes.iter().any(|mode| *mode != EcnMode::Off)))
}

fn queue(race: &Race, contestant: &Contestant) -> QueueConfig {
    race.scenario(contestant, Purpose::Start, 0).path.map_or_else(|| QueueSpec::default().0, |path| path.queue.0)
}

/// True if all flows share one queue that marks instead of dropping.
fn marks_alone(race: &Race, contestant: &Contestant) -> bool {
    matches!(queue(race, contestant), QueueConfig::StepMark(_))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Background;

    fn race(contestants: &[&str], background: &str) -> Race {
        let contestants = contestants.iter().map(|name| name.parse().unwrap()).collect();
        let mut race = Race { contestants, ..Race::default() };
        if !background.is_empty() {
            let background: Background = background.parse().unwrap();
            race.others.flow.push(background.spec(0));
        }
        race
    }

    fn fitted(contestants: &[&str], background: &str) -> (Vec<String>, Vec<String>) {
        let mut race = race(contestants, background);
        let warnings = fit_to_marks(&mut race).unwrap();
        (race.contestants.iter().map(|contestant| race.queue_name(contestant)).collect(), warnings)
    }

    #[test]
    fn beside_flows_that_answer_no_marks_all_meet_the_same_drop_tail_queue() {
        let (queues, warnings) = fitted(&["cubic", "paced_chirping", "dctcp"], "2 cubic");
        assert_eq!(queues, ["drop_tail 1 BDP"; 3]);
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        assert!(warnings[0].starts_with("paced_chirping+dctcp, slow_start+dctcp over drop_tail"), "{warnings:?}");
    }

    #[test]
    fn a_queue_that_was_asked_for_stays_and_is_warned_of() {
        let (queues, warnings) = fitted(&["dctcp@step_mark 1ms"], "cubic");
        assert_eq!(queues, ["step_mark 1 ms"]);
        assert!(warnings[0].contains("slow_start+dctcp starves"), "{warnings:?}");
        let (_, warnings) = fitted(&["cubic@step_mark"], "cubic/ecn");
        assert!(warnings[0].contains("the background starves"), "{warnings:?}");
        let (_, warnings) = fitted(&["cubic"], "dctcp");
        assert!(warnings[0].contains("only drops"), "{warnings:?}");
    }

    #[test]
    fn where_all_or_nobody_answers_marks_nothing_changes_and_nothing_is_said() {
        for (contestant, background) in
            [("dctcp", "2 dctcp"), ("dctcp", "cubic/ecn"), ("dctcp", ""), ("cubic", "cubic")]
        {
            let before = race(&[contestant], background);
            let mut after = before.clone();
            assert_eq!(fit_to_marks(&mut after), Ok(Vec::new()), "{contestant} {background}");
            assert_eq!(after, before);
        }
    }
}
