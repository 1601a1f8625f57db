//! Constants of a sender.

use flowstart_units::{Bytes, Rate, Span};

use crate::RateCode;

/// How packets of the Quick-Start phase are spaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacingConfig {
    /// Every packet gets a departure time: at the granted rate, as evenly as can be (RFC 4782
    /// section 4.4).
    Departures,
    /// A timer opens the window in steps, as the implementation of Scharf and Strotbek for Linux
    /// 2.6.20 did.
    Timers {
        /// Period of the clock that timers are aligned to; 1 ms in the paper (HZ = 1000).
        tick: Span,
        /// Smallest number of packets released at once, M; 3 in the paper.
        chunk: u32,
    },
}

impl PacingConfig {
    /// The paper's timers: 1 ms, M = 3.
    pub const PAPER: Self = Self::Timers { tick: Span::from_millis(1), chunk: 3 };
}

/// Constants of a Quick-Start sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SenderConfig {
    /// Spacing in the Quick-Start phase; default departure times.
    pub pacing: PacingConfig,
    /// Bytes of a full packet, headers of IP and TCP included; default 1500.
    pub packet: u32,
    /// Initial window in packets that a loss leads back to; default 10 (RFC 6928; 3 in the paper,
    /// RFC 3390).
    pub initial_window: u32,
    /// Whether the threshold becomes the window at the end of the phase; default false. RFC 4782
    /// section 4.6 leaves it open; Scharf and Strotbek measured that it costs seconds.
    pub adapt_threshold: bool,
    /// A grant is used if its window is more than this many percent of the present one; default 100
    /// (RFC 4782 section 4.4). With 200 a grant is ignored that would be slower than slow start
    /// from the initial window.
    pub least_window_percent: u32,
    /// Packets of the phase that leave at once, before pacing; default 0, as RFC 4782 section 4.4
    /// paces all of them. With the initial window a grant is never slower than what needs no grant
    /// (own variant).
    pub burst: u32,
    /// Packets at the beginning of the phase that are a chirp: gaps from twice that of the granted
    /// rate down to it; default 0 (own variant). Only with departure times.
    pub ramp: u32,
    /// A grant that no data follows is forgotten after the RTT, at the latest after this; default 3
    /// s.
    pub grant_lifetime: Span,
    /// RTT assumed for the size of a request if none is known; default 100 ms (RFC 4782 section
    /// 4.1).
    pub assumed_rtt: Span,
    /// Wrong TTL differences in a row after which the connection stops asking, so that a receiver
    /// cannot try one after the other (RFC 4782 section 9.2); default 3 (own choice). At least 1.
    pub most_wrong_ttl: u32,
    /// Retransmission timeout of a SYN that carries a request; default 3 s (RFC 4782 section
    /// 4.7.2).
    pub syn_timeout: Span,
}

impl Default for SenderConfig {
    fn default() -> Self {
        Self {
            pacing: PacingConfig::Departures,
            packet: 1500,
            initial_window: 10,
            adapt_threshold: false,
            least_window_percent: 100,
            burst: 0,
            ramp: 0,
            grant_lifetime: Span::from_secs(3),
            assumed_rtt: Span::from_millis(100),
            most_wrong_ttl: 3,
            syn_timeout: Span::from_secs(3),
        }
    }
}

impl SenderConfig {
    /// The rate to ask for: what `backlog` (bytes on the wire) needs to leave within one RTT,
    /// rounded up to a code, but after a congestion event at most the rate of `largest_window`, the
    /// largest window in packets since then, rounded down (RFC 4782 section 4.1).
    #[must_use]
    pub fn wish(&self, backlog: Bytes, rtt: Option<Span>, largest_window: Option<u32>) -> RateCode {
        let rtt = rtt.unwrap_or(self.assumed_rtt);
        let wish = RateCode::ceil(Rate::of(backlog, rtt));
        match largest_window {
            None => wish,
            Some(packets) => {
                let bytes = Bytes::new(u64::from(packets).saturating_mul(u64::from(self.packet)));
                wish.min(RateCode::floor(Rate::of(bytes, rtt)))
            }
        }
    }
}
