//! Waiting for what is next.

use std::cmp::Reverse;
use std::os::fd::AsFd as _;

use flowstart_units::Time;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::EventFd;

use super::{Engine, LONGEST_SLEEP, WORTH_SLEEPING};
use crate::clock;

impl Engine {
    /// Waits until something is due, or may have arrived.
    pub(super) fn wait(&mut self, now: Time, waker: &EventFd) {
        let departure = self.departures.peek().map_or(Time::NEVER, |Reverse(due)| due.time);
        let step = self.steps.peek().map_or(Time::NEVER, |Reverse(due)| due.time);
        let step = step.min(self.arrivals.front().map_or(Time::NEVER, |(time, _)| *time));
        let deadline = departure.min(if step == Time::NEVER { step } else { step + self.leeway });
        let idle = deadline == Time::NEVER;
        let until = deadline.min(now + LONGEST_SLEEP);
        let moment = self.clock.now();
        self.looks.at(moment);
        self.budget.update(moment, clock::thread_time);
        if let Some(rest) = self.budget.rest() {
            return self.sleep_until(moment + rest);
        }
        if until <= moment + self.timing.spin {
            if until >= moment + WORTH_SLEEPING && !self.budget.may_spin() {
                return self.sleep_until(until);
            }
            std::hint::spin_loop();
            return;
        }
        let wake = until - self.timing.spin;
        if idle && let Some(recorder) = &mut self.recorder {
            recorder.flush();
        }
        if !idle && !self.leeway.is_zero() {
            // Packets that come meanwhile can wait for the next look.
            return self.sleep_until(wake.min(moment + self.leeway));
        }
        self.looks.sleeps_until(wake);
        let mut fds: Vec<PollFd<'_>> =
            self.entrances.iter().map(|entrance| PollFd::new(entrance.ring.fd(), PollFlags::POLLIN)).collect();
        fds.push(PollFd::new(waker.as_fd(), PollFlags::POLLIN));
        // An interrupted wait is a short one.
        let _ = ppoll(&mut fds, Some(clock::timespec(wake.since(moment))), None);
    }

    /// Sleeps until it is to stop, but not longer than this.
    pub(super) fn sleep_unless_woken(&mut self, wake: Time, waker: &EventFd) {
        self.looks.sleeps_until(wake);
        let mut fds = [PollFd::new(waker.as_fd(), PollFlags::POLLIN)];
        let _ = ppoll(&mut fds, Some(clock::timespec(wake.since(self.clock.now()))), None);
    }

    pub(super) fn sleep_until(&mut self, wake: Time) {
        self.looks.sleeps_until(wake);
        self.clock.sleep_until(wake);
    }
}
