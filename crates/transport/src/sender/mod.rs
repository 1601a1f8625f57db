//! The sending endpoint.

mod acks;
mod buffer;
mod bursts;
mod delivery;
mod prr;
mod rack;
mod rate;
mod recovery;
mod rtt;
mod scoreboard;
mod stats;
#[cfg(test)]
mod tests;
mod timers;
mod transmit;
mod usage;

use flowstart_congestion::{Acked, Controller, Moment};
use flowstart_network::packet::Segment;
use flowstart_network::{Ecn, TagWord};
use flowstart_quick_start::Carried;
use flowstart_units::{Bytes, Span, Time};

use crate::SenderConfig;
use buffer::Writer;
use bursts::Burst;
use rack::Reordering;
use rate::RateEstimator;
use recovery::Recovery;
use rtt::RttEstimator;
use scoreboard::Scoreboard;
pub use stats::SenderStats;
use timers::Timer;
pub use transmit::Otherwise;
use usage::WindowUsage;

/// Parts of the sender that transports with another wire format share: bookkeeping beside a
/// [`Controller`].
pub mod parts {
    pub use super::delivery::Flight;
    pub use super::prr::Prr;
    pub use super::rate::RateEstimator;
    pub use super::usage::{Usage, WindowUsage};
}

/// A data packet (or SYN) ready to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// Its contents.
    pub segment: Segment,
    /// ECN codepoint of the packet.
    pub ecn: Ecn,
    /// Length of the IP packet in bytes.
    pub bytes: u16,
    /// Where an `Option` keeps its tag.
    pub(crate) tag: TagWord,
}

/// The state of loss recovery (Linux `icsk_ca_state`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SenderState {
    /// Nothing suspicious.
    #[default]
    Open,
    /// Data was delivered out of order or sent again; nothing is deemed lost.
    Disorder,
    /// Reducing after congestion marks.
    Cwr,
    /// Reducing and repairing after a loss.
    Recovery,
    /// Repairing after a timeout.
    Loss,
}

/// How far the connection is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Opening {
    Closed,
    /// The SYN waits to be sent.
    SynDue,
    SynSent,
    Established,
    /// Established, and new data leaves in bursts.
    Bursting,
}

/// A packet that is called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Urgent {
    None,
    /// A tail loss probe.
    TailProbe,
    /// The first retransmission after a timeout: a start that holds packets back cannot hold this
    /// one.
    Timeout,
    /// The receive window is shut: is it still?
    WindowProbe,
    /// The next new data carries a Quick-Start option: a request, or a report.
    Option,
}

/// What may be sent in answer to the last event (Linux `REXMIT_LOST`, `REXMIT_NEW`, `REXMIT_NONE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// Lost segments, then new ones.
    RepairsFirst,
    /// New segments instead of lost ones: F-RTO tells by them whether the timeout was needless.
    NewFirst,
    /// Only new segments: the losses are in doubt.
    NewOnly,
}

/// A tail loss probe that was not answered yet.
#[derive(Clone, Copy, Debug)]
struct Probe {
    /// Next new byte after the probe.
    high_seq: u64,
    /// The probe was a retransmission.
    retransmission: bool,
}

