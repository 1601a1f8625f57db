//! What a stack relies on, whatever it tells in whichever order.

use std::collections::VecDeque;

use flowstart_congestion::{AvoidanceConfig, ExitReason, StartConfig};
use proptest::prelude::*;

use super::*;
use crate::refused::{Stack, check};
use crate::{Refused, contestant};

/// What a stack may tell.
#[derive(Clone, Copy, Debug)]
enum Told {
    /// Microseconds pass.
    Wait(u32),
    /// So many full packets and one of so many bytes leave.
    Sent(u8, u16),
    /// An ACK of so many of the packets in flight, after leaving out so many; the application
    /// limits.
    Acked(u8, u8, bool),
    /// The oldest so many packets in flight are lost.
    Lost(u8, bool),
    Marked,
    Spurious,
    Mtu(u16),
    /// A packet that nobody sent is acknowledged, as a probe of the MTU is.
    Stranger(u16),
}

fn told() -> impl Strategy<Value = Told> {
    prop_oneof![
        6 => (0..200_000_u32).prop_map(Told::Wait),
        1 => (0..9_000_000_u32).prop_map(Told::Wait),
        8 => (0..20_u8, 1..=1200_u16).prop_map(|(n, last)| Told::Sent(n, last)),
        8 => (1..20_u8, 0..4_u8, any::<bool>()).prop_map(|(n, skip, limits)| Told::Acked(n, skip, limits)),
        2 => (1..20_u8, any::<bool>()).prop_map(|(n, persistent)| Told::Lost(n, persistent && n > 15)),
        1 => Just(Told::Marked),
        1 => Just(Told::Spurious),
        1 => (1..=9000_u16).prop_map(Told::Mtu),
        1 => (1..=9000_u16).prop_map(Told::Stranger),
    ]
}

/// All pairs that a stack carries.
fn pairs(stack: Stack) -> Vec<ControllerConfig> {
    let starts = StartConfig::NAMES.iter();
    let all = starts.flat_map(|start| AvoidanceConfig::NAMES.iter().map(move |avoidance| (start, avoidance)));
    all.map(|(start, avoidance)| contestant(start, avoidance).unwrap())
        .filter(|config| check(config, stack).is_ok())
        .collect()
}

/// A stack that plays.
struct Played {
    events: Events,
    now: Time,
    in_flight: VecDeque<(Time, u64)>,
}

impl Played {
    fn new(config: &ControllerConfig) -> Self {
        let events = Events::new(&ControllerConfig { mss: 1200, ..config.clone() });
        Self { events, now: Time::from_nanos(1), in_flight: VecDeque::new() }
    }

    fn bytes(&self) -> u64 {
        self.in_flight.iter().map(|(_, bytes)| bytes).sum()
    }

    fn send(&mut self, bytes: u64) {
        self.in_flight.push_back((self.now, bytes));
        self.events.on_sent(self.now, bytes);
    }

    fn acknowledge(&mut self, skip: usize, packets: usize, limits: bool) {
        let from = skip.min(self.in_flight.len());
        let to = (from + packets).min(self.in_flight.len());
        let acked: Vec<_> = self.in_flight.drain(from..to).collect();
        for (sent, bytes) in acked {
            self.events.on_acked(sent, bytes, limits);
        }
        self.events.on_end_acks(self.now, self.bytes(), limits);
    }

    fn hear(&mut self, told: Told) {
        match told {
            Told::Wait(micros) => self.now += Span::from_micros(u64::from(micros)),
            Told::Sent(full, last) => {
                (0..full).for_each(|_| self.send(u64::from(self.events.mtu)));
                self.send(u64::from(last));
            }
            Told::Acked(packets, skip, limits) => self.acknowledge(skip.into(), packets.into(), limits),
            Told::Lost(packets, persistent) => {
                let lost: Vec<_> = self.in_flight.drain(..usize::from(packets).min(self.in_flight.len())).collect();
                if let Some((newest, _)) = lost.last() {
                    let bytes = lost.iter().map(|(_, bytes)| bytes).sum();
                    self.events.on_lost(self.now, *newest, bytes, persistent);
                }
            }
            Told::Marked => self.events.on_marks(self.now, self.in_flight.front().map_or(self.now, |(sent, _)| *sent)),
            Told::Spurious => self.events.on_spurious(),
            Told::Mtu(mtu) => self.events.on_mtu(mtu),
            Told::Stranger(bytes) => {
                self.events.on_acked(self.now + Span::from_nanos(1), u64::from(bytes), false);
                self.events.on_end_acks(self.now, self.bytes(), false);
            }
        }
    }

