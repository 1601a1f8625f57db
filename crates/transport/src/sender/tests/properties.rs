//! What holds on any path.

use flowstart_congestion::avoidance::Avoidance;
use flowstart_congestion::start::Start;
use flowstart_congestion::{
    Ack, AvoidanceConfig, Controller, ControllerConfig, Departure, FlowStart, Next, Pacing, StartConfig, Window,
};
use flowstart_network::Ecn;
use flowstart_network::packet::{Acknowledgement, MAX_SACK_BLOCKS, SackBlock};
use flowstart_quick_start::RateCode;
use flowstart_random::SplitMix64;
use flowstart_units::{Bytes, Rate, Span, Time};
use proptest::prelude::*;

use super::pipe::{Pipe, reno};
use crate::{
    AckCounting, EcnMode, LossDetection, Offload, ReceiveWindow, ReceiverConfig, Reduction, RtoRule, Sender,
    SenderConfig,
};

/// A generator of its own, so that a path's misfortunes follow from one number.
#[derive(Clone)]
struct Dice(SplitMix64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    fn percent(&mut self, chance: u64) -> bool {
        self.next() % 100 < chance
    }
}

#[derive(Clone, Debug)]
struct Trouble {
    seed: u64,
    loss: u64,
    ack_loss: u64,
    duplicates: u64,
    late: u64,
    marks: u64,
}

fn trouble() -> impl Strategy<Value = Trouble> {
    let percent = prop_oneof![Just(0_u64), 0_u64..5, 0_u64..30];
    (any::<u64>(), percent.clone(), percent.clone(), percent.clone(), percent.clone(), percent).prop_map(
        |(seed, loss, ack_loss, duplicates, late, marks)| Trouble { seed, loss, ack_loss, duplicates, late, marks },
    )
}

fn configs() -> impl Strategy<Value = (SenderConfig, ReceiverConfig)> {
    let ecn = prop_oneof![Just(EcnMode::Off), Just(EcnMode::Classic), Just(EcnMode::Dctcp), Just(EcnMode::Accurate)];
    let reduction =
        prop_oneof![Just(Reduction::Proportional), Just(Reduction::ProportionalRfc9937), Just(Reduction::Immediate)];
    let sender =
        (any::<[bool; 8]>(), ecn, reduction, 1_u32..3000, prop_oneof![Just(None), (3_000_u64..50_000).prop_map(Some)])
            .prop_map(|([handshake, newreno, rfc, probe, f_rto, undo, idle, nagle], ecn, reduction, mss, buffer)| {
                SenderConfig {
                    mss,
                    handshake,
                    ecn,
                    reduction,
                    nagle,
                    loss_detection: if newreno { LossDetection::NewReno } else { LossDetection::Rack },
                    rto_rule: if rfc { RtoRule::Rfc6298 } else { RtoRule::Linux },
                    tail_loss_probe: probe,
                    f_rto,
                    undo,
                    idle_restart: idle,
                    cwnd_validation: idle,
                    send_buffer: buffer.map(Bytes::new),
                    offload: (idle ^ probe).then(Offload::default),
                    ..SenderConfig::default()
                }
            });
    let receiver = (1_u32..5, any::<[bool; 4]>(), prop_oneof![Just(None), (1_u64..30).prop_map(Some)]).prop_map(
        |(ack_every, [quick, packets, adaptive, compressed], aggregation)| ReceiverConfig {
            ack_every,
            ack_counting: if packets { AckCounting::Packets } else { AckCounting::Bytes },
            quick_acks: if quick { 16 } else { 0 },
            adaptive_delay: adaptive,
            compressed_sack_delay: if compressed { Span::from_millis(1) } else { Span::ZERO },
            ack_aggregation: aggregation.map(Span::from_millis),
            window: (quick ^ compressed).then(ReceiveWindow::default),
            ..ReceiverConfig::default()
        },
    );
    (sender, receiver).prop_map(|(sender, receiver)| {
        let ecn = sender.ecn;
        // Without a handshake nobody else tells the sender the first window.
        let peer_window = receiver.window.as_ref().map(|window| Bytes::new(window.first()));
        (SenderConfig { peer_window, ..sender }, ReceiverConfig { ecn, ..receiver })
    })
}

