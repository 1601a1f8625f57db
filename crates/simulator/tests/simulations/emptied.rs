//! Links whose queue has become empty.

use crate::common::{link, simulation, udp_flow};
use flowstart_network::{HandoverConfig, MediumConfig, QueueConfig, SchRedConfig};
use flowstart_simulator::{FlowConfig, Simulation, Spacing, Stop, UdpConfig};
use flowstart_units::{Rate, Span, Time};

fn datagrams(mbps: u64, from: Span, lasting: Span) -> FlowConfig {
    let udp = UdpConfig { rate: Rate::from_mbps(mbps), packet: 1200, spacing: Spacing::Constant, lasting, ecn: false };
    FlowConfig { start: Time::ZERO + from, ..udp_flow(udp, Span::from_millis(20)) }
}

/// Linux `red_dequeue`: a pause begins with the dequeue that finds nothing. Nobody asked for it,
/// and the average of an overload stayed for ever.
#[test]
fn the_average_of_sch_red_decays_in_a_pause() {
    let mut red = link(10, Span::from_millis(10), None);
    red.queue = QueueConfig::SchRed(SchRedConfig::default());
    let seconds = Span::from_secs;
    // Long enough for the average to be high, too short for it to have come down by drops.
    let flows = vec![datagrams(20, Span::ZERO, Span::from_millis(300)), datagrams(5, seconds(5), seconds(1))];
    let outcome =
        Simulation::new(&simulation(vec![red], flows, Stop::At(Time::ZERO + seconds(8))), ()).unwrap().run().0;
    assert!(outcome.flows[0].dropped > 100, "{}", outcome.flows[0].dropped);
    assert_eq!(outcome.flows[1].dropped, 0);
}

/// It counted what an outage swallows, and was used to 100 % where little came through.
#[test]
fn an_outage_is_no_sending() {
    let mut satellite = link(20, Span::from_millis(10), Some(1000));
    let (every, outage) = (Span::from_secs(2), Span::from_millis(1900));
    let handover = Some(HandoverConfig { every, spread: Span::ZERO, outage });
    satellite.medium = MediumConfig { handover, ..MediumConfig::default() };
    let flows = vec![datagrams(30, Span::ZERO, Span::MAX)];
    let stop = Stop::At(Time::ZERO + Span::from_secs(20));
    let outcome = Simulation::new(&simulation(vec![satellite], flows, stop), ()).unwrap().run().0;
    let link = &outcome.links[0];
    assert!(link.lost > 10_000, "{}", link.lost);
    let sending = Rate::from_mbps(20).transmission_time(link.bytes);
    assert!(link.busy.as_nanos().abs_diff(sending.as_nanos()) < 1_000_000, "{} {sending}", link.busy);
}
