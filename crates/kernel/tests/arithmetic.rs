//! The arithmetic of the programs, compiled for this machine, beside that of the simulator:
//! identical results.

#![cfg(feature = "ebpf")]

use flowstart_congestion::avoidance::{Dctcp, DctcpConfig};
use flowstart_congestion::start::paced_chirping::AdaptiveChirpingConfig;
use flowstart_congestion::start::paced_chirping::geometry::Geometry;
use flowstart_congestion::start::paced_chirping::reading::{Point, Reading, ReadingRule, read};
use flowstart_congestion::{Ack, CongestionAvoidance, Signal, Window};
// Its library has the functions.
use flowstart_kernel as _;
use flowstart_quick_start::{Nonce, RateCode};
use flowstart_random::Rng as _;
use flowstart_units::{Bytes, Rate, Span, Time};
use proptest::prelude::*;

/// `struct fs_geometry` of bpf/chirp.h.
#[repr(C)]
#[derive(Default)]
struct Shape {
    packets: u32,
    reserved: u32,
    first_gap: u64,
    step: u64,
}

/// `struct fs_user_point` of bpf/arithmetic.c.
#[repr(C)]
struct UserPoint {
    gaps: u64,
    packets: u32,
    delay: u64,
}

/// `struct fs_reading_rule` of bpf/chirp.h.
#[repr(C)]
struct Rule {
    min_points: u32,
    contrast: u32,
    crowded: u32,
}

/// `struct fs_reading` of bpf/chirp.h.
#[repr(C)]
#[derive(Default)]
struct Judged {
    says: u32,
    has_noise: u32,
    gap: u64,
    noise: u64,
    rise: u64,
}

// SAFETY: the functions are in bpf/arithmetic.c with these types; they are pure but for what their
// first argument points to.
unsafe extern "C" {
    safe fn fs_user_geometry(chirp: &mut Shape, packets: u32, average: u64, geometry: u64);
    safe fn fs_user_gap(first_gap: u64, step: u64, k: u32) -> u64;
    fn fs_user_read(
        reading: &mut Judged,
        points: *const UserPoint,
        count: u32,
        rule: &Rule,
        noise_before: u64,
        jitter: u32,
    );
    safe fn fs_user_dctcp_alpha(alpha: u32, delivered: u32, marked: u32, gain_shift: u32) -> u32;
    safe fn fs_user_dctcp_ssthresh(cwnd: u32, alpha: u32) -> u32;
    safe fn fs_user_floor_code(bps: u64) -> u32;
    safe fn fs_user_lowered_nonce(nonce: u32, from: u32, to: u32, random: u32) -> u32;
    safe fn fs_user_check_answer(
        asked: u32,
        difference: u32,
        nonce: u32,
        code: u32,
        answered_difference: u32,
        answered_nonce: u32,
    ) -> u32;
    safe fn fs_user_rate_window(code: u32, rtt_us: u64, packet: u32) -> u32;
    safe fn fs_user_load_of(bytes: u64, interval: u64) -> u64;
}

/// An ACK that ends an observation window in which `marked` of `acked` packets were marked.
fn window_ack(acked: u32, marked: u32, una: u64) -> Ack {
    Ack { marked, una, next: una + 1, ..flowstart_control::testing::ack(acked) }
}

proptest! {
    #[test]
    fn dctcps_alpha_and_thresholds_are_those_of_the_simulator(
        gain_shift in 1u32..=10,
        initial_alpha in 0u32..=1024,
        windows in prop::collection::vec((1u32..10_000, 0.0f64..=1.0), 1..100),
        cwnd in 2u32..1_000_000,
    ) {
        let window = Window { cwnd, ssthresh: cwnd };
        let mut rust = Dctcp::new(&DctcpConfig { gain_shift, initial_alpha });
        let mut alpha = initial_alpha;
        for (una, (packets, share)) in (0..).zip(windows) {
            let marked = (f64::from(packets) * share) as u32;
            rust.on_ack(&window_ack(packets, marked, una), &window);
            alpha = fs_user_dctcp_alpha(alpha, packets, marked, gain_shift);
            prop_assert_eq!(alpha, rust.alpha());
            prop_assert_eq!(fs_user_dctcp_ssthresh(cwnd, alpha), rust.reduce(Time::ZERO, Signal::Marks, &window));
        }
    }
}

