//! [`Start`] as a [`FlowStart`].

use flowstart_control::{
    Ack, Acked, AfterAck, Afterwards, Departure, FlowStart, LastRtt, Lookout, NewMss, Next, Response, Restart,
    RouterClient, Sent, Signal, Window,
};
use flowstart_units::{Rate, Time};

use crate::Start;

impl FlowStart for Start {
    fn initial_window(&self) -> Option<u32> {
        with_start!(self, start => start.initial_window())
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack, window: &mut Window) -> AfterAck {
        with_start!(self, start => start.on_ack(ack, window))
    }

    fn on_ack_after(&mut self, ack: &Ack, window: &Window) -> Afterwards {
        with_start!(self, start => start.on_ack_after(ack, window))
    }

    fn on_signal_after(&mut self, signal: Signal, window: &Window) -> Option<u32> {
        with_start!(self, start => start.on_signal_after(signal, window))
    }

    #[inline]
    fn grow(&mut self, ack: &Ack, window: &mut Window) -> u32 {
        with_start!(self, start => start.grow(ack, window))
    }

    fn on_signal(&mut self, now: Time, signal: Signal, window: &mut Window) -> Response {
        with_start!(self, start => start.on_signal(now, signal, window))
    }

    #[inline]
    fn on_sent(&mut self, sent: &Sent) {
        with_start!(self, start => start.on_sent(sent));
    }

    #[inline]
    fn wants_packets(&self) -> bool {
        with_start!(self, start => start.wants_packets())
    }

    fn on_acked(&mut self, acked: &Acked) {
        with_start!(self, start => start.on_acked(acked));
    }

    #[inline]
    fn departure(&mut self, now: Time, next: &Next, window: &Window) -> Option<Departure> {
        with_start!(self, start => start.departure(now, next, window))
    }

    fn departure_rate(&self) -> Option<Rate> {
        with_start!(self, start => start.departure_rate())
    }

    #[inline]
    fn owns_window(&self) -> bool {
        with_start!(self, start => start.owns_window())
    }

    fn leaves_to_avoidance(&self) -> bool {
        with_start!(self, start => start.leaves_to_avoidance())
    }

    fn router_client(&mut self) -> Option<&mut dyn RouterClient> {
        with_start!(self, start => start.router_client())
    }

    fn on_restart(&mut self, now: Time, restart: Restart, window: &Window, last: LastRtt) -> bool {
        with_start!(self, start => start.on_restart(now, restart, window, last))
    }

    fn on_mss(&mut self, mss: NewMss) {
        with_start!(self, start => start.on_mss(mss));
    }

    fn lookout(&mut self) -> Option<&mut dyn Lookout> {
        with_start!(self, start => start.lookout())
    }
}
