//! What all chirps of a start say together.
//!
//! One chirp over a path with random traffic or jitter says little, many say much. So every chirp
//! is set against the hypotheses: the path has room for a packet per this gap, and others take this
//! share of its capacity. What a hypothesis predicts is the queue of the chirp's packets, up to
//! noise; how well it fits is a log-likelihood, and likelihoods of chirps add up. Older chirps
//! count less. What comes out is not a number but the set of the gaps that fit nearly as well as
//! the best one: its ends say what is safe to load and what is vain to try.
//!
//! Two kinds of noise are told apart, because they hide different things: *jitter* moves a packet,
//! at most some around it as well, and leaves the rest alone; *others' packets* come in between and
//! move all that follow. The variance of both is estimated from what the best hypothesis leaves
//! over, and a scalar Kalman filter with these variances gives the likelihood.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::reading::Point;
use flowstart_control::InvalidConfig;

/// How chirps are set against hypotheses. Source of the defaults: this project's own measurements
/// (`docs/frontier.md`).
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields, default)
)]
pub struct BeliefConfig {
    /// The most that one chirp takes from the log-likelihood of a hypothesis, above 0, so that a
    /// single one cannot rule out what all others say; default 10.
    pub outlier: f64,
    /// A hypothesis with a queue before the chirp must fit better than one without by this
    /// log-likelihood, at least 0; default 4: what has one more unknown fits noise better too.
    pub waiting: f64,
    /// Weight of a new chirp in the estimate of the noise, above 0 and at most 1; default 1/4.
    pub noise_weight: f64,
    /// Standard deviation of the noise is at least this share of the mean gap per packet (of
    /// jitter: half of it), 0 ..= 1; default 0.04: what the grid of gaps leaves over.
    pub noise_floor: f64,
    /// Standard deviation of both kinds of noise as a share of the mean gap, for a look at the
    /// first chirp before its own noise is known, above 0; default 1/8.
    pub first_noise: f64,
    /// A chirp is judged anew if it had so many times the variance that was expected, at least 1;
    /// default 1.5: it was judged too sharply.
    pub judged_anew: f64,
    /// Jitter may move so many neighbours together: a share of a chirp's packets, 0 ..= 1/3;
    /// default 1/8. On a link that keeps the order, one late packet holds all behind it.
    pub together: f64,
    /// Gaps that no chirp tried count as possible if the smallest plausible one is below the
    /// fastest of all chirps times this, 0 ..= 1; default 0.75.
    pub tried: f64,
    /// The path is crowded by hypotheses in which others take this share of it or more, above 0 and
    /// at most 1; default 0.75. (With 0.5 transfers beside a greedy flow took 6 % less time, but a
    /// bucket that is spent looked like others: it lost up to 800 packets instead of 390.)
    pub crowded_share: f64,
}

impl Default for BeliefConfig {
    fn default() -> Self {
        Self {
            outlier: 10.0,
            waiting: 4.0,
            noise_weight: 0.25,
            noise_floor: 0.04,
            first_noise: 0.125,
            judged_anew: 1.5,
            together: 0.125,
            tried: 0.75,
            crowded_share: 0.75,
        }
    }
}

impl BeliefConfig {
    pub(super) fn validate(&self) -> Result<(), InvalidConfig> {
        let check = InvalidConfig::unless;
        let within = |x: f64, low: f64, high: f64| x >= low && x <= high;
        check(self.outlier > 0.0 && self.outlier.is_finite(), "outlier", "more than 0")?;
        check(within(self.waiting, 0.0, 1e6), "waiting", "between 0 and 1000000")?;
        check(self.noise_weight > 0.0 && self.noise_weight <= 1.0, "noise_weight", "more than 0 and at most 1")?;
        check(within(self.noise_floor, 0.0, 1.0), "noise_floor", "between 0 and 1")?;
        check(self.first_noise > 0.0 && self.first_noise.is_finite(), "first_noise", "more than 0")?;
        check(self.judged_anew >= 1.0 && self.judged_anew.is_finite(), "judged_anew", "at least 1")?;
        check(within(self.together, 0.0, 1.0 / 3.0), "together", "between 0 and 1/3")?;
        check(within(self.tried, 0.0, 1.0), "tried", "between 0 and 1")?;
        check(self.crowded_share > 0.0 && self.crowded_share <= 1.0, "crowded_share", "more than 0 and at most 1")
    }
}

/// Cells per octave of the gap.
const STEPS: usize = 8;
/// 2^(1/8).
const STEP: f64 = 1.090_507_732_665_257_7;
/// The smallest gap is 2^9 ns (23 Gbit/s with packets of 1500 B), the largest 2^27 ns (90 kbit/s).
const SMALLEST: f64 = 512.0;
const CELLS: usize = 18 * STEPS;
/// Share of the capacity that others take, by hypothesis.
const SHARES: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];
/// Likelihoods that differ by less are equal.
const EQUAL: f64 = 1e-9;
/// Both variances are at least this many ns², that nothing is divided by zero.
const LEAST_VARIANCE: f64 = 1.0;

