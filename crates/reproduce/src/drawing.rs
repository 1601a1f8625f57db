//! From runs to the curves of pictures.

use flowstart_congestion::detection::Isolation;
use flowstart_measure::claims::ScenarioRun;
use flowstart_measure::{Dimension, Egress, Estimate, LinkRecord, Statistic};
use flowstart_scenario::Problem;
use flowstart_units::{Span, Time};

use super::figure::{Figure, Subject, chosen};
use super::picture::{Curve, Drawn, Picture, PictureAxis, PictureKind, PictureSpec};

impl PictureSpec {
    pub(super) fn check(&self, figure: &Figure) -> Result<(), Problem> {
        figure.find("of", &self.of)?;
        for (index, name) in self.apart.iter().enumerate() {
            figure.factor(&format!("apart[{index}]"), name)?;
        }
        if self.each_flow && !matches!(self.kind, PictureKind::Throughput | PictureKind::Window) {
            return Err(Problem::at("each_flow", "is for throughput and window"));
        }
        for number in figure.selected(&figure.find("of", &self.of)?) {
            let probed = matches!(figure.variants[number].subject, Subject::Probing(_));
            if probed != self.kind.is_probing() {
                let wrong = if probed { "is not made by probing" } else { "is made by probing; add a [probe]" };
                return Err(Problem::at("kind", wrong));
            }
        }
        if matches!(self.kind, PictureKind::ByLevel | PictureKind::Confusion) {
            let Some(by) = &self.by else { return Err(Problem::at("by", "is the factor whose levels are the points")) };
            let factor = figure.factor("by", by)?;
            if self.kind == PictureKind::ByLevel {
                let mut levels = figure.factors[factor].levels.iter();
                if let Some(level) = levels.find(|level| number_in(&level.title).is_none()) {
                    return Err(Problem::at("by", format!("there is no number in the title \"{}\"", level.title)));
                }
                if self.measure.is_none() {
                    return Err(Problem::at("measure", "is what the picture shows"));
                }
            }
            self.curve.iter().try_for_each(|curve| figure.factor("curve", curve).map(|_| ()))?;
        }
        Ok(())
    }

    /// The curves of one run of a variant; the names are those of flows, or empty.
    pub(super) fn curves(&self, run: &ScenarioRun<'_>) -> Vec<Curve> {
        let line = |name: &str, points| Curve { name: name.to_owned(), drawn: Drawn::Line, points };
        match self.kind {
            PictureKind::Throughput => self.throughput(run),
            PictureKind::QueueDelay => vec![line("", self.queue_delay(run))],
            PictureKind::Window => self.window(run),
            PictureKind::CompletionBySize => {
                let points: Vec<[f64; 2]> = run
                    .flows(None)
                    .filter(|(_, flow)| self.wants(run.name(flow)))
                    .filter_map(|(_, flow)| {
                        let time = flow.completed?.since(flow.first_data);
                        Some([flow.size?.get() as f64 / 1e3, time.as_millis_f64()])
                    })
                    .collect();
                vec![Curve { name: String::new(), drawn: Drawn::Points, points }]
            }
            PictureKind::QueueDelayDistribution => vec![line("", self.distribution(run))],
            PictureKind::ByLevel => {
                let value = self.measure.as_ref().and_then(|measure| Some((measure.of_run(run)?.value, measure)));
                let point = value.map(|(value, measure)| [0.0, value * scale(measure.dimension()).0]);
                vec![line("", point.into_iter().collect())]
            }
            PictureKind::Confusion => self.answers(run),
            // Those by probing are not of one simulation.
            _ => Vec::new(),
        }
    }

    /// A curve for each answer, whose points are counts.
    fn answers(&self, run: &ScenarioRun<'_>) -> Vec<Curve> {
        let asked = run.flows(None).filter(|(_, flow)| flow.companion_of.is_none() && self.wants(run.name(flow)));
        let found: Vec<Option<Isolation>> =
            asked.map(|(_, flow)| flow.decision.map(|decision| decision.isolation)).collect();
        let one = |(name, answer): (&str, Option<Isolation>)| {
            let count = found.iter().filter(|found| **found == answer).count();
            Curve { name: name.to_owned(), drawn: Drawn::Bars, points: vec![[0.0, count as f64]] }
        };
        let [isolated, shared, unknown] = [Isolation::Isolated, Isolation::Shared, Isolation::Unknown];
        let said = [isolated, shared, unknown].map(|answer| (answer.name(), Some(answer)));
        said.into_iter().chain([("no answer", None)]).map(one).collect()
    }

