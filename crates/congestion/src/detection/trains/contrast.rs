//! The comparison of losses, where buffers are too small for delays: a stream above the bottleneck's rate, and a sparse one beside it.

use flowstart_units::{Span, Time};

use crate::detection::Isolation;

use super::{Stage, Trains};

impl Trains {
    pub(super) fn begin_contrast(&mut self, now: Time) {
        self.stage = Stage::Contrast;
        self.batches += 1;
        let gap = self.service.unwrap_or(Span::from_micros(1)).mul_f64(1.0 / self.config.overload);
        let mut at = now;
        let patience = self.patience();
        let [stream, lone] = &mut self.sides;
        stream.plan.clear();
        lone.plan.clear();
        for _ in 0..self.config.contrast_packets {
            stream.plan.push_back((at, 1));
            // Random gaps, so that nothing locks in phase.
            at += gap.mul_f64(1.0 + self.config.contrast_jitter * (2.0 * self.random.unit() - 1.0));
        }
        let lasting = at.since(now);
        let mut times: Vec<f64> = (0..self.config.contrast_lone).map(|_| self.random.unit()).collect();
        times.sort_by(f64::total_cmp);
        for share in times {
            lone.plan.push_back((now + lasting.mul_f64(share), 1));
        }
        for (side, count) in [(&mut *stream, self.config.contrast_packets), (&mut *lone, self.config.contrast_lone)] {
            (side.compared_from, side.compared_until) = (side.sent, side.sent + u64::from(count));
            // Until the losses of the last ones are known.
            for index in 1..=self.config.followers {
                side.plan
                    .push_back((at + (gap * u64::from(self.config.follower_gaps) + patience) * u64::from(index), 1));
            }
        }
    }

    pub(super) fn compare(&mut self, now: Time) {
        let [stream, lone] = &self.sides;
        let all = [(stream, self.config.contrast_packets), (lone, self.config.contrast_lone)];
        if all.iter().any(|(side, _)| side.sent < side.compared_until || side.open_compared()) {
            return;
        }
        let (of_stream, of_lone) = ((stream.lost, stream.known), (lone.lost, lone.known));
        self.evidence.contrast(of_stream, of_lone);
        let lost = f64::from(of_stream.0) / f64::from(of_stream.1.max(1));
        // A stream that lost hardly anything was too slow; of one that was far too fast, what arrived is the rate.
        let correction = if lost < self.config.least_contrast {
            0.5
        } else if lost > self.config.most_contrast {
            1.0 / (self.config.overload * (1.0 - lost).max(0.01))
        } else {
            1.0
        };
        self.service = self.service.map(|service| service.mul_f64(correction).max(Span::from_micros(1)));
        for side in &mut self.sides {
            (side.known, side.lost) = (0, 0);
            (side.compared_from, side.compared_until) = (0, 0);
        }
        if !self.decide(now) {
            if self.batches >= self.config.most_batches {
                self.conclude(now, Isolation::Unknown);
            } else {
                self.begin_contrast(now);
            }
        }
    }
}