/// The sending endpoint of a connection.
///
/// ```
/// use flowstart_congestion::{AvoidanceConfig, Controller, ControllerConfig, StartConfig};
/// use flowstart_transport::{Receiver, ReceiverConfig, Sender, SenderConfig};
/// use flowstart_units::{Bytes, Span, Time};
///
/// let config = ControllerConfig::new(StartConfig::SlowStart, AvoidanceConfig::Reno);
/// let controller = Controller::new(&config);
/// let config = SenderConfig { handshake: false, ..SenderConfig::default() };
/// let mut sender = Sender::new(&config, controller);
/// let mut receiver = Receiver::new(&ReceiverConfig::default());
///
/// sender.open(Time::ZERO);
/// sender.write(Time::ZERO, 100_000);
/// sender.finish();
/// // A path with a delay of 10 ms each way and no limit of capacity.
/// let mut now = Time::ZERO;
/// while !sender.is_complete() {
///     let flight: Vec<_> = std::iter::from_fn(|| sender.transmit(now)).collect();
///     now += Span::from_millis(10);
///     for packet in flight {
///         receiver.on_segment(now, &packet.segment, packet.ecn);
///     }
///     let acks: Vec<_> = std::iter::from_fn(|| receiver.poll_ack()).collect();
///     now += Span::from_millis(10);
///     for packet in acks {
///         sender.on_ack(now, &packet.ack);
///     }
///     if sender.deadline() <= now {
///         sender.on_timer(now);
///     }
///     if receiver.deadline() <= now {
///         receiver.on_timer(now);
///     }
/// }
/// assert_eq!(receiver.delivered(), 100_000);
/// ```
#[derive(Debug)]
pub struct Sender {
    stats: SenderStats,
    board: Scoreboard,
    controller: Controller,
    rtt: RttEstimator,
    rate: RateEstimator,
    usage: WindowUsage,
    recovery: Recovery,
    reordering: Reordering,
    timer: Timer,
    timer_at: Time,
    /// When the controller lets the next packet go.
    departure_at: Time,
    burst: Burst,
    phase: Opening,
    urgent: Urgent,
    order: Order,
    probe: Option<Probe>,
    /// Bytes written; `u64::MAX` for an endless stream.
    written: u64,
    /// First byte that may not be sent yet for want of data or buffer.
    send_limit: u64,
    writer: Writer,
    finished: bool,
    /// First byte beyond the receive window.
    window_end: u64,
    /// The receiver has told its window.
    window_known: bool,
    /// New data was sent since the last burst ended.
    sent_in_burst: bool,
    /// When a data packet left last.
    last_sent: Option<Time>,
    /// The controller knows of the current idle time.
    idle_told: bool,
    /// Expiries of the persist timer in a row.
    window_probes: u32,
    /// The next new segment carries CWR.
    cwr_due: bool,
    /// The receiver's count of marks as of the last ACK.
    ce_count: u32,
    /// Marks counted but not yet attributed to delivered packets.
    marks_pending: u32,
    /// Packets that a timer found lost since the controller heard of an ACK.
    found_late: u32,
    /// The start ignored marks; it is not asked again until this byte is acknowledged.
    marks_ignored_until: Option<u64>,
    /// The connection has been idle for this long, and is about to send again.
    idle_before_write: Option<Span>,
    /// When the first SYN left.
    first_syn_at: Time,
    /// What the next new data asks the routers for or tells them.
    option: Carried,
    /// The ACK of this byte answers what data asked the routers for; `u64::MAX` if nothing is
    /// asked, 0 if every packet asks.
    answer_at: u64,
    /// What every packet asks the routers for (RCP); nothing else.
    header: Carried,
    /// Retransmissions before the packet that asked left.
    retransmitted_before: u64,
    /// Packets of the current ACK, for controllers that want them.
    acked: Vec<Acked>,
    config: SenderConfig,
    #[cfg(test)]
    last_rate_sample: Option<flowstart_congestion::DeliveryRate>,
    /// Takes every ACK the long way, to compare.
    #[cfg(test)]
    no_short_cut: bool,
}

