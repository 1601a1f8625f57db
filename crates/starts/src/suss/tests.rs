use super::*;
use flowstart_control::testing::ack;

const MSS: u64 = 1448;

fn ms(x: f64) -> Span {
    Span::from_secs_f64(x / 1e3)
}

fn at(x: f64) -> Time {
    Time::ZERO + ms(x)
}

/// A flow over a path of 100 ms whose train of blue ACKs takes `train` ms in every round.
struct Flow {
    suss: Suss,
    window: Window,
    una: u64,
    next: u64,
    train: f64,
}

impl Flow {
    fn new(train: f64) -> Self {
        let suss = Suss::new(&SussConfig::default(), 10, false, MSS as u32);
        Self { suss, window: Window::new(10), una: 0, next: 10 * MSS, train }
    }

    /// The blue ACKs of the round that begins at `start` ms, and what became of them.
    fn blue(&mut self, start: f64, rtt: f64) {
        let round = self.suss.round.number + 1;
        let packets = 10 << (round - 2);
        for i in 0..packets {
            self.una += MSS;
            // The packet that leaves with this ACK and the growth it brings.
            self.next += 2 * MSS;
            let now = at(start + self.train * f64::from(i) / f64::from(packets - 1));
            let rtt = Some(ms(rtt));
            let ack = Ack {
                now,
                rtt,
                min_rtt: ms(100.0),
                una: self.una,
                next: self.next,
                in_flight: self.window.cwnd,
                ..ack(1)
            };
            assert_eq!(self.suss.on_ack(&ack, &mut self.window), AfterAck::Continue);
            self.suss.grow(&ack, &mut self.window);
        }
    }

    /// The rest of the round: everything up to the window is sent and acknowledged.
    fn rest(&mut self) {
        self.una = self.suss.round.head;
        self.next = self.una + u64::from(self.window.cwnd) * MSS;
    }
}

#[test]
fn short_trains_quadruple_the_window_in_rounds_two_three_and_four() {
    let mut flow = Flow::new(8.0);
    let expected = [
        // red packets, span in ms, packets per second, guard in ms, window
        (20, 50.0, 400.0, 21.0, 40),
        (120, 75.0, 1600.0, 8.5, 160),
        (560, 87.5, 6400.0, 2.25, 640),
    ];
    for (i, (red, span, per_second, guard, cwnd)) in expected.into_iter().enumerate() {
        let start = 100.0 * (i + 1) as f64;
        flow.blue(start, 100.0);
        let plan = flow.suss.red.unwrap_or_else(|| panic!("round {} is not accelerated", i + 2));
        assert_eq!((plan.packets, flow.window.cwnd), (red, cwnd));
        assert!((plan.rate.as_bps() as f64 / 8.0 / MSS as f64 - per_second).abs() < 0.01 * per_second);
        assert!((f64::from(red) / per_second * 1e3 - span).abs() < 1e-9);
        let first = plan.first.since(at(start + 8.0)).as_millis_f64();
        assert!((first - guard).abs() < 1e-3, "{first} against {guard}");
        flow.rest();
    }
    assert_eq!(flow.suss.jumps(), 3);
    // Never more than three.
    flow.blue(400.0, 100.0);
    assert_eq!((flow.suss.jumps(), flow.suss.red), (3, None));
}

#[test]
fn a_train_that_will_not_fit_into_a_round_trip_ends_the_acceleration_for_good() {
    for (train, jumps) in [(8.0, 2), (16.0, 1)] {
        let mut flow = Flow::new(8.0);
        flow.blue(100.0, 100.0);
        assert_eq!(flow.suss.jumps(), 1);
        flow.rest();
        flow.train = train;
        flow.blue(200.0, 100.0);
        assert_eq!(flow.suss.jumps(), jumps, "{train} ms after 8 ms");
        assert_eq!(flow.suss.active, jumps == 2);
    }
}

#[test]
fn the_delay_of_a_round_may_be_above_the_smallest_as_long_as_that_is_not_old() {
    for (k, limit) in [(0, 1.0), (1, 1.0625), (2, 1.0833), (3, 1.0938)] {
        for (ratio, low) in [(limit - 0.0001, true), (limit + 0.0001, false)] {
            let mut flow = Flow::new(8.0);
            flow.suss.min_rtt = ms(100.0);
            flow.suss.min_rtt_round = 2;
            flow.suss.round.number = 2 + k;
            flow.suss.round.min_rtt = ms(100.0 * ratio);
            assert_eq!(flow.suss.delay_is_low(), low, "{ratio} after {k} rounds");
        }
    }
}

#[test]
fn the_second_round_needs_a_long_path_and_a_short_train() {
    for (rtt, train, jumps) in [(100.0, 24.0, 1), (100.0, 26.0, 0), (10.0, 1.0, 0), (11.0, 1.0, 1)] {
        let mut flow = Flow::new(train);
        flow.blue(100.0, rtt);
        assert_eq!(flow.suss.jumps(), jumps, "{rtt} ms, train of {train} ms");
    }
}

#[test]
fn red_packets_are_spaced_and_blue_ones_are_not() {
    let mut flow = Flow::new(8.0);
    assert_eq!(flow.suss.departure(at(0.0), &flowstart_control::testing::next(0), &flow.window), None);
    flow.blue(100.0, 100.0);
    let next = |in_flight| Next { in_flight, ..flowstart_control::testing::next(30) };
    let last_blue = flow.suss.departure(at(108.0), &next(19), &flow.window);
    assert_eq!(last_blue, Some(Departure::Now), "it leaves with the last blue ACK");
    let first = flow.suss.departure(at(108.0), &next(20), &flow.window);
    assert_eq!(first, Some(Departure::At(flow.suss.red.unwrap().first)));
}

#[test]
fn a_paced_sender_does_not_accelerate() {
    let mut flow = Flow::new(8.0);
    flow.suss = Suss::new(&SussConfig::default(), 10, true, MSS as u32);
    flow.blue(100.0, 100.0);
    assert_eq!(flow.suss.jumps(), 0);
}

#[test]
fn a_loss_counts_what_is_in_flight_if_the_window_was_quadrupled() {
    let mut flow = Flow::new(8.0);
    flow.blue(100.0, 100.0);
    flow.suss.in_flight = 25;
    assert_eq!(flow.suss.on_signal(at(150.0), Signal::Loss, &mut flow.window), Response::Leave);
    assert_eq!(flow.window.cwnd, 25);
}

#[test]
fn constants_out_of_range_are_refused_and_harmless() {
    assert_eq!(SussConfig::default().validate(), Ok(()));
    let config = SussConfig { max_jumps: u32::MAX, train_divisor: 0, delay_divisor: 0, ..SussConfig::default() };
    assert!(config.validate().is_err());
    let mut suss = Suss::new(&config, 0, false, 0);
    suss.round.number = 40;
    assert!(!suss.is_safe(ms(1.0)));
}

#[test]
fn a_window_of_millions_of_packets_is_not_quadrupled_to_nothing() {
    let initial = 715_827_921;
    let mut suss = Suss::new(&SussConfig::default(), initial, false, 0);
    let mut window = Window::new(initial);
    let mut una = 0;
    for acked in [1_977_197, 113, 116] {
        una += u64::from(acked) * MSS;
        let ack = Ack { rtt: None, min_rtt: Span::MAX, una, next: 0, in_flight: 0, ..ack(acked) };
        suss.on_ack(&ack, &mut window);
        assert!(window.cwnd >= initial, "{}", window.cwnd);
    }
}