/// Variances in ns².
#[derive(Clone, Copy, Debug)]
struct Noise {
    jitter: f64,
    others: f64,
}

impl Noise {
    fn sum(self) -> f64 {
        self.jitter + self.others
    }

    /// Estimates may come out negative where the other one is too large by as much (per step: twice
    /// the one plus the other).
    fn at_least(self, floor: Self) -> Self {
        Self {
            jitter: (self.jitter + self.others.min(0.0) / 2.0).max(floor.jitter),
            others: (self.others + self.jitter.min(0.0) * 2.0).max(floor.others),
        }
    }
}

/// What is supposed: how long the first packet of the chirp waited (ns), the gap the path has room
/// for (ns per packet), others' share.
#[derive(Clone, Copy, Debug)]
struct Hypothesis {
    waiting: f64,
    gap: f64,
    share: f64,
}

/// What the chirps so far say of the gap (ns per packet) that the path has room for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Room {
    /// Smallest gap that is plausible; zero if no chirp was fast enough to tell.
    pub least: u64,
    /// The most likely one.
    pub best: u64,
    /// Largest gap that is plausible: the path carries at least a packet per this gap.
    pub most: u64,
    /// Most of the path is others': how much there is to be had, only trying can tell.
    pub crowded: bool,
}

/// What one chirp says by itself, beside what was known before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Alone {
    /// How likely is the likeliest of what was plausible: the logarithm of its likelihood over that
    /// of what the chirp shows, at most 0; 0 if nothing was known.
    pub plausible: f64,
    /// The gap that it shows in ns.
    pub gap: f64,
}

/// Log-likelihoods of the hypotheses.
#[derive(Clone, Debug)]
pub struct Belief {
    config: BeliefConfig,
    support: Box<[[f64; CELLS]; SHARES.len()]>,
    /// Means of the estimates, which are not bounded one by one: that would make them too large.
    noise: Option<Noise>,
    chirps: u32,
    /// The fastest gap of all chirps.
    fastest: f64,
    /// Variance by which they were judged, in ns².
    judged: f64,
}

/// The last cell whose gap is at most this. By products, which are the same on every machine;
/// logarithms are not.
fn cell(gap: f64) -> usize {
    let (mut low, mut value) = (0, SMALLEST);
    while value * 2.0 <= gap && low + STEPS < CELLS {
        value *= 2.0;
        low += STEPS;
    }
    while value * STEP <= gap && low + 1 < CELLS {
        value *= STEP;
        low += 1;
    }
    low
}

/// The gap of a cell in ns.
fn gap_of(cell: usize) -> f64 {
    let mut gap = SMALLEST;
    for _ in 0..cell / STEPS {
        gap *= 2.0;
    }
    for _ in 0..cell % STEPS {
        gap *= STEP;
    }
    gap
}

/// Growth of the queue by one point under a hypothesis.
fn queue(before: f64, point: &Point, gap: f64, share: f64) -> f64 {
    let packets = f64::from(point.packets.max(1));
    let grown = if share < 1.0 { (1.0 - share) * (packets * gap - point.gaps as f64) } else { packets * gap };
    (before + grown).max(0.0)
}

/// Gains and inverse variances of the filter, by point.
fn filter(points: usize, noise: Noise) -> Vec<(f64, f64)> {
    let mut variance = noise.jitter;
    let mut gains = Vec::with_capacity(points);
    for _ in 1..points {
        variance += noise.others;
        let total = variance + noise.jitter;
        gains.push((variance / total, 1.0 / total));
        variance *= noise.jitter / total;
    }
    gains
}

/// Log-likelihood of a chirp whose first packet waited for `waiting` ns.
fn likelihood(points: &[Point], gains: &[(f64, f64)], waiting: f64, gap: f64, share: f64) -> f64 {
    let mut state = points[0].delay as f64 - waiting;
    let (mut queued, mut sum) = (waiting, 0.0);
    for (point, (gain, inverse)) in points[1..].iter().zip(gains) {
        queued = queue(queued, point, gap, share);
        let innovation = point.delay as f64 - queued - state;
        state += gain * innovation;
        sum += innovation * innovation * inverse;
    }
    -0.5 * sum
}

impl Belief {
    /// Nothing is known.
    #[must_use]
    pub fn new(config: BeliefConfig) -> Self {
        let support = Box::new([[0.0; CELLS]; SHARES.len()]);
        Self { config, support, noise: None, chirps: 0, fastest: f64::INFINITY, judged: 0.0 }
    }

