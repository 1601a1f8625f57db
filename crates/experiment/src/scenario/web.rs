//! Users who fetch web pages.

use flowstart_simulator::{FlowConfig, SessionConfig};
use flowstart_units::{Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FlowSpec;
use super::error::Problem;
use crate::workload::{Files, Http, WebModel};

/// Users who fetch pages one after the other, with pauses between them. The pages depend on seed and run only, so that two scenarios that differ in
/// transport see the same requests.
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
const MOST_USERS: u32 = 10_000;
/// Keeps these streams of random numbers apart from all others.
const STREAM: u64 = 0x7765_6273;

fn seed_of(parts: [u64; 3]) -> u64 {
    parts.iter().fold(STREAM, |state, part| {
        let mixed = (state ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ (mixed >> 29)
    })
}

impl WebSpec {
    /// The sessions of the users; `flow` is the connection with its way.
    pub(super) fn sessions(
        &self,
        flow: &FlowConfig,
        request_delay: Span,
        (seed, run, duration): (u64, u64, Span),
    ) -> Result<Vec<SessionConfig>, Problem> {
        if self.users == 0 || self.users > MOST_USERS {
            return Err(Problem::at("users", format!("there are 1 to {MOST_USERS} users")));
        }
        let own = self.flow.size.is_some() || self.flow.paced.is_some() || !self.flow.writes.is_empty();
        if own || self.flow.list.is_some() {
            return Err(Problem::at("flow", "what users fetch is said by files, not by size, paced, writes or list"));
        }
        let model = WebModel::of(self.files);
        let server = model.server(seed_of([seed, run, 0]));
        let start = Time::ZERO + self.flow.start;
        let sessions = (1..=u64::from(self.users)).map(|user| SessionConfig {
            flow: FlowConfig { start, ..flow.clone() },
            request_delay,
            persistent: self.http != Http::Single,
            replies: model.user(&server, self.http, duration - self.flow.start, seed_of([seed, run, user])),
        });
        // A user who thinks to the end asks for nothing.
        Ok(sessions.filter(|session| !session.replies.is_empty()).collect())
    }
}
