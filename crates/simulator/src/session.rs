//! Users in a closed loop: each asks for the next reply some time after it has the last one.

use flowstart_units::{Bytes, Span, Time};

use crate::FlowConfig;

/// One reply to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// From the end of the last reply (for the first: from the start of the session) until the user
    /// asks for this one.
    pub think: Span,
    /// Its size, at least 1 byte.
    pub bytes: Bytes,
    /// True if the user has what it wanted with this reply: the last one of a page.
    pub ends_page: bool,
}

/// A user who asks for one reply after the other.
#[derive(Clone, Debug)]
pub struct SessionConfig {
    /// The connections its replies come on; `start` is when the session begins, the workload is
    /// replaced. TCP only.
    pub flow: FlowConfig,
    /// From the user's wish until the other end acts on it: opens the connection in the simulator's
    /// direction, or writes into the open one.
    pub request_delay: Span,
    /// True for all replies on one connection, false for a connection per reply.
    pub persistent: bool,
    /// The replies, at least one.
    pub replies: Vec<Reply>,
}

impl SessionConfig {
    /// The pages of a session whose replies were complete at these times, in order; for sessions
    /// that were not simulated.
    #[must_use]
    pub fn pages(&self, done: impl IntoIterator<Item = Time>) -> Vec<Page> {
        let mut session = Session::new(self, 0);
        done.into_iter().for_each(|done| {
            session.got(done);
        });
        session.pages
    }
}

/// A page that a user got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// When the user wished for it.
    pub began: Time,
    /// When its last byte was there.
    pub done: Time,
    /// Its bytes.
    pub bytes: Bytes,
    /// Its replies.
    pub replies: u32,
}

/// What became of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionOutcome {
    /// The group of its flow.
    pub group: u32,
    /// The pages that are complete, in order.
    pub pages: Vec<Page>,
}

/// A session in operation.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) config: SessionConfig,
    pub(crate) route: u32,
    /// Number of the reply that is waited for, or asked for next.
    next: usize,
    /// The page that is being fetched.
    page: Page,
    /// Where the open connection is.
    pub(crate) connection: Option<usize>,
    pages: Vec<Page>,
}

impl Session {
    pub(crate) fn new(config: &SessionConfig, route: u32) -> Self {
        let first = config.replies.first().map_or(Span::ZERO, |reply| reply.think);
        let page = empty_page(config.flow.start + first);
        Self { config: config.clone(), route, next: 0, page, connection: None, pages: Vec::new() }
    }

    /// When the first request is acted on.
    pub(crate) fn first(&self) -> Time {
        self.page.began + self.config.request_delay
    }

    /// The reply that is being asked for, and whether it is the last.
    pub(crate) fn reply(&self) -> Option<(Reply, bool)> {
        let reply = self.config.replies.get(self.next)?;
        Some((*reply, self.next + 1 == self.config.replies.len()))
    }

    /// The reply that was waited for is complete. When the next request is acted on; `None` if that
    /// was the last.
    pub(crate) fn got(&mut self, now: Time) -> Option<Time> {
        let (reply, _) = self.reply()?;
        self.next += 1;
        self.page.bytes += reply.bytes;
        self.page.replies = self.page.replies.saturating_add(1);
        let wish = self.config.replies.get(self.next).map(|next| now + next.think);
        if reply.ends_page {
            self.pages.push(Page { done: now, ..self.page });
            self.page = empty_page(wish.unwrap_or(now));
        }
        Some(wish? + self.config.request_delay)
    }

    pub(crate) fn outcome(self) -> SessionOutcome {
        SessionOutcome { group: self.config.flow.group, pages: self.pages }
    }
}

fn empty_page(began: Time) -> Page {
    Page { began, done: began, bytes: Bytes::ZERO, replies: 0 }
}
