//! A race and its result as JSON documents.

use serde_json::{Map, Value as Json, json};

use super::record::exit_name;
use super::{ContestantResult, Measure, Purpose, Race, RaceResult, RunRecord};
use flowstart_measure::{Estimate, bootstrap_median};
use flowstart_scenario::RateSpec;

/// Version of the documents; it changes when a name or a meaning does.
pub const RACE_SCHEMA_VERSION: u32 = 1;

/// Runs from which on a bootstrap interval of the median is given (M12).
const BOOTSTRAP_RUNS: usize = 30;

impl Race {
    /// Every parameter, defaults filled in.
    #[must_use]
    pub fn parameters(&self) -> Json {
        let contestants: Vec<Json> = self
            .contestants
            .iter()
            .map(|contestant| {
                let scenario = self.scenario(contestant, Purpose::Start, 0);
                object([
                    ("contestant", json!(contestant.to_string())),
                    ("conditions", json!(contestant.conditions())),
                    ("queue", json!(scenario.path.as_ref().map(|path| &path.queue))),
                    // The first newcomer.
                    ("flow", json!(scenario.flow.get(self.others.flow.len()))),
                ])
            })
            .collect();
        let mut path = json!(self.path);
        if let Json::Object(path) = &mut path {
            // Each contestant's stands below.
            path.remove("queue");
        }
        let mut parameters = object([
            ("schema_version", json!(RACE_SCHEMA_VERSION)),
            ("path", path),
            ("mark", json!(self.mark.to_string())),
            ("flows", json!(self.flows)),
            ("others", json!({ "flow": self.others.flow, "udp": self.others.udp, "arrivals": self.others.arrivals })),
            ("sizes", json!(self.sizes)),
            ("horizon", json!(self.horizon())),
            ("warm_up", json!(self.effective_warm_up())),
            ("phase", json!(self.effective_phase())),
            ("seed", json!(self.seed)),
            ("runs", json!(self.effective_runs())),
            ("random", json!(self.is_random())),
            ("base_rtt", json!(self.base_rtt())),
            ("fair_share", json!(self.reference().fair_share)),
            ("contestants", Json::Array(contestants)),
        ]);
        if !matches!(self.path.capacity, RateSpec::Constant(_)) {
            // What was measured against the mean has other numbers.
            parameters["measured_against"] = json!("the capacity of each moment");
        }
        if let Some(phases) = self.phases {
            parameters["phases"] = json!(phases);
        }
        if self.world.is_real() {
            parameters["real"] = json!(true);
        }
        if let Some(stack) = self.world.stack() {
            parameters["quic"] = json!(true);
            parameters["stack"] = json!(stack);
        }
        parameters
    }

    /// Hash of [`parameters`](Self::parameters): the first 16 hexadecimal digits of BLAKE3.
    #[must_use]
    pub fn hash(&self) -> String {
        hash_of(&self.parameters())
    }
}

impl RaceResult {
    /// The whole result with its provenance. It depends on nothing but the version and the race:
    /// the same race gives the same bytes.
    #[must_use]
    pub fn to_json(&self) -> Json {
        let measures = self.race.measures();
        let parameters = self.race.parameters();
        let columns: Vec<Json> = measures
            .iter()
            .map(|measure| json!({ "name": measure.name(), "unit": measure.unit(), "meaning": measure.help() }))
            .collect();
        let contestants: Vec<Json> =
            self.contestants.iter().map(|contestant| contestant_json(contestant, &measures)).collect();
        object([
            ("flowstart_version", json!(env!("CARGO_PKG_VERSION"))),
            ("schema_version", json!(RACE_SCHEMA_VERSION)),
            ("race_hash", json!(hash_of(&parameters))),
            ("seed", json!(self.race.seed)),
            ("runs", json!(self.race.effective_runs())),
            ("random", json!(self.race.is_random())),
            ("complete", json!(self.complete)),
            ("data_packets", json!(self.data_packets)),
            ("simulated_seconds", json!(self.simulated_seconds)),
            ("measures", Json::Array(columns)),
            ("contestants", Json::Array(contestants)),
            ("parameters", parameters),
        ])
    }

