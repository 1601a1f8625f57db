//! Where the delays of a rate arise.

use flowstart_probing::{Part, Passage, PassageSample};
use flowstart_service_curve::{Probability, Record};
use flowstart_units::{Rate, Span, Time};

/// Windows are not recorded here.
const NO_WINDOWS: Span = Span::from_secs(1);

/// The ways of the messages of one rate, after the warm-up: through the sender's stack, the network
/// and the receiver's stack.
#[derive(Clone, Debug)]
pub struct Parts {
    /// The rate.
    pub rate: Rate,
    from: Time,
    /// Of the first message that tells on: most files have none, and it is 400 kB.
    passage: Option<Passage>,
    /// Every message comes out after those before it.
    read: Time,
}

impl Parts {
    /// Of messages of this rate that are written from `from` on.
    #[must_use]
    pub fn new(rate: Rate, from: Time) -> Self {
        Self { rate, from, passage: None, read: Time::ZERO }
    }

    /// Takes in a message, in the order of sending; without stamps of the ends of the network it
    /// tells nothing.
    pub fn record(&mut self, record: &Record) {
        self.read = self.read.max(record.received);
        if let Some(passed) = record.passed {
            let (sent, received) = (passed.left, passed.arrived);
            let passage = self.passage.get_or_insert_with(|| Passage::new(self.from, NO_WINDOWS));
            passage.record(PassageSample { written: record.sent, sent, received, read: self.read });
        }
    }

    /// How many messages tell.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.passage
            .as_ref()
            .and_then(|passage| passage.part(Part::Total))
            .map_or(0, flowstart_service_curve::stats::DelayHistogram::count)
    }

    /// Mean time in a part in seconds, if anything tells.
    #[must_use]
    pub fn mean(&self, part: Part) -> Option<f64> {
        self.passage.as_ref()?.part(part)?.mean()
    }

    /// The time in a part that a fraction `epsilon` of the messages exceeds, 1 % fine.
    #[must_use]
    pub fn quantile(&self, part: Part, epsilon: Probability) -> Option<Span> {
        self.passage.as_ref()?.part(part)?.upper_quantile(epsilon)
    }
}
