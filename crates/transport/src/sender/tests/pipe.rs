//! A path between a sender and a receiver in virtual time, with whatever misfortune a test wants.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use flowstart_congestion::{AvoidanceConfig, Controller, ControllerConfig, StartConfig};
use flowstart_network::Ecn;
use flowstart_network::packet::{Acknowledgement, Segment};
use flowstart_units::{Span, Time};

use crate::sender::{Outgoing, Sender};
use crate::{LossDetection, OutgoingAck, Receiver, ReceiverConfig, SenderConfig, SenderState};

/// What happens to a packet: empty means it is lost, two delays mean it is duplicated.
pub(super) type Fate = Vec<(Span, Ecn)>;

/// Decides the fate of a data packet. Its argument is the packet and the one-way delay.
type OnData = Box<dyn FnMut(&Outgoing, Span) -> Fate>;
/// Decides the fate of an ACK.
type OnAck = Box<dyn FnMut(&OutgoingAck, Span) -> Vec<Span>>;

enum Arriving {
    Data(Segment, Ecn),
    Ack(Acknowledgement),
}

pub(super) fn reno(initial_window: u32) -> Controller {
    let start = StartConfig::SlowStart;
    Controller::new(&ControllerConfig { initial_window, ..ControllerConfig::new(start, AvoidanceConfig::Reno) })
}

/// A controller that is in congestion avoidance from the beginning, so that its window hardly
/// grows.
pub(in crate::sender) fn steady(window: u32) -> Controller {
    let config = ControllerConfig::new(StartConfig::SlowStart, AvoidanceConfig::Reno);
    Controller::new(&ControllerConfig { initial_window: window, initial_ssthresh: Some(window), ..config })
}

pub(super) fn no_handshake() -> SenderConfig {
    SenderConfig { handshake: false, ..SenderConfig::default() }
}

pub(super) struct Pipe {
    pub(super) now: Time,
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    pub(super) delay: Span,
    /// Everything that left the sender.
    pub(super) sent: Vec<Outgoing>,
    /// Everything that left the receiver, with its time.
    pub(super) acks: Vec<(Time, OutgoingAck)>,
    on_data: OnData,
    on_ack: OnAck,
    flying: BinaryHeap<Reverse<(Time, u64)>>,
    packets: Vec<Option<Arriving>>,
    with_sacks: bool,
    /// Data segments that reached the receiver, and those with CE among them.
    arrived: (u64, u64),
    /// ACKs that left, those of SYNs aside.
    told: u64,
    /// Data packets that left and their bytes: all, and those sent again.
    left: [(u64, u64); 2],
}

impl Pipe {
    pub(super) fn new(sender: &SenderConfig, controller: Controller, receiver: &ReceiverConfig, delay: Span) -> Self {
        let mut pipe = Self {
            now: Time::ZERO,
            sender: Sender::new(sender, controller),
            receiver: Receiver::new(receiver),
            delay,
            sent: Vec::new(),
            acks: Vec::new(),
            on_data: Box::new(|packet, delay| vec![(delay, packet.ecn)]),
            on_ack: Box::new(|_, delay| vec![delay]),
            flying: BinaryHeap::new(),
            packets: Vec::new(),
            with_sacks: sender.loss_detection == LossDetection::Rack,
            arrived: (0, 0),
            told: 0,
            left: [(0, 0); 2],
        };
        pipe.sender.open(Time::ZERO);
        pipe
    }

    pub(super) fn on_data(mut self, fate: impl FnMut(&Outgoing, Span) -> Fate + 'static) -> Self {
        self.on_data = Box::new(fate);
        self
    }

    pub(super) fn on_ack(mut self, fate: impl FnMut(&OutgoingAck, Span) -> Vec<Span> + 'static) -> Self {
        self.on_ack = Box::new(fate);
        self
    }

    /// Loses the given transmissions (by number).
    pub(super) fn losing(self, numbers: &[u64]) -> Self {
        let numbers = numbers.to_vec();
        self.on_data(move |packet, delay| {
            let lost = !packet.segment.syn && numbers.contains(&packet.segment.number);
            if lost { Vec::new() } else { vec![(delay, packet.ecn)] }
        })
    }

    fn fly(&mut self, at: Time, packet: Arriving) {
        self.flying.push(Reverse((at, self.packets.len() as u64)));
        self.packets.push(Some(packet));
    }

