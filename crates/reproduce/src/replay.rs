//! A film sent through a loop again and again, beside the delay bounds that its service curve
//! gives.

use flowstart_service_curve::stats::upper_rank;
use flowstart_service_curve::{Arrivals, Probability, ServiceCurve, Video, VideoConfig};
use flowstart_units::{Bytes, Rate, Span, Time};

use super::probing::LoopSpec;
use flowstart_scenario::Problem;

/// Frames of the film and its seed: half a minute at 24 frames per second.
const FRAMES: usize = 720;
const SEED: u64 = 11;
/// Most packets that are watched.
const MOST_PACKETS: usize = 40_000;
/// The film runs for so long before its packets are watched: a loop begins with its initial window,
/// and the curve is that of the steady state.
const WARM_UP: Span = Span::from_secs(5);

/// What packets met, and what they were promised.
pub(super) struct Replay {
    /// When each packet that is watched is handed over.
    pub(super) times: Vec<Time>,
    /// The bound of each packet that is watched.
    pub(super) bounds: Vec<Span>,
    /// What each packet's delay exceeded in no more than the promised share of the runs.
    pub(super) quantiles: Vec<Span>,
}

/// When the film's packets are handed over, those of a frame at once, and the number of the first
/// that is watched.
fn packets(mean: Rate, packet: Bytes) -> Option<(Vec<Time>, usize)> {
    let film = Video::generate(&VideoConfig { mean, ..VideoConfig::default() }, FRAMES, SEED).ok()?;
    let of_frame = |(index, size): (usize, &Bytes)| {
        let count = usize::try_from(size.get().div_ceil(packet.get().max(1))).unwrap_or(usize::MAX);
        std::iter::repeat_n(film.time(index), count)
    };
    let times: Vec<Time> = film.frames().iter().enumerate().flat_map(of_frame).collect();
    let watched = times.partition_point(|time| time.since(Time::ZERO) < WARM_UP);
    Some((times.into_iter().take(watched.saturating_add(MOST_PACKETS)).collect(), watched))
}

impl Replay {
    /// Sends a film of this mean rate through the loop so many times, with random numbers of its
    /// own each time (seeds from the one given on). `None` if there is no film of this rate, no
    /// run, or no curve.
    ///
    /// # Errors
    /// What is wrong with the loop.
    pub(super) fn new(
        through: &LoopSpec,
        packet: Bytes,
        mean: Rate,
        curve: &ServiceCurve,
        (runs, seed): (usize, u64),
    ) -> Result<Option<Self>, Problem> {
        let (Some((times, first)), Some(rank)) = (packets(mean, packet), upper_rank(runs, curve.epsilon())) else {
            return Ok(None);
        };
        let Ok(arrivals) = Arrivals::new(times.iter().map(|time| (*time, packet))) else { return Ok(None) };
        if mean >= curve.long_term_rate() {
            return Ok(None);
        }
        // Only those from the rank on have to be known: the largest of all runs, per packet.
        let kept = runs + 1 - rank;
        let mut largest = vec![Span::ZERO; (times.len() - first) * kept];
        for run in 0..runs {
            let delays = through.delays(packet, times.iter().copied(), seed.wrapping_add(run as u64))?;
            for (delay, of_packet) in delays.skip(first).zip(largest.chunks_exact_mut(kept)) {
                keep(of_packet, delay);
            }
        }
        let quantiles = largest.chunks_exact(kept).map(|of_packet| of_packet[0]).collect();
        // The bounds hold because they look back to the empty loop at the beginning.
        let bounds = curve.delay_bounds(&arrivals).split_off(first);
        let mut times = times;
        Ok(Some(Self { times: times.split_off(first), bounds, quantiles }))
    }

    /// The share of packets whose delay exceeded its bound more often than promised.
    pub(super) fn violated(&self) -> Probability {
        let above = self.bounds.iter().zip(&self.quantiles).filter(|(bound, quantile)| quantile > bound).count();
        Probability::of(above, self.bounds.len())
    }

    /// The mean bound over the mean of what was met.
    pub(super) fn looseness(&self) -> f64 {
        let sum = |spans: &[Span]| spans.iter().map(|span| span.as_secs_f64()).sum::<f64>();
        sum(&self.bounds) / sum(&self.quantiles)
    }
}

/// Takes a delay among the largest, which are in order, if it is one of them.
fn keep(largest: &mut [Span], delay: Span) {
    if largest.first().is_none_or(|least| delay <= *least) {
        return;
    }
    largest[0] = delay;
    let mut place = 0;
    while place + 1 < largest.len() && largest[place] > largest[place + 1] {
        largest.swap(place, place + 1);
        place += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_are_kept_in_order() {
        let ms = Span::from_millis;
        let mut largest = [Span::ZERO; 3];
        for delay in [5, 1, 7, 3, 9, 2] {
            keep(&mut largest, ms(delay));
        }
        assert_eq!(largest, [5, 7, 9].map(ms));
    }
}