fn troubled(pipe: Pipe, trouble: &Trouble) -> Pipe {
    let mut dice = Dice(SplitMix64::new(trouble.seed));
    let mut ack_dice = Dice(SplitMix64::new(!trouble.seed));
    let data = trouble.clone();
    let acks = trouble.clone();
    pipe.on_data(move |packet, delay| {
        if dice.percent(data.loss) {
            return Vec::new();
        }
        let ecn = if packet.ecn.is_capable() && dice.percent(data.marks) { Ecn::Ce } else { packet.ecn };
        let late = if dice.percent(data.late) { Span::from_micros(dice.next() % 60_000) } else { Span::ZERO };
        let mut fate = vec![(delay + late, ecn)];
        if dice.percent(data.duplicates) {
            fate.push((delay + Span::from_micros(dice.next() % 60_000), ecn));
        }
        fate
    })
    .on_ack(move |_, delay| {
        if ack_dice.percent(acks.ack_loss) {
            return Vec::new();
        }
        let late = if ack_dice.percent(acks.late) { Span::from_micros(ack_dice.next() % 20_000) } else { Span::ZERO };
        let mut fate = vec![delay + late];
        if ack_dice.percent(acks.duplicates) {
            fate.push(delay + late + Span::from_micros(ack_dice.next() % 20_000));
        }
        fate
    })
}

/// A start that spaces packets, and holds them back now and then until an ACK comes.
#[derive(Clone)]
struct Spaced {
    gap: Span,
    next: Time,
    held: bool,
    hold_every: u64,
}

impl FlowStart for Spaced {
    fn grow(&mut self, ack: &Ack, window: &mut Window) -> u32 {
        window.cwnd += ack.acked;
        0
    }

    fn on_ack(&mut self, _: &Ack, _: &mut Window) -> flowstart_congestion::AfterAck {
        self.held = false;
        flowstart_congestion::AfterAck::Continue
    }

    fn on_sent(&mut self, sent: &flowstart_congestion::Sent) {
        assert!(sent.now >= self.next, "a packet left before its time");
        self.next = sent.now + self.gap;
        self.held = (sent.number + 1).is_multiple_of(self.hold_every);
    }

    fn departure(&mut self, now: Time, _: &Next, _: &Window) -> Option<Departure> {
        Some(match () {
            () if self.next > now => Departure::At(self.next),
            () if self.held => Departure::Hold,
            () => Departure::Now,
        })
    }

    fn wants_packets(&self) -> bool {
        true
    }

