//! The arithmetic of the programs, compiled for this machine, beside that of the simulator: identical results.

#![cfg(feature = "ebpf")]

use flowstart_congestion::avoidance::{Dctcp, DctcpConfig};
use flowstart_congestion::{Ack, CongestionAvoidance, Signal, Window};
// Its library has the functions.
use flowstart_kernel as _;
use flowstart_units::{Span, Time};
use proptest::prelude::*;

// SAFETY: the functions are in bpf/arithmetic.c with these types; they are pure.
unsafe extern "C" {
    safe fn fs_user_dctcp_alpha(alpha: u32, delivered: u32, marked: u32, gain_shift: u32) -> u32;
    safe fn fs_user_dctcp_ssthresh(cwnd: u32, alpha: u32) -> u32;
}

/// An ACK that ends an observation window in which `marked` of `acked` packets were marked.
fn window_ack(acked: u32, marked: u32, una: u64) -> Ack {
    Ack {
        now: Time::ZERO,
        acked,
        acked_bytes: 0,
        marked,
        lost: 0,
        rtt: None,
        srtt: Span::ZERO,
        min_rtt: Span::MAX,
        una,
        next: una + 1,
        advanced: true,
        in_flight: 0,
        packets_out: 0,
        cwnd_limited: true,
        max_packets_out: 0,
        app_limited: false,
        delivered: 0,
        rate: None,
    }
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