    fn wants(&self, flow: &str) -> bool {
        self.flows.is_empty() || self.flows.iter().any(|wanted| wanted == flow)
    }

    fn window_of_time(&self) -> std::ops::Range<Time> {
        Time::ZERO + self.from.unwrap_or(Span::ZERO)..self.until.map_or(Time::NEVER, |until| Time::ZERO + until)
    }

    /// Names of the flows to be drawn, with the numbers of their series, in order of the scenario.
    /// Flows of the same name are told apart.
    fn series(&self, run: &ScenarioRun<'_>) -> Vec<(String, usize)> {
        let mut found: Vec<(String, usize)> = Vec::new();
        for (id, flow) in run.flows(None).filter(|(_, flow)| self.wants(run.name(flow))) {
            let series = run.record.series_of(id);
            if found.iter().any(|(_, known)| *known == series) {
                continue;
            }
            let name = run.name(flow);
            let alike = run.flows(Some(name)).take(2).count();
            let own = series < run.record.series();
            let before = found.iter().filter(|(known, _)| known.starts_with(name)).count();
            found.push((if alike > 1 && own { format!("{name} {}", before + 1) } else { name.to_owned() }, series));
        }
        found
    }

    fn throughput(&self, run: &ScenarioRun<'_>) -> Vec<Curve> {
        let Some(link) = run.link(None).and_then(LinkRecord::series) else { return Vec::new() };
        let over = self.over.unwrap_or(run.rtt);
        let one = |name: &str, series: &[usize]| {
            let egress: Vec<&Egress> = series.iter().filter_map(|series| link.egress.get(*series)).collect();
            Curve { name: name.to_owned(), drawn: Drawn::Line, points: self.rates(&egress, run.record.bin(), over) }
        };
        let series = self.series(run);
        if self.each_flow {
            series.iter().map(|(name, number)| one(name, &[*number])).collect()
        } else {
            vec![one("", &series.iter().map(|(_, number)| *number).collect::<Vec<_>>())]
        }
    }

    /// Mbit/s over seconds, a point per half an averaging interval.
    fn rates(&self, egress: &[&Egress], bin: Span, over: Span) -> Vec<[f64; 2]> {
        let width = (over.as_nanos() / bin.as_nanos().max(1)).max(1) as usize;
        let bins = egress.iter().map(|egress| egress.bytes().len()).max().unwrap_or(0);
        let sum = |from: usize, to: usize| -> u64 {
            egress.iter().flat_map(|egress| egress.bytes().get(from..to)).flatten().sum()
        };
        let window = self.window_of_time();
        let seconds = (bin * width as u64).as_secs_f64();
        (width..=bins)
            .step_by((width / 2).max(1))
            .filter(|end| window.contains(&(Time::ZERO + bin * *end as u64)))
            .map(|end| [(bin * end as u64).as_secs_f64(), sum(end - width, end) as f64 * 8.0 / seconds / 1e6])
            .collect()
    }

    fn queue_delay(&self, run: &ScenarioRun<'_>) -> Vec<[f64; 2]> {
        let Some(link) = run.link(None).and_then(LinkRecord::series) else { return Vec::new() };
        let (bin, window) = (run.record.bin(), self.window_of_time());
        let ended = run.outcome.ended;
        let at = |index: usize| Time::ZERO + bin * index as u64;
        let waits =
            link.longest.iter().enumerate().filter(|(index, _)| window.contains(&at(*index)) && at(*index) < ended);
        waits.map(|(index, wait)| [at(index).as_secs_f64(), wait.as_millis_f64()]).collect()
    }

    fn window(&self, run: &ScenarioRun<'_>) -> Vec<Curve> {
        let window = self.window_of_time();
        let ended = run.outcome.ended;
        let one = |name: String, number: usize| {
            let changes = run.record.flows().get(number).map(|flow| flow.cwnd.as_slice()).unwrap_or_default();
            let mut points = Vec::new();
            for (index, (at, cwnd)) in changes.iter().enumerate() {
                let next = changes.get(index + 1).map_or(ended, |next| Time::ZERO + next.0);
                // A window holds until it changes.
                for at in [Time::ZERO + *at, next].into_iter().filter(|at| window.contains(at)) {
                    points.push([at.as_secs_f64(), f64::from(*cwnd)]);
                }
            }
            Curve { name, drawn: Drawn::Line, points }
        };
        let own = self.series(run).into_iter().filter(|(_, number)| *number < run.record.series());
        own.map(|(name, number)| one(if self.each_flow { name } else { String::new() }, number)).collect()
    }

