//! A start that is told when packets leave: the two connections of a detector of fair queuing
//! ([`flowstart_detection::pair`]) are each driven by one. A connection that nobody directs does
//! standard slow start. One that is let go of, because the detector found nothing to go by, goes on
//! with HyStart.

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::hystart::{Hystart, HystartConfig};
use crate::{Start, StartConstants};
use flowstart_control::InvalidConfig;
use flowstart_control::{
    Ack, Acked, AfterAck, Departure, Exit, ExitReason, FlowStart, INFINITE_SSTHRESH, LastRtt, NewMss, Next, Response,
    Restart, Sent, Signal, Window,
};
use flowstart_detection::{DetectorConfig, PairDetector, TrainProbeConfig, Trains, TwoFlows};
use flowstart_units::Time;

impl StartConstants for DetectorConfig {
    fn draws(&self) -> bool {
        true
    }

    fn validate(&self) -> Result<(), InvalidConfig> {
        self.validate()
    }

    fn wants_every_ack(&self) -> bool {
        true
    }

    fn sends(&self) -> Option<&'static str> {
        Some("two connections with jittered gaps")
    }

    fn connections(&self) -> usize {
        if self.single { 1 } else { 2 }
    }

    fn detector(&self, _mss: u32, header: u32, seed: u64) -> Option<PairDetector> {
        Some(PairDetector::TwoFlows(Box::new(TwoFlows::new(self, header, seed))))
    }
}

impl StartConstants for TrainProbeConfig {
    fn draws(&self) -> bool {
        true
    }

    fn validate(&self) -> Result<(), InvalidConfig> {
        self.validate()
    }

    fn sends(&self) -> Option<&'static str> {
        Some("two connections with planned departures")
    }

    fn connections(&self) -> usize {
        2
    }

    fn detector(&self, mss: u32, header: u32, seed: u64) -> Option<PairDetector> {
        Some(PairDetector::Trains(Box::new(Trains::new(self, mss.saturating_add(header), seed))))
    }
}

/// What becomes of packets that somebody directed, once nobody does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LetGo {
    /// Their losses and RTTs do not count for so many smoothed RTTs at most, 0 to 100.
    pub released_rtts: f64,
    /// Window, in times of what it is, when more is lost of what left since then; above 0 up to 1.
    pub late_loss_factor: f64,
    /// Constants of the HyStart that goes on.
    pub hystart: HystartConfig,
}

impl From<&DetectorConfig> for LetGo {
    fn from(config: &DetectorConfig) -> Self {
        let (released_rtts, late_loss_factor) = (config.released_rtts, config.late_loss_factor);
        Self { released_rtts, late_loss_factor, hystart: config.hystart }
    }
}

impl From<&TrainProbeConfig> for LetGo {
    fn from(config: &TrainProbeConfig) -> Self {
        let (released_rtts, late_loss_factor) = (config.released_rtts, config.late_loss_factor);
        Self { released_rtts, late_loss_factor, hystart: config.hystart }
    }
}

/// A start whose departures come from outside; what becomes of its packets is kept until it is
/// asked for.
#[derive(Clone, Debug)]
pub struct Directed {
    /// When the next packet leaves; `None` as long as nobody directs.
    departure: Option<Departure>,
    sent: Option<Sent>,
    acked: Vec<Acked>,
    hystart: Hystart,
    /// The byte behind those that have left.
    end: u64,
    /// A loss was not answered, as it was of packets that somebody directed. Until this byte is
    /// acknowledged the sender repairs it, and tells of no other.
    pardoned: Option<u64>,
    let_go: LetGo,
    phase: Phase,
}

/// Who is in charge of when packets leave.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// Somebody directs, or may yet.
    Directed,
    /// Nobody does any more. Until a byte beyond this one, behind those that had left, is
    /// acknowledged, or until then, RTTs and losses are those of packets that somebody sent: they
    /// were to queue.
    Released(u64, Time),
    /// HyStart looks.
    Usual,
}

impl Directed {
    /// For a flow with segments of `mss` payload bytes, `paced` or not.
    #[must_use]
    pub fn new(let_go: LetGo, paced: bool, mss: u32) -> Self {
        let hystart = Hystart::new(&let_go.hystart, paced, mss);
        Self {
            departure: None,
            sent: None,
            acked: Vec::new(),
            hystart,
            end: 0,
            pardoned: None,
            let_go,
            phase: Phase::Directed,
        }
    }

    /// The next packet leaves at this time, and the window does not hold it back.
    pub fn direct(&mut self, departure: Departure) {
        self.departure = Some(departure);
    }

