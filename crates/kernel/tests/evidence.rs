//! What counts as evidence in `fs_chirp`, and what a start does that has none: the rules of
//! bpf/evidence.h, compiled for this machine.

#![cfg(feature = "ebpf")]

use flowstart_congestion::start::paced_chirping::geometry::Geometry;
// Its library has the functions.
use flowstart_kernel as _;

/// `struct fs_user_point` of bpf/arithmetic.c.
#[repr(C)]
#[derive(Clone, Copy)]
struct Point {
    gaps: u64,
    packets: u32,
    delay: u64,
}

/// `struct fs_reading_rule` of bpf/chirp.h.
#[repr(C)]
struct ReadingRule {
    min_points: u32,
    contrast: u32,
    crowded: u32,
}

/// `struct fs_evidence_rule` of bpf/evidence.h.
#[repr(C)]
struct EvidenceRule {
    drowned: u32,
    clear: u32,
    standing_out: u32,
}

// SAFETY: the functions are in bpf/arithmetic.c with these types; they are pure but for what their
// pointers point to.
unsafe extern "C" {
    fn fs_user_judge(points: *const Point, count: u32, rule: &ReadingRule, evidence: &EvidenceRule, rtt: u64) -> u32;
    safe fn fs_user_is_impatient(now: u64, read_at: u64, rtt: u64, patience: u32) -> u32;
    safe fn fs_user_is_refuted(gap: u64, delivered: u32, interval: u64, refuted: u32, fewest: u32) -> u32;
    safe fn fs_user_slow_start_window(first: u32, delivered: u32, in_flight: u32) -> u32;
    safe fn fs_user_decayed(window: u32, idle: u64, rto: u64, first: u32) -> u32;
    safe fn fs_user_is_worth_chirping(window: u32, known: u32, growth: u32) -> u32;
    safe fn fs_user_grown(acked: u32, cwnd: u32, pipe: u32, divisor: u32, ungrown: &mut u32) -> u32;
}

/// The unit of ratios.
const ONE: u32 = 1024;
const MICRO: u64 = 1000;
const MILLI: u64 = 1_000_000;
/// The defaults, written out.
const EVIDENCE: EvidenceRule = EvidenceRule { drowned: 20, clear: 128, standing_out: 4 };

/// What is said of a chirp.
#[derive(Debug, PartialEq, Eq)]
struct Judged {
    readable: bool,
    evidence: bool,
    bunched: bool,
}

fn judge(points: &[Point], rtt: u64) -> Judged {
    let rule = ReadingRule { min_points: 4, contrast: 1, crowded: 614 };
    // SAFETY: the pointer and the count are those of a slice that lives across the call, which only
    // reads it.
    let bits = unsafe { fs_user_judge(points.as_ptr(), points.len() as u32, &rule, &EVIDENCE, rtt) };
    Judged { readable: bits & 1 != 0, evidence: bits & 2 != 0, bunched: bits & 4 != 0 }
}

/// A chirp of 16 around 500 us over an empty path of a packet per 500 us, each packet later by what
/// `late` says.
fn chirp(late: impl Fn(u64) -> u64) -> Vec<Point> {
    let shape = Geometry::new(16, 500 * MICRO, 2 * u64::from(ONE));
    let mut queue = 0;
    (0..16)
        .map(|k| {
            let gaps = if k == 0 { 0 } else { shape.gap(k) };
            queue = if k == 0 { 0 } else { (queue + 500 * MICRO).saturating_sub(gaps) };
            Point { gaps, packets: 1, delay: 50 * MILLI + queue + late(u64::from(k)) }
        })
        .collect()
}

/// The last six packets queue, at last for 1.3 ms.
#[test]
fn a_queue_without_noise_is_evidence() {
    assert_eq!(judge(&chirp(|_| 0), 50 * MILLI), Judged { readable: true, evidence: true, bunched: false });
}

/// One packet is 400 us late, more than half of the queue behind the latest packet that may be the
/// knee by that, and a fiftieth of 20 ms. Less than a quarter of all of the queue: it stands out.
#[test]
fn a_queue_hardly_larger_than_the_noise_may_be_read_and_is_no_evidence() {
    let noisy = chirp(|k| if k == 3 { 400 * MICRO } else { 0 });
    assert_eq!(judge(&noisy, 50 * MILLI), Judged { readable: true, evidence: false, bunched: false });
    assert!(!judge(&noisy, 15 * MILLI).readable, "more than a fiftieth of the round trip");
    for (late, evidence) in [(300, true), (400, false)] {
        let less = chirp(|k| if k == 3 { late * MICRO } else { 0 });
        assert_eq!(judge(&less, 50 * MILLI), Judged { readable: true, evidence, bunched: false }, "{late} us");
    }
}

/// On a short path of a low rate, noise is measured by the gap: 60 us are an eighth of 500.
#[test]
fn noise_of_less_than_an_eighth_of_the_gap_never_drowns_a_chirp() {
    for (late, readable) in [(60, true), (80, false)] {
        let noisy = chirp(|k| if k == 3 { late * MICRO } else { 0 });
        assert_eq!(judge(&noisy, MILLI).readable, readable, "{late} us");
    }
}