    /// Lets everything leave that may leave now.
    pub(super) fn pump(&mut self) {
        loop {
            let before = *self.sender.stats();
            let probing = self.sender.stats().tail_loss_probes;
            let cwnd = self.sender.controller().cwnd();
            let Some(packet) = self.sender.transmit(self.now) else { break };
            if !packet.segment.syn && packet.segment.payload > 0 {
                let probe = self.sender.stats().tail_loss_probes > probing;
                assert!(probe || before.in_flight < cwnd, "cwnd exceeded: {} in flight, cwnd {cwnd}", before.in_flight);
                let option = if packet.segment.quick_start.is_none() { 0 } else { 8 };
                assert_eq!(packet.bytes, 52 + option + packet.segment.payload as u16);
            }
            self.sent.push(packet);
            let data = u64::from(packet.segment.payload > 0);
            for (packets, bytes) in &mut self.left[..1 + usize::from(packet.segment.retransmission && data > 0)] {
                *packets += data;
                *bytes += u64::from(packet.segment.payload);
            }
            for (delay, ecn) in (self.on_data)(&packet, self.delay) {
                self.fly(self.now + delay, Arriving::Data(packet.segment, ecn));
            }
        }
        while let Some(packet) = self.receiver.poll_ack() {
            self.acks.push((self.now, packet));
            self.told += u64::from(!packet.ack.syn);
            for delay in (self.on_ack)(&packet, self.delay) {
                self.fly(self.now + delay, Arriving::Ack(packet.ack));
            }
        }
        self.check();
    }

    /// What must hold at any time.
    pub(super) fn check(&self) {
        let stats = self.sender.stats();
        self.sender.board.check(stats.una, stats.next, stats.packets_sent, self.with_sacks);
        assert_eq!(stats.in_flight, self.sender.board.in_flight());
        assert_eq!(stats.packets_out, self.sender.board.packets_out());
        assert!(self.sender.controller().cwnd() >= 1);
        let received = self.receiver.stats();
        assert_eq!((received.packets, received.marked, received.acks), (self.arrived.0, self.arrived.1, self.told));
        assert_eq!((stats.packets_sent, stats.bytes_sent), self.left[0]);
        assert_eq!((stats.packets_retransmitted, stats.bytes_retransmitted), self.left[1]);
        if self.sender.is_established() && stats.packets_out > 0 {
            assert_ne!(self.sender.deadline(), Time::NEVER, "outstanding data without a timer");
        }
        if self.sender.state() == SenderState::Open {
            assert!(self.with_sacks <= (self.sender.board.lost() == 0), "lost packets in state Open");
        }
    }

    /// When something happens next.
    fn next_event(&self) -> Time {
        let arrival = self.flying.peek().map_or(Time::NEVER, |next| next.0.0);
        arrival.min(self.sender.deadline()).min(self.receiver.deadline())
    }

    /// One event. Returns false if nothing will ever happen again.
    pub(super) fn step(&mut self) -> bool {
        self.pump();
        let at = self.next_event();
        if at == Time::NEVER {
            return false;
        }
        assert!(at >= self.now, "an event in the past");
        self.now = at;
        if let Some(Reverse((arrival, index))) = self.flying.peek().copied()
            && arrival == at
        {
            self.flying.pop();
            match self.packets[index as usize].take().expect("each packet flies once") {
                Arriving::Data(segment, ecn) => {
                    let data = u64::from(segment.payload > 0);
                    self.arrived.0 += data;
                    self.arrived.1 += data * u64::from(ecn == Ecn::Ce);
                    self.receiver.on_segment(at, &segment, ecn);
                }
                Arriving::Ack(ack) => self.sender.on_ack(at, &ack),
            }
        } else if self.sender.deadline() == at {
            self.sender.on_timer(at);
        } else {
            self.receiver.on_timer(at);
        }
        self.pump();
        true
    }

    /// Runs until everything is acknowledged. Fails if that takes more than `limit` events.
    pub(super) fn complete(&mut self, limit: usize) {
        for _ in 0..limit {
            if self.sender.is_complete() {
                return;
            }
            assert!(self.step(), "stuck at {} with {:?}", self.now, self.sender.stats());
        }
        panic!("not complete after {limit} events: {:?}", self.sender.stats());
    }

    pub(super) fn run_until(&mut self, end: Time) {
        self.pump();
        while self.next_event() <= end && self.step() {}
        self.now = self.now.max(end);
    }

    pub(super) fn transfer(&mut self, bytes: u64) {
        self.sender.write(self.now, bytes);
        self.sender.finish();
        self.complete(2_000_000);
        assert_eq!(self.receiver.delivered(), bytes);
    }

    pub(super) fn retransmissions(&self) -> Vec<Outgoing> {
        self.sent.iter().copied().filter(|packet| packet.segment.retransmission).collect()
    }
}
