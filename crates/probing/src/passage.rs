//! Where the messages of a connection spend their time, and what the congestion window does
//! meanwhile.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use flowstart_service_curve::stats::DelayHistogram;
use flowstart_units::{Span, Time};

/// A part of a message's way from the application's write to the other application's read. The four
/// moments between which they lie are those of Luebben and Fidler (arXiv 1609.00653), who took them
/// with libpcap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The whole way.
    #[default]
    Total,
    /// From the application's write until the sender's stack first sends it.
    Sender,
    /// From then until it first reaches the receiver, by retransmission if need be.
    Network,
    /// From then until the application reads it: the wait for what was lost before it.
    Receiver,
}

impl Part {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Total, Self::Sender, Self::Network, Self::Receiver];

    /// What pictures call it.
    pub fn title(self) -> &'static str {
        match self {
            Self::Total => "total",
            Self::Sender => "sender's stack",
            Self::Network => "network",
            Self::Receiver => "receiver's stack",
        }
    }
}

/// When the last byte of a message passed the places between which its way is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PassageSample {
    /// The application handed it over.
    pub written: Time,
    /// The stack first sent it.
    pub sent: Time,
    /// It first reached the other stack.
    pub received: Time,
    /// The other application read it.
    pub read: Time,
}

impl PassageSample {
    /// The length of a part.
    pub fn part(&self, part: Part) -> Span {
        match part {
            Part::Total => self.read.since(self.written),
            Part::Sender => self.sent.since(self.written),
            Part::Network => self.received.since(self.sent),
            Part::Receiver => self.read.since(self.received),
        }
    }
}

/// Digits of the histograms: 1 % fine.
const DIGITS: u8 = 2;
/// Most single messages kept, the first ones, for pictures over time.
const MOST_SAMPLES: usize = 20_000;
/// Most values of the congestion window kept, from the first on.
const MOST_WINDOWS: usize = 1 << 18;

/// What is kept of all messages.
#[derive(Clone, Debug)]
pub struct Passage {
    /// Messages written before this do not count.
    pub from: Time,
    parts: Vec<DelayHistogram>,
    /// The first messages one by one.
    pub samples: Vec<PassageSample>,
    /// The congestion window in packets at regular times from `from` on.
    pub windows: Vec<f64>,
    /// The distance of these times.
    pub every: Span,
    window: f64,
    next: Time,
}

impl Passage {
    /// Messages from `from` on, windows `every` so often (more than zero).
    pub fn new(from: Time, every: Span) -> Self {
        // The number of digits is one that histograms have.
        let parts = Part::ALL.iter().filter_map(|_| DelayHistogram::new(DIGITS).ok()).collect();
        let every = every.max(Span::from_nanos(1));
        Self { from, parts, samples: Vec::new(), windows: Vec::new(), every, window: 0.0, next: from }
    }

    /// Takes in a message.
    pub fn record(&mut self, sample: PassageSample) {
        if sample.written < self.from {
            return;
        }
        for (part, histogram) in Part::ALL.iter().zip(&mut self.parts) {
            histogram.record(sample.part(*part));
        }
        if self.samples.len() < MOST_SAMPLES {
            self.samples.push(sample);
        }
    }

    /// The window is this from now on.
    pub fn window(&mut self, now: Time, window: f64) {
        while self.next < now && self.windows.len() < MOST_WINDOWS {
            self.windows.push(self.window);
            self.next += self.every;
        }
        self.window = window;
    }

    /// The delays of a part.
    pub fn part(&self, part: Part) -> Option<&DelayHistogram> {
        Part::ALL.iter().position(|known| *known == part).and_then(|place| self.parts.get(place))
    }
}
