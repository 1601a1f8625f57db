//! A flow start or a congestion avoidance that is another one: every method handed on, none of them
//! forgotten.

/// The body of an `impl` of [`CongestionAvoidance`](crate::CongestionAvoidance) that hands every
/// method on. A method that a wrapper forgot would do what the trait does by default, and nobody
/// would see it: a BBR that is never told of a timeout.
///
/// Takes the name of a macro that says how. It is called with a method and its arguments,
/// `self.grow(ack, acked, window)`, and can tell methods apart by their names:
///
/// ```
/// use flowstart_control::{CongestionAvoidance, forward_avoidance};
///
/// struct Counting<A> {
///     inner: A,
///     acks: u64,
/// }
///
/// macro_rules! counting {
///     ($this:ident.on_ack($ack:ident, $window:ident)) => {{
///         $this.acks += 1;
///         $this.inner.on_ack($ack, $window)
///     }};
///     ($this:ident.$method:ident($($argument:ident),*)) => {
///         $this.inner.$method($($argument),*)
///     };
/// }
///
/// impl<A: CongestionAvoidance> CongestionAvoidance for Counting<A> {
///     forward_avoidance!(counting);
/// }
/// ```
#[macro_export]
macro_rules! forward_avoidance {
    ($hand_on:ident) => {
        fn begin_flow(&mut self, window: &$crate::Window) -> bool {
            $hand_on!(self.begin_flow(window))
        }

        fn own_exit(&self) -> ::core::option::Option<$crate::ExitReason> {
            $hand_on!(self.own_exit())
        }

        #[inline]
        fn on_booked(&mut self, next: $crate::units::Time) {
            $hand_on!(self.on_booked(next))
        }

        #[inline]
        fn on_ack(&mut self, ack: &$crate::Ack, window: &$crate::Window) {
            $hand_on!(self.on_ack(ack, window))
        }

        fn wants_packets(&self) -> bool {
            $hand_on!(self.wants_packets())
        }

        fn on_sent(&mut self, sent: &$crate::Sent) {
            $hand_on!(self.on_sent(sent))
        }

        fn on_acked(&mut self, acked: &$crate::Acked) {
            $hand_on!(self.on_acked(acked))
        }

        #[inline]
        fn grow(&mut self, ack: &$crate::Ack, acked: u32, window: &mut $crate::Window) {
            $hand_on!(self.grow(ack, acked, window))
        }

        fn reduce(&mut self, now: $crate::units::Time, signal: $crate::Signal, window: &$crate::Window) -> u32 {
            $hand_on!(self.reduce(now, signal, window))
        }

        fn on_takeover(
            &mut self,
            now: $crate::units::Time,
            window: &$crate::Window,
            rate: ::core::option::Option<$crate::units::Rate>,
        ) {
            $hand_on!(self.on_takeover(now, window, rate))
        }

        fn undo(&mut self, prior_cwnd: u32, window: &$crate::Window) -> u32 {
            $hand_on!(self.undo(prior_cwnd, window))
        }

        fn on_idle(&mut self, idle: $crate::units::Span, window: &mut $crate::Window) {
            $hand_on!(self.on_idle(idle, window))
        }

        #[inline]
        fn isolation_aware(&mut self) -> ::core::option::Option<&mut dyn $crate::IsolationAware> {
            $hand_on!(self.isolation_aware())
        }

        #[inline]
        fn pacing_rate(&self) -> ::core::option::Option<$crate::units::Rate> {
            $hand_on!(self.pacing_rate())
        }

        #[inline(always)]
        fn paces(&self) -> bool {
            $hand_on!(self.paces())
        }

        fn counts_packets(&self) -> bool {
            $hand_on!(self.counts_packets())
        }

        fn least_burst(&self) -> ::core::option::Option<u32> {
            $hand_on!(self.least_burst())
        }

        fn controls_recovery(&self) -> bool {
            $hand_on!(self.controls_recovery())
        }

        fn on_expiry(&mut self, now: $crate::units::Time, total_lost: u64) {
            $hand_on!(self.on_expiry(now, total_lost))
        }

        fn is_scalable(&self) -> bool {
            $hand_on!(self.is_scalable())
        }

        fn on_mss(&mut self, mss: $crate::NewMss) {
            $hand_on!(self.on_mss(mss))
        }
    };
}

