//! What a flow start or a congestion avoidance must keep to, as a test that its author runs.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use flowstart_congestion::{FlowStart, OwnError, OwnStart, Setup, Start, StartConfig, forward_start};
use flowstart_units::Bytes;

use crate::{Contestant, Race, RaceError, RunOptions};

/// What a contestant did against the contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken(String);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Broken {}

impl From<RaceError> for Broken {
    fn from(error: RaceError) -> Self {
        Self(error.to_string())
    }
}

impl From<OwnError> for Broken {
    fn from(error: OwnError) -> Self {
        Self(error.to_string())
    }
}

/// A path on which starts have gone wrong before: its name, capacity, RTT, buffer and losses, as in
/// scenario files.
struct Hard {
    name: &'static str,
    capacity: &'static str,
    rtt: &'static str,
    buffer: &'static str,
    loss: &'static str,
}

const HARD: [Hard; 5] = [
    Hard { name: "usual", capacity: "50 Mbit/s", rtt: "20 ms", buffer: "80 packets", loss: "none" },
    Hard { name: "slow and long", capacity: "500 kbit/s", rtt: "300 ms", buffer: "20 packets", loss: "none" },
    Hard { name: "short and fast", capacity: "1 Gbit/s", rtt: "1 ms", buffer: "40 packets", loss: "none" },
    Hard { name: "a buffer of two", capacity: "10 Mbit/s", rtt: "20 ms", buffer: "2 packets", loss: "none" },
    Hard { name: "losses", capacity: "10 Mbit/s", rtt: "40 ms", buffer: "40 packets", loss: "2 %" },
];

/// Sizes of the transfers that must complete.
const SIZES: [u64; 3] = [1_000, 100_000, 1_000_000];

/// Events after which a simulation over one of these paths is given up. Those of the project's own
/// starts end within 13 thousand.
const MOST_EVENTS: u64 = 1_000_000;

/// Runs the contestant (`"mine+cubic"`) over paths on which starts have gone wrong before, and says
/// what it does against the contract:
///
/// - every transfer completes, over short buffers and with losses too, and no simulation takes more
///   than a million events (time passes) or sends a million packets at one moment (windows end);
/// - the same race gives the same result again, and with one thread (no clock, no randomness but
///   the [`Connection`](flowstart_congestion::Connection)'s seed, nothing shared by connections);
/// - asking for the departure of a packet twice changes nothing (the transport may);
/// - nothing panics.
///
/// # Errors
/// The first rule that it breaks, and on which path; or that its name is not known.
pub fn check(contestant: &str) -> Result<(), Broken> {
    let contestant: Contestant = contestant.parse()?;
    for hard in &HARD {
        let results = outcome(hard, &contestant, None)?;
        if results != outcome(hard, &contestant, Some(1))? {
            return Err(Broken(format!(
                "{contestant} gives another result when the same race is run again, on the path \"{}\": {}",
                hard.name, "something in it does not come from what it is told"
            )));
        }
        // What the simulator does for detectors, for Quick-Start and for the omniscient start goes
        // by more than the trait.
        let start = &contestant.start;
        if start.connections() > 1 || start.asks_routers() || matches!(start, StartConfig::Oracle(_)) {
            continue;
        }
        let twice = Contestant { start: asked_twice(&contestant.start)?, ..contestant.clone() };
        if results != outcome(hard, &twice, None)? {
            return Err(Broken(format!(
                "{contestant} behaves in another way when it is asked for each departure twice, on the path \"{}\": {}",
                hard.name, "`departure` must change nothing until `on_sent`"
            )));
        }
    }
    Ok(())
}

/// Values of every run as text, once every transfer completed.
fn outcome(hard: &Hard, contestant: &Contestant, threads: Option<usize>) -> Result<String, Broken> {
    let mut race = Race::default();
    let unreadable = || Broken(format!("the path \"{}\" cannot be read", hard.name));
    race.set_capacity(hard.capacity.parse().map_err(|_| unreadable())?);
    race.path.rtt = hard.rtt.parse().map_err(|_| unreadable())?;
    race.set_buffer(hard.buffer.parse().map_err(|_| unreadable())?);
    race.path.loss = hard.loss.parse().map_err(|_| unreadable())?;
    race.sizes = SIZES.map(Bytes::new).to_vec();
    race.contestants = vec![contestant.clone()];
    race.runs = Some(2);
    let options = RunOptions { threads, most_events: Some(MOST_EVENTS), ..RunOptions::default() };
    let result = catch_unwind(AssertUnwindSafe(|| race.run(&options))).map_err(|panic| {
        let said = panic.downcast_ref::<&str>().copied().or(panic.downcast_ref::<String>().map(String::as_str));
        // What is no text is no panic of Rust code, and somebody else's to catch.
        let Some(said) = said else { resume_unwind(panic) };
        Broken(format!("{contestant} panicked on the path \"{}\": {said}", hard.name))
    })??;
    for run in &result.contestants[0].runs {
        for measure in race.measures() {
            let of_a_transfer = measure.name().starts_with("completion");
            if of_a_transfer && run.get(measure).is_none() {
                return Err(Broken(format!(
                    "{contestant} does not complete a transfer on the path \"{}\" ({})",
                    hard.name,
                    measure.name()
                )));
            }
        }
    }
    Ok(result.contestants[0].runs.iter().map(|run| format!("{:?} {:?}\n", run.values, run.exits)).collect())
}