/// Longest time in ns that the programs compute with (`FS_LONGEST`).
const LONGEST: u64 = 1 << 40;
/// The unit of ratios.
const ONE: u32 = 1024;
/// `FS_NEVER_CROWDED`.
const NEVER: u32 = u32::MAX;

/// What the program's arithmetic reads from a chirp, in the simulator's types, which has no jitter.
fn program_reads(points: &[Point], rule: &Rule, noise_before: u64) -> (Reading, Option<u64>) {
    program_reads_with(points, rule, noise_before, 0)
}

/// The same where delays this much above the smallest, in ns, are no queue.
fn program_reads_with(points: &[Point], rule: &Rule, noise_before: u64, jitter: u32) -> (Reading, Option<u64>) {
    let points: Vec<UserPoint> =
        points.iter().map(|point| UserPoint { gaps: point.gaps, packets: point.packets, delay: point.delay }).collect();
    let mut judged = Judged::default();
    // SAFETY: the pointer and the count are those of a slice that lives across the call, which only
    // reads it.
    unsafe { fs_user_read(&mut judged, points.as_ptr(), points.len() as u32, rule, noise_before, jitter) };
    let reading = match judged.says {
        1 => Reading::Clear(judged.gap),
        2 => Reading::Knee(judged.gap),
        3 => Reading::Crowded,
        _ => Reading::Unclear,
    };
    (reading, (judged.has_noise == 1).then_some(judged.noise))
}

fn simulator_reads(points: &[Point], rule: &Rule, noise_before: u64) -> (Reading, Option<u64>) {
    let judged = read(points, simulators(rule), noise_before);
    (judged.reading, judged.noise)
}

fn simulators(rule: &Rule) -> ReadingRule {
    let crowded = if rule.crowded == NEVER { f64::INFINITY } else { f64::from(rule.crowded) / f64::from(ONE) };
    let (min_points, contrast) = (rule.min_points as usize, u64::from(rule.contrast));
    ReadingRule { min_points, contrast, crowded, ..AdaptiveChirpingConfig::default().reading() }
}

