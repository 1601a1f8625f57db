//! Pictures of attainable rates.

use flowstart_units::{Rate, Span, Time};

use super::attained::Attained;
use super::picture::{Curve, Drawn, PictureKind, PictureSpec};
use flowstart_probing::Part;

/// Points per factor of ten on a logarithmic axis of time.
const PER_DECADE: f64 = 20.0;
/// Points of a curve over a linear axis of time.
const POINTS: u64 = 400;
/// Most points of a curve that has one per message or frame.
const MOST_POINTS: usize = 2_000;
/// Intervals of attainable rates unless the picture says which.
const SHORTEST: Span = Span::from_millis(10);
const LONGEST: Span = Span::from_secs(1_000);
/// Time that a service curve shows, and lags of a correlation, unless the picture says which.
const SERVED: Span = Span::from_secs(1);
const LAGS: Span = Span::from_secs(5);
/// Delays below this are drawn here on a logarithmic axis: 10 us.
const LEAST_MS: f64 = 0.01;
/// A message has waited in a part if its delay there is longer than the least by more than this:
/// the transmission of a packet or two.
const WAITED: Span = Span::from_millis(1);

impl Attained {
    /// The curves of a picture.
    pub(super) fn curves(&self, picture: &PictureSpec) -> Vec<Curve> {
        let curve = &self.estimate.curve;
        let line = |name: String, points: Vec<[f64; 2]>| Curve { name, drawn: Drawn::Line, points };
        let nameless = |points| vec![line(String::new(), points)];
        let until = |default: Span| picture.until.unwrap_or(default);
        match picture.kind {
            PictureKind::AttainableRate => {
                let (from, until) = (picture.from.unwrap_or(SHORTEST), until(LONGEST));
                nameless(decades(from, until).map(|t| [t.as_secs_f64(), curve.attainable_rate(t) / 1e6]).collect())
            }
            PictureKind::ServiceCurve => {
                let times = || (0..=POINTS).map(|n| until(SERVED).mul_ratio(n, POINTS));
                let mut curves = nameless(times().map(|t| [t.as_secs_f64(), curve.service(t) / 1e6]).collect());
                let through = self.probing.spec.through.as_ref();
                if let Some(window) = through.and_then(super::LoopSpec::static_window) {
                    let fluid = times().map(|t| [t.as_secs_f64(), window.service(t) / 1e6]);
                    curves.push(line("in closed form".to_owned(), fluid.filter(|[_, y]| y.is_finite()).collect()));
                }
                curves
            }
            PictureKind::DelayCcdf => self.each(picture, |rate, part| {
                let Some(delays) = self.delays(rate, part) else { return Vec::new() };
                let points =
                    delays.ccdf().into_iter().map(|(delay, above)| (delay.as_millis_f64(), above.get() * 100.0));
                points.filter(|(_, above)| *above > 0.0).map(|(delay, above)| [delay.max(LEAST_MS), above]).collect()
            }),
            PictureKind::DelayParts => self.each(picture, |rate, part| {
                let Some(passage) = self.passage(rate) else { return Vec::new() };
                let since = |time: Time| time.since(passage.from);
                let shown = passage.samples.iter().filter(|sample| since(sample.written) <= until(Span::MAX));
                let points: Vec<[f64; 2]> = shown
                    .map(|one| [since(one.written).as_secs_f64(), one.part(part).as_millis_f64().max(LEAST_MS)])
                    .collect();
                thinned(&points)
            }),
            PictureKind::WaitingShare => {
                let rates = || self.estimate.probes.iter().map(|probe| probe.rate);
                let of_part = |part: Part| {
                    let waited = |rate: Rate| {
                        let delays = self.delays(rate, part)?;
                        let least = delays.ccdf().first()?.0;
                        Some([rate.as_bps() as f64 / 1e6, delays.fraction_above(least + WAITED).get() * 100.0])
                    };
                    rates().filter_map(waited).collect::<Vec<_>>()
                };
                let named = |part: Part| if picture.parts.len() > 1 { part.title().to_owned() } else { String::new() };
                parts(picture).into_iter().map(|part| line(named(part), of_part(part))).collect()
            }
            PictureKind::WindowCorrelation => {
                let several = picture.rates.len() != 1;
                let one = |rate: Rate| {
                    let name = if several { rate.to_string() } else { String::new() };
                    Some(line(name, self.correlation(rate, until(LAGS))?))
                };
                self.rates(picture).into_iter().filter_map(one).collect()
            }
            PictureKind::FilmBound => {
                let bounds = self.film_bounds().unwrap_or_default();
                let points: Vec<[f64; 2]> = bounds.iter().zip(self.film_times()).map(|(y, x)| [x, y * 1e3]).collect();
                nameless(thinned(&points))
            }
            PictureKind::FilmReplay => {
                let packets = self.replayed();
                let one = |name: &str, which: usize| {
                    let points: Vec<[f64; 2]> = packets.iter().map(|packet| [packet[0], packet[which] * 1e3]).collect();
                    line(name.to_owned(), thinned(&points))
                };
                vec![one("bound", 1), one("met", 2)]
            }
            _ => Vec::new(),
        }
    }

    /// The rates that a picture is about.
    fn rates(&self, picture: &PictureSpec) -> Vec<Rate> {
        let all = self.estimate.probes.iter().map(|probe| probe.rate);
        all.filter(|rate| picture.rates.is_empty() || picture.rates.contains(rate)).collect()
    }

    /// A curve for every rate and part.
    fn each(&self, picture: &PictureSpec, points: impl Fn(Rate, Part) -> Vec<[f64; 2]>) -> Vec<Curve> {
        let (rates, parts) = (self.rates(picture), parts(picture));
        let mut curves = Vec::new();
        for rate in &rates {
            for part in &parts {
                let rate_name = if picture.rates.len() == 1 { String::new() } else { rate.to_string() };
                let part_name = if parts.len() == 1 { "" } else { part.title() };
                let both = [rate_name.as_str(), part_name];
                let name = both.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ");
                curves.push(Curve { name, drawn: Drawn::Line, points: points(*rate, *part) });
            }
        }
        curves
    }
}

/// The parts that a picture shows.
fn parts(picture: &PictureSpec) -> Vec<Part> {
    if picture.parts.is_empty() { vec![Part::Total] } else { picture.parts.clone() }
}

/// Times from one to another, equally spaced on a logarithmic axis.
fn decades(from: Span, until: Span) -> impl Iterator<Item = Span> {
    let first = from.max(Span::from_nanos(1)).as_secs_f64();
    let count = (libm::log10(until.as_secs_f64() / first) * PER_DECADE).max(0.0) as u32;
    (0..=count).map(move |n| Span::from_secs_f64(first * libm::pow(10.0, f64::from(n) / PER_DECADE)))
}

/// Not more points than can be seen.
fn thinned(points: &[[f64; 2]]) -> Vec<[f64; 2]> {
    points.iter().copied().step_by(points.len().div_ceil(MOST_POINTS).max(1)).collect()
}