/// The body of an `impl` of [`FlowStart`](crate::FlowStart) that hands every method on, in the way
/// of [`forward_avoidance`].
///
/// ```
/// use flowstart_control::{FlowStart, forward_start};
///
/// /// A start, and what it says of departures counts for nothing.
/// struct Unspaced<S>(S);
///
/// macro_rules! unspaced {
///     ($this:ident.departure($now:ident, $next:ident, $window:ident)) => {{
///         let _ = ($now, $next, $window);
///         None
///     }};
///     ($this:ident.$method:ident($($argument:ident),*)) => { $this.0.$method($($argument),*) };
/// }
///
/// impl<S: FlowStart> FlowStart for Unspaced<S> {
///     forward_start!(unspaced);
/// }
/// ```
#[macro_export]
macro_rules! forward_start {
    ($hand_on:ident) => {
        fn initial_window(&self) -> ::core::option::Option<u32> {
            $hand_on!(self.initial_window())
        }

        #[inline]
        fn on_ack(&mut self, ack: &$crate::Ack, window: &mut $crate::Window) -> $crate::AfterAck {
            $hand_on!(self.on_ack(ack, window))
        }

        fn on_ack_after(&mut self, ack: &$crate::Ack, window: &$crate::Window) -> $crate::Afterwards {
            $hand_on!(self.on_ack_after(ack, window))
        }

        fn on_signal_after(&mut self, signal: $crate::Signal, window: &$crate::Window) -> ::core::option::Option<u32> {
            $hand_on!(self.on_signal_after(signal, window))
        }

        #[inline]
        fn grow(&mut self, ack: &$crate::Ack, window: &mut $crate::Window) -> u32 {
            $hand_on!(self.grow(ack, window))
        }

        fn on_signal(
            &mut self,
            now: $crate::units::Time,
            signal: $crate::Signal,
            window: &mut $crate::Window,
        ) -> $crate::Response {
            $hand_on!(self.on_signal(now, signal, window))
        }

        #[inline]
        fn on_sent(&mut self, sent: &$crate::Sent) {
            $hand_on!(self.on_sent(sent))
        }

        #[inline]
        fn wants_packets(&self) -> bool {
            $hand_on!(self.wants_packets())
        }

        fn on_acked(&mut self, acked: &$crate::Acked) {
            $hand_on!(self.on_acked(acked))
        }

        #[inline]
        fn departure(
            &mut self,
            now: $crate::units::Time,
            next: &$crate::Next,
            window: &$crate::Window,
        ) -> ::core::option::Option<$crate::Departure> {
            $hand_on!(self.departure(now, next, window))
        }

        fn departure_rate(&self) -> ::core::option::Option<$crate::units::Rate> {
            $hand_on!(self.departure_rate())
        }

        #[inline]
        fn owns_window(&self) -> bool {
            $hand_on!(self.owns_window())
        }

        fn leaves_to_avoidance(&self) -> bool {
            $hand_on!(self.leaves_to_avoidance())
        }

        fn router_client(&mut self) -> ::core::option::Option<&mut dyn $crate::RouterClient> {
            $hand_on!(self.router_client())
        }

        fn on_restart(
            &mut self,
            now: $crate::units::Time,
            restart: $crate::Restart,
            window: &$crate::Window,
            last: $crate::LastRtt,
        ) -> bool {
            $hand_on!(self.on_restart(now, restart, window, last))
        }

        fn lookout(&mut self) -> ::core::option::Option<&mut dyn $crate::Lookout> {
            $hand_on!(self.lookout())
        }

        fn on_mss(&mut self, mss: $crate::NewMss) {
            $hand_on!(self.on_mss(mss))
        }
    };
}
