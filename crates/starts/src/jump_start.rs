//! Jump Start (Liu, Allman, Jin and Wang 2007): all data that waits is sent at once, evenly over
//! the first round trip.
//!
//! With the first ACK the jump is over: the window is what is in flight, and slow start goes on
//! from there. If packets of the jump are lost, recovery sends one packet for every one delivered,
//! and ends with half of the jump's packets that were not lost as window and threshold. There is no
//! other bound on the rate: many such flows at once collapse.
//!
//! The paper bounds the jump by the receiver's window. Here [`JumpStartConfig::max_packets`] is a
//! bound besides, since a flow without end would jump without end. What the window is during the
//! recovery the sources available do not say.

use flowstart_control::InvalidConfig;
use flowstart_control::{
    Ack, AfterAck, Departure, Exit, ExitReason, FlowStart, NewMss, Next, Response, Sent, Signal, Window,
};
use flowstart_units::{Bytes, Rate, Time};

use super::first_recovery::{FirstRecovery, Told};
use super::spacing::{Spacing, millionths};
use crate::StartConstants;

/// Constants of Jump Start.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields, default)
)]
pub struct JumpStartConfig {
    /// Most packets in the jump, at least 1; default 724, one MiB in segments of 1448 bytes (this
    /// crate's; the paper has the receiver's window).
    pub max_packets: u32,
    /// Share of the packets of the jump that were not lost that the window keeps after losses, 0
    /// ..= 1; default 0.5 (paper).
    pub keep: f64,
}

impl Default for JumpStartConfig {
    fn default() -> Self {
        Self { max_packets: 724, keep: 0.5 }
    }
}

impl StartConstants for JumpStartConfig {
    fn validate(&self) -> Result<(), InvalidConfig> {
        InvalidConfig::unless(self.max_packets >= 1, "max_packets", "at least 1")?;
        InvalidConfig::unless((0.0..=1.0).contains(&self.keep), "keep", "between 0 and 1")
    }
}

/// What it does now.
#[derive(Clone, Copy, Debug)]
enum JumpPhase {
    /// The jump leaves. How many packets it will have, and their pace, once the first was asked
    /// for.
    Jump(Option<(u32, Rate)>),
    /// Slow start; packets of the jump are outstanding until this byte is acknowledged.
    SlowStart {
        jump_end: u64,
    },
    Recovery(FirstRecovery),
}

/// Jump Start in operation. [`JumpStartConfig`] says where its rules come from.
#[derive(Clone, Copy, Debug)]
pub struct JumpStart {
    max_packets: u32,
    keep: u64,
    initial_window: u32,
    mss: u64,
    spacing: Spacing,
    phase: JumpPhase,
    /// Packets sent in the jump.
    sent: u32,
    told: Told,
}

impl JumpStart {
    /// Jump Start for a flow with segments of `mss` payload bytes; `initial_window` packets are
    /// sent at once if no RTT is known.
    #[must_use]
    pub fn new(config: &JumpStartConfig, initial_window: u32, mss: u32) -> Self {
        Self {
            max_packets: config.max_packets.max(1),
            keep: millionths(config.keep.clamp(0.0, 1.0)),
            initial_window: initial_window.max(1),
            mss: u64::from(mss.max(1)),
            spacing: Spacing::new(),
            phase: JumpPhase::Jump(None),
            sent: 0,
            told: Told::default(),
        }
    }

    /// Packets the jump had, or has had so far.
    #[must_use]
    pub fn jumped(&self) -> u32 {
        self.sent
    }

    fn kept(&self, lost: u64) -> u32 {
        let arrived = u64::from(self.sent).saturating_sub(lost);
        u32::try_from(arrived * self.keep / super::spacing::MILLION).unwrap_or(u32::MAX).max(2)
    }
}

impl FlowStart for JumpStart {
    fn initial_window(&self) -> Option<u32> {
        Some(self.max_packets)
    }

