//! [`Avoidance`] as a [`CongestionAvoidance`].

use flowstart_control::{Ack, Acked, CongestionAvoidance, ExitReason, IsolationAware, NewMss, Sent, Signal, Window};
use flowstart_units::{Rate, Span, Time};

use crate::Avoidance;

impl CongestionAvoidance for Avoidance {
    fn begin_flow(&mut self, window: &Window) -> bool {
        with_avoidance!(self, a => a.begin_flow(window))
    }

    fn own_exit(&self) -> Option<ExitReason> {
        with_avoidance!(self, a => a.own_exit())
    }

    #[inline]
    fn on_booked(&mut self, next: Time) {
        with_avoidance!(self, a => a.on_booked(next));
    }

    fn wants_packets(&self) -> bool {
        with_avoidance!(self, a => a.wants_packets())
    }

    fn on_sent(&mut self, sent: &Sent) {
        with_avoidance!(self, a => a.on_sent(sent));
    }

    fn on_acked(&mut self, acked: &Acked) {
        with_avoidance!(self, a => a.on_acked(acked));
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack, window: &Window) {
        with_avoidance!(self, a => a.on_ack(ack, window));
    }

    #[inline]
    fn grow(&mut self, ack: &Ack, acked: u32, window: &mut Window) {
        with_avoidance!(self, a => a.grow(ack, acked, window));
    }

    fn reduce(&mut self, now: Time, signal: Signal, window: &Window) -> u32 {
        with_avoidance!(self, a => a.reduce(now, signal, window))
    }

    fn on_expiry(&mut self, now: Time, total_lost: u64) {
        with_avoidance!(self, a => a.on_expiry(now, total_lost));
    }

    fn on_takeover(&mut self, now: Time, window: &Window, rate: Option<Rate>) {
        with_avoidance!(self, a => a.on_takeover(now, window, rate));
    }

    fn undo(&mut self, prior_cwnd: u32, window: &Window) -> u32 {
        with_avoidance!(self, a => a.undo(prior_cwnd, window))
    }

    fn on_idle(&mut self, idle: Span, window: &mut Window) {
        with_avoidance!(self, a => a.on_idle(idle, window));
    }

    #[inline]
    fn isolation_aware(&mut self) -> Option<&mut dyn IsolationAware> {
        with_avoidance!(self, a => a.isolation_aware())
    }

    #[inline]
    fn pacing_rate(&self) -> Option<Rate> {
        with_avoidance!(self, a => a.pacing_rate())
    }

    fn least_burst(&self) -> Option<u32> {
        with_avoidance!(self, a => a.least_burst())
    }

    fn controls_recovery(&self) -> bool {
        with_avoidance!(self, a => a.controls_recovery())
    }

    fn on_mss(&mut self, mss: NewMss) {
        with_avoidance!(self, a => a.on_mss(mss));
    }

    fn is_scalable(&self) -> bool {
        with_avoidance!(self, a => a.is_scalable())
    }
}
