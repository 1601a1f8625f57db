//! What one link may do, followed packet by packet.

use std::collections::{HashMap, VecDeque};

use flowstart_network::packet::Body;
use flowstart_network::{Ecn, L4sClassifier, LinkConfig, Packet, QueueConfig, QuickStartHop, RateSchedule};
use flowstart_simulator::LinkOutcome;
use flowstart_units::{Span, Time};

/// In which order a queue promises to let packets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// All in order of arrival.
    All,
    /// Those of a flow in order of arrival.
    PerFlow,
    /// Those of a flow that are in the same of two queues, which this one chooses between.
    PerFlowAndMark(L4sClassifier),
    /// None that can be told from outside.
    Unknown,
}

/// A packet that waits.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// Counts arrivals at the link.
    number: u64,
    arrived: Time,
    packet: Packet,
}

/// A link and what was seen of it.
#[derive(Debug)]
pub(crate) struct LinkView {
    order: Order,
    /// The queue may hold packets back while the link is free.
    holds_back: bool,
    /// Its rate is 0 at times.
    outages: bool,
    /// The rate, if it is always the same.
    rate: Option<u64>,
    overhead: u32,
    strips: bool,
    queues: HashMap<u64, VecDeque<Waiting>>,
    /// Packets that were dropped while another waited that looks the same, such as an ACK that was
    /// repeated: which of them it was shows when the next one leaves.
    doubtful: HashMap<u64, Vec<Waiting>>,
    stored: u64,
    stored_bytes: u64,
    /// Since when packets have been waiting, if any are.
    since: Time,
    free: Time,
    arrived: u64,
    transmitted: u64,
    bytes: u64,
    dropped: u64,
    lost: u64,
    marked: u64,
    max_sojourn: Span,
    total_sojourn: Span,
    busy: Span,
}

/// Marks and what routers do with Quick-Start aside, a packet stays what it is.
fn same(a: &Packet, b: &Packet) -> bool {
    let body = match (&a.body, &b.body) {
        (Body::Segment(a), Body::Segment(b)) => {
            let mut a = *a;
            a.quick_start = b.quick_start;
            a == *b
        }
        (a, b) => a == b,
    };
    a.flow == b.flow && body
}

/// True if a packet belongs into the low-latency queue of a DualPI2 (RFC 9332, RFC 9331 section
/// 5.1).
fn low_latency(classifier: L4sClassifier, packet: &Packet) -> bool {
    match classifier {
        L4sClassifier::L4s => matches!(packet.ecn, Ecn::Ect1 | Ecn::Ce),
        L4sClassifier::AnyEct => packet.ecn != Ecn::NotEct,
    }
}

impl Order {
    /// True if `later`, which arrived after `earlier`, must not leave before it. Both are of the
    /// same class.
    fn holds(self, earlier: &Packet, later: &Packet) -> bool {
        match self {
            Self::All | Self::PerFlow => true,
            Self::PerFlowAndMark(by) => low_latency(by, earlier) == low_latency(by, later),
            Self::Unknown => false,
        }
    }
}

impl LinkView {
    pub(crate) fn new(config: &LinkConfig) -> Self {
        Self {
            order: match config.queue {
                // What the link marks on arrival is not seen before the queue has chosen by it.
                QueueConfig::DualPi2(_) if !config.marking.is_none() => Order::Unknown,
                QueueConfig::DualPi2(dual) => Order::PerFlowAndMark(dual.classifier),
                queue if queue.isolates() => Order::PerFlow,
                _ => Order::All,
            },
            holds_back: config.queue.holds_back(),
            outages: config.wire_rate().has_outages(),
            rate: match &config.rate {
                RateSchedule::Constant(rate) => Some(rate.as_bps()),
                RateSchedule::Steps { .. } => None,
            },
            overhead: config.overhead,
            strips: config.quick_start == QuickStartHop::StripsOptions,
            queues: HashMap::new(),
            doubtful: HashMap::new(),
            stored: 0,
            stored_bytes: 0,
            since: Time::ZERO,
            free: Time::ZERO,
            arrived: 0,
            transmitted: 0,
            bytes: 0,
            dropped: 0,
            lost: 0,
            marked: 0,
            max_sojourn: Span::ZERO,
            total_sojourn: Span::ZERO,
            busy: Span::ZERO,
        }
    }