impl Sender {
    /// A sender that has not begun yet. The controller is told the MSS of the configuration, or
    /// what is left of it: a segment and its header have less than 64 KiB, and what every packet
    /// asks the routers takes its bytes from the payload.
    #[must_use]
    pub fn new(config: &SenderConfig, mut controller: Controller) -> Self {
        let mut config = config.clone();
        config.header_bytes = config.header_bytes.min(u16::MAX - 1);
        config.mss = config.mss.clamp(1, u32::from(u16::MAX - config.header_bytes));
        let shares = controller.asks_for_shares();
        if shares {
            // What every packet carries takes its bytes from the payload.
            let option = transmit::OPTION_BYTES.min(u16::try_from(config.mss - 1).unwrap_or(u16::MAX));
            config.header_bytes = config.header_bytes.saturating_add(option);
            config.mss -= u32::from(option);
        }
        controller.set_mss(config.mss);
        Self {
            stats: SenderStats::default(),
            board: Scoreboard::new(config.mss),
            controller,
            rtt: RttEstimator::new(&config),
            rate: RateEstimator::default(),
            usage: WindowUsage::default(),
            recovery: Recovery::default(),
            reordering: Reordering::new(&config),
            timer: Timer::None,
            timer_at: Time::NEVER,
            departure_at: Time::NEVER,
            burst: Burst::default(),
            phase: Opening::Closed,
            urgent: Urgent::None,
            order: Order::RepairsFirst,
            probe: None,
            written: 0,
            send_limit: 0,
            writer: Writer::default(),
            finished: false,
            window_end: config.peer_window.map_or(u64::MAX, Bytes::get),
            window_known: false,
            sent_in_burst: false,
            last_sent: None,
            idle_told: false,
            window_probes: 0,
            cwr_due: false,
            ce_count: 0,
            marks_pending: 0,
            found_late: 0,
            marks_ignored_until: None,
            idle_before_write: None,
            first_syn_at: Time::NEVER,
            option: Carried::NONE,
            answer_at: if shares { 0 } else { u64::MAX },
            header: if shares { Carried::asking_for_share(None) } else { Carried::NONE },
            retransmitted_before: 0,
            acked: Vec::new(),
            config,
            #[cfg(test)]
            last_rate_sample: None,
            #[cfg(test)]
            no_short_cut: false,
        }
    }

    /// Opens the connection: with a SYN, or at once if the configuration says so.
    pub fn open(&mut self, now: Time) {
        if self.phase != Opening::Closed {
            return;
        }
        if self.config.handshake {
            self.phase = Opening::SynDue;
        } else {
            self.establish(now, now, self.config.handshake_rtt);
        }
    }

    /// The connection is open. `answered`: when the SYN left that is answered, as far as there was
    /// one.
    fn establish(&mut self, now: Time, answered: Time, rtt: Option<Span>) {
        self.phase = if self.config.offload.is_some() { Opening::Bursting } else { Opening::Established };
        self.set_timer(Timer::None, Time::NEVER);
        if let Some(rtt) = rtt {
            self.take_samples(now, rtt, rtt);
        }
        self.usage.restart(now);
        // Linux tcp_init_transfer: one lost SYN is bad luck, two a sign of congestion, unless the
        // answer is to the first, which was slow, not lost (tcp_try_undo_spurious_syn).
        if self.stats.syn_retries > 1 && answered != self.first_syn_at {
            self.controller.set_cwnd(1);
        }
    }

    /// Takes round-trip times in: of the earliest packet for the timeout, of the latest for the
    /// smallest RTT.
    #[inline]
    fn take_samples(&mut self, now: Time, smoothed: Span, latest: Span) {
        self.rtt.sample_minimum(now, &self.config, latest.max(Span::from_nanos(1)));
        self.rtt.sample(&self.config, smoothed, self.stats.una, self.stats.next);
        self.stats.srtt = self.rtt.srtt();
        self.stats.rttvar = self.rtt.rttvar();
        self.stats.min_rtt = self.rtt.min();
        self.stats.latest_rtt = self.rtt.latest();
    }

    /// The application writes `bytes` bytes (`u64::MAX`: an endless stream). Returns how many the
    /// send buffer took; of an endless stream it takes all, and what is unacknowledged stays within
    /// the buffer.
    pub fn write(&mut self, now: Time, bytes: u64) -> u64 {
        if self.finished || self.written == u64::MAX || bytes == 0 {
            return 0;
        }
        let was_waiting = self.available() > 0;
        if self.phase >= Opening::Established {
            self.note_app_limited();
            self.restart_if_idle(now);
        }
        let room = if bytes == u64::MAX { u64::MAX } else { self.room() };
        let accepted = bytes.min(room);
        self.written = self.written.saturating_add(accepted);
        self.note_writer(accepted < bytes, accepted > 0);
        self.set_send_limit();
        self.sync_unsent();
        let moment = match self.idle_before_write.take() {
            Some(idle) => Some(Moment::AfterIdle(idle)),
            None => (!was_waiting && self.is_middle()).then_some(Moment::Middle),
        };
        if let Some(moment) = moment {
            let request = self.ask_for_rate(now, moment);
            if !request.is_none() {
                self.option = request;
                self.urgent = Urgent::Option;
            }
        }
        accepted
    }

