//! A constant-rate application on a connection to a server: how long its messages take.

use flowstart_congestion::{ControllerConfig, Pacing};
use flowstart_quic::message::{Direction, Paced, Request, VERSION};
use flowstart_quic::{Client, Limits, MessageDeparture, OneWay, Sink};
use flowstart_race::Contestant;
use flowstart_service_curve::Passed;
use flowstart_service_curve::stats::DelayHistogram;
use flowstart_units::{Bytes, Rate, Span, Time};

use super::target::{Target, session};
use super::wrong;
use crate::output::Failure;

/// Digits of what is kept of waiting times: 1 % fine.
const WAITED_DIGITS: u8 = 2;

/// What writes, and what carries it.
#[derive(Clone, Copy)]
pub(crate) struct Application<'a> {
    /// Its start and avoidance.
    pub(crate) contestant: &'a Contestant,
    pub(crate) rate: Rate,
    pub(crate) message: Bytes,
    /// How long it writes.
    pub(crate) lasting: Span,
    /// How long at the beginning nothing counts.
    pub(crate) warm_up: Span,
}

impl Application<'_> {
    /// From message to message.
    pub(crate) fn gap(&self) -> Span {
        self.rate.transmission_time(self.message).max(Span::from_nanos(1))
    }
}

/// What was heard beside the delays, which were told meanwhile.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard {
    /// When the first message was due, by this machine's clock from some beginning.
    pub(crate) start: Time,
    /// The smallest RTT.
    pub(crate) rtt: Span,
    /// By how many millionths the server's clock is slower than the one here, if that is known.
    pub(crate) drift: Option<f64>,
    /// Packets left with real-time priority.
    pub(crate) real_time: bool,
    /// How long messages waited here, from when they were due until their last byte left first:
    /// for the window and for pacing. One clock says so, which needs no other.
    pub(crate) waited: Option<DelayHistogram>,
    /// When each message passed the ends of the network, from the first on, by the clock here; none
    /// where that is not known.
    pub(crate) passed: Vec<Option<Passed>>,
}

/// Lets an application write to a server for its time, or until `over`. `tell` hears the delay of
/// each message in its order, from the time at which it is due to be written until the server has
/// read it.
pub(crate) fn probe(
    target: &Target,
    application: Application<'_>,
    over: &dyn Fn() -> bool,
    tell: &mut dyn FnMut(Span),
) -> Result<Heard, Failure> {
    let Application { contestant, message, lasting, warm_up, .. } = application;
    let gap = application.gap();
    let request = Request {
        version: VERSION,
        session: session(),
        connections: 1,
        direction: Direction::Up,
        size: None,
        nanos: Some(lasting.as_nanos()),
        streams: 1,
        start: contestant.start.name().to_owned(),
        avoidance: contestant.avoidance.name().to_owned(),
        file: None,
        look: false,
        paced: Some(Paced { message: message.get(), gap: gap.as_nanos(), tell: true }),
    };
    let mut config = ControllerConfig::new(contestant.start.clone(), contestant.avoidance.clone());
    config.mss = u32::from(Limits::default().mtu);
    config.pacing = Pacing::LINUX;
    config.validate().map_err(wrong)?;
    let heard = Heard { waited: DelayHistogram::new(WAITED_DIGITS).ok(), ..Heard::default() };
    let mut listening = Listening { gap, warm_up, left: Vec::new(), read: 0, clocks: OneWay::default(), heard };
    let mut stopped = false;
    let (mut client, real_time) = target.drive(request, (config, Sink::Check), None, &mut |client, now| {
        listening.hear(client, tell);
        if !stopped && over() {
            stopped = true;
            client.stop(now, "that is enough");
        }
    })?;
    listening.hear(&mut client, tell);
    if !stopped {
        client.outcome().map_err(wrong)?;
    }
    Ok(Heard { drift: listening.clocks.drift(), real_time, ..listening.heard })
}

/// When a message that was written and read at these times, by the clock here, passed the ends of
/// the network: it left first at one, and the server says for how long it waited there. How far the
/// clocks are apart is known to within half of the round trip, so one may seem to have arrived
/// before it left.
fn passed((written, read): (Time, Time), left: Option<Time>, wait: Option<u64>) -> Option<Passed> {
    let left = left?.clamp(written, read);
    let arrived = Time::from_nanos(read.as_nanos().saturating_sub(wait?)).clamp(left, read);
    Some(Passed { left, arrived })
}

/// What becomes of the times that the server tells.
struct Listening {
    gap: Span,
    warm_up: Span,
    /// When each message left first, with its last byte.
    left: Vec<Option<Time>>,
    /// Messages that were read.
    read: u64,
    clocks: OneWay,
    heard: Heard,
}

impl Listening {
    /// Takes what the server told since the last time.
    fn hear(&mut self, client: &mut Client, tell: &mut dyn FnMut(Span)) {
        let told = client.take_readings();
        let Some((sending, began)) = client.sending().and_then(|it| Some((it, it.began()?))) else { return };
        (self.heard.start, self.heard.rtt) = (began, sending.min_rtt());
        for MessageDeparture { message, at, .. } in client.take_departures() {
            let place = usize::try_from(message).unwrap_or(usize::MAX);
            // Streams take turns, so one message may leave before those before it.
            if self.left.len() <= place {
                self.left.resize(place + 1, None);
            }
            // What is sent again left before.
            if self.left[place].is_some() {
                continue;
            }
            self.left[place] = Some(at);
            let due = self.gap * message;
            if let Some(waited) = self.heard.waited.as_mut().filter(|_| due >= self.warm_up) {
                waited.record(at.since(began + due));
            }
        }
        for (heard, readings) in told {
            self.clocks.hear(heard, readings.told);
            let waits = readings.waits.iter().copied().map(Some).chain(std::iter::repeat(None));
            for (age, wait) in readings.ages.iter().zip(waits) {
                let due = began + self.gap * self.read;
                let left = usize::try_from(self.read).ok().and_then(|place| *self.left.get(place)?);
                self.read += 1;
                let read = self.clocks.here(readings.told.saturating_sub(*age), self.heard.rtt);
                // A path whose way back is the longer one may have it read before it was written.
                let read = read.unwrap_or(due).max(due);
                self.heard.passed.push(passed((due, read), left, wait));
                tell(read.since(due));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_passes_the_network_between_its_writing_and_its_reading_and_in_this_order() {
        let at = Time::from_nanos;
        let ends = |left, wait| passed((at(10), at(50)), left, wait).map(|passed| (passed.left, passed.arrived));
        assert_eq!(ends(Some(at(12)), Some(8)), Some((at(12), at(42))));
        // Clocks that are wrong by the half of a round trip.
        assert_eq!(ends(Some(at(60)), Some(8)), Some((at(50), at(50))));
        assert_eq!(ends(Some(at(45)), Some(40)), Some((at(45), at(45))));
        assert_eq!(ends(Some(at(5)), Some(u64::MAX)), Some((at(10), at(10))));
        assert_eq!((ends(None, Some(8)), ends(Some(at(12)), None)), (None, None));
    }
}
