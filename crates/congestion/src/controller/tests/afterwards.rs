//! A start that has more to say when it is over.

use super::*;

/// A start that ends with the first ACK and finds out later that its window was too large, once.
#[derive(Clone, Default)]
struct Hasty {
    corrected: bool,
    answered: bool,
}

impl FlowStart for Hasty {
    fn on_ack(&mut self, _ack: &Ack, _window: &mut Window) -> AfterAck {
        AfterAck::Done(Exit { reason: ExitReason::PipeFull, cwnd: 400, ssthresh: 400, rate: None })
    }

    fn on_ack_after(&mut self, ack: &Ack, _window: &Window) -> Afterwards {
        if ack.now < ms(30) {
            return Afterwards::Open;
        }
        if core::mem::replace(&mut self.corrected, true) {
            return Afterwards::Settled;
        }
        Afterwards::Corrected(Exit { reason: ExitReason::RatePlateau, cwnd: 100, ssthresh: 100, rate: None })
    }

    fn on_signal_after(&mut self, signal: Signal, window: &Window) -> Option<u32> {
        let answers = signal == Signal::Loss && !core::mem::replace(&mut self.answered, true);
        answers.then_some(window.cwnd - 1)
    }

    fn grow(&mut self, _ack: &Ack, _window: &mut Window) -> u32 {
        0
    }
}

/// The answer of Reno is half.
#[test]
fn a_start_that_has_more_to_say_answers_the_first_signal_after_it() {
    for (signal, settled, threshold) in
        [(Signal::Loss, false, 399), (Signal::Marks, false, 200), (Signal::Loss, true, 200)]
    {
        let config = config(StartConfig::SlowStart);
        let mut controller =
            Controller::join(Start::External(Box::new(Hasty::default())), Avoidance::new(&config), &config);
        controller.on_ack(&Ack { now: ms(1), ..ack(1) });
        if settled {
            controller.on_ack(&Ack { now: ms(30), ..ack(1) });
            controller.on_ack(&Ack { now: ms(31), ..ack(1) });
            controller.window.cwnd = 400;
        }
        assert_eq!(controller.on_signal(ms(31), signal), Some(threshold), "{signal:?} {settled}");
        controller.window.cwnd = 400;
        assert_eq!(controller.on_signal(ms(32), Signal::Loss), Some(200), "the next one is the avoidance's");
    }
}

#[test]
fn a_start_corrects_its_window_unless_it_left_a_signal_to_the_avoidance_and_its_end_is_the_first() {
    for (signal, cwnd) in [(None, 100), (Some(Signal::Loss), 100), (Some(Signal::Marks), 400)] {
        let config = config(StartConfig::SlowStart);
        let mut controller =
            Controller::join(Start::External(Box::new(Hasty::default())), Avoidance::new(&config), &config);
        controller.on_ack(&Ack { now: ms(1), ..ack(1) });
        controller.on_ack(&Ack { now: ms(20), ..ack(1) });
        assert_eq!((controller.cwnd(), controller.ssthresh()), (400, 400));
        if let Some(signal) = signal {
            controller.on_signal(ms(25), signal);
        }
        controller.on_ack(&Ack { now: ms(30), ..ack(1) });
        assert_eq!(controller.cwnd(), cwnd, "{signal:?}");
        assert_eq!(controller.start_exit().map(|exit| (exit.now, exit.cwnd)), Some((ms(1), 400)));
        controller.window.cwnd = 250;
        controller.on_ack(&Ack { now: ms(40), ..ack(1) });
        assert_eq!(controller.cwnd(), 250, "settled");
    }
}