/// A way back that serves every 4 ms lets ACKs go four at a time.
#[test]
fn acks_that_come_together_say_nothing() {
    let mut arrival = 0;
    let bunched: Vec<Point> = (0..16)
        .map(|k| {
            arrival += 500 * MICRO;
            let served = arrival.next_multiple_of(4 * MILLI) + k % 8 * 10 * MICRO;
            Point { gaps: if k == 0 { 0 } else { 500 * MICRO }, packets: 1, delay: 50 * MILLI + served - arrival }
        })
        .collect();
    let judged = judge(&bunched, 1000 * MILLI);
    assert_eq!((judged.readable, judged.bunched), (false, true));
}

/// A late packet that holds up all behind it: the receiver's host merges what comes at once.
#[test]
fn merged_acks_of_most_packets_say_nothing() {
    let whole = chirp(|_| 0);
    let merged = |parts: &[usize]| {
        let mut rest = whole.as_slice();
        parts
            .iter()
            .map(|packets| {
                let (one, others) = rest.split_at(*packets);
                rest = others;
                let gaps = one.iter().map(|point| point.gaps).sum();
                Point { gaps, packets: *packets as u32, delay: one[packets - 1].delay }
            })
            .collect::<Vec<_>>()
    };
    let of = |parts: &[usize]| judge(&merged(parts), 50 * MILLI);
    assert!(of(&[2; 8]).readable && !of(&[2; 8]).bunched, "a receiver may acknowledge every second packet");
    assert!(!of(&[2, 2, 2, 2, 4, 2, 2]).bunched);
    assert_eq!(of(&[1, 1, 3, 4, 4, 3]), Judged { readable: false, evidence: true, bunched: true });
}

#[test]
fn what_cannot_be_read_has_a_round_trip_and_a_half() {
    const PATIENCE: u32 = 1536;
    let impatient = |now, read_at| fs_user_is_impatient(now * MILLI, read_at * MILLI, 20 * MILLI, PATIENCE) != 0;
    assert!(impatient(1, 0), "nothing was ever read");
    assert!(!impatient(130, 100) && impatient(131, 100));
}

/// Chirps show a packet per ms.
#[test]
fn a_round_trip_that_delivered_more_than_chirps_show_refutes_them() {
    let refuted = |delivered, interval| fs_user_is_refuted(MILLI, delivered, interval, 1280, 32) != 0;
    assert!(refuted(40, 20 * MILLI));
    assert!(!refuted(40, 40 * MILLI) && !refuted(40, 33 * MILLI), "as much as they show, or hardly more");
    assert!(refuted(40, 31 * MILLI));
    assert!(!refuted(31, 10 * MILLI), "too few to tell");
    assert_eq!(fs_user_is_refuted(0, 40, MILLI, 1280, 32), 0, "chirps have shown nothing");
}

#[test]
fn slow_start_takes_over_with_the_window_that_it_would_have_at_most_twice_what_is_in_flight() {
    assert_eq!(fs_user_slow_start_window(10, 26, 40), 36);
    assert_eq!(fs_user_slow_start_window(10, 100, 20), 40);
    assert_eq!(fs_user_slow_start_window(10, 100, 0), 20, "nothing is in flight: the first window, doubled");
    assert_eq!(fs_user_slow_start_window(10, u32::MAX, u32::MAX), 0x7fff_ffff);
}

/// `tcp_cwnd_restart` of Linux, in its own loop.
fn linux(mut window: u32, idle: i64, rto: i64, first: u32) -> u32 {
    let (least, mut left) = (first.min(window), idle);
    loop {
        left -= rto;
        if left <= 0 || window <= least {
            return window.max(least);
        }
        window >>= 1;
    }
}

#[test]
fn a_window_decays_in_idle_times_as_the_kernels_does() {
    for window in [1, 9, 10, 11, 40, 333, 100_000] {
        for idle in [0, 1, 199, 200, 201, 400, 401, 1500, 10_000, 1_000_000] {
            assert_eq!(fs_user_decayed(window, idle, 200, 10), linux(window, idle as i64, 200, 10), "{window} {idle}");
        }
    }
    assert_eq!(fs_user_decayed(40, 100, 0, 10), 40, "without a timeout nothing is known");
}

#[test]
fn chirps_come_again_where_slow_start_would_take_three_round_trips() {
    for (window, worth) in [(41, true), (42, false), (333, false), (10, true)] {
        assert_eq!(fs_user_is_worth_chirping(window, 328, 8 * ONE) != 0, worth, "{window}");
    }
}

#[test]
fn slow_start_is_slower_beyond_what_chirps_have_shown() {
    let mut left = 0;
    assert_eq!(fs_user_grown(7, 99, 100, 4, &mut left), 7);
    assert_eq!(fs_user_grown(7, 500, 0, 4, &mut left), 7, "they have shown nothing");
    let grown: Vec<u32> = (0..4).map(|_| fs_user_grown(3, 100, 100, 4, &mut left)).collect();
    assert_eq!((grown.as_slice(), left), ([0, 1, 1, 1].as_slice(), 0));
}
