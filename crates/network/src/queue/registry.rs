//! What the registry of disciplines is made with: everything that goes by kind of queue comes from
//! one list.

use flowstart_units::Time;

use super::{Dequeue, Discipline, DropReason, Hosts, Tally};
use crate::Frame;

/// Makes of the list: the modules, the configurations with their names, and the disciplines in
/// operation.
///
/// A line names the discipline's module (which is its name for users), its type, its constants, how
/// it is kept, and what `flowstart list` says of it.
macro_rules! queues {
    ($($module:ident: $queue:ident($config:ident) as $kept:ty, $help:literal;)*) => {
        $(mod $module;)*
        $(pub use $module::{$queue, $config};)*

        /// The constants of each discipline.
        pub mod configs {
            $(pub use super::$module::$config;)*
        }

        /// Which discipline, with its constants.
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
        #[cfg_attr(feature = "serde", serde(tag = "kind", rename_all = "snake_case"))]
        pub enum QueueConfig {
            $(#[doc = $help] $queue($config),)*
        }

        /// How many disciplines there are.
        const COUNT: usize = [$(stringify!($module)),*].len();

        impl QueueConfig {
            /// The names of all disciplines.
            pub const NAMES: [&'static str; COUNT] = [$(stringify!($module)),*];

            /// The discipline of this name with its default constants.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                $(if name == stringify!($module) {
                    return Some(Self::$queue($config::default()));
                })*
                None
            }

            /// The discipline's name.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Self::$queue(_) => stringify!($module),)*
                }
            }

            /// What the discipline does, in one line.
            #[must_use]
            pub const fn help(&self) -> &'static str {
                match self {
                    $(Self::$queue(_) => $help,)*
                }
            }

            /// In which order packets leave.
            #[must_use]
            pub fn order(&self) -> Order {
                match self {
                    $(Self::$queue(config) => config.order(),)*
                }
            }

            /// True if packets may be held back while the link is free.
            #[must_use]
            pub fn holds_back(&self) -> bool {
                match self {
                    $(Self::$queue(config) => config.holds_back(),)*
                }
            }

            /// True if the queue draws random numbers or hashes flows with its seed, so that runs
            /// with different seeds differ.
            #[must_use]
            pub fn is_random(&self) -> bool {
                match self {
                    $(Self::$queue(config) => config.is_random(),)*
                }
            }

            /// The constant that says how much the queue holds.
            pub fn limit(&mut self) -> Limit<'_> {
                match self {
                    $(Self::$queue(config) => config.limit(),)*
                }
            }

            /// The longest packet in bytes (IP length) that the queue takes when it is empty.
            /// Longer ones are always dropped.
            #[must_use]
            pub fn largest_packet(&self) -> u64 {
                match self {
                    $(Self::$queue(config) => config.largest_packet(),)*
                }
            }

            /// Checks the constants.
            ///
            /// # Errors
            /// A buffer without room for a single packet, a quantum of zero, a constant out of its
            /// range.
            pub fn validate(&self) -> Result<(), QueueError> {
                match self {
                    $(Self::$queue(config) => config.validate().and(config.validate_overhead()),)*
                }
            }

            /// The discipline in operation.
            fn install<P: Frame>(self, seed: u64) -> Installed<P> {
                match self {
                    $(Self::$queue(config) => Installed::$queue(config.build(seed).into()),)*
                }
            }
        }

        /// A discipline in operation. The fast ones are kept in place.
        #[derive(Debug)]
        enum Installed<P> {
            $($queue($kept),)*
            External(External<P>),
        }

        // Out of line: the fastest discipline is called apart from these, so that the code for that
        // one is short enough to be inlined as a whole.
        impl<P: Frame> Discipline<P> for Installed<P> {
            #[inline(never)]
            fn enqueue(&mut self, now: Time, packet: P, dropped: &mut dyn FnMut(P, DropReason)) {
                match self {
                    $(Self::$queue(queue) => queue.enqueue(now, packet, dropped),)*
                    Self::External(queue) => queue.enqueue(now, packet, dropped),
                }
            }

            #[inline(never)]
            fn dequeue(&mut self, now: Time, dropped: &mut dyn FnMut(P, DropReason)) -> Dequeue<P> {
                match self {
                    $(Self::$queue(queue) => queue.dequeue(now, dropped),)*
                    Self::External(queue) => queue.dequeue(now, dropped),
                }
            }

            fn heeds_emptiness(&self) -> bool {
                match self {
                    $(Self::$queue(queue) => queue.heeds_emptiness(),)*
                    Self::External(queue) => queue.heeds_emptiness(),
                }
            }

            fn introduce(&mut self, flow: u64, hosts: Hosts) {
                match self {
                    $(Self::$queue(queue) => queue.introduce(flow, hosts),)*
                    Self::External(queue) => queue.introduce(flow, hosts),
                }
            }

            #[inline]
            fn tally(&self) -> Tally {
                match self {
                    $(Self::$queue(queue) => queue.tally(),)*
                    Self::External(queue) => queue.tally(),
                }
            }
        }
    };
}

/// A discipline from outside this crate. What it holds is noted whenever it may have changed:
/// looking at a queue must not be a call into the unknown, which could not be left out where nobody
/// looks.
pub(super) struct External<P> {
    discipline: Box<dyn Discipline<P> + Send>,
    tally: Tally,
}

impl<P: Frame> External<P> {
    pub(super) fn new(discipline: Box<dyn Discipline<P> + Send>) -> Self {
        Self { tally: discipline.tally(), discipline }
    }
}

impl<P: Frame> Discipline<P> for External<P> {
    fn enqueue(&mut self, now: Time, packet: P, dropped: &mut dyn FnMut(P, DropReason)) {
        self.discipline.enqueue(now, packet, dropped);
        self.tally = self.discipline.tally();
    }

    fn dequeue(&mut self, now: Time, dropped: &mut dyn FnMut(P, DropReason)) -> Dequeue<P> {
        let next = self.discipline.dequeue(now, dropped);
        self.tally = self.discipline.tally();
        next
    }

    fn heeds_emptiness(&self) -> bool {
        self.discipline.heeds_emptiness()
    }

    fn introduce(&mut self, flow: u64, hosts: Hosts) {
        self.discipline.introduce(flow, hosts);
    }

    #[inline]
    fn tally(&self) -> Tally {
        self.tally
    }
}

impl<P> std::fmt::Debug for External<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("External")
    }
}