    fn distribution(&self, run: &ScenarioRun<'_>) -> Vec<[f64; 2]> {
        let Some(link) = run.link(None) else { return Vec::new() };
        let window = self.window_of_time();
        let mut waits: Vec<f64> = link
            .waits()
            .iter()
            .filter(|wait| window.contains(&wait.arrived))
            .map(|wait| wait.waited.as_millis_f64().max(if self.log { LEAST_LOG_MS } else { 0.0 }))
            .collect();
        waits.sort_by(f64::total_cmp);
        let count = waits.len();
        let step = count.div_ceil(DISTRIBUTION_POINTS).max(1);
        let places = (0..count).step_by(step).chain(count.checked_sub(1));
        places.map(|place| [waits[place], (place + 1) as f64 / count as f64 * 100.0]).collect()
    }

    fn axes(&self) -> (PictureAxis, PictureAxis) {
        let axis = |label, unit, log| PictureAxis { label, unit, log };
        let time = axis("Time", "s", false);
        match self.kind {
            PictureKind::Throughput => (time, axis("Throughput", "Mbit/s", false)),
            PictureKind::QueueDelay => (time, axis("Queueing delay", "ms", false)),
            PictureKind::Window => (time, axis("cwnd", "packets", false)),
            PictureKind::CompletionBySize => (axis("Size", "kB", true), axis("Completion time", "ms", true)),
            PictureKind::QueueDelayDistribution => {
                (axis("Queueing delay", "ms", self.log), axis("Packets that waited at most so long", "%", false))
            }
            PictureKind::AttainableRate => {
                (axis("Length of the interval", "s", true), axis("Attainable rate", "Mbit/s", false))
            }
            PictureKind::ServiceCurve => (time, axis("Service", "Mbit", false)),
            PictureKind::DelayCcdf => (axis("Delay", "ms", true), axis("Messages with a longer delay", "%", true)),
            PictureKind::DelayParts => (time, axis("Delay", "ms", true)),
            PictureKind::WaitingShare => {
                (axis("Probing rate", "Mbit/s", false), axis("Messages that waited", "%", false))
            }
            PictureKind::WindowCorrelation => (axis("Lag", "s", false), axis("Autocorrelation of cwnd", "", false)),
            PictureKind::FilmBound => (time, axis("Delay bound", "ms", true)),
            PictureKind::FilmReplay => (time, axis("Delay", "ms", true)),
            PictureKind::ByLevel => {
                let unit = self.measure.as_ref().map_or("", |measure| scale(measure.dimension()).1);
                (axis("Level", "", false), axis("Mean", unit, false))
            }
            PictureKind::Confusion => (axis("The queue", "", false), axis("Answers", "%", false)),
        }
    }

    /// The means of a picture by level.
    fn by_level(&self, number: usize, figure: &Figure, curves: &[(usize, Vec<Curve>)]) -> Picture {
        let (x, y) = self.axes();
        let place = |name: &Option<String>| name.as_ref().and_then(|name| figure.factor("by", name).ok());
        let (by, curve) = (place(&self.by), place(&self.curve));
        let mut means: Vec<(String, Sums)> = Vec::new();
        for (variant, of_variant) in curves {
            let levels = &figure.variants[*variant].levels;
            let title = |factor: usize| figure.factors[factor].levels[levels[factor]].title.as_str();
            let Some(at) = by.and_then(|by| number_in(title(by))) else { continue };
            let name = curve.map_or(self.title.as_str(), title);
            let of_curve = match means.iter().position(|(known, _)| known == name) {
                Some(place) => &mut means[place].1,
                None => {
                    means.push((name.to_owned(), Vec::new()));
                    let last = means.len() - 1;
                    &mut means[last].1
                }
            };
            for [_, value] in of_variant.iter().flat_map(|curve| &curve.points) {
                match of_curve.iter_mut().find(|(known, ..)| *known == at) {
                    Some((_, sum, count)) => (*sum, *count) = (*sum + value, *count + 1),
                    None => of_curve.push((at, *value, 1)),
                }
            }
        }
        let line = |(name, mut points): (String, Sums)| {
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            let points = points.into_iter().map(|(at, sum, count)| [at, sum / f64::from(count)]).collect();
            Curve { name, drawn: Drawn::Line, points }
        };
        let curves = means.into_iter().map(line).collect();
        Picture {
            spec: number,
            title: self.title.clone(),
            caption: self.caption.clone(),
            x,
            y,
            curves,
            places: Vec::new(),
        }
    }