    fn class(&self, packet: &Packet) -> u64 {
        match self.order {
            Order::All => 0,
            Order::PerFlow | Order::PerFlowAndMark(_) | Order::Unknown => u64::from(packet.flow),
        }
    }

    /// A packet arrives; the queue has not decided yet.
    pub(crate) fn arrived(&mut self, now: Time, packet: &Packet, packets: u64, bytes: u64) {
        assert_eq!(
            (packets, bytes),
            (self.stored, self.stored_bytes),
            "what a queue says it stores is not what it stores"
        );
        if self.stored == 0 {
            self.since = now;
        }
        self.arrived += 1;
        self.stored += 1;
        self.stored_bytes += u64::from(packet.bytes);
        let class = self.class(packet);
        self.queues.entry(class).or_default().push_back(Waiting {
            number: self.arrived,
            arrived: now,
            packet: *packet,
        });
    }

    /// A packet is dropped, by the queue or (`lost`) before it.
    pub(crate) fn dropped(&mut self, now: Time, packet: &Packet, lost: bool) {
        let class = self.class(packet);
        let queue = self.queues.entry(class).or_default();
        let place = if lost {
            queue.len().checked_sub(1).filter(|last| same(&queue[*last].packet, packet))
        } else {
            queue.iter().rposition(|waiting| same(&waiting.packet, packet))
        };
        let gone = place.and_then(|place| queue.remove(place));
        assert!(gone.is_some(), "a packet was dropped that was not there");
        if let Some(gone) = gone.filter(|_| !lost && queue.iter().any(|waiting| same(&waiting.packet, packet))) {
            self.doubtful.entry(class).or_default().push(gone);
        }
        if lost {
            self.lost += 1
        } else {
            self.dropped += 1
        }
        self.left(now, gone);
    }

    fn left(&mut self, _now: Time, gone: Option<Waiting>) {
        self.stored -= 1;
        self.stored_bytes -= gone.map_or(0, |gone| u64::from(gone.packet.bytes));
    }

