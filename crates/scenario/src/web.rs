//! Users who fetch web pages.

use flowstart_random::Purpose;
use flowstart_simulator::{FlowConfig, SessionConfig};
use flowstart_units::{Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FlowSpec;
use super::error::Problem;
use crate::workload::{Files, Http, WebModel};

/// Users who fetch pages one after the other, with pauses between them. The pages depend on seed
/// and run only, so that two scenarios that differ in transport see the same requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WebSpec {
    /// Number of users.
    #[serde(default = "one")]
    pub users: u32,
    /// Files on the server.
    #[serde(default)]
    pub files: Files,
    /// How the files of a page share connections.
    #[serde(default)]
    pub http: Http,
    /// The connections; `start` is when the first pause begins.
    pub flow: FlowSpec,
}

fn one() -> u32 {
    1
}

/// Most users of one kind.
pub(super) const MOST_USERS: u32 = 10_000;

impl WebSpec {
    /// The sessions of the users; `flow` is the connection with its way. The users of a scenario's
    /// table number `table` are others than those of other tables, but the server is the same.
    pub(super) fn sessions(
        &self,
        flow: &FlowConfig,
        request_delay: Span,
        (seed, run, table, duration): (u64, u64, usize, Span),
    ) -> Result<Vec<SessionConfig>, Problem> {
        if self.users == 0 || self.users > MOST_USERS {
            return Err(Problem::at("users", format!("there are 1 to {MOST_USERS} users")));
        }
        let own = self.flow.size.is_some() || self.flow.paced.is_some() || !self.flow.writes.is_empty();
        if own || self.flow.list.is_some() {
            return Err(Problem::at("flow", "what users fetch is said by files, not by size, paced, writes or list"));
        }
        if self.flow.count != 1 || !self.flow.every.is_zero() {
            return Err(Problem::at("flow", "how many users there are is said by users, not by count or every"));
        }
        let model = WebModel::of(self.files);
        let server = model.server(Purpose::Users.seed(seed, run, 0));
        let start = Time::ZERO + self.flow.start;
        let first = table as u64 * u64::from(MOST_USERS) + 1;
        let sessions = (first..first + u64::from(self.users)).map(|user| SessionConfig {
            flow: FlowConfig { start, ..flow.clone() },
            request_delay,
            persistent: self.http != Http::Single,
            replies: model.user(&server, self.http, duration - self.flow.start, Purpose::Users.seed(seed, run, user)),
        });
        // A user who thinks to the end asks for nothing.
        Ok(sessions.filter(|session| !session.replies.is_empty()).collect())
    }
}

#[cfg(test)]
mod tests {
    use flowstart_simulator::{Outcome, Page, Simulation, SimulationConfig};
    use flowstart_units::{Bytes, Span, Time};
    use proptest::prelude::*;

    use crate::Scenario;

    /// Two kinds of users and random transfers, all with this start.
    fn compiled(start: &str, (files, http, seed): (&str, &str, u64)) -> SimulationConfig {
        let text = format!(
            r#"
duration = "30 s"
seed = {seed}
[path]
capacity = "10 Mbit/s"
rtt = "100 ms"
[[web]]
users = 3
files = "{files}"
http = "{http}"
flow = {{ name = "user", flow_start = {start}, avoidance = "cubic" }}
[[web]]
files = "{files}"
flow = {{ name = "other", flow_start = {start}, avoidance = "cubic" }}
[[arrivals]]
mean_gap = "1 s"
sizes = {{ kind = "truncated_pareto", shape = 1.2, min = "10 kB", max = "1 MB" }}
flow = {{ name = "transfer", flow_start = {start}, avoidance = "cubic" }}
"#
        );
        Scenario::parse("test.toml", &text).unwrap().simulation(seed % 3).unwrap().simulation
    }

    fn run(config: &SimulationConfig) -> Outcome {
        Simulation::new(config, ()).unwrap().run().0
    }

    /// Start times and sizes of the transfers that arrived, which are the last group.
    fn arrived(outcome: &Outcome) -> Vec<(Time, Option<Bytes>)> {
        let flows = outcome.flows.iter().filter(|flow| flow.group == 2);
        flows.map(|flow| (flow.started, flow.size)).collect()
    }

    /// From the end of each page to the wish for the next.
    fn pauses(pages: &[Page]) -> impl Iterator<Item = Span> + '_ {
        pages.windows(2).map(|two| two[1].began.since(two[0].done))
    }

    const STARTS: [&str; 3] = [
        "\"slow_start\"",
        "\"quick_start\"",
        "{ name = \"quick_start\", request = \"5.12 Mbit/s\", as_needed = false, in_middle = true }",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]

        /// Invariant 8 of the experiments: whatever the start, the same seed asks for the same.
        #[test]
        fn users_and_arrivals_ask_for_the_same_whatever_the_start_is(
            files in prop::sample::select(vec!["surge", "large"]),
            http in prop::sample::select(vec!["single", "persistent", "pipelined"]),
            seed in 0_u64..1_000_000,
        ) {
            let configs = STARTS.map(|start| compiled(start, (files, http, seed)));
            let outcomes = configs.each_ref().map(run);
            for (config, outcome) in configs.iter().zip(&outcomes).skip(1) {
                for (user, slow) in config.sessions.iter().zip(&configs[0].sessions) {
                    prop_assert_eq!((&user.replies, user.flow.start), (&slow.replies, slow.flow.start));
                }
                prop_assert_eq!(config.sessions.len(), configs[0].sessions.len());
                prop_assert!(config.transfers(0).take(100).eq(configs[0].transfers(0).take(100)));
                // Pages take another time, but they are the same pages in the same order, each
                // after the same pause.
                prop_assert_eq!(arrived(outcome), arrived(&outcomes[0]));
                for (user, slow) in outcome.sessions.iter().zip(&outcomes[0].sessions) {
                    for (page, other) in user.pages.iter().zip(&slow.pages) {
                        prop_assert_eq!((page.bytes, page.replies), (other.bytes, other.replies));
                    }
                    for (pause, other) in pauses(&user.pages).zip(pauses(&slow.pages)) {
                        prop_assert_eq!(pause, other);
                    }
                }
                // The same seed, the same trace.
                prop_assert_eq!(&run(config), outcome);
            }
        }
    }

    #[test]
    fn with_another_start_the_same_pages_take_another_time() {
        let [slow, quick, _] = STARTS.map(|start| run(&compiled(start, ("large", "single", 7))));
        let pages = |outcome: &Outcome| -> usize { outcome.sessions.iter().map(|user| user.pages.len()).sum() };
        assert!(pages(&slow) > 10 && pages(&quick) > 10);
        let first = |outcome: &Outcome| outcome.sessions[0].pages[0];
        assert_eq!(first(&slow).began, first(&quick).began);
        assert!(first(&quick).done < first(&slow).done, "{:?} against {:?}", first(&quick), first(&slow));
    }

    #[test]
    fn users_of_two_tables_are_not_the_same_users() {
        let config = compiled("\"slow_start\"", ("surge", "persistent", 1));
        for (number, user) in config.sessions.iter().enumerate() {
            for other in &config.sessions[number + 1..] {
                assert_ne!(user.replies, other.replies);
            }
        }
    }
}