    /// The shares of answers for each combination of levels, in percent.
    fn confusion(&self, number: usize, figure: &Figure, curves: &[(usize, Vec<Curve>)]) -> Picture {
        let (x, y) = self.axes();
        let factors = [&self.by, &self.curve].map(|name| figure.factor("by", name.as_ref()?).ok());
        let mut places: Vec<String> = Vec::new();
        let mut counts: Vec<(String, Vec<f64>)> = Vec::new();
        for (variant, of_variant) in curves {
            let levels = &figure.variants[*variant].levels;
            let titles =
                factors.iter().flatten().map(|factor| figure.factors[*factor].levels[levels[*factor]].title.as_str());
            let name = titles.collect::<Vec<_>>().join(", ");
            let place = places.iter().position(|known| *known == name).unwrap_or_else(|| {
                places.push(name);
                places.len() - 1
            });
            for (answer, curve) in of_variant.iter().enumerate() {
                if counts.len() <= answer {
                    counts.push((curve.name.clone(), Vec::new()));
                }
                let of_answer = &mut counts[answer].1;
                of_answer.resize(of_answer.len().max(place + 1), 0.0);
                of_answer[place] += curve.points.iter().map(|point| point[1]).sum::<f64>();
            }
        }
        let total = |place: usize| counts.iter().filter_map(|(_, counts)| counts.get(place)).sum::<f64>().max(1.0);
        let totals: Vec<f64> = (0..places.len()).map(total).collect();
        let bars = |(name, counts): (String, Vec<f64>)| {
            let points = counts.iter().zip(&totals).enumerate();
            let points = points.map(|(place, (count, total))| [place as f64, count / total * 100.0]).collect();
            Curve { name, drawn: Drawn::Bars, points }
        };
        let curves = counts.into_iter().map(bars).collect();
        Picture { spec: number, title: self.title.clone(), caption: self.caption.clone(), x, y, curves, places }
    }

    /// Puts the curves of variants together into pictures.
    pub(super) fn assemble(&self, number: usize, figure: &Figure, curves: &[(usize, Vec<Curve>)]) -> Vec<Picture> {
        if self.kind == PictureKind::ByLevel {
            return vec![self.by_level(number, figure, curves)];
        }
        if self.kind == PictureKind::Confusion {
            return vec![self.confusion(number, figure, curves)];
        }
        // What all curves have in common is not in their names.
        let of = figure.find("of", &self.of).unwrap_or_default();
        let named = |factor: usize| of.iter().filter(|(known, _)| *known == factor).count();
        let is_apart = |factor: usize| self.apart.contains(&figure.factors[factor].name);
        let (x, y) = self.axes();
        let mut pictures: Vec<(Vec<usize>, Picture)> = Vec::new();
        for (variant, of_variant) in curves {
            let levels = &figure.variants[*variant].levels;
            let all = chosen(&figure.factors, levels);
            let titles = |wanted: &dyn Fn(usize) -> bool| -> Vec<&str> {
                let some = all.iter().enumerate().filter(|(factor, _)| wanted(*factor));
                some.map(|(_, level)| level.title.as_str()).collect()
            };
            let key: Vec<usize> = levels.iter().enumerate().filter(|(f, _)| is_apart(*f)).map(|(_, l)| *l).collect();
            let name = titles(&|factor| !is_apart(factor) && named(factor) != 1).join(", ");
            let place = pictures.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
                let mut title = vec![self.title.as_str()];
                title.extend(titles(&is_apart));
                let (title, caption) = (title.join(", "), self.caption.clone());
                pictures.push((
                    key,
                    Picture { spec: number, title, caption, x, y, curves: Vec::new(), places: Vec::new() },
                ));
                pictures.len() - 1
            });
            for curve in of_variant {
                let parts = [name.as_str(), curve.name.as_str()];
                let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
                let name = if parts.is_empty() { self.title.clone() } else { parts.join(", ") };
                let picture = &mut pictures[place].1;
                if self.kind == PictureKind::CompletionBySize {
                    let points = medians(&curve.points);
                    picture.curves.push(Curve { name: name.clone(), drawn: Drawn::Line, points });
                }
                if self.kind == PictureKind::WindowCorrelation {
                    picture.curves.extend(mean_with_interval(&name, &curve.points));
                    continue;
                }
                picture.curves.push(Curve { name, ..curve.clone() });
            }
        }
        pictures.into_iter().map(|(_, picture)| picture).collect()
    }
}