    /// Nobody directs any more: it goes on with HyStart, for packets that leave from now on. RTTs
    /// so far were these.
    pub fn release(&mut self, now: Time, last: LastRtt) {
        self.look_again(last);
        self.phase = Phase::Released(self.end, now + last.srtt.mul_f64(self.let_go.released_rtts));
    }

    /// An avoidance that was told of an answer cannot use it: it goes on with HyStart at once.
    pub fn go_on(&mut self, last: LastRtt) {
        self.phase = Phase::Usual;
        self.look_again(last);
        // What left in the last round trip did not leave in a burst.
        self.hystart.has_been_spread(last.srtt);
    }

    fn look_again(&mut self, last: LastRtt) {
        self.hystart.looks_again();
        self.hystart.has_seen(last.min_rtt);
    }

    /// True once it was let go of.
    #[must_use]
    pub fn is_released(&self) -> bool {
        self.phase != Phase::Directed
    }

    /// True while somebody directs.
    #[must_use]
    pub fn is_directed(&self) -> bool {
        self.departure.is_some() && !self.is_released()
    }

    /// The packet that left since this was asked for the last time; to be asked after every packet.
    pub fn take_sent(&mut self) -> Option<Sent> {
        self.sent.take()
    }

    /// The packets delivered since this was asked for the last time, oldest first.
    pub fn take_acked(&mut self) -> impl Iterator<Item = Acked> + '_ {
        self.acked.drain(..)
    }
}

impl FlowStart for Directed {
    fn grow(&mut self, ack: &Ack, window: &mut Window) -> u32 {
        if self.is_directed() { 0 } else { window.slow_start(ack.acked) }
    }

    fn on_ack(&mut self, ack: &Ack, window: &mut Window) -> AfterAck {
        self.pardoned = self.pardoned.filter(|end| ack.una < *end);
        if let Phase::Released(beyond, until) = self.phase {
            if ack.una <= beyond && ack.now < until {
                return AfterAck::Continue;
            }
            self.phase = Phase::Usual;
        }
        if self.pardoned.is_some() && ack.lost > 0 {
            // Of packets that left since then.
            self.pardoned = None;
            let cwnd = ((f64::from(window.cwnd) * self.let_go.late_loss_factor) as u32).max(2);
            return AfterAck::Done(Exit { reason: ExitReason::Loss, cwnd, ssthresh: cwnd, rate: None });
        }
        if self.phase == Phase::Usual {
            return self.hystart.on_ack(ack, window);
        }
        if self.is_directed() {
            window.cwnd = INFINITE_SSTHRESH;
        }
        AfterAck::Continue
    }

    fn on_signal(&mut self, _now: Time, signal: Signal, _window: &mut Window) -> Response {
        let earlier = matches!(self.phase, Phase::Released(..)) && signal == Signal::Loss;
        if earlier {
            self.pardoned = Some(self.end);
        }
        if earlier || self.is_directed() { Response::Ignore } else { Response::Leave }
    }

    fn on_sent(&mut self, sent: &Sent) {
        self.end = self.end.max(sent.seq.saturating_add(sent.bytes.into()));
        if self.departure.is_some() {
            self.sent = Some(*sent);
        }
    }

    fn wants_packets(&self) -> bool {
        self.is_directed()
    }

    fn on_acked(&mut self, acked: &Acked) {
        self.acked.push(*acked);
    }

    fn departure(&mut self, now: Time, _next: &Next, _window: &Window) -> Option<Departure> {
        match self.departure.filter(|_| !self.is_released())? {
            Departure::At(at) if at <= now => Some(Departure::Now),
            other => Some(other),
        }
    }

    fn owns_window(&self) -> bool {
        self.is_directed()
    }

    fn on_restart(&mut self, now: Time, restart: Restart, window: &Window, last: LastRtt) -> bool {
        self.is_released() && self.hystart.on_restart(now, restart, window, last)
    }

    fn on_mss(&mut self, mss: NewMss) {
        self.hystart.on_mss(mss);
    }
}

impl Start {
    /// This start, if it is one that is directed.
    pub fn directed(&mut self) -> Option<&mut Directed> {
        match self {
            Self::TwoFlowProbe(directed) | Self::FairQueuingProbe(directed) => Some(directed),
            _ => None,
        }
    }