    /// True if the window opens at once for a request, but not for all that waits now. Nothing else
    /// that routers should hear of may be under way.
    #[inline]
    fn is_middle(&self) -> bool {
        let room = self.controller.cwnd().saturating_sub(self.board.in_flight());
        room > 0
            && self.stats.next > 0
            && self.available() > u64::from(room) * u64::from(self.config.mss)
            && self.recovery.state == SenderState::Open
            && self.option.is_none()
            && self.answer_at == u64::MAX
            && !self.controller.controls_recovery()
    }

    /// After an idle timeout the window is no longer trusted (Linux
    /// `tcp_slow_start_after_idle_check`).
    fn restart_if_idle(&mut self, now: Time) {
        let Some(last) = self.last_sent else { return };
        let idle = now.since(last);
        let rto = self.rtt.rto();
        if self.config.idle_restart && self.board.packets_out() == 0 && self.available() == 0 && idle > rto {
            self.idle_told = true;
            if self.controller.restart_after_idle(now, idle, rto) {
                self.usage.restart(now);
                self.idle_before_write = Some(idle);
            }
        }
    }

    /// The application will write no more. The last segment carries FIN if it had not left before.
    pub fn finish(&mut self) {
        self.finished = true;
    }

    /// Bytes that may be sent as far as the application and the send buffer are concerned.
    #[inline]
    fn available(&self) -> u64 {
        self.send_limit.saturating_sub(self.stats.next)
    }

    #[inline]
    fn sync_unsent(&mut self) {
        self.stats.unsent = if self.written == u64::MAX { u64::MAX } else { self.written - self.stats.next };
    }

    #[inline]
    fn sync_flight(&mut self) {
        self.stats.in_flight = self.board.in_flight();
        self.stats.packets_out = self.board.packets_out();
    }

    /// The application leaves the window unused: rate samples are its own (Linux
    /// `tcp_rate_check_app_limited`).
    #[inline]
    fn note_app_limited(&mut self) {
        if self.available() < u64::from(self.config.mss)
            && self.board.in_flight() < self.controller.cwnd()
            && self.board.lost() <= self.board.retransmitted()
        {
            self.rate.mark_app_limited(self.stats.delivered, self.board.in_flight());
        }
    }

    /// When [`on_timer`](Self::on_timer) must be called; [`Time::NEVER`] if nothing is waited for.
    #[must_use]
    #[inline]
    pub fn deadline(&self) -> Time {
        self.timer_at.min(self.departure_at)
    }

    /// True once the handshake is over.
    #[must_use]
    pub fn is_established(&self) -> bool {
        self.phase >= Opening::Established
    }

    /// True once everything was written, finished and acknowledged.
    #[must_use]
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.finished && self.phase >= Opening::Established && self.stats.una >= self.written
    }

    /// Bytes written by the application so far; `u64::MAX` for an endless stream.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written
    }

    /// The retransmission timeout, backoff included.
    #[must_use]
    pub fn rto(&self) -> Span {
        self.rtt.rto()
    }

    /// The congestion controller.
    #[must_use]
    #[inline]
    pub fn controller(&self) -> &Controller {
        &self.controller
    }

    /// The congestion controller, for those who direct it.
    #[must_use]
    pub fn controller_mut(&mut self) -> &mut Controller {
        &mut self.controller
    }

    /// The state of loss recovery.
    #[must_use]
    pub fn state(&self) -> SenderState {
        self.recovery.state
    }

    /// Counters and current values.
    #[must_use]
    #[inline]
    pub fn stats(&self) -> &SenderStats {
        &self.stats
    }
}