    fn on_acked(&mut self, acked: &flowstart_congestion::Acked) {
        assert!(acked.sent_at <= acked.now);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn the_stream_arrives_completely_on_any_path(
        (sender, receiver) in configs(),
        trouble in trouble(),
        window in 1_u32..60,
        delay in 1_u64..60,
        segments in 0_u64..300,
        rest in 0_u64..100,
    ) {
        let mss = u64::from(sender.mss);
        let bytes = segments * mss + rest.min(mss);
        let pipe = Pipe::new(&sender, reno(window), &receiver, Span::from_millis(delay));
        let mut pipe = troubled(pipe, &trouble);
        let mut left = bytes;
        while left > 0 {
            left -= pipe.sender.write(pipe.now, left);
            for _ in 0..50 {
                pipe.step();
            }
        }
        pipe.sender.finish();
        pipe.complete(5_000_000);
        prop_assert_eq!(pipe.receiver.delivered(), bytes);
        let stats = pipe.sender.stats();
        prop_assert_eq!(stats.bytes_sent - stats.bytes_retransmitted, bytes);
        prop_assert_eq!(stats.packets_out, 0);
        prop_assert_eq!(stats.in_flight, 0);
        prop_assert_eq!(stats.unsent, 0);
        if sender.loss_detection == LossDetection::Rack {
            prop_assert_eq!(stats.delivered, stats.packets_sent - stats.packets_retransmitted);
        }
    }

    #[test]
    fn the_short_cut_for_ordinary_acks_changes_nothing(
        (sender, receiver) in configs(), trouble in trouble(), window in 1_u32..60, segments in 0_u64..300,
    ) {
        let sender = SenderConfig { send_buffer: None, ..sender };
        let run = |long_way: bool| {
            let mut pipe = troubled(Pipe::new(&sender, reno(window), &receiver, Span::from_millis(20)), &trouble);
            pipe.sender.no_short_cut = long_way;
            pipe.transfer(segments * u64::from(sender.mss));
            (pipe.sent, pipe.acks, *pipe.sender.stats(), pipe.sender.last_rate_sample, pipe.now)
        };
        prop_assert_eq!(run(false), run(true));
    }

    #[test]
    fn a_quiet_path_sees_no_retransmission(
        (sender, receiver) in configs(), window in 1_u32..60, delay in 1_u64..60, segments in 1_u64..300,
    ) {
        let sender = SenderConfig { send_buffer: None, ..sender };
        let mut pipe = Pipe::new(&sender, reno(window), &receiver, Span::from_millis(delay));
        pipe.transfer(segments * u64::from(sender.mss).min(2000));
        prop_assert_eq!(pipe.sender.stats().packets_lost, 0);
        prop_assert_eq!(pipe.sender.stats().timeouts, 0);
    }

    #[test]
    fn no_packet_leaves_before_its_time(
        trouble in trouble(), gap in 0_u64..3_000, hold_every in 5_u64..40, delay in 1_u64..40,
    ) {
        let start = Spaced { gap: Span::from_micros(gap), next: Time::ZERO, held: false, hold_every };
        let config = ControllerConfig::new(StartConfig::SlowStart, AvoidanceConfig::Reno);
        let controller = Controller::join(Start::External(Box::new(start)), Avoidance::new(&config), &config);
        let pipe = Pipe::new(&SenderConfig::default(), controller, &ReceiverConfig::default(), Span::from_millis(delay));
        let mut pipe = troubled(pipe, &trouble);
        pipe.transfer(150_000);
    }

    #[test]
    fn a_paced_flow_completes(trouble in trouble(), delay in 1_u64..40) {
        let config = ControllerConfig {
            pacing: Pacing::LINUX,
            ..ControllerConfig::new(StartConfig::SlowStart, AvoidanceConfig::Reno)
        };
        let pipe = Pipe::new(
            &SenderConfig::default(), Controller::new(&config), &ReceiverConfig::default(), Span::from_millis(delay),
        );
        troubled(pipe, &trouble).transfer(150_000);
    }
}

#[derive(Clone, Debug)]
enum Doing {
    Ack(Acknowledgement),
    Wait(u64),
    Timer,
    Write(u64),
}

fn garbage() -> impl Strategy<Value = Acknowledgement> {
    let near = prop_oneof![8 => 0_u64..40_000, 1 => any::<u64>()];
    let block =
        (prop_oneof![8 => 0_u32..40_000, 1 => any::<u32>()], prop_oneof![8 => 0_u32..40_000, 1 => any::<u32>()]);
    (
        near,
        any::<u64>(),
        any::<[bool; 4]>(),
        any::<u32>(),
        [block.clone(), block.clone(), block],
        any::<u8>(),
        any::<u32>(),
    )
        .prop_map(|(ack, echo, [ece, duplicate, syn, aligned], ce_count, blocks, sack_len, window)| {
            let align = |n: u32| if aligned { n / 1000 * 1000 } else { n };
            let mut sack = [SackBlock::default(); MAX_SACK_BLOCKS];
            for (slot, (start, end)) in sack.iter_mut().zip(blocks) {
                *slot = SackBlock { start: align(start), end: align(end) };
            }
            Acknowledgement {
                ack: if aligned && ack < 1 << 40 { ack / 1000 * 1000 } else { ack },
                echo: Time::from_nanos(echo),
                ce_count,
                window,
                sack,
                sack_len: sack_len % 6,
                ece,
                duplicate,
                syn: syn && echo % 8 == 0,
                granted_rate: RateCode::floor(Rate::from_bps(if echo % 5 == 0 { echo } else { 0 })),
                has_share: echo % 7 == 0,
            }
        })
}

fn doing() -> impl Strategy<Value = Doing> {
    prop_oneof![
        6 => garbage().prop_map(Doing::Ack),
        2 => (0_u64..400_000_000).prop_map(Doing::Wait),
        2 => Just(Doing::Timer),
        1 => (0_u64..20_000).prop_map(Doing::Write),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn no_acknowledgement_upsets_the_sender(
        (sender, _) in configs(), window in 1_u32..40, script in proptest::collection::vec(doing(), 1..120),
    ) {
        let config = SenderConfig { mss: 1000, send_buffer: None, ..sender };
        let mut sender = Sender::new(&config, reno(window));
        sender.open(Time::ZERO);
        sender.write(Time::ZERO, 30_000);
        let mut now = Time::ZERO;
        for doing in script {
            match doing {
                Doing::Ack(ack) => sender.on_ack(now, &ack),
                Doing::Wait(nanos) => now += Span::from_nanos(nanos),
                Doing::Timer => {
                    if sender.deadline() != Time::NEVER {
                        now = now.max(sender.deadline());
                        sender.on_timer(now);
                    }
                }
                Doing::Write(bytes) => {
                    sender.write(now, bytes);
                }
            }
            let mut packets = 0;
            while sender.transmit(now).is_some() {
                packets += 1;
                prop_assert!(packets < 10_000);
            }
            let stats = *sender.stats();
            sender.board.check(stats.una, stats.next, stats.packets_sent, config.loss_detection == LossDetection::Rack);
            prop_assert!(stats.una <= stats.next && stats.next <= sender.written());
            prop_assert!(stats.packets_out == 0 || sender.deadline() != Time::NEVER);
        }
    }
}