    /// Standard deviation in ns of what noise does from one packet to the next.
    pub fn noise(&self) -> f64 {
        self.noise.map_or(0.0, |noise| libm::sqrt((noise.jitter + noise.others).max(0.0)))
    }

    /// The same of what delays packets one by one.
    pub fn jitter(&self) -> f64 {
        self.noise.map_or(0.0, |noise| libm::sqrt(noise.jitter.max(0.0)))
    }

    /// Forgets the hypotheses, not the noise.
    pub fn forget(&mut self) {
        *self.support = [[0.0; CELLS]; SHARES.len()];
        (self.chirps, self.fastest, self.judged) = (0, f64::INFINITY, 0.0);
    }

    /// True if more of the noise is jitter than others' packets.
    #[must_use]
    pub fn is_jittery(&self) -> bool {
        self.noise.is_some_and(|noise| noise.jitter > noise.others)
    }

    /// Takes in a chirp; what was known counts `keep` times as much as before, and was plausible if
    /// it fit worse than the best by less than `margin`. Returns what the chirp says alone.
    pub fn take(&mut self, points: &[Point], keep: f64, margin: f64) -> Alone {
        if points.len() < 3 {
            return Alone { plausible: 0.0, gap: 0.0 };
        }
        let gap = |point: &Point| point.gaps as f64 / f64::from(point.packets.max(1));
        let fastest = points[1..].iter().map(gap).fold(f64::INFINITY, f64::min).max(SMALLEST);
        let (time, packets) = points[1..]
            .iter()
            .fold((0.0, 0.0), |(time, packets), point| (time + point.gaps as f64, packets + f64::from(point.packets)));
        // The grid's error is a share of the path's gap, which is at least that of the packets as
        // they come out.
        let rise = points[points.len() - 1].delay as f64 - points[0].delay as f64;
        let mean = (time + f64::max(rise, 0.0)) / f64::max(packets, 1.0);
        let BeliefConfig { noise_floor, first_noise, noise_weight, judged_anew, .. } = self.config;
        let variance = square(noise_floor * mean) + LEAST_VARIANCE;
        let floor = Noise { jitter: variance / 4.0, others: variance };
        let mut one = Box::new([[0.0; CELLS]; SHARES.len()]);
        let guess = square(first_noise * mean);
        let before = self.noise.unwrap_or(Noise { jitter: guess, others: guess });
        let mut best = self.judge(points, fastest, before.at_least(floor), &mut one);
        let left = self.left_over(points, best);
        let judged = before.at_least(floor);
        let now = match self.noise {
            Some(noise) => Noise {
                jitter: noise.jitter + (left.jitter - noise.jitter) * noise_weight,
                others: noise.others + (left.others - noise.others) * noise_weight,
            },
            None => left,
        };
        // What was judged with less noise than there is was judged too sharply.
        let first = self.noise.replace(now).is_none();
        let bounded = now.at_least(floor);
        if first || bounded.sum() > judged.sum() * judged_anew {
            best = self.judge(points, fastest, bounded, &mut one);
        }
        let variance = bounded.sum();
        if self.judged > 0.0 && variance > self.judged {
            let share = self.judged / variance;
            self.support.iter_mut().flatten().for_each(|sum| *sum *= share);
        }
        self.judged =
            if self.judged > variance { self.judged + (variance - self.judged) * noise_weight } else { variance };
        let plausible = {
            let top = self.support.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
            let both = self.support.iter().flatten().zip(one.iter().flatten());
            both.filter(|(sum, _)| **sum >= top - margin).map(|(_, new)| *new).fold(f64::NEG_INFINITY, f64::max)
        };
        for (sums, new) in self.support.iter_mut().zip(one.iter()) {
            for (sum, new) in sums.iter_mut().zip(new) {
                *sum = *sum * keep + new;
            }
        }
        self.fastest = if self.chirps == 0 { fastest } else { self.fastest.min(fastest) };
        self.chirps = self.chirps.saturating_add(1);
        Alone { plausible, gap: best.gap }
    }