    /// A packet leaves the queue, where it has been since `arrived`. Its transmission begins at
    /// `begun`; its last bit leaves at `done`.
    pub(crate) fn transmitted(&mut self, now: Time, begun: Time, packet: &Packet, arrived: Time, done: Time) {
        let (order, class) = (self.order, self.class(packet));
        let queue = self.queues.entry(class).or_default();
        // Of those that look the same, the one that arrived when the queue says.
        let find = |queue: &VecDeque<Waiting>| {
            let mut alike = (0..queue.len()).filter(|place| same(&queue[*place].packet, packet)).peekable();
            let first = alike.peek().copied();
            alike.find(|place| queue[*place].arrived == arrived).or(first)
        };
        let overtaken = |queue: &VecDeque<Waiting>, place: usize| {
            queue.iter().take(place).position(|earlier| order.holds(&earlier.packet, &queue[place].packet))
        };
        let doubtful = self.doubtful.entry(class).or_default();
        let place = loop {
            let Some(place) = find(queue) else {
                panic!("a packet was transmitted that was not there");
            };
            let right = queue[place].arrived == arrived;
            let wrong = overtaken(queue, place);
            if right && wrong.is_none() {
                break place;
            }
            // Was it this one that was dropped, and not the one that looks the same?
            let blamed = wrong.unwrap_or(place);
            let innocent = doubtful
                .iter()
                .position(|other| same(&other.packet, &queue[blamed].packet) && other.number > queue[blamed].number);
            let Some(innocent) = innocent else {
                assert!(wrong.is_none(), "a queue let a packet overtake another");
                break place;
            };
            let innocent = std::mem::replace(&mut doubtful[innocent], queue[blamed]);
            queue.remove(blamed);
            let place = queue.partition_point(|waiting| waiting.number < innocent.number);
            queue.insert(place, innocent);
        };
        let waiting = queue[place];
        let gone = queue.remove(place);
        if queue.is_empty() {
            doubtful.clear();
        }
        let bytes = u64::from(waiting.packet.bytes) + u64::from(self.overhead);
        assert_eq!(waiting.arrived, arrived, "a packet did not arrive when the queue says");
        assert!(arrived <= now && now <= begun && begun <= done, "a transmission ends before it begins");
        assert!(self.free <= now, "two transmissions at once");
        let work = self.since.max(self.free);
        assert!(self.holds_back || now == work, "a link idled while a packet waited");
        assert!(
            packet.ecn == waiting.packet.ecn || (packet.ecn == Ecn::Ce && waiting.packet.ecn != Ecn::NotEct),
            "a mark on a packet that is not ECN-capable"
        );
        assert!(self.strips || packet.bytes == waiting.packet.bytes, "a packet changed its length");
        if let Some(rate) = self.rate
            && rate > 0
        {
            let exact = u128::from(bytes) * 8 * 1_000_000_000 / u128::from(rate);
            let took = u128::from(done.since(now).as_nanos());
            let endless = done == Time::NEVER;
            assert!(
                endless || took == exact || took == exact + 1,
                "{bytes} B at {rate} bit/s took {took} ns and not {exact}"
            );
        }
        self.left(now, gone);
        self.since = now;
        self.free = done;
        self.transmitted += 1;
        self.bytes += bytes;
        self.marked += u64::from(packet.ecn == Ecn::Ce);
        self.max_sojourn = self.max_sojourn.max(begun.since(arrived));
        self.total_sojourn += begun.since(arrived);
        self.busy += done.since(begun);
    }

    /// Nothing more happens: what the simulation says must be what was seen.
    pub(crate) fn ended(&self, ended: Time, outcome: &LinkOutcome) {
        assert_eq!(
            self.arrived,
            self.transmitted + self.dropped + self.lost + self.stored,
            "a link does not conserve packets"
        );
        let said = (outcome.packets, outcome.dropped, outcome.lost, outcome.marked, outcome.stored);
        let seen = (self.transmitted, self.dropped, self.lost, self.marked, self.stored);
        assert_eq!(said, seen, "a link's packets, dropped, lost, marked, stored");
        assert_eq!(outcome.bytes.get(), self.bytes, "a link's bytes");
        let said = (outcome.max_sojourn, outcome.total_sojourn);
        assert_eq!(said, (self.max_sojourn, self.total_sojourn), "a link's sojourns");
        // How much of a transmission is an outage is not seen.
        let busy = outcome.busy == self.busy || (self.outages && outcome.busy < self.busy);
        assert!(busy, "a link's busy time: {} and not {}", outcome.busy, self.busy);
        assert!(
            self.stored == 0 || self.holds_back || self.free >= ended,
            "a link idles at the end while packets wait"
        );
    }

    pub(crate) fn stored(&self) -> u64 {
        self.stored
    }
}

#[cfg(test)]
mod tests {
    use flowstart_network::packet::Datagram;
    use flowstart_units::Rate;

    use super::*;

    fn at(micros: u64) -> Time {
        Time::ZERO + Span::from_micros(micros)
    }

    fn packet(number: u64) -> Packet {
        Packet { flow: 0, bytes: 125, ecn: Ecn::NotEct, body: Body::Datagram(Datagram { number, sent_at: Time::ZERO }) }
    }