    fn on_ack(&mut self, ack: &Ack, window: &mut Window) -> AfterAck {
        self.told = Told::by(ack);
        match &mut self.phase {
            JumpPhase::Jump(_) if ack.acked > 0 => {
                window.cwnd = ack.in_flight.clamp(self.initial_window.min(self.max_packets), self.max_packets);
                self.phase = JumpPhase::SlowStart { jump_end: ack.next };
            }
            JumpPhase::Jump(_) | JumpPhase::SlowStart { .. } => {}
            JumpPhase::Recovery(recovery) => {
                let over = recovery.on_ack(ack);
                let lost = recovery.lost;
                window.cwnd = window.cwnd.min(ack.in_flight.saturating_add(ack.acked).max(1));
                if over {
                    let cwnd = self.kept(lost);
                    return AfterAck::Done(Exit { reason: ExitReason::Loss, cwnd, ssthresh: cwnd, rate: None });
                }
            }
        }
        AfterAck::Continue
    }

    #[inline]
    fn grow(&mut self, ack: &Ack, window: &mut Window) -> u32 {
        if matches!(self.phase, JumpPhase::SlowStart { .. }) { window.slow_start(ack.acked) } else { 0 }
    }

    fn on_signal(&mut self, now: Time, signal: Signal, window: &mut Window) -> Response {
        match (signal, &self.phase) {
            (Signal::Loss, JumpPhase::SlowStart { jump_end }) if self.told.una < *jump_end => {
                self.phase = JumpPhase::Recovery(FirstRecovery::new(now, &self.told));
                Response::Ignore
            }
            (Signal::Loss, JumpPhase::Recovery(_)) => Response::Ignore,
            (_, JumpPhase::Jump(_)) => {
                window.cwnd = window.cwnd.min(self.sent.max(1));
                Response::Leave
            }
            _ => Response::Leave,
        }
    }

    #[inline]
    fn on_sent(&mut self, sent: &Sent) {
        if let JumpPhase::Jump(plan) = self.phase {
            self.sent = self.sent.saturating_add(1);
            if let Some((_, rate)) = plan {
                self.spacing.book(sent, rate);
            }
        }
    }

    fn departure(&mut self, now: Time, next: &Next, window: &Window) -> Option<Departure> {
        let JumpPhase::Jump(plan) = &mut self.phase else { return None };
        let (packets, _) = *plan.get_or_insert_with(|| {
            if next.srtt.is_zero() {
                return (self.initial_window, Rate::UNLIMITED);
            }
            let packets = u32::try_from(next.queued).unwrap_or(u32::MAX).min(window.cwnd);
            (packets, Rate::of(Bytes::new(self.mss.saturating_mul(u64::from(packets))), next.srtt))
        });
        // What is written later waits for the first ACK.
        if self.sent >= packets && next.in_flight > 0 {
            return Some(Departure::Hold);
        }
        Some(self.spacing.departure(now))
    }

    fn owns_window(&self) -> bool {
        !matches!(self.phase, JumpPhase::SlowStart { .. })
    }

