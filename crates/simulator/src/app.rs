//! The application that writes into a socket.

use flowstart_random::Stream;
use flowstart_units::{Bytes, Span, Time};

use crate::draw::gap;
use crate::{Spacing, Workload};

/// What is left to be written, and when.
#[derive(Clone, Debug)]
pub(crate) struct App {
    kind: Kind,
    /// When the next write is due; [`Time::NEVER`] if none is.
    pub(crate) deadline: Time,
    /// Bytes due that the socket has not taken yet.
    pub(crate) backlog: u64,
    /// No more writes will come after the backlog.
    pub(crate) ended: bool,
}

#[derive(Clone, Debug)]
enum Kind {
    AtOnce,
    Paced { mean: Span, message: u64, spacing: Spacing, until: Time, random: Stream },
    Script { start: Time, writes: std::vec::IntoIter<(Span, Bytes)>, next: u64 },
}

/// The length of an endless write.
pub(crate) const ENDLESS: u64 = u64::MAX;

impl App {
    /// An application that starts at `start`.
    pub(crate) fn new(workload: &Workload, start: Time, random: impl FnOnce() -> Stream) -> Self {
        let at_once = |backlog, ended| Self { kind: Kind::AtOnce, deadline: Time::NEVER, backlog, ended };
        match workload {
            Workload::Greedy => at_once(ENDLESS, false),
            Workload::Sized(bytes) => at_once(bytes.get(), true),
            Workload::Replies(bytes) => at_once(bytes.get(), false),
            Workload::Paced { rate, message, spacing, lasting } => Self {
                kind: Kind::Paced {
                    mean: rate.transmission_time(*message),
                    message: message.get(),
                    spacing: *spacing,
                    until: start + *lasting,
                    random: random(),
                },
                deadline: start,
                backlog: 0,
                ended: false,
            },
            Workload::Script(writes) => {
                let mut app = Self {
                    kind: Kind::Script { start, writes: writes.clone().into_iter(), next: 0 },
                    deadline: Time::NEVER,
                    backlog: 0,
                    ended: false,
                };
                app.schedule_script();
                app
            }
        }
    }

    /// Size of the whole stream, if it is known beforehand and ends.
    pub(crate) fn size(workload: &Workload) -> Option<Bytes> {
        match workload {
            Workload::Greedy | Workload::Paced { .. } | Workload::Replies(_) => None,
            Workload::Sized(bytes) => Some(*bytes),
            Workload::Script(writes) => Some(writes.iter().fold(Bytes::ZERO, |sum, (_, bytes)| sum + *bytes)),
        }
    }

    /// The flow is to be asked at this time what it wants, though no more will be written.
    pub(crate) fn wake_after_end(&mut self, at: Time) {
        if self.ended && self.deadline == Time::NEVER {
            self.deadline = at;
        }
    }

    /// The deadline has come: more bytes are due, unless it was set after the end.
    pub(crate) fn advance(&mut self) {
        let now = self.deadline;
        if self.ended {
            self.deadline = Time::NEVER;
            return;
        }
        match &mut self.kind {
            Kind::AtOnce => self.deadline = Time::NEVER,
            Kind::Paced { mean, message, spacing, until, random } => {
                self.backlog = self.backlog.saturating_add(*message);
                // At least a nanosecond, so that time moves on whatever the rate.
                let next = now + gap(*spacing, *mean, random).max(Span::from_nanos(1));
                if next < *until {
                    self.deadline = next;
                } else {
                    self.deadline = Time::NEVER;
                    self.ended = true;
                }
            }
            Kind::Script { next, .. } => {
                self.backlog = self.backlog.saturating_add(*next);
                self.schedule_script();
            }
        }
    }

    fn schedule_script(&mut self) {
        if let Kind::Script { start, writes, next } = &mut self.kind {
            match writes.next() {
                Some((after, bytes)) => {
                    // A script that goes back in time goes on at once.
                    let due = *start + after;
                    self.deadline = if self.deadline == Time::NEVER { due } else { due.max(self.deadline) };
                    *next = bytes.get();
                }
                None => {
                    self.deadline = Time::NEVER;
                    self.ended = true;
                }
            }
        }
    }
}
