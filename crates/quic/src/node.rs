//! What a loop over sockets, real or imagined, drives.

use flowstart_units::Time;

use crate::endpoint::{Arrival, Outgoing};

/// A client or a server without sockets and clocks. After every call but
/// [`poll_transmit`](Self::poll_transmit), all sockets are to be polled for packets; not before all
/// that waits was read if it [only acknowledges](Self::only_acknowledges).
pub trait Node {
    /// Who drives it has real-time priority, or has not; to be called first. Without it packets
    /// leave late when the machine is busy, which a sender says in its report.
    fn driven(&mut self, real_time: bool);

    /// How many sockets it needs.
    fn sockets(&self) -> usize;

    /// A datagram that arrived at a socket is there to be read.
    fn handle(&mut self, now: Time, socket: usize, arrival: &Arrival, data: &[u8]);

    /// The system says that nobody listens where datagrams are sent to.
    fn refused(&mut self, now: Time);

    /// The next datagram to leave a socket now, or at a time that is near: nothing else may be
    /// asked of the node before. It must be sent then, and [`departed`](Self::departed) follow.
    fn poll_transmit(&mut self, now: Time, socket: usize, buffer: &mut Vec<u8>) -> Option<Outgoing>;

    /// The datagram polled last left.
    fn departed(&mut self, socket: usize, outgoing: &Outgoing, at: Time);

    /// The next time of departure, if that is all that holds a packet back.
    fn departs(&self) -> Time;

    /// True if it sends no data: one ACK may then tell of all datagrams that waited to be read, as
    /// they would if the system had merged them.
    fn only_acknowledges(&self) -> bool;

    /// A time that [`deadline`](Self::deadline) named has come.
    fn handle_timeout(&mut self, now: Time);

    /// When something is to be done without a datagram coming in.
    fn deadline(&self) -> Time;

    /// True when there is nothing more to do.
    fn is_over(&self, now: Time) -> bool;
}
