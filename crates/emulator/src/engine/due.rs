//! What is due, the earliest first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use flowstart_units::Time;

/// The earliest is on top.
pub(super) type Schedule<T> = BinaryHeap<Reverse<Due<T>>>;

/// Something due at a time; what is due at the same time goes in order of scheduling.
#[derive(Clone, Copy, Debug)]
pub(super) struct Due<T> {
    pub(super) time: Time,
    pub(super) order: u64,
    pub(super) what: T,
}

impl<T> PartialEq for Due<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.time, self.order) == (other.time, other.order)
    }
}

impl<T> Eq for Due<T> {}

impl<T> PartialOrd for Due<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Due<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.time, self.order).cmp(&(other.time, other.order))
    }
}
