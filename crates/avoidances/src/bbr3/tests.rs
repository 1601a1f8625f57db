use super::*;
use crate::AvoidanceConstants as _;
use flowstart_control::testing::ack;

/// In a probe for bandwidth at the long-term bound, with a window of so many packets.
fn probing(bound: u32, cwnd: u32) -> Bbr3 {
    let mut bbr = Bbr3::new(&Bbr3Config::default(), 1448, 1);
    bbr.full_reached = true;
    bbr.model.bounds.longterm = Some(bound);
    bbr.start_refill();
    bbr.model.round_start = true;
    bbr.cycle(&ack(1), None, cwnd);
    assert_eq!(bbr.mode(), Bbr3Mode::ProbeUp);
    bbr
}

/// `RaiseInflightLongtermSlope`: a window of packets that are acknowledged raises the bound by one
/// packet in the first round trip of a probe, by two in the second, and so on, thirty times.
#[test]
fn the_long_term_bound_grows_twice_as_fast_in_every_round_trip_of_a_probe_up_to_thirty_times() {
    let cwnd = 1 << 31;
    let mut bbr = probing(1000, cwnd);
    let told = Told { in_flight: 1000, lost: 0 };
    let mut grown = Vec::new();
    for round in 0..40 {
        let before = bbr.longterm_bound().unwrap();
        // The round trip's ACKs come in two parts, and the slope rises with the first ACK of the
        // next one.
        bbr.model.round_start = false;
        for part in [cwnd / 2, cwnd / 2] {
            bbr.cycle(&ack(part), Some(told), cwnd);
        }
        grown.push(bbr.longterm_bound().unwrap() - before);
        bbr.model.bounds.longterm = Some(1000);
        bbr.model.round_start = true;
        bbr.cycle(&ack(0), Some(told), cwnd);
        assert_eq!(bbr.mode(), Bbr3Mode::ProbeUp, "{round}");
    }
    assert_eq!(grown, (0..40).map(|round| 1 << round.min(30)).collect::<Vec<u32>>());
}

#[test]
fn constants_out_of_range_are_moved_to_the_nearest_in_range_and_the_others_stay() {
    let default = Bbr3Config { drain_rounds: 5, ..Bbr3Config::default() };
    let given = Bbr3Config { up_gain: 5.0, margin: f64::NAN, bursts: 1001, ..default };
    assert_eq!(given.validate().map_err(|error| error.field), Err("up_gain"));
    let moved = Bbr3Config { up_gain: 4.0, margin: 0.0, bursts: 1000, ..default };
    assert_eq!(Bbr3::new(&given, 1448, 1).config, moved);
    let allowed = Bbr3Config { loss_share: 1e-6, beta: 0.001, headroom: 0.999, ..default };
    assert_eq!(allowed.validate(), Ok(()));
    assert_eq!(Bbr3::new(&allowed, 1448, 1).config, allowed);
}
