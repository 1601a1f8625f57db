//! Starts that manage their first recovery by themselves.

use flowstart_congestion::{AvoidanceConfig, ControllerConfig, StartConfig, StartExit};
use flowstart_network::{DropReason, Packet};
use flowstart_simulator::{FlowId, LinkId, Observer, Simulation, Stop, Traffic, Workload};
use flowstart_transport::Sender;
use flowstart_units::{Bytes, Span, Time};

use crate::common::{flow, link, simulation, tcp};

const RTT: Span = Span::from_millis(80);

#[derive(Default)]
struct Watch {
    largest: u32,
    dropped: u64,
    lost: u64,
    exit: Option<StartExit>,
}

impl Observer for Watch {
    fn dropped(&mut self, _: Time, _: LinkId, _: &Packet, _: Option<DropReason>) {
        self.dropped += u64::from(self.exit.is_none());
    }

    fn sender(&mut self, _: Time, _: FlowId, sender: &Sender) {
        if self.exit.is_none() {
            self.largest = self.largest.max(sender.controller().cwnd());
            self.lost = sender.stats().packets_lost;
            self.exit = sender.controller().start_exit().copied();
        }
    }
}

/// draft-kazuho-ccwg-rapid-start: the first recovery ends at beta times what got through of the
/// window before it. Repairs get through as well and are no part of that.
#[test]
fn rapid_start_keeps_seven_tenths_of_what_got_through_at_buffers_of_half_to_three_bdp() {
    for buffer in [67, 133, 200, 267, 400] {
        let mut traffic = tcp(Workload::Greedy, RTT);
        let start = StartConfig::from_name("rapid_start").unwrap();
        traffic.controller = ControllerConfig::new(start, AvoidanceConfig::Cubic(Default::default()));
        let end = Stop::At(Time::ZERO + Span::from_secs(5));
        let links = vec![link(20, RTT / 2, Some(buffer))];
        let config = simulation(links, vec![flow(Traffic::Tcp(Box::new(traffic)), RTT)], end);
        let watch = Simulation::new(&config, Watch::default()).unwrap().run().1;
        let exit = watch.exit.expect("losses end the start");
        assert_eq!(watch.lost, watch.dropped, "no repair is lost");
        let through = f64::from(watch.largest) - watch.lost as f64;
        assert!((f64::from(exit.cwnd) - 0.7 * through).abs() <= 2.0, "{buffer}: {} of {through}", exit.cwnd);
    }
}

/// draft-ietf-ccwg-bbr section 5.3.4.3 and Linux `bbr_cwnd_event`: a flow that was idle while it
/// probed the RTT begins with the window from before.
#[test]
fn who_was_idle_in_a_probe_of_the_rtt_goes_on_with_the_window_from_before() {
    for name in ["bbr", "bbr3"] {
        let mut idle_in_probe = 0;
        for kilobytes in (56_000..60_000).step_by(200) {
            let written =
                vec![(Span::ZERO, Bytes::new(kilobytes * 1_000)), (Span::from_secs(16), Bytes::new(3_000_000))];
            let mut traffic = tcp(Workload::Script(written), RTT);
            let avoidance = AvoidanceConfig::from_name(name).unwrap();
            traffic.controller = ControllerConfig::new(flowstart_congestion::start_of(&avoidance), avoidance);
            let end = Stop::At(Time::ZERO + Span::from_millis(16_030));
            let links = vec![link(50, RTT / 2, Some(667))];
            let config = simulation(links, vec![flow(Traffic::Tcp(Box::new(traffic)), RTT)], end);
            let watch = Simulation::new(&config, Windows::default()).unwrap().run().1;
            assert!(watch.last.1 > 80, "{name} {kilobytes}: {:?}", watch.last);
            idle_in_probe += u32::from(watch.before.1 <= 200);
        }
        assert!(idle_in_probe > 0, "{name}");
    }
}

/// The window before the second write and after it.
#[derive(Default)]
struct Windows {
    before: (Time, u32),
    last: (Time, u32),
}

impl Observer for Windows {
    fn sender(&mut self, now: Time, _: FlowId, sender: &Sender) {
        self.last = (now, sender.controller().cwnd());
        if now < Time::ZERO + Span::from_secs(16) {
            self.before = self.last;
        }
    }
}