/// The slope that the simulator's test for a crowded path computes in floating point, over the
/// points after the knee.
fn slope(points: &[Point], rule: ReadingRule) -> Option<f64> {
    let knee = read(points, ReadingRule { crowded: f64::INFINITY, ..rule }, 0).knee?;
    let mut before = points[knee].delay as f64;
    let (mut n, mut x, mut y, mut xx, mut xy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for point in &points[knee + 1..] {
        let packets = f64::from(point.packets);
        let (i, o) = (point.gaps as f64 / packets, (point.gaps as f64 + point.delay as f64 - before) / packets);
        before = point.delay as f64;
        (n, x, y, xx, xy) = (n + packets, x + i * packets, y + o * packets, xx + i * i * packets, xy + i * o * packets);
    }
    let spread = n * xx - x * x;
    (spread > 0.0).then(|| (n * xy - x * y) / spread)
}

/// A chirp over a bottleneck of this service time (ns) of which others take a share, with noise, an
/// ACK for every `every` packets.
fn chirp(average: u64, service: u64, others: f64, noise: &[u64], every: u32) -> Vec<Point> {
    let shape = Geometry::new(16, average, 2 * u64::from(ONE));
    let (mut queue, mut gaps, mut packets) = (service as f64 * 3.0 * others, 0, 0);
    let mut points = Vec::new();
    for k in 0..16 {
        let gap = if k == 0 { 0 } else { shape.gap(k) };
        queue = f64::max(queue - gap as f64 * (1.0 - others), 0.0) + service as f64;
        gaps += gap;
        packets += 1;
        if (k + 1) % every == 0 {
            points.push(Point {
                gaps,
                packets,
                delay: 20_000_000 + queue as u64 + noise.get(k as usize).copied().unwrap_or(0),
            });
            (gaps, packets) = (0, 0);
        }
    }
    points
}

proptest! {
    #[test]
    fn the_gaps_of_a_chirp_are_those_of_the_simulator(packets in 0u32..=64, average in 0..LONGEST, geometry in 0u64..5000) {
        let rust = Geometry::new(packets, average, geometry);
        let mut program = Shape::default();
        fs_user_geometry(&mut program, packets, average, geometry);
        prop_assert_eq!((program.packets, program.first_gap, program.step), (rust.packets, rust.first_gap, rust.step));
        prop_assert_eq!(program.reserved, 0);
        for k in 1..packets.max(1) {
            prop_assert_eq!(fs_user_gap(program.first_gap, program.step, k), rust.gap(k));
        }
    }

    #[test]
    fn random_delays_are_read_as_the_simulator_reads_them(
        parts in prop::collection::vec((0..LONGEST, 1u32..=4, 0..LONGEST), 0..=16),
        min_points in 0u32..20,
        contrast in 0u32..8,
        noise_before in 0..LONGEST,
    ) {
        let points: Vec<Point> = parts.into_iter().map(|(gaps, packets, delay)| Point { gaps, packets, delay }).collect();
        let rule = Rule { min_points, contrast, crowded: NEVER };
        prop_assert_eq!(program_reads(&points, &rule, noise_before), simulator_reads(&points, &rule, noise_before));
    }

    /// The simulator's regression is in floating point, the program's in 16-bit gaps: they agree
    /// but within a hundredth of the threshold.
    #[test]
    fn chirps_over_a_shared_bottleneck_are_read_as_the_simulator_reads_them(
        average in 10_000u64..5_000_000,
        load in 0.2f64..3.0,
        others in 0.0f64..=1.0,
        noise in prop::collection::vec(0u64..20_000, 16),
        every in 1u32..=4,
        noise_before in 0u64..100_000,
    ) {
        let points = chirp(average, (average as f64 * load) as u64, others, &noise, every);
        let rule = Rule { min_points: 4, contrast: 1, crowded: 614 };
        prop_assume!(slope(&points, simulators(&rule)).is_none_or(|slope| (slope - 614.0 / 1024.0).abs() > 0.01));
        prop_assert_eq!(program_reads(&points, &rule, noise_before), simulator_reads(&points, &rule, noise_before));
    }
}

/// The chirps in tests/data/chirps.csv, each with the arguments that made it.
fn recorded() -> Vec<(&'static str, Vec<Point>)> {
    let mut chirps = Vec::new();
    let (mut gaps, mut packets) = (0, 0);
    for line in include_str!("data/chirps.csv").lines().skip(3) {
        if let Some(title) = line.strip_prefix("# ") {
            chirps.push((title, Vec::new()));
            (gaps, packets) = (0, 0);
            continue;
        }
        let fields: Vec<u64> = line.split(',').map(|field| field.parse().unwrap()).collect();
        let [_, gap, delay, own] = fields[..] else { panic!("{line}") };
        gaps += gap;
        packets += 1;
        if own == 1 {
            chirps.last_mut().unwrap().1.push(Point { gaps, packets, delay });
            (gaps, packets) = (0, 0);
        }
    }
    chirps
}

/// Three packets are 9 us late by the host, of a chirp whose last ones queue for 280 us: the path
/// carries a packet per 200 us.
#[test]
fn delays_within_the_hosts_jitter_are_no_queue() {
    let delays = [0, 0, 0, 0, 9, 9, 9, 60, 140, 280];
    let gaps = [0, 600, 520, 440, 400, 320, 260, 149, 120, 60];
    let points: Vec<Point> = delays
        .iter()
        .zip(gaps)
        .map(|(delay, gaps)| Point { gaps: gaps * 1000, packets: 1, delay: delay * 1000 })
        .collect();
    let rule = Rule { min_points: 4, contrast: 1, crowded: NEVER };
    let gap = |jitter| program_reads_with(&points, &rule, 0, jitter).0.gap();
    assert_eq!(gap(10_000), 200_000);
    assert!(gap(8_000) > 260_000, "{}", gap(8_000));
}

#[test]
fn recorded_chirps_are_read_as_the_simulator_reads_them() {
    let chirps = recorded();
    let mut seen = [0; 4];
    for (title, points) in &chirps {
        for crowded in [614, NEVER] {
            for noise_before in [0, 5_000, 1_000_000] {
                let rule = Rule { min_points: 4, contrast: 1, crowded };
                let (reading, noise) = program_reads(points, &rule, noise_before);
                assert_eq!((reading, noise), simulator_reads(points, &rule, noise_before), "{title}");
                seen[match reading {
                    Reading::Unclear => 0,
                    Reading::Clear(_) => 1,
                    Reading::Knee(_) => 2,
                    Reading::Crowded => 3,
                }] += 1;
            }
        }
    }
    assert!(
        chirps.len() > 40 && seen.iter().all(|count| *count > 0),
        "all that a chirp can say is among them: {seen:?}"
    );
}

proptest! {
    #[test]
    fn rates_windows_nonces_and_loads_of_quick_start_are_those_of_the_crate(
        bps: u64, shift in 0_u32..64, from in 0_u8..16, to in 0_u8..16, nonce in 0_u32..1 << 30, random: u32,
        rtt_us in 0_u64..60_000_000, packet in 1_u32..9001, bytes in 0_u64..1 << 40, interval in 1_u64..2_000_000_001,
    ) {
        let code = |n: u8| RateCode::new(n).unwrap();
        prop_assert_eq!(fs_user_floor_code(bps >> shift), u32::from(RateCode::floor(Rate::from_bps(bps >> shift)).get()));
        let lowered = Nonce::new(nonce).lowered(code(from), code(to), random).get();
        prop_assert_eq!(fs_user_lowered_nonce(nonce, from.into(), to.into(), random), lowered);
        prop_assert_eq!(
            fs_user_rate_window(from.into(), rtt_us, packet),
            code(from).window(Span::from_micros(rtt_us), packet)
        );
        let load = Rate::of(Bytes::new(bytes), Span::from_nanos(interval)).as_bps();
        // What no link carries in so short a time saturates there and wraps here.
        if u128::from(bytes) * 8_000_000_000 / u128::from(interval) < 1 << 63 {
            prop_assert_eq!(fs_user_load_of(bytes, interval), load);
        }
    }

    #[test]
    fn answers_are_checked_in_the_order_of_the_rfc(
        asked in 1_u8..16, answered in 0_u8..16, difference: u8, wrong_ttl in 0_u8..3, nonce in 0_u32..1 << 30, flipped in 0_u32..30,
    ) {
        let (code, answered_difference) = (u32::from(answered), u32::from(difference) + u32::from(wrong_ttl == 1));
        let answered_nonce = nonce ^ 1 << flipped;
        let expected = if answered == 0 || answered > asked {
            2
        } else if wrong_ttl == 1 {
            3
        } else if !Nonce::new(answered_nonce).agrees_with(Nonce::new(nonce), RateCode::new(answered).unwrap()) {
            4
        } else {
            0
        };
        let checked =
            fs_user_check_answer(asked.into(), difference.into(), nonce, code, answered_difference, answered_nonce);
        prop_assert_eq!(checked, expected);
    }
}

#[test]
fn a_receiver_that_claims_s_steps_more_than_were_granted_is_right_once_in_4_to_the_s() {
    const TRIALS: u32 = 400_000;
    let mut random = flowstart_random::stream(4782);
    for steps in 1..=4 {
        let (asked, granted) = (9, 9 - steps);
        let caught = (0..TRIALS).filter(|_| {
            let nonce = random.next_u32() & 0x3fff_ffff;
            let lowered = fs_user_lowered_nonce(nonce, asked, granted, random.next_u32());
            // It copies what came, and says that nobody lowered the rate.
            fs_user_check_answer(asked, 7, nonce, asked, 7, lowered) != 0
        });
        let got_away = f64::from(TRIALS) - caught.count() as f64;
        let share = 0.25_f64.powi(steps as i32);
        let spread = (f64::from(TRIALS) * share * (1.0 - share)).sqrt();
        let expected = f64::from(TRIALS) * share;
        assert!((got_away - expected).abs() < 4.0 * spread, "{steps} steps: {got_away} of {TRIALS}");
    }
}