    /// A link of 1 Mbit/s, on which a packet takes 1 ms, at which two packets have arrived
    /// together.
    fn two_waiting() -> LinkView {
        let rate = RateSchedule::Constant(Rate::from_mbps(1));
        let mut view = LinkView::new(&LinkConfig::new(rate, Span::ZERO, QueueConfig::drop_tail(10)));
        view.arrived(at(0), &packet(0), 0, 0);
        view.arrived(at(0), &packet(1), 1, 125);
        view
    }

    #[test]
    fn two_packets_one_after_the_other_are_as_they_should_be() {
        let mut view = two_waiting();
        view.transmitted(at(0), at(0), &packet(0), at(0), at(1000));
        view.transmitted(at(1000), at(1000), &packet(1), at(0), at(2000));
        assert_eq!(view.stored(), 0);
    }

    #[test]
    #[should_panic(expected = "overtake")]
    fn a_fifo_that_lets_a_packet_overtake_is_noticed() {
        two_waiting().transmitted(at(0), at(0), &packet(1), at(0), at(1000));
    }

    /// Three packets of which the first and the last look the same, as repeated ACKs do, while
    /// another one is on its way for the first millisecond.
    fn twins() -> LinkView {
        let rate = RateSchedule::Constant(Rate::from_mbps(1));
        let mut view = LinkView::new(&LinkConfig::new(rate, Span::ZERO, QueueConfig::drop_tail(10)));
        view.arrived(at(0), &packet(9), 0, 0);
        view.transmitted(at(0), at(0), &packet(9), at(0), at(1000));
        view.arrived(at(0), &packet(0), 0, 0);
        view.arrived(at(0), &packet(1), 1, 125);
        view.arrived(at(5), &packet(0), 2, 250);
        view
    }

    #[test]
    fn whether_the_first_or_the_last_of_two_that_look_the_same_was_dropped_shows_later() {
        // The first: the one between them leaves next, and then the last.
        let mut view = twins();
        view.dropped(at(6), &packet(0), false);
        view.transmitted(at(1000), at(1000), &packet(1), at(0), at(2000));
        view.transmitted(at(2000), at(2000), &packet(0), at(5), at(3000));
        // The last.
        let mut view = twins();
        view.dropped(at(6), &packet(0), false);
        view.transmitted(at(1000), at(1000), &packet(0), at(0), at(2000));
        view.transmitted(at(2000), at(2000), &packet(1), at(0), at(3000));
        assert_eq!(view.stored(), 0);
    }

    #[test]
    #[should_panic(expected = "overtake")]
    fn of_two_that_look_the_same_one_explains_no_more_than_one_drop() {
        let mut view = twins();
        view.arrived(at(6), &packet(0), 3, 375);
        view.dropped(at(6), &packet(0), false);
        view.transmitted(at(1000), at(1000), &packet(0), at(6), at(2000));
    }

    #[test]
    #[should_panic(expected = "two transmissions at once")]
    fn two_transmissions_at_once_are_noticed() {
        let mut view = two_waiting();
        view.transmitted(at(0), at(0), &packet(0), at(0), at(1000));
        view.transmitted(at(999), at(999), &packet(1), at(0), at(1999));
    }

    #[test]
    #[should_panic(expected = "idled")]
    fn a_link_that_idles_is_noticed() {
        let mut view = two_waiting();
        view.transmitted(at(0), at(0), &packet(0), at(0), at(1000));
        view.transmitted(at(1001), at(1001), &packet(1), at(0), at(2001));
    }

    #[test]
    #[should_panic(expected = "took")]
    fn a_transmission_that_is_too_short_is_noticed() {
        two_waiting().transmitted(at(0), at(0), &packet(0), at(0), at(999));
    }

    #[test]
    #[should_panic(expected = "not there")]
    fn a_packet_from_nowhere_is_noticed() {
        two_waiting().dropped(at(0), &packet(2), false);
    }

    #[test]
    #[should_panic(expected = "what a queue says")]
    fn a_queue_that_miscounts_is_noticed() {
        two_waiting().arrived(at(0), &packet(2), 1, 125);
    }
}