/// The mean of points of several runs at each place, and the band of its 95 % interval; of a single
/// run the points themselves.
fn mean_with_interval(name: &str, points: &[[f64; 2]]) -> Vec<Curve> {
    let mut sorted = points.to_vec();
    sorted.sort_by(|a, b| a[0].total_cmp(&b[0]));
    let of_place = |members: &[[f64; 2]]| {
        let values: Vec<f64> = members.iter().map(|[_, y]| *y).collect();
        Some((members[0][0], Estimate::of(&values)?))
    };
    let means: Vec<(f64, Estimate)> = sorted.chunk_by(|a, b| a[0] == b[0]).filter_map(of_place).collect();
    let line = Curve {
        name: name.to_owned(),
        drawn: Drawn::Line,
        points: means.iter().map(|(x, estimate)| [*x, estimate.mean]).collect(),
    };
    let interval = |(x, estimate): &(f64, Estimate)| {
        let half = estimate.half_width?;
        Some(([*x, estimate.mean - half], estimate.mean + half))
    };
    let (lows, highs): (Vec<[f64; 2]>, Vec<f64>) = means.iter().filter_map(interval).unzip();
    let band = Curve { name: name.to_owned(), drawn: Drawn::Band(highs), points: lows };
    if band.points.is_empty() { vec![line] } else { vec![band, line] }
}

/// For each level: its number, the sum of the values and how many they are.
type Sums = Vec<(f64, f64, u32)>;

/// The first number in a title: "RTT 10 ms" is 10.
fn number_in(title: &str) -> Option<f64> {
    let digits: String =
        title.chars().skip_while(|c| !c.is_ascii_digit()).take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    digits.parse().ok()
}

/// What values of a dimension are multiplied by in pictures, and their unit then.
fn scale(dimension: Dimension) -> (f64, &'static str) {
    match dimension {
        Dimension::Time => (1e3, "ms"),
        Dimension::Rate => (1e-6, "Mbit/s"),
        Dimension::Share => (100.0, "%"),
        Dimension::Packets => (1.0, "packets"),
        Dimension::Rtts => (1.0, "RTT"),
        Dimension::Plain => (1.0, ""),
    }
}

/// Waits below this are drawn here on a logarithmic axis: 10 µs.
const LEAST_LOG_MS: f64 = 0.01;
/// Most points of a distribution.
const DISTRIBUTION_POINTS: usize = 400;
/// Size classes per factor of two, in the medians of completion times.
const CLASSES_PER_OCTAVE: f64 = 1.0;
/// Classes with fewer transfers have no median.
const LEAST_PER_CLASS: usize = 5;

/// The median completion time of each size class, at the geometric middle of its sizes.
fn medians(points: &[[f64; 2]]) -> Vec<[f64; 2]> {
    let class = |size: f64| (libm::log2(size) * CLASSES_PER_OCTAVE).floor() as i64;
    let mut sorted: Vec<[f64; 2]> = points.iter().copied().filter(|[size, _]| *size > 0.0).collect();
    sorted.sort_by(|a, b| a[0].total_cmp(&b[0]));
    sorted
        .chunk_by(|a, b| class(a[0]) == class(b[0]))
        .filter(|members| members.len() >= LEAST_PER_CLASS)
        .filter_map(|members| {
            let middle = members.iter().map(|[size, _]| libm::log(*size)).sum::<f64>() / members.len() as f64;
            let mut times: Vec<f64> = members.iter().map(|[_, time]| *time).collect();
            Some([libm::exp(middle), Statistic::Quantile(0.5).of(&mut times)?])
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_runs_the_mean_and_its_interval_are_drawn_and_of_one_run_the_run() {
        let run = [[0.0, 1.0], [1.0, 0.5]];
        let one = mean_with_interval("x", &run);
        assert_eq!(one, [Curve { name: "x".to_owned(), drawn: Drawn::Line, points: run.to_vec() }]);
        // Two runs with values 1 and 3 at every place: mean 2, standard error 1, Student's t 12.7.
        let two = mean_with_interval("x", &[[0.0, 1.0], [1.0, 1.0], [0.0, 3.0], [1.0, 3.0]]);
        let [band, line] = two.as_slice() else { panic!("{two:?}") };
        assert_eq!(line.points, [[0.0, 2.0], [1.0, 2.0]]);
        let Drawn::Band(highs) = &band.drawn else { panic!("{band:?}") };
        assert_eq!((band.points.len(), highs.len()), (2, 2));
        assert!((highs[0] - 14.706).abs() < 1e-3 && (band.points[0][1] + 10.706).abs() < 1e-3, "{band:?}");
    }
}
