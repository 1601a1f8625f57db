//! When the messages of a probe passed the ends of the network.

use flowstart_service_curve::Passed;
use flowstart_units::Time;

/// When each message first left the sending host with its last byte, and when the first packet with
/// that reached the other.
#[derive(Debug, Default)]
pub(super) struct Passing {
    ends: Vec<Ends>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Ends {
    left: Option<Time>,
    arrived: Option<Time>,
}

impl Passing {
    /// A packet that a message ends in: when it left, if it was seen there, and when it arrives, if
    /// it does. To be called in the order of leaving, and in that of arriving.
    pub(super) fn note(&mut self, message: usize, left: Option<Time>, arrived: Option<Time>) {
        if self.ends.len() <= message {
            self.ends.resize(message + 1, Ends::default());
        }
        let ends = &mut self.ends[message];
        ends.left = ends.left.or(left);
        ends.arrived = ends.arrived.or(arrived);
    }

    /// When each message left, from the first on.
    pub(super) fn left(&self) -> impl Iterator<Item = Option<Time>> {
        self.ends.iter().map(|ends| ends.left)
    }

    /// The ends of the network of a message that was written and read at these times.
    pub(super) fn passed(&self, message: usize, written: Time, read: Time) -> Option<Passed> {
        let Ends { left, arrived } = self.ends.get(message)?;
        // Stamps of the kernel are put on the world's clock to within some microseconds.
        let left = (*left)?.clamp(written, read);
        Some(Passed { left, arrived: (*arrived)?.clamp(left, read) })
    }
}
