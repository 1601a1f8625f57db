//! A chirp: packets whose gaps shrink. It follows if too little of the first train arrived to tell
//! a rate; so small a buffer shows no delays, but some gaps are as long as the bottleneck needs.

use flowstart_units::{Span, Time};

use crate::Acked;

use super::arrivals::Arrivals;
use super::batch::FLANKS;
use super::context::Context;
use super::next::{Arrangement, Next};

/// A chirp is out.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chirp {
    pub(super) arrivals: Arrivals,
}

impl Chirp {
    /// Plans a chirp from `now` on, with packets behind it that find its last losses.
    pub(super) fn plan(context: &mut Context, now: Time) -> Self {
        let rtt = context.smallest();
        let Context { config, sides: [train, _], .. } = context;
        let count = config.train * 2;
        train.plan.clear();
        let (mut at, mut gap) = (now, rtt / u64::from(config.train));
        for _ in 0..count {
            train.plan.push_back((at, 1));
            at += gap;
            gap = gap.mul_f64(config.chirp_shrink);
        }
        for index in 1..=config.followers {
            train.plan.push_back((at + rtt.mul_f64(config.follow_rtts) * u64::from(index), 1));
        }
        Self { arrivals: Arrivals::new(train.sent, count) }
    }

    /// A packet of connection 0 was delivered. Once the chirp is over, bursts follow at the rate it
    /// told, or another chirp.
    pub(super) fn on_acked(&mut self, context: &mut Context, acked: &Acked) -> Next {
        self.arrivals.add(acked.now, acked.number);
        if !self.arrivals.are_over(acked.number) {
            return Next::Stay;
        }
        match self.arrivals.quickest() {
            Some(quickest) => {
                context.service = Some(quickest.max(Span::from_micros(1)).max(context.known));
                Next::Batch { arrangement: Arrangement::Bursts, length: FLANKS * 2 }
            }
            None => Next::Chirp,
        }
    }
}