    fn on_mss(&mut self, mss: NewMss) {
        self.mss = u64::from(mss.bytes());
        self.initial_window = mss.packets(self.initial_window);
        self.sent = mss.packets(self.sent);
        if let JumpPhase::Jump(Some((packets, _))) = &mut self.phase {
            *packets = mss.packets(*packets);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flowstart_control::testing::{ack, next, sent};
    use flowstart_units::Span;

    /// A start that jumped with `packets` at a round-trip time of 50 ms, and the time of every
    /// departure.
    fn jumped(packets: u64) -> (JumpStart, Window, Vec<Time>) {
        let mut start = JumpStart::new(&JumpStartConfig::default(), 10, 1448);
        let window = Window::new(start.initial_window().unwrap());
        let mut departures = Vec::new();
        let mut now = Time::ZERO;
        for number in 0..packets {
            let next = Next { srtt: Span::from_millis(50), queued: packets - number, ..next(number) };
            if let Some(Departure::At(at)) = start.departure(now, &next, &window) {
                now = at;
            }
            assert_eq!(start.departure(now, &next, &window), Some(Departure::Now));
            start.on_sent(&sent(now, number));
            departures.push(now);
        }
        (start, window, departures)
    }

    #[test]
    fn a_hundred_kilobytes_leave_at_16_megabit_per_second_over_50_ms() {
        // 69.06 packets, 70 with the part: 0.714 ms apart, where the vector counts bytes, 0.724 ms.
        let (_, _, departures) = jumped(70);
        assert_eq!(departures.len(), 70);
        for pair in departures.windows(2) {
            assert!((pair[1].since(pair[0]).as_millis_f64() - 50.0 / 70.0).abs() < 1e-5);
        }
    }

    #[test]
    fn the_first_ack_ends_the_jump_with_what_is_in_flight() {
        let (mut start, mut window, _) = jumped(70);
        let first = Ack { in_flight: 69, next: 70 * 1448, ..ack(1) };
        assert_eq!(start.on_ack(&first, &mut window), AfterAck::Continue);
        assert_eq!(window.cwnd, 69);
        start.grow(&first, &mut window);
        assert_eq!(window.cwnd, 70);
        assert_eq!(start.departure(Time::ZERO, &next(70), &window), None, "the rest is left to the controller");
    }

    #[test]
    fn losses_of_the_jump_leave_half_of_what_was_not_lost() {
        let (mut start, mut window, _) = jumped(70);
        let end = 70 * 1448;
        start.on_ack(&Ack { in_flight: 69, next: end, ..ack(1) }, &mut window);
        start.on_ack(&Ack { in_flight: 50, next: end, una: 1448, lost: 20, ..ack(1) }, &mut window);
        assert_eq!(start.on_signal(Time::ZERO, Signal::Loss, &mut window), Response::Ignore);
        start.on_ack(&Ack { in_flight: 40, next: end, una: 1448, lost: 10, ..ack(1) }, &mut window);
        assert_eq!(window.cwnd, 41, "one packet for every one delivered");
        let exit = Exit { reason: ExitReason::Loss, cwnd: 20, ssthresh: 20, rate: None };
        assert_eq!(start.on_ack(&Ack { una: end, next: end, ..ack(40) }, &mut window), AfterAck::Done(exit));
    }

    #[test]
    fn a_loss_after_the_jump_is_left_to_the_avoidance() {
        let (mut start, mut window, _) = jumped(70);
        start.on_ack(&Ack { in_flight: 69, next: 70 * 1448, ..ack(1) }, &mut window);
        start.on_ack(&Ack { in_flight: 69, una: 70 * 1448, lost: 1, ..ack(1) }, &mut window);
        assert_eq!(start.on_signal(Time::ZERO, Signal::Loss, &mut window), Response::Leave);
    }

    #[test]
    fn a_jump_that_nothing_comes_back_from_counts_as_what_was_sent() {
        let (mut start, mut window, _) = jumped(70);
        assert_eq!(start.on_signal(Time::ZERO, Signal::Timeout, &mut window), Response::Leave);
        assert_eq!(window.cwnd, 70);
    }

    #[test]
    fn without_a_round_trip_time_the_initial_window_leaves_at_once() {
        let mut start = JumpStart::new(&JumpStartConfig::default(), 10, 1448);
        let window = Window::new(724);
        for number in 0..10 {
            let next = Next { in_flight: number, ..next(number.into()) };
            assert_eq!(start.departure(Time::ZERO, &next, &window), Some(Departure::Now));
            start.on_sent(&sent(Time::ZERO, number.into()));
        }
        let next = Next { in_flight: 10, ..next(10) };
        assert_eq!(start.departure(Time::ZERO, &next, &window), Some(Departure::Hold));
    }

    #[test]
    fn constants_out_of_range_are_refused_and_harmless() {
        assert_eq!(JumpStartConfig::default().validate(), Ok(()));
        let config = JumpStartConfig { max_packets: 0, keep: f64::NAN };
        assert!(config.validate().is_err());
        let mut start = JumpStart::new(&config, 0, 0);
        start.departure(Time::ZERO, &next(0), &Window::new(1));
        assert_eq!(start.kept(u64::MAX), 2);
    }
}