    fn holds(&self) {
        let least = 2 * u64::from(self.events.mtu);
        assert!(self.events.window() >= least && self.events.initial_window() >= least);
        assert!(self.events.ssthresh().is_none_or(|ssthresh| ssthresh >= least));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn windows_are_never_below_two_packets_whatever_a_stack_tells(
        all in prop::collection::vec(told(), 1..200), choice in any::<prop::sample::Index>(),
    ) {
        for stack in [Stack::Quinn, Stack::Noq] {
            let pairs = pairs(stack);
            let mut played = Played::new(&pairs[choice.index(pairs.len())]);
            for told in &all {
                played.hear(*told);
                played.holds();
            }
        }
    }

    #[test]
    fn a_duplicate_says_the_same_from_then_on(
        before in prop::collection::vec(told(), 1..60), after in prop::collection::vec(told(), 1..60),
        choice in any::<prop::sample::Index>(),
    ) {
        let pairs = pairs(Stack::Noq);
        let mut one = Played::new(&pairs[choice.index(pairs.len())]);
        before.iter().for_each(|told| one.hear(*told));
        let mut other = Played { events: one.events.clone(), now: one.now, in_flight: one.in_flight.clone() };
        for told in after {
            one.hear(told);
            other.hear(told);
            prop_assert_eq!(format!("{:?}", one.events), format!("{:?}", other.events));
        }
    }
}

fn slow_start() -> Played {
    Played::new(&contestant("slow_start", "reno").unwrap())
}

fn wait(played: &mut Played, millis: u64) {
    played.now += Span::from_millis(millis);
}

/// Ten packets leave and come back after 50 ms.
fn round(played: &mut Played, packets: usize) {
    (0..packets).for_each(|_| played.send(1200));
    wait(played, 50);
    played.acknowledge(0, packets, false);
}

#[test]
fn slow_start_doubles_the_bytes_and_an_application_that_limits_does_not() {
    let mut played = slow_start();
    assert_eq!(played.events.window(), 12_000);
    round(&mut played, 10);
    assert_eq!(played.events.window(), 24_000);
    (0..10).for_each(|_| played.send(1200));
    wait(&mut played, 50);
    played.acknowledge(0, 10, true);
    assert_eq!(played.events.window(), 24_000, "half of the window was not used");
}

#[test]
fn bytes_count_and_not_packets() {
    let mut played = slow_start();
    // Twenty packets of 120 bytes are two full ones.
    (0..20).for_each(|_| played.send(120));
    wait(&mut played, 50);
    played.acknowledge(0, 20, false);
    assert_eq!(played.events.window(), 12 * 1200);
}

#[test]
fn a_loss_takes_effect_at_once_and_once_for_what_left_before() {
    let mut played = slow_start();
    round(&mut played, 10);
    (0..20).for_each(|_| played.send(1200));
    wait(&mut played, 50);
    played.hear(Told::Lost(2, false));
    assert_eq!(played.events.window(), 12_000);
    assert_eq!(played.events.ssthresh(), Some(12_000));
    assert_eq!(played.events.start_exit().map(|exit| (exit.reason, exit.cwnd)), Some((ExitReason::Loss, 20)));
    played.hear(Told::Lost(2, false));
    assert_eq!(played.events.window(), 12_000, "the same reduction");
    played.acknowledge(0, 16, false);
    assert_eq!(played.events.window(), 12_000, "what left before the reduction does not let it grow");
    wait(&mut played, 1);
    (0..10).for_each(|_| played.send(1200));
    wait(&mut played, 50);
    played.acknowledge(0, 10, false);
    assert_eq!(played.events.window(), 13_200);
    played.hear(Told::Sent(3, 1200));
    played.hear(Told::Lost(1, false));
    assert_eq!(played.events.window(), 2 * 1200 + 3600, "11 packets halve to 5");
}

#[test]
fn marks_reduce_as_losses_do_and_persistent_congestion_leaves_two_packets() {
    let mut played = slow_start();
    round(&mut played, 10);
    played.send(1200);
    played.hear(Told::Marked);
    assert_eq!(played.events.window(), 12_000);
    played.hear(Told::Lost(1, true));
    assert_eq!(played.events.window(), 2400);
}

/// The next packet is lost, and that is known a millisecond later.
fn lose_one(played: &mut Played) {
    played.send(1200);
    wait(played, 1);
    played.hear(Told::Lost(1, false));
}

#[test]
fn a_spurious_loss_is_undone() {
    let mut played = slow_start();
    round(&mut played, 10);
    lose_one(&mut played);
    assert_eq!(played.events.window(), 12_000);
    played.hear(Told::Spurious);
    assert_eq!((played.events.window(), played.events.ssthresh()), (24_000, None));
    played.hear(Told::Spurious);
    assert_eq!(played.events.window(), 24_000);
}

/// Marks confirm a reduction, whatever becomes of the loss that began it (Linux
/// `tcp_fastretrans_alert`).
#[test]
fn a_mark_in_a_recovery_keeps_the_window_reduced_although_the_loss_was_spurious() {
    let mut played = slow_start();
    round(&mut played, 10);
    (0..3).for_each(|_| played.send(1200));
    wait(&mut played, 1);
    played.hear(Told::Lost(1, false));
    // Of what left before the reduction: no other one.
    played.hear(Told::Marked);
    assert_eq!((played.events.window(), played.events.ssthresh()), (12_000, Some(12_000)));
    played.hear(Told::Spurious);
    assert_eq!((played.events.window(), played.events.ssthresh()), (12_000, Some(12_000)));
}

/// Linux `tcp_current_ssthresh`.
#[test]
fn the_threshold_that_comes_back_is_three_quarters_of_the_window() {
    let mut played = slow_start();
    round(&mut played, 10);
    lose_one(&mut played);
    assert_eq!(played.events.ssthresh(), Some(12_000));
    // Congestion avoidance.
    wait(&mut played, 50);
    round(&mut played, 10);
    played.events.controller.set_cwnd(100);
    lose_one(&mut played);
    assert_eq!(played.events.ssthresh(), Some(60_000));
    played.hear(Told::Spurious);
    assert_eq!((played.events.window(), played.events.ssthresh()), (120_000, Some(90_000)));
}

#[test]
fn another_mtu_keeps_the_bytes() {
    let mut played = slow_start();
    round(&mut played, 10);
    played.hear(Told::Mtu(1500));
    assert_eq!((played.events.window(), played.events.initial_window()), (16 * 1500, 8 * 1500));
}

#[test]
fn after_a_long_silence_the_window_is_the_initial_one_again() {
    let mut played = slow_start();
    round(&mut played, 10);
    round(&mut played, 20);
    assert_eq!(played.events.window(), 48_000);
    wait(&mut played, 10_000);
    played.send(1200);
    assert_eq!(played.events.window(), 12_000);
}

#[test]
fn who_controls_recovery_keeps_the_window_through_a_long_silence() {
    let mut played = Played::new(&contestant("slow_start", "bbr3").unwrap());
    round(&mut played, 10);
    lose_one(&mut played);
    assert!(played.events.controller.controls_recovery());
    played.events.controller.set_cwnd(200);
    let threshold = played.events.ssthresh();
    wait(&mut played, 10_000);
    played.send(1200);
    assert_eq!((played.events.window(), played.events.ssthresh()), (240_000, threshold));
}

#[test]
fn another_mtu_keeps_the_bytes_of_a_window_that_an_undone_reduction_gives_back() {
    let mut played = slow_start();
    round(&mut played, 10);
    round(&mut played, 20);
    (0..30).for_each(|_| played.send(1200));
    wait(&mut played, 1);
    played.hear(Told::Lost(1, false));
    assert_eq!(played.events.most, [30, 20]);
    played.hear(Told::Mtu(1452));
    // 48,000 bytes are 33.06 packets of 1452.
    assert_eq!(played.events.most, [25, 17]);
    played.hear(Told::Spurious);
    assert_eq!((played.events.window(), played.events.ssthresh()), (33 * 1452, None));
}

#[test]
fn the_rate_of_delivery_and_the_rtt_are_those_of_the_newest_packet() {
    let mut played = Played::new(&contestant("hystart++", "delay_target").unwrap());
    round(&mut played, 10);
    assert_eq!((played.events.rtt.smoothed(), played.events.min_rtt), (Span::from_millis(50), Span::from_millis(50)));
    let (sent, delivered_at) = (played.now, played.now);
    let record =
        Record { sent, seq: 0, bytes: 1200, open: 0, delivered: 4, delivered_at, first_sent: sent, app_limited: false };
    wait(&mut played, 50);
    let rate = played.events.delivery_rate(played.now, &record).unwrap();
    assert_eq!((rate.delivered, rate.interval), (6, Span::from_millis(50)));
}

#[test]
fn where_a_start_jumps_there_is_a_rate_for_stacks_that_take_one() {
    use flowstart_congestion::start::careful_resume::CarefulResumeConfig;
    let saved = CarefulResumeConfig {
        saved_cwnd: Some(flowstart_units::Bytes::new(480_000)),
        saved_rtt: Some(Span::from_millis(50)),
        ..CarefulResumeConfig::default()
    };
    let config = contestant("careful_resume", "cubic").unwrap();
    let mut played = Played::new(&ControllerConfig { start: StartConfig::CarefulResume(saved), ..config });
    (0..11).for_each(|_| played.send(1200));
    wait(&mut played, 50);
    played.acknowledge(0, 10, false);
    // Half of what was saved, over a round trip.
    assert_eq!(played.events.window(), 240_000);
    assert_eq!(played.events.rate(), Some(Rate::from_bps(240_000 * 8 * 20)));
}

#[test]
fn what_cannot_run_is_refused_with_the_reason() {
    let sentence = |start: &str, avoidance: &str, stack| {
        check(&contestant(start, avoidance).unwrap(), stack).map_err(|refused| refused.to_string())
    };
    let why = |start: &str, avoidance: &str, stack, part: &str| {
        let said = sentence(start, avoidance, stack).unwrap_err();
        assert!(said.contains(part) && !said.contains('\n'), "{start}+{avoidance}: {said}");
    };
    for chirping in ["paced_chirping", "two_gap_chirping", "adaptive_chirping"] {
        why(chirping, "cubic", Stack::Noq, "sets the time at which each packet leaves");
    }
    why("quick_start", "cubic", Stack::Noq, "asks the routers");
    why("jump_start", "cubic", Stack::Noq, "how much the application has to send");
    why("oracle", "cubic", Stack::Noq, "is no algorithm");
    why("fair_queuing_probe", "delay_or_cubic", Stack::Noq, "two connections");
    why("rapid_start", "cubic", Stack::Quinn, "cannot run in quinn: it sends at a rate of its own");
    why("hystart", "delay_target", Stack::Quinn, "the congestion avoidance delay_target cannot run in quinn");
    why("hystart", "dctcp", Stack::Noq, "how many packets were marked");
    why("hystart", "vivace", Stack::Noq, "intervals of packets");
    why("hystart", "delay_or_cubic", Stack::Noq, "two connections");
    why("built_in", "bbr", Stack::Noq, "noq has a BBR of its own");
    assert_eq!(sentence("rapid_start", "delay_target", Stack::Noq), Ok(()));
    why("suss", "cubic", Stack::Quinn, "the train of a window's ACKs");
    assert_eq!(sentence("suss", "cubic", Stack::Noq), Ok(()));
    let wrong = ControllerConfig { initial_window: 0, ..contestant("suss", "cubic").unwrap() };
    assert!(matches!(check(&wrong, Stack::Quinn), Err(Refused::Invalid(_))));
    assert_eq!((pairs(Stack::Quinn).len(), pairs(Stack::Noq).len()), (7 * 4, 10 * 5));
}

#[test]
fn the_handshake_is_no_round_of_the_start() {
    use flowstart_congestion::start::Start;
    let mut played = Played::new(&contestant("suss", "cubic").unwrap());
    for _ in 0..3 {
        played.send(1200);
        wait(&mut played, 50);
        played.acknowledge(0, 1, true);
    }
    played.hear(Told::Mtu(1440));
    assert_eq!(played.events.window(), 8 * 1440, "the bytes stay while nothing begins");
    (0..10).for_each(|_| played.send(1440));
    assert_eq!(played.events.window(), 10 * 1440, "the initial window is one of packets as they are");
    wait(&mut played, 50);
    played.acknowledge(0, 10, false);
    assert_eq!(played.events.window(), 40 * 1440, "the second round quadruples it");
    assert!(matches!(played.events.controller().start(), Start::Suss(suss) if suss.jumps() == 1));
    assert_eq!(played.events.rate(), None, "the packets that slow start would send leave at once");
    (0..20).for_each(|_| played.send(1440));
    assert!(played.events.rate().is_some(), "and those that SUSS adds are spread");
}

#[test]
fn what_left_before_the_controller_was_made_is_no_sample() {
    let base = Instant::now();
    let clock = Clock::new(base + Duration::from_secs(1));
    assert_eq!(clock.time(base), Time::ZERO);
    assert_eq!(clock.time(base + Duration::from_secs(1)), Time::from_nanos(1));
    let mut played = slow_start();
    played.send(1200);
    played.now += Span::from_millis(5);
    played.events.on_acked(clock.time(base), 1200, false);
    played.events.on_end_acks(played.now, 1200, false);
    assert_eq!(played.events.rtt.smoothed(), Span::ZERO);
}

#[test]
fn records_of_lost_packets_are_let_go() {
    let mut played = slow_start();
    for _ in 0..1000 {
        (0..10).for_each(|_| {
            played.now += Span::from_micros(10);
            played.send(1200);
        });
        played.now += Span::from_micros(100);
        // One of ten is lost.
        played.hear(Told::Lost(1, false));
        played.acknowledge(0, 9, false);
    }
    assert!(played.events.records.len() < 20, "{}", played.events.records.len());
}

#[test]
fn after_persistent_congestion_older_losses_reduce_nothing() {
    let mut played = slow_start();
    round(&mut played, 10);
    (0..20).for_each(|_| played.send(1200));
    wait(&mut played, 500);
    played.hear(Told::Lost(10, true));
    let ssthresh = played.events.ssthresh();
    played.hear(Told::Lost(2, false));
    assert_eq!((played.events.window(), played.events.ssthresh()), (2400, ssthresh));
    played.acknowledge(0, 8, false);
    assert_eq!(played.events.window(), 2400, "what left before does not let it grow");
}

#[test]
fn an_initial_window_below_two_packets_is_two() {
    let config = ControllerConfig { initial_window: 1, ..contestant("slow_start", "reno").unwrap() };
    let played = Played::new(&config);
    assert_eq!((played.events.window(), played.events.initial_window()), (2400, 2400));
}

#[test]
fn a_start_hears_how_many_packets_were_lost() {
    use flowstart_congestion::start::Start;
    use flowstart_congestion::start::careful_resume::ResumePhase;
    let mut config = contestant("careful_resume", "cubic").unwrap();
    if let StartConfig::CarefulResume(resume) = &mut config.start {
        resume.saved_cwnd = Some(flowstart_units::Bytes::new(480_000));
        resume.saved_rtt = Some(Span::from_millis(50));
    }
    let mut played = Played::new(&config);
    (0..11).for_each(|_| played.send(1200));
    wait(&mut played, 50);
    played.acknowledge(0, 10, false);
    (0..100).for_each(|_| played.send(1200));
    wait(&mut played, 40);
    played.acknowledge(0, 1, false);
    played.hear(Told::Lost(3, false));
    let Start::CarefulResume(resume) = played.events.controller().start() else { panic!("the start") };
    assert!(matches!(resume.phase(), ResumePhase::SafeRetreat(_)), "{:?}", resume.phase());
    // One was in flight before the jump and one was delivered since; three were lost.
    assert_eq!(resume.pipe_size(), 0);
    played.acknowledge(0, 20, false);
    let Start::CarefulResume(resume) = played.events.controller().start() else { panic!("the start") };
    assert_eq!(resume.pipe_size(), 2 + 20 - 3);
}

#[test]
fn records_of_what_was_delivered_or_is_never_told_are_let_go() {
    let mut played = slow_start();
    round(&mut played, 10);
    assert!(played.events.records.is_empty());
    played.send(1200);
    // Nothing is ever said of that one.
    for _ in 0..300 {
        wait(&mut played, 10);
        played.send(1200);
        wait(&mut played, 10);
        played.acknowledge(1, 1, false);
    }
    assert!(played.events.records.len() < 2, "{}", played.events.records.len());
}

#[test]
fn who_only_receives_keeps_no_records_of_its_acks() {
    let mut played = slow_start();
    round(&mut played, 10);
    // An hour of ACKs; quinn tells that they leave, and never more of them.
    for _ in 0..36_000 {
        wait(&mut played, 100);
        played.events.on_sent(played.now, 35);
    }
    assert!(played.events.records.len() < 100, "{}", played.events.records.len());
}