    /// What the pictures show as CSV, one line per point: contestant, series, time after t = 0 in
    /// RTT0 and in seconds, value, and between what the runs lie (empty if there is one).
    #[must_use]
    pub fn series_csv(&self) -> String {
        let head = ["contestant", "series", "time_rtts", "time_s", "value", "low", "high"];
        let mut lines = vec![head.map(str::to_owned)];
        let rtt = self.race.base_rtt().as_secs_f64();
        for contestant in &self.contestants {
            let Some(series) = &contestant.series else { continue };
            let spread = series.spread.as_deref();
            let curves: [Curve<'_>; 5] = [
                ("sending_rate_mbit_s", &series.sending, spread.map(|s| s.sending.as_slice())),
                ("throughput_mbit_s", &series.throughput, spread.map(|s| s.throughput.as_slice())),
                ("queue_delay_max_ms", &series.queue, spread.map(|s| s.queue.as_slice())),
                ("snd_cwnd_pkts", &series.cwnd, spread.map(|s| s.cwnd.as_slice())),
                ("delivered_mb", &series.delivered, spread.map(|s| s.delivered.as_slice())),
            ];
            for (name, points, band) in curves {
                for (place, [time, value]) in points.iter().enumerate() {
                    let between = band.and_then(|band| band.get(place));
                    let end = |side: usize| between.map_or(String::new(), |band| band[side].to_string());
                    let (label, seconds) = (contestant.label.clone(), format!("{:.9}", time * rtt));
                    lines.push([label, name.to_owned(), time.to_string(), seconds, value.to_string(), end(1), end(2)]);
                }
            }
        }
        csv_text(lines)
    }

    /// One line per contestant and run, one column per measure, as CSV.
    #[must_use]
    pub fn runs_csv(&self) -> String {
        let measures = self.race.measures();
        let mut head = ["contestant", "queue", "run", "exit_reasons"].map(str::to_owned).to_vec();
        head.extend(measures.iter().map(|measure| measure.name()));
        let mut lines = vec![head];
        for contestant in &self.contestants {
            let queue = self.race.queue_name(&contestant.contestant);
            for run in &contestant.runs {
                let exits: Vec<&str> = run.exits.iter().map(|exit| exit_name(*exit)).collect();
                let mut fields = vec![contestant.label.clone(), queue.clone(), run.run.to_string(), exits.join(" ")];
                fields.extend(measures.iter().map(|m| run.get(*m).map_or(String::new(), |value| value.to_string())));
                lines.push(fields);
            }
        }
        csv_text(lines)
    }
}

/// An object of values that are made: `json!` copies them.
fn object<const N: usize>(fields: [(&str, Json); N]) -> Json {
    Json::Object(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

fn hash_of(parameters: &Json) -> String {
    blake3::hash(parameters.to_string().as_bytes()).to_hex()[..16].to_owned()
}

/// A name, times and values, and at each time the lowest and highest value of all runs.
type Curve<'a> = (&'a str, &'a [[f64; 2]], Option<&'a [[f64; 3]]>);

/// Lines of fields as CSV.
fn csv_text(lines: impl IntoIterator<Item = impl AsRef<[String]>>) -> String {
    // Writing into memory does not fail.
    let mut writer = csv::Writer::from_writer(Vec::new());
    for line in lines {
        let _ = writer.write_record(line.as_ref());
    }
    String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
}

fn contestant_json(contestant: &ContestantResult, measures: &[Measure]) -> Json {
    let mut summary = Map::new();
    for measure in measures {
        let value = contestant
            .estimate(*measure)
            .map_or(Json::Null, |estimate| estimate_json(&estimate, &contestant.values(*measure)));
        summary.insert(measure.name(), value);
    }
    let exits: Vec<Json> = contestant
        .exits()
        .into_iter()
        .map(|(reason, count)| json!({ "reason": exit_name(reason), "count": count }))
        .collect();
    object([
        ("label", json!(contestant.label)),
        ("contestant", json!(contestant.contestant.to_string())),
        ("exits", Json::Array(exits)),
        ("summary", Json::Object(summary)),
        ("runs", contestant.runs.iter().map(|run| run_json(run, measures)).collect()),
    ])
}

fn estimate_json(estimate: &Estimate, values: &[f64]) -> Json {
    let mut document = json!({ "mean": estimate.mean, "median": estimate.median, "min": estimate.min, "max": estimate.max, "runs": estimate.runs });
    if let (Some(half), Json::Object(fields)) = (estimate.half_width, &mut document) {
        fields.insert("low".to_owned(), json!(estimate.mean - half));
        fields.insert("high".to_owned(), json!(estimate.mean + half));
        if estimate.runs >= BOOTSTRAP_RUNS
            && let Some((_, low, high)) = bootstrap_median(values)
        {
            fields.insert("median_low".to_owned(), json!(low));
            fields.insert("median_high".to_owned(), json!(high));
        }
    }
    document
}

fn run_json(run: &RunRecord, measures: &[Measure]) -> Json {
    let values: Map<String, Json> = measures.iter().filter_map(|m| Some((m.name(), json!(run.get(*m)?)))).collect();
    let exits: Vec<&str> = run.exits.iter().map(|exit| exit_name(*exit)).collect();
    object([
        ("run", json!(run.run)),
        ("complete", json!(run.complete)),
        ("exits", json!(exits)),
        ("values", Json::Object(values)),
    ])
}