    /// Likelihoods of one chirp relative to the best, which is returned.
    fn judge(
        &self,
        points: &[Point],
        fastest: f64,
        noise: Noise,
        into: &mut [[f64; CELLS]; SHARES.len()],
    ) -> Hypothesis {
        let BeliefConfig { outlier, waiting, .. } = self.config;
        let gains = filter(points.len(), noise);
        let least = points.iter().map(|point| point.delay).min().unwrap_or(0);
        // The first packet may have found an empty queue, or one that emptied in the course of the
        // chirp.
        let emptied = (points[0].delay - least) as f64;
        let lowest = cell(fastest / 2.0);
        let mut best = (f64::NEG_INFINITY, Hypothesis { waiting: 0.0, gap: 0.0, share: 0.0 });
        for (&share, row) in SHARES.iter().zip(into.iter_mut()) {
            let mut top = f64::NEG_INFINITY;
            let low = if share < 1.0 { lowest } else { lowest.saturating_sub(2 * STEPS) };
            let mut gap = gap_of(low);
            let mut at = low;
            while at < CELLS {
                let mut hypothesis = Hypothesis { waiting: 0.0, gap, share };
                let mut fit = likelihood(points, &gains, 0.0, gap, share);
                if emptied > 0.0 {
                    let other = likelihood(points, &gains, emptied, gap, share) - waiting;
                    if other > fit {
                        (fit, hypothesis.waiting) = (other, emptied);
                    }
                }
                row[at] = fit;
                top = top.max(fit);
                if fit > best.0 + EQUAL {
                    best = (fit, hypothesis);
                }
                at += 1;
                if fit < top - 2.0 * outlier {
                    break;
                }
                gap *= STEP;
            }
            let first = row[low];
            row[..low].fill(first);
            row[at..].fill(f64::NEG_INFINITY);
        }
        for fit in into.iter_mut().flatten() {
            *fit = (*fit - best.0).max(-outlier);
        }
        best.1
    }

    /// Noise that a hypothesis leaves over, by its structure function: others' packets move what is
    /// left over further the more packets are in between, jitter does not. Packets that jitter
    /// moves together count as the fewer that they are worth. Either may come out negative.
    fn left_over(&self, points: &[Point], Hypothesis { waiting, gap, share }: Hypothesis) -> Noise {
        let mut queued = waiting;
        let mut left = Vec::with_capacity(points.len());
        left.push(points[0].delay as f64 - queued);
        for point in &points[1..] {
            queued = queue(queued, point, gap, share);
            left.push(point.delay as f64 - queued);
        }
        let moved = |lag: usize| {
            let squares = left.iter().zip(&left[lag..]).map(|(before, after)| square(after - before));
            squares.sum::<f64>() / (left.len() - lag) as f64
        };
        let together = ((points.len() as f64 * self.config.together) as usize).max(1);
        let (near, far) = (moved(together), moved(2 * together));
        let others = (far - near) / together as f64;
        let one = near - far / 2.0;
        // Covariances with the neighbours: a sum of n values that move together has the variance of
        // n that do not, times this over their own.
        let neighbours = (1..together).map(|lag| {
            let covariance = one + lag as f64 * others.max(0.0) / 2.0 - moved(lag) / 2.0;
            2.0 * covariance.max(0.0)
        });
        Noise { jitter: one + neighbours.sum::<f64>(), others }
    }

    /// What is plausible: what fits worse than the best by less than `margin`. The path is crowded
    /// if hypotheses that say so fit better than the best of the others by more than
    /// `crowded_margin`.
    pub fn room(&self, margin: f64, crowded_margin: f64) -> Option<Room> {
        if self.chirps == 0 {
            return None;
        }
        let crowded = SHARES.iter().position(|share| *share >= self.config.crowded_share);
        let (free, crowded) = self.support.split_at(crowded.unwrap_or(SHARES.len()).max(1));
        let top = |rows: &[[f64; CELLS]]| rows.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
        let (top, others) = (top(free), top(crowded));
        let (mut least, mut most, mut best) = (CELLS - 1, 0, (f64::NEG_INFINITY, 0, 0));
        for (row, fits) in free.iter().enumerate() {
            for (at, fit) in fits.iter().enumerate() {
                if *fit > best.0 + EQUAL {
                    best = (*fit, row, at);
                }
                if *fit >= top - margin {
                    least = least.min(at);
                    most = most.max(at);
                }
            }
        }
        let (_, row, at) = best;
        let center = gap_of(at);
        // Between cells: the top of the parabola through the three around the best.
        let refined = match free[row].get(at.wrapping_sub(1)..=at + 1) {
            Some([left, middle, right]) if left + right < 2.0 * middle => {
                let offset = 0.5 * (left - right) / (left - 2.0 * middle + right);
                center * (1.0 + (STEP - 1.0) * offset.clamp(-0.5, 0.5))
            }
            _ => center,
        };
        let unbounded = gap_of(least) < self.config.tried * self.fastest;
        let most = gap_of(most);
        Some(Room {
            least: if unbounded { 0 } else { gap_of(least) as u64 },
            best: (if unbounded { most } else { refined }) as u64,
            most: most.max(refined) as u64,
            crowded: others > top + crowded_margin,
        })
    }
}

fn square(x: f64) -> f64 {
    x * x
}

#[cfg(test)]
mod tests;