    /// True if it is one that is directed.
    #[must_use]
    pub fn is_directed(&self) -> bool {
        matches!(self, Self::TwoFlowProbe(_) | Self::FairQueuingProbe(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowstart_control::testing::{ack, sent};
    use flowstart_control::{Exit, ExitReason};
    use flowstart_units::Span;

    fn rules() -> LetGo {
        LetGo { released_rtts: 2.0, late_loss_factor: 0.5, hystart: HystartConfig::default() }
    }

    #[test]
    fn undirected_it_is_slow_start_and_directed_its_window_is_a_permission() {
        let (mut start, mut window) = (Directed::new(rules(), false, 1448), Window::new(10));
        start.grow(&ack(5), &mut window);
        assert_eq!(window.cwnd, 15);
        assert_eq!(start.on_signal(Time::ZERO, Signal::Loss, &mut window), Response::Leave);
        start.direct(Departure::Now);
        start.on_ack(&ack(1), &mut window);
        assert_eq!(window.cwnd, INFINITE_SSTHRESH);
        assert_eq!(start.on_signal(Time::ZERO, Signal::Timeout, &mut window), Response::Ignore);
    }

    #[test]
    fn let_go_of_it_is_hystart_for_packets_that_leave_from_then_on() {
        let ms = |ms: u64| Time::ZERO + Span::from_millis(ms);
        let late = |now, una, next| Ack { now, una, next, rtt: Some(Span::from_millis(30)), ..ack(1) };
        let released = || {
            let (mut start, mut window) = (Directed::new(rules(), false, 1448), Window::new(50));
            start.direct(Departure::Hold);
            start.on_sent(&Sent { seq: 40, bytes: 10, ..sent(ms(90), 0) });
            start.release(ms(100), LastRtt { srtt: Span::from_millis(20), min_rtt: Span::from_millis(20) });
            assert!(start.is_released() && !start.is_directed() && !start.owns_window());
            // What leaves from now on does not move the end of what left before.
            start.on_sent(&Sent { seq: 50, bytes: 10, ..sent(ms(100), 1) });
            assert_eq!(start.on_ack(&late(ms(101), 10, 50), &mut window), AfterAck::Continue);
            (start, window)
        };
        let (mut start, mut window) = released();
        for number in 0..20 {
            assert_eq!(start.on_ack(&late(ms(102 + number), 31 + number, 60), &mut window), AfterAck::Continue);
            assert_eq!(start.on_signal(ms(102 + number), Signal::Loss, &mut window), Response::Ignore);
        }
        assert_eq!(start.on_signal(ms(121), Signal::Timeout, &mut window), Response::Leave);
        // RTTs of packets behind that are 10 ms longer than the smallest: HyStart looks at nine.
        let mut ends = |number: u64| {
            let ack = late(ms(122), 51 + number, 200);
            matches!(start.on_ack(&ack, &mut window), AfterAck::Done(Exit { reason: ExitReason::DelayIncrease, .. }))
        };
        assert_eq!((0..10).position(&mut ends), Some(8));
        assert_eq!(start.on_signal(ms(122), Signal::Loss, &mut window), Response::Leave);
        // An avoidance that took over since then may not be able to go on.
        start.go_on(LastRtt { srtt: Span::from_millis(20), min_rtt: Span::from_millis(20) });
        let again =
            |number: u64| matches!(start.on_ack(&late(ms(123), 61 + number, 200), &mut window), AfterAck::Done(_));
        assert_eq!((0..10).position(again), Some(8));
        // What left spread over a round trip comes back so: 20 ms of ACKs are no full pipe.
        for (lasting, ends) in [(29, false), (31, true)] {
            let (mut start, mut window) = (Directed::new(rules(), false, 1448), Window::new(50));
            start.go_on(LastRtt { srtt: Span::from_millis(20), min_rtt: Span::from_millis(20) });
            let found = (0..=lasting).any(|at| {
                let ack = Ack { rtt: Some(Span::from_millis(20)), ..late(ms(200 + at), 100, 200) };
                start.on_ack(&ack, &mut window) != AfterAck::Continue
            });
            assert_eq!(found, ends, "{lasting} ms");
        }
        // A hole may hold back what is acknowledged.
        let (mut start, mut window) = released();
        start.on_ack(&late(ms(139), 10, 60), &mut window);
        assert_eq!(start.on_signal(ms(139), Signal::Loss, &mut window), Response::Ignore);
        start.on_ack(&late(ms(140), 10, 60), &mut window);
        assert_eq!(start.on_signal(ms(140), Signal::Loss, &mut window), Response::Leave);
    }

    /// Seen at 249 Mbit/s with ACKs 2 ms apart: 13 378 packets were lost in one recovery.
    #[test]
    fn losses_of_what_left_since_it_was_let_go_of_end_it_although_earlier_ones_did_not() {
        let ms = |ms: u64| Time::ZERO + Span::from_millis(ms);
        let (mut start, mut window) = (Directed::new(rules(), false, 1448), Window::new(50));
        start.direct(Departure::Hold);
        start.on_sent(&Sent { seq: 40, bytes: 10, ..sent(ms(90), 0) });
        start.release(ms(100), LastRtt { srtt: Span::from_millis(20), min_rtt: Span::from_millis(20) });
        start.on_sent(&Sent { seq: 50, bytes: 100, ..sent(ms(100), 1) });
        let at = |now, una, lost| Ack { now: ms(now), una, next: 200, lost, ..ack(1) };
        // Without an earlier loss the sender tells of it.
        assert_eq!(start.clone().on_ack(&at(110, 51, 1), &mut window), AfterAck::Continue);
        for now in [101, 102] {
            assert_eq!(start.on_signal(ms(now), Signal::Loss, &mut window), Response::Ignore);
        }
        assert_eq!(start.on_ack(&at(110, 50, 3), &mut window), AfterAck::Continue);
        assert_eq!(start.on_ack(&at(111, 51, 0), &mut window), AfterAck::Continue);
        // Once that is repaired the sender tells of the next one.
        let mut repaired = start.clone();
        assert_eq!(repaired.on_ack(&at(112, 150, 0), &mut window), AfterAck::Continue);
        assert_eq!(repaired.on_ack(&at(113, 151, 1), &mut window), AfterAck::Continue);
        assert_eq!(repaired.on_signal(ms(113), Signal::Loss, &mut window), Response::Leave);
        for (late_loss_factor, cwnd) in [(0.5, 25), (0.7, 35), (0.01, 2)] {
            let mut start = Directed { let_go: LetGo { late_loss_factor, ..rules() }, ..start.clone() };
            let exit = Exit { reason: ExitReason::Loss, cwnd, ssthresh: cwnd, rate: None };
            assert_eq!(start.on_ack(&at(112, 149, 1), &mut window), AfterAck::Done(exit));
        }
    }

    #[test]
    fn hystart_that_goes_on_has_the_constants_of_the_detector() {
        let hystart = HystartConfig { min_delay_threshold: Span::from_millis(8), ..HystartConfig::default() };
        let two_flows = LetGo::from(&DetectorConfig { hystart, ..DetectorConfig::default() });
        let trains = LetGo::from(&TrainProbeConfig { hystart, ..TrainProbeConfig::default() });
        let late = |rules: LetGo| {
            let mut start = Directed::new(rules, false, 1448);
            start.release(Time::ZERO, LastRtt { srtt: Span::from_millis(20), min_rtt: Span::from_millis(20) });
            [25, 29].map(|rtt| start.hystart.is_late(Span::from_millis(rtt)))
        };
        assert_eq!([rules(), two_flows, trains].map(late), [[true, true], [false, true], [false, true]]);
        let hystart = HystartConfig { delay_divisor: 0, ..hystart };
        let refused = |result: Result<(), InvalidConfig>| result.err().map(|error| error.field);
        let wrong = [
            DetectorConfig { hystart, ..DetectorConfig::default() }.validate(),
            TrainProbeConfig { hystart, ..TrainProbeConfig::default() }.validate(),
        ];
        assert_eq!(wrong.map(refused), [Some("delay_divisor"); 2]);
    }

    #[test]
    fn what_leaves_after_it_was_let_go_of_leaves_in_bursts() {
        let ms = |ms: u64| Time::ZERO + Span::from_millis(ms);
        let ends = |lasting: u64| {
            let (mut start, mut window) = (Directed::new(rules(), false, 1448), Window::new(50));
            start.direct(Departure::Hold);
            start.release(ms(100), LastRtt { srtt: Span::from_millis(20), min_rtt: Span::from_millis(20) });
            (0..=lasting).any(|at| {
                let ack = Ack { now: ms(110 + at), una: 100, next: 200, rtt: Some(Span::from_millis(20)), ..ack(1) };
                start.on_ack(&ack, &mut window) != AfterAck::Continue
            })
        };
        // Half of the smallest RTT (HyStart without pacing).
        assert_eq!([9, 11].map(ends), [false, true]);
    }

    #[test]
    fn what_happens_is_told_once_and_only_while_it_is_directed() {
        let mut start = Directed::new(rules(), false, 1448);
        start.on_sent(&sent(Time::ZERO, 0));
        assert!(start.take_sent().is_none());
        start.direct(Departure::At(Time::ZERO + Span::from_millis(1)));
        start.on_sent(&sent(Time::ZERO, 1));
        assert_eq!(start.take_sent().map(|sent| sent.number), Some(1));
        assert!(start.take_sent().is_none());
    }
}