/// The same start, which hears every question for a departure twice.
fn asked_twice(start: &StartConfig) -> Result<StartConfig, OwnError> {
    let of = start.clone();
    let make =
        move |connection| -> Box<dyn OwnStart> { Box::new(AskedTwice(Start::new(Setup { config: &of, connection }))) };
    StartConfig::own("asked_twice", "another start, asked twice", make).map(StartConfig::Own)
}

#[derive(Clone)]
struct AskedTwice(Start);

macro_rules! asked_twice {
    ($this:ident.departure($now:ident, $next:ident, $window:ident)) => {{
        let _ = $this.0.departure($now, $next, $window);
        $this.0.departure($now, $next, $window)
    }};
    ($this:ident.$method:ident($($argument:ident),*)) => { $this.0.$method($($argument),*) };
}

impl FlowStart for AskedTwice {
    forward_start!(asked_twice);
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use flowstart_congestion::{Ack, AvoidanceConfig, CongestionAvoidance, Departure, Next, Signal, Window};
    use flowstart_units::{Span, Time};

    use super::*;

    /// Slow start but for one method.
    #[derive(Clone)]
    struct Odd {
        calls: u32,
        kind: &'static str,
    }

    /// An avoidance whose window grows or shrinks in an odd way.
    #[derive(Clone)]
    struct OddLater(&'static str);

    impl CongestionAvoidance for OddLater {
        fn grow(&mut self, _ack: &Ack, acked: u32, window: &mut Window) {
            window.cwnd =
                if self.0 == "doubling" { window.cwnd.saturating_mul(2) } else { window.cwnd.saturating_add(acked) };
        }

        fn reduce(&mut self, _now: Time, _signal: Signal, window: &Window) -> u32 {
            if self.0 == "swelling" { u32::MAX } else { window.cwnd / 2 }
        }
    }

    static SHARED: AtomicU32 = AtomicU32::new(0);

    impl FlowStart for Odd {
        fn grow(&mut self, ack: &Ack, window: &mut Window) -> u32 {
            assert!(self.kind != "panicking", "on purpose");
            if self.kind == "endless" {
                window.cwnd = u32::MAX;
                return 0;
            }
            let more = if self.kind == "shared" { SHARED.fetch_add(1, Ordering::Relaxed) % 7 } else { ack.acked };
            window.slow_start(more)
        }

        fn departure(&mut self, now: Time, _next: &Next, _window: &Window) -> Option<Departure> {
            self.calls += 1;
            match self.kind {
                "restless" if !self.calls.is_multiple_of(6) => Some(Departure::At(now + Span::from_micros(10))),
                "crawling" => Some(Departure::At(now + Span::from_nanos(1))),
                "never" if self.calls > 40 => Some(Departure::Hold),
                _ => None,
            }
        }
    }

    fn check_kind(kind: &'static str) -> Result<(), Broken> {
        StartConfig::register(StartConfig::own(kind, "odd", move |_| Box::new(Odd { calls: 0, kind }))?)?;
        check(&format!("{kind}+cubic"))
    }

    #[test]
    fn an_own_slow_start_keeps_the_contract() {
        assert_eq!(check_kind("plain"), Ok(()));
    }

    #[test]
    fn each_broken_rule_is_named() {
        for (kind, part) in [
            ("shared", "another result when the same race is run again"),
            ("restless", "asked for each departure twice"),
            ("crawling", "s of simulated time after 1000000 events"),
            ("never", "does not complete a transfer on the path \"usual\""),
            ("endless", "1000000 packets at one moment"),
            ("panicking", "panicking+cubic panicked on the path \"usual\": on purpose"),
        ] {
            let message = check_kind(kind).expect_err(kind).to_string();
            assert!(message.contains(part), "{kind}: {message}");
        }
    }

    #[test]
    fn an_avoidance_whose_window_grows_without_end_is_named() {
        for kind in ["doubling", "swelling"] {
            let own = AvoidanceConfig::own(kind, "odd", move |_| Box::new(OddLater(kind))).unwrap();
            AvoidanceConfig::register(own).unwrap();
            let message = check(&format!("slow_start+{kind}")).expect_err(kind).to_string();
            assert!(message.contains("1000000 packets at one moment"), "{kind}: {message}");
        }
    }

    #[test]
    fn the_starts_of_the_project_keep_the_contract() {
        for name in StartConfig::NAMES {
            assert_eq!(check(&format!("{name}+cubic")), Ok(()), "{name}");
        }
    }
}
