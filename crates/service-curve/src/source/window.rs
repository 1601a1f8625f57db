//! A static window of packets in front of a link that stores and forwards.

use std::collections::VecDeque;

use flowstart_units::{Bytes, Span, Time};

use crate::{Error, StaticWindow};

/// Packets through a static window and a link: the packet form of [`StaticWindow`], which a fluid
/// describes. The transmission time adds to the round trip and the window is a whole number of
/// packets, so the long-term rate is lower than the fluid's. An iterator over delays.
#[derive(Clone, Debug)]
pub struct WindowedLink<A> {
    arrivals: A,
    transmission: Span,
    latency: Span,
    way_back: Span,
    window: usize,
    /// When the last `window` packets are acknowledged.
    acks: VecDeque<Time>,
    link_free: Time,
}

impl<A: Iterator<Item = Time>> WindowedLink<A> {
    /// Packets of size `packet` that arrive at `arrivals`, in order of time.
    ///
    /// # Errors
    /// [`Error::InvalidConfig`] if the window is smaller than one packet or the round trip shorter
    /// than the latency.
    pub fn new(config: StaticWindow, packet: Bytes, arrivals: A) -> Result<Self, Error> {
        let window = config.window.get().checked_div(packet.get()).unwrap_or(0);
        let window = usize::try_from(window).unwrap_or(usize::MAX);
        if window == 0 {
            return Err(Error::InvalidConfig("window", "at least one packet (of at least one byte)"));
        }
        let way_back = config.round_trip.checked_sub(config.latency);
        let way_back = way_back.ok_or(Error::InvalidConfig("round_trip", "at least the latency"))?;
        let transmission = config.capacity.transmission_time(packet);
        let (acks, link_free) = (VecDeque::new(), Time::ZERO);
        Ok(Self { arrivals, transmission, latency: config.latency, way_back, window, acks, link_free })
    }
}

impl<A: Iterator<Item = Time>> Iterator for WindowedLink<A> {
    type Item = Span;
    fn next(&mut self) -> Option<Span> {
        let arrival = self.arrivals.next()?;
        let mut start = arrival;
        if self.acks.len() == self.window {
            start = start.max(self.acks.pop_front()?);
        }
        self.link_free = self.link_free.max(start) + self.transmission;
        let received = self.link_free + self.latency;
        self.acks.push_back(received + self.way_back);
        Some(received.since(arrival))
    }
}
