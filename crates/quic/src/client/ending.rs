//! When a transfer is over, and what came of it.

use flowstart_units::{Span, Time};

use super::{Client, DRAINING, LATE, LOOK_MOST, STALLED, Transferred};
use crate::failed::{Failed, FailedKind};
use crate::learning::Lesson;
use crate::message::Message;
use crate::sending::Sending;

impl Client {
    /// What this end has learnt of the path by now, if it sends, also where it is broken off.
    #[must_use]
    pub fn lesson(&self) -> Lesson {
        self.sending.as_ref().map_or(Lesson::Nothing, Sending::lesson)
    }

    /// How it went, once it is over.
    ///
    /// # Errors
    /// What went wrong.
    pub fn outcome(self) -> Result<Transferred, Failed> {
        let lesson = self.lesson();
        match (self.ended, self.report, self.received) {
            (Some((_, Err(failed))), _, _) => Err(failed),
            // Nobody wants a part of a file without knowing.
            (Some(_), Some(_), Some(received))
                if self.request.file.is_some() && self.request.size.is_some_and(|size| received.bytes < size) =>
            {
                let (bytes, size) = (received.bytes, self.request.size.unwrap_or_default());
                let why = "it has a limit for the time of a transfer (`flowstart serve --most-time`)";
                let words = format!("{} sent {bytes} of {size} bytes of the file: {why}", self.to);
                Err(Failed::new(FailedKind::Incomplete, words))
            }
            (Some(_), Some(report), Some(received)) => Ok(Transferred {
                report,
                received,
                fingerprint: self.fingerprint,
                handshake: self.handshake,
                carried: self.carried,
                lesson,
            }),
            _ => {
                let words = format!("{} ended the transfer before it was complete", self.to);
                Err(Failed::new(FailedKind::Incomplete, words))
            }
        }
    }

    pub(super) fn end(&mut self, now: Time, how: Result<(), Failed>) {
        if self.ended.is_some() {
            return;
        }
        // Its words may be those of the other end.
        let how = how.map_err(Failed::harmless);
        let word = how.as_ref().err().map_or("", Failed::words);
        for endpoint in &mut self.endpoints {
            if let Some(connection) = endpoint.connection(0) {
                connection.close(now, u32::from(!word.is_empty()), word);
            }
        }
        self.ended = Some((now, how));
    }

    /// How long nothing new may come.
    pub(super) fn patience(&self) -> Span {
        // An application that is paced may have nothing to say for long.
        let gap = self.request.paced.map_or(Span::ZERO, |paced| Span::from_nanos(paced.gap));
        gap + if self.draining { DRAINING } else { STALLED }.max(self.attempts.silence())
    }

    /// When a transfer is over that goes no further, or does not end.
    pub(super) fn stalls(&self) -> Time {
        let lasts = self.request.nanos.map(Span::from_nanos);
        let ends = lasts.map(|lasts| self.began + lasts + lasts + LATE);
        (self.news.0 + self.patience()).min(ends.unwrap_or(Time::NEVER))
    }

    /// When a look is over, whatever it has found.
    pub(super) fn look_ends(&self) -> Option<Time> {
        self.request.look.then(|| self.began + LOOK_MOST)
    }

    pub(super) fn conclude(&mut self, now: Time) {
        if let Some(sending) = &mut self.sending {
            sending.give_up(now);
            if let Some(failed) = sending.failed().cloned() {
                return self.end(now, Err(failed));
            }
            if sending.is_complete() && self.report.is_none() {
                let report = sending.report(now);
                if let (Some(control), Some(connection)) = (self.lines[0].control, self.endpoints[0].connection(0)) {
                    connection.write(control, &Message::Report(Box::new(report.clone())).encode());
                }
                self.report = Some(report);
            }
            // Where nothing arrives the other end's word does not either.
            if let (Some(report), Some(at)) = (&self.report, sending.leaves())
                && now >= at
            {
                self.received.get_or_insert_with(|| sending.acknowledged(report));
            }
        }
        if let Some(receiving) = &self.receiving {
            if let Some(failed) = receiving.failed().cloned() {
                return self.end(now, Err(failed));
            }
            let bytes = receiving.delivered();
            if self.report.as_ref().is_some_and(|report| bytes >= report.bytes) {
                self.received = Some(receiving.received());
            }
        }
        if let (Some(report), Some(received)) = (&self.report, &self.received) {
            let (sent, arrived) = (report.bytes, received.bytes);
            // A look that gave up says that it sent nothing.
            let how = match sent == arrived || self.request.look {
                true => Ok(()),
                false => {
                    let words = format!("{}: {sent} bytes were sent, and {arrived} arrived", self.to);
                    Err(Failed::new(FailedKind::Incomplete, words))
                }
            };
            self.end(now, how);
        }
    }
}
