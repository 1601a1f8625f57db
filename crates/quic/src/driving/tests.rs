use std::cell::Cell;
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;

use super::*;

/// A clock that goes on by this whenever it is asked.
const LOOK: Span = Span::from_nanos(50);

fn at(micros: u64) -> Time {
    Time::ZERO + Span::from_micros(micros)
}

fn peer() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 4433).into()
}

type Clock = Rc<Cell<Time>>;

/// The first of these times, if it has come.
fn pop_due(times: &mut VecDeque<Time>, now: Time) -> Option<Time> {
    times.front().is_some_and(|first| *first <= now).then(|| times.pop_front())?
}

fn spend(clock: &Clock, span: Span) {
    clock.set(clock.get() + span);
}

/// A socket to which datagrams come at given times, in imagined time.
struct Imagined {
    clock: Clock,
    /// When the datagrams arrive that were not read yet.
    arrivals: VecDeque<Time>,
    /// How long a core takes to wake.
    waking: Span,
    awake: bool,
    /// Nothing can be sent to where datagrams are to go.
    nowhere: bool,
}

impl Host for Imagined {
    fn sockets(&self) -> usize {
        1
    }

    fn now(&self) -> Time {
        spend(&self.clock, LOOK);
        self.clock.get()
    }

    fn receive(&mut self, _socket: usize, _packet: &mut [u8]) -> io::Result<Datagram> {
        let now = self.clock.get();
        match pop_due(&mut self.arrivals, now) {
            Some(arrival) => {
                let waited = Duration::from_nanos(now.since(arrival).as_nanos());
                Ok(Datagram { length: 0, from: peer(), to: None, ecn: None, waited })
            }
            None => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn send(&mut self, _socket: usize, _outgoing: &Outgoing, _data: &[u8]) -> io::Result<()> {
        // As Linux says of port 0.
        if self.nowhere { Err(io::Error::from_raw_os_error(22)) } else { Ok(()) }
    }

    fn wait(&mut self, time: Span) -> bool {
        let now = self.clock.get();
        let until = (now + time).min(self.arrivals.front().map_or(Time::NEVER, |next| *next)).max(now);
        if until > now {
            self.clock.set(until + self.waking);
        }
        self.arrivals.front().is_some_and(|next| *next <= self.clock.get())
    }

    fn keep_awake(&mut self, awake: bool) {
        self.awake = awake;
    }
}

/// A node that sends packets at times that are fixed beforehand, and takes in what arrives.
struct Sender {
    clock: Clock,
    departures: VecDeque<Time>,
    /// The time of the next packet, as far as it is known: it is when a packet was asked for in
    /// vain, and not before, as with a connection.
    wake: Time,
    /// How long it takes to make a packet, and to take a datagram in.
    making: Span,
    taking: Span,
    /// The time of the packet that was polled last.
    planned: Time,
    /// How late each was.
    late: Vec<Span>,
    /// When datagrams had arrived, and when they were taken in.
    taken: Vec<(Time, Time)>,
    /// A time of its own, with nothing to do then.
    timer: Time,
}

impl Node for Sender {
    fn driven(&mut self, _real_time: bool) {}

    fn sockets(&self) -> usize {
        1
    }

    fn handle(&mut self, now: Time, _socket: usize, arrival: &Arrival, _data: &[u8]) {
        self.taken.push((arrival.at, now));
        spend(&self.clock, self.taking);
    }

    fn refused(&mut self, _now: Time) {}

    fn poll_transmit(&mut self, now: Time, _socket: usize, _buffer: &mut Vec<u8>) -> Option<Outgoing> {
        self.wake = Time::NEVER;
        let Some(planned) = pop_due(&mut self.departures, now) else {
            self.wake = self.departures.front().map_or(Time::NEVER, |next| *next);
            return None;
        };
        self.planned = planned;
        spend(&self.clock, self.making);
        Some(Outgoing { to: peer(), ecn: None, connection: None })
    }

    fn departed(&mut self, _socket: usize, _outgoing: &Outgoing, at: Time) {
        self.late.push(at.checked_since(self.planned).expect("nothing leaves before its time"));
    }

    fn departs(&self) -> Time {
        self.wake
    }

    fn only_acknowledges(&self) -> bool {
        false
    }

    fn handle_timeout(&mut self, now: Time) {
        if self.timer <= now {
            self.timer = Time::NEVER;
        }
    }

    fn deadline(&self) -> Time {
        self.departs().min(self.timer)
    }

    fn is_over(&self, _now: Time) -> bool {
        self.departures.is_empty()
    }
}

/// Runs a sender with these departures while datagrams arrive. Waking takes 10 us, making a packet
/// and taking a datagram in as long as is said.
fn run(
    departures: impl IntoIterator<Item = Time>,
    arrivals: impl IntoIterator<Item = Time>,
    costs: [u64; 2],
) -> Sender {
    drive(departures, arrivals, costs, Time::ZERO, Time::NEVER, false)
}

/// The same from some time on, with a timer.
fn drive(
    departures: impl IntoIterator<Item = Time>,
    arrivals: impl IntoIterator<Item = Time>,
    costs: [u64; 2],
    from: Time,
    timer: Time,
    nowhere: bool,
) -> Sender {
    let clock = Clock::new(Cell::new(from));
    let [making, taking] = costs.map(Span::from_micros);
    let mut node = Sender {
        clock: Rc::clone(&clock),
        departures: departures.into_iter().collect(),
        wake: Time::NEVER,
        making,
        taking,
        planned: Time::ZERO,
        late: Vec::new(),
        taken: Vec::new(),
        timer,
    };
    let arrivals = arrivals.into_iter().collect();
    let mut driver = Driver::new(Imagined { clock, arrivals, waking: Span::from_micros(10), awake: false, nowhere });
    driver.run(&mut node, &mut |_, _| true).unwrap();
    assert!(!driver.host().awake);
    node
}

/// The most but one in a hundred.
fn nearly_all(late: &[Span]) -> Span {
    let mut sorted = late.to_vec();
    sorted.sort_unstable();
    sorted[sorted.len() * 99 / 100]
}

#[test]
fn what_arrives_shortly_before_a_departure_is_taken_in_after_it() {
    // 60 us each are expected at first.
    let node = run([at(1_000)], [at(700), at(970)], [10, 50]);
    assert!(node.late[0] <= LOOK * 2, "{:?}", node.late);
    let taken: Vec<Time> = node.taken.iter().map(|(_, taken)| *taken).collect();
    assert!(taken[0] >= at(700) && taken[0] < at(720), "{taken:?}");
    assert!(taken[1] >= at(1_000) && taken[1] < at(1_005), "{taken:?}");
    // It counts from when it arrived.
    let node = run([at(1_000), at(2_000)], [at(970)], [10, 50]);
    let (arrived, taken) = node.taken[0];
    assert!(
        arrived >= at(970) && arrived < at(971) && taken >= at(1_000) && taken < at(1_005),
        "{arrived:?} {taken:?}"
    );
    assert!(node.late.iter().all(|late| *late <= LOOK * 2), "{:?}", node.late);
}

/// One that left just before the socket was looked at was the last until something arrived: its
/// node was not asked for the next one.
#[test]
fn one_departure_follows_another_however_close_it_is() {
    for gap in 40..200 {
        let node = run((1..=50).map(|number| at(1_000 + gap * number)), [], [20, 20]);
        let most = node.late.iter().max().unwrap();
        assert!(*most < Span::from_micros(25), "{gap} us apart: {most:?} late");
    }
}

#[test]
fn departures_are_punctual_whenever_datagrams_arrive() {
    for (gap, costs) in [(1_000, [40, 60]), (500, [20, 30]), (1_000, [10, 150]), (3_000, [90, 20])] {
        let departures = (1..=5_000).map(|number| at(gap * number));
        // At every distance from a departure.
        let arrivals = (1..=5_000).map(|number| at(gap * number) + Span::from_nanos(number * 7_919 % (gap * 1_000)));
        let node = run(departures, arrivals, costs);
        // What takes how long is learnt from the first of them.
        let late = nearly_all(&node.late[100..]);
        assert!(late < Span::from_micros(1), "{gap} {costs:?}: {late:?}");
        assert!(node.taken.len() >= 4_999);
        let waited = node.taken[100..].iter().map(|(arrived, taken)| taken.since(*arrived)).max().unwrap();
        let most = Span::from_micros(2 * (costs[0] + costs[1]) + 60);
        assert!(waited < most, "{gap} {costs:?}: {waited:?}");
    }
}

/// Half a gigabit per second: a packet every 23 us, each of which is acknowledged, and 5 us each.
#[test]
fn fast_senders_take_in_as_much_as_they_send() {
    let departures = (1..=20_000).map(|number| at(23 * number));
    let arrivals = (1..=20_000).map(|number| at(23 * number + 11));
    let node = run(departures, arrivals, [5, 5]);
    assert!(node.taken.len() >= 19_990, "{}", node.taken.len());
    let waited = node.taken.iter().map(|(arrived, taken)| taken.since(*arrived)).max().unwrap();
    assert!(waited < Span::from_micros(100), "{waited:?}");
    assert!(nearly_all(&node.late) < Span::from_micros(12), "{:?}", nearly_all(&node.late));
}

#[test]
fn who_has_fallen_behind_takes_in_what_there_is_before_it_watches_the_clock() {
    // A thousand datagrams arrived while the machine did something else.
    let departures = (1..=400).map(|number| at(20_000 + 100 * number));
    let arrivals = (0..1_000).map(|number| at(10_000 + number));
    let mut node = drive(departures, arrivals, [5, 10], at(20_000), Time::NEVER, false);
    assert_eq!(node.taken.len(), 1_000);
    // 10 ms of them, and the packets that left meanwhile.
    let last = node.taken.pop().unwrap().1;
    assert!(last < at(20_000 + 10_000 + 100 * 8), "{last:?}");
}

#[test]
fn a_timer_before_the_departure_comes_first() {
    let node = drive([at(1_000)], [at(980)], [10, 10], Time::ZERO, at(990), false);
    assert_eq!(node.timer, Time::NEVER);
    assert_eq!(node.taken.len(), 1);
}

#[test]
fn nothing_arrived_before_its_socket_was_empty_whatever_the_time_of_day_says() {
    let waited = Duration::from_micros;
    assert_eq!(arrived(at(900), waited(30), at(500)), at(870));
    // Set by half a second while the datagram waited.
    assert_eq!(arrived(at(900), waited(500_030), at(500)), at(500));
    assert_eq!(arrived(at(900), Duration::ZERO, at(500)), at(900));
    assert_eq!(arrived(at(900), Duration::MAX, Time::ZERO), Time::ZERO);
}

/// Strangers say where answers go: one datagram with port 0 would end a server.
#[test]
fn a_datagram_that_cannot_be_sent_ends_nothing() {
    let node = drive([at(1_000), at(2_000)], [], [10, 10], Time::ZERO, Time::NEVER, true);
    assert_eq!(node.late.len(), 2);
}
