//! A flow start of my own.

use flowstart::congestion::{Ack, AfterAck, Exit, ExitReason, FlowStart, OwnError, StartConfig, Window};
use flowstart::units::Span;

/// Slow start that leaves once the round-trip time has risen by a share of the smallest.
///
/// This is where an idea goes. `FlowStart` has more methods, all with defaults: what to do when
/// packets are lost or marked (`on_signal`), and when each packet is to leave (`departure`).
#[derive(Clone, Debug)]
pub struct MyStart {
    /// Leave when the round-trip time is this share above the smallest.
    pub rise: f64,
}

impl Default for MyStart {
    fn default() -> Self {
        Self { rise: 0.25 }
    }
}

impl FlowStart for MyStart {
    /// An ACK came; windows have not grown yet.
    fn on_ack(&mut self, ack: &Ack, window: &mut Window) -> AfterAck {
        let limit = Span::from_secs_f64(ack.min_rtt.as_secs_f64() * (1.0 + self.rise));
        match ack.rtt {
            Some(rtt) if rtt > limit => {
                let cwnd = window.cwnd;
                AfterAck::Done(Exit { reason: ExitReason::DelayIncrease, cwnd, ssthresh: cwnd, rate: None })
            }
            _ => AfterAck::Continue,
        }
    }

    /// How much the window grows for this ACK. Returns the packets that are left for congestion
    /// avoidance.
    fn grow(&mut self, ack: &Ack, window: &mut Window) -> u32 {
        window.slow_start(ack.acked)
    }
}

/// Makes the start known: from now on "my_start+cubic" is a contestant.
pub fn register() -> Result<(), OwnError> {
    let about = "leaves once the round-trip time has risen by a quarter";
    StartConfig::register(StartConfig::own("my_start", about, |_connection| Box::new(MyStart::default()))?)
}
