//! Whether the memory of this machine is enough for a scenario, before it is run.

use flowstart_units::Span;

use super::compile::MOST_FLOWS;
use super::error::Problem;
use super::web::MOST_USERS;
use super::{ArrivalSpec, FlowSpec, Scenario, ScenarioError, WebSpec};

/// A flow in a simulation with its endpoints, rounded up; measured with 100 000 flows of a byte.
const PER_FLOW: u64 = 5_500;
/// What is kept of a flow that is over, and its row in the tables.
const PER_ROW: u64 = 1_200;
/// A reply that a user will ask for.
const PER_REPLY: u64 = 32;
/// Mean pause between two pages (Pareto from 2 s with shape 1.4).
const PAUSE: Span = Span::from_secs(7);
/// Files of a page, on average.
const REPLIES_PER_PAGE: u64 = 6;
/// So much every machine has.
const NOT_WORTH_ASKING: u64 = 100_000_000;
/// What is taken to be free where nobody tells.
const UNKNOWN: u64 = 4 << 30;

/// What one part of a scenario takes, and where it stands.
struct Need {
    bytes: u64,
    key: &'static str,
    advice: &'static str,
}

fn times(a: u64, b: u64) -> u64 {
    a.saturating_mul(b)
}

impl Scenario {
    /// Refuses a scenario that needs more memory than is free on this machine.
    ///
    /// # Errors
    /// What takes the most, how much it is, what is free, and what to change.
    pub fn fits_memory(&self) -> Result<(), ScenarioError> {
        self.check_memory().map_err(|problem| problem.locate("scenario", ""))
    }

    pub(super) fn check_memory(&self) -> Result<(), Problem> {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
        self.check_memory_of(free, cores)
    }

    fn check_memory_of(&self, free: impl FnOnce() -> u64, cores: u64) -> Result<(), Problem> {
        let at_once = self.runs.min(cores).max(1);
        let flows = self.flow.iter().map(flows).fold(0, u64::saturating_add);
        let arrivals = self.arrivals.iter().map(|one| self.arrivals(one)).fold(0, u64::saturating_add);
        let replies = self.web.iter().map(|one| self.replies(one)).fold(0, u64::saturating_add);
        let rows = times(PER_ROW, self.runs);
        let needs = [
            Need {
                bytes: times(flows, times(PER_FLOW, at_once).saturating_add(rows)),
                key: "flow",
                advice: "fewer flows (count) or fewer runs would do",
            },
            Need {
                bytes: times(arrivals, rows),
                key: "arrivals",
                advice: "a larger mean_gap, a limit (most), a shorter duration or fewer runs would do",
            },
            Need {
                bytes: times(replies, times(PER_REPLY, at_once)),
                key: "web",
                advice: "fewer users or a shorter duration would do",
            },
        ];
        let all = needs.iter().fold(0, |sum: u64, need| sum.saturating_add(need.bytes));
        if all <= NOT_WORTH_ASKING {
            return Ok(());
        }
        let free = free();
        // The rest is for what is not counted here: packets on their way, samples.
        let limit = free / 4 * 3;
        let largest = needs.into_iter().max_by_key(|need| need.bytes);
        match largest {
            Some(Need { key, advice, .. }) if all > limit => Err(Problem::at(
                key,
                format!("needs about {} of memory, and this machine has {} free; {advice}", size(all), size(free)),
            )),
            _ => Ok(()),
        }
    }

    /// Arrivals to be expected.
    fn arrivals(&self, spec: &ArrivalSpec) -> u64 {
        let gap = spec.mean_gap.or_else(|| {
            let capacity = self.path.as_ref()?.capacity.nominal();
            Some(spec.load?.mean_gap(&spec.sizes, capacity))
        });
        // Without either it is refused elsewhere.
        let gap = gap.unwrap_or(Span::MAX);
        let time = spec.until.unwrap_or(Span::MAX).min(self.duration);
        let expected = time.as_nanos() / gap.as_nanos().max(1);
        expected.min(spec.most.unwrap_or(u64::MAX))
    }

    /// Replies that users may ask for.
    fn replies(&self, spec: &WebSpec) -> u64 {
        let pages = self.duration.as_nanos() / PAUSE.as_nanos();
        // More are refused as such.
        let users = if spec.users > MOST_USERS { 0 } else { spec.users };
        times(u64::from(users), times(pages, REPLIES_PER_PAGE))
    }
}

/// Connections of this kind.
fn flows(spec: &FlowSpec) -> u64 {
    let pair = spec.flow_start.as_ref().is_some_and(|start| start.connections() > 1);
    let count = if u64::from(spec.count) > MOST_FLOWS { 0 } else { spec.count };
    times(u64::from(count), 1 + u64::from(pair))
}

/// Bytes of memory that are free.
fn free() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.map_or(UNKNOWN, |kib| times(kib, 1024))
}

/// A size for people.
fn size(bytes: u64) -> String {
    match bytes {
        0..10_000_000_000 => format!("{} MB", bytes.div_ceil(1_000_000)),
        _ => format!("{} GB", bytes.div_ceil(1_000_000_000)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(text: &str) -> Scenario {
        let text = format!("{text}\n[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"10 ms\"\n");
        toml::from_str(&text).unwrap()
    }

    /// The complaint on a machine with 4 GB free and two cores.
    fn complaint(text: &str) -> Option<String> {
        let problem = scenario(text).check_memory_of(|| 4_000_000_000, 2).err()?;
        Some(problem.locate("test.toml", "").to_string())
    }

    #[test]
    fn a_million_flows_are_refused_with_what_they_need_and_what_there_is() {
        let complaint = complaint("flow = [{ count = 1000000, size = \"1 B\" }]").unwrap();
        assert!(complaint.contains("needs about 6700 MB of memory, and this machine has 4000 MB free"), "{complaint}");
        assert!(complaint.contains("fewer flows (count)"), "{complaint}");
    }

    #[test]
    fn a_hundred_thousand_flows_are_not_refused_but_many_runs_of_them_are() {
        let flows = "flow = [{ count = 100000, size = \"1 B\" }]";
        assert_eq!(complaint(flows), None);
        assert!(complaint(&format!("runs = 100\n{flows}")).is_some());
    }

    #[test]
    fn users_who_surf_for_centuries_are_refused_before_their_pages_are_drawn() {
        let users = "web = [{ users = 100, flow = {} }]";
        assert_eq!(complaint(&format!("duration = \"3600 s\"\n{users}")), None);
        let complaint = complaint(&format!("duration = \"9000000000 s\"\n{users}")).unwrap();
        assert!(complaint.contains("fewer users or a shorter duration"), "{complaint}");
        // Reading it must not draw them either.
        let whole = format!("duration = \"9000000000 s\"\n{users}\n[path]\ncapacity = \"1 Mbit/s\"\nrtt = \"10 ms\"\n");
        assert!(Scenario::parse("test.toml", &whole).is_err());
    }

    #[test]
    fn arrivals_count_as_far_as_they_are_limited() {
        let arrivals = |more: &str| {
            format!(
                "duration = \"1000 s\"\narrivals = [{{ mean_gap = \"10 ns\", {more}sizes = {{ kind = \"fixed\", size = \"1 B\" }}, flow = {{}} }}]"
            )
        };
        assert!(complaint(&arrivals("")).is_some());
        assert_eq!(complaint(&arrivals("most = 1000, ")), None);
        assert_eq!(complaint(&arrivals("until = \"1 ms\", ")), None);
    }
}
