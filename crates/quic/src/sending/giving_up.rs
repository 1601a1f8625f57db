//! When a look is over although not all of it has arrived.

use flowstart_units::Time;

use super::Sending;

impl Sending {
    /// When what has not arrived of a look is waited for no longer.
    pub(super) fn gives_up(&self) -> Option<Time> {
        let (look, over) = (self.look.as_ref()?, self.look_over.filter(|_| self.ended.is_none())?);
        Some(over + look.grace())
    }

    /// ... and the other end's word on it, if it was.
    pub(crate) fn leaves(&self) -> Option<Time> {
        let look = self.look.as_ref().filter(|_| self.given_up)?;
        Some(self.ended? + look.grace())
    }

    /// Ends a look whose last packets do not arrive. True if it is at its end.
    pub(crate) fn give_up(&mut self, now: Time) -> bool {
        if self.gives_up().is_some_and(|at| now >= at) {
            self.given_up = true;
            self.ended = Some(now);
        }
        self.given_up
    }
}
