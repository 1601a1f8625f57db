//! A benchmark and its result as JSON documents.

use serde_json::{Value as Json, json};

use flowstart_service_curve::stats::{Level, Sides};
use flowstart_service_curve::{Accepted, End, GiveUp, ProbeConfig, ProbeVerdict, RateProbe, Undecided};
use flowstart_units::Span;

use flowstart_probing::Part;

use super::{Attained, Benchmark, BenchmarkResult};

/// Version of the documents; it changes when a name or a meaning does.
pub const BENCHMARK_SCHEMA_VERSION: u32 = 2;

impl Benchmark {
    /// Every parameter, defaults filled in.
    #[must_use]
    pub fn parameters(&self) -> Json {
        let race = self.race.parameters();
        let ProbeConfig { samples, epsilon, packet, warm_up, sampling_gap, growth, max_thinning, .. } = self.probe;
        let mut all = json!({
            "schema_version": BENCHMARK_SCHEMA_VERSION,
            "path": race["path"],
            "mark": race["mark"],
            "others": race["others"],
            "contestants": race["contestants"],
            "seed": self.race.seed,
            "peers": self.peers,
            "fair_share": self.fair_share(),
            "rates": self.rates(),
            "samples": samples,
            "epsilon_per_rate": epsilon.get(),
            "message": packet,
            "warm_up": warm_up,
            "sampling_gap": sampling_gap,
            "thinning_growth": growth,
            "thinning_at_most": max_thinning,
            "stationarity": format!("DF-GLS with a constant, {} %", self.stationarity_percent()),
            "independence": self.independence(),
            "least_time": self.probe.least_time,
            "sampling_packets_at_least": self.probe.sampling_packets,
            "random_phase": self.probe.random_phase,
            "dependent": self.probe.dependent,
            "first_ends": self.probe.first_ends,
            "overload_blocks": self.probe.overload_blocks,
            "overload_after": self.probe.overload_after,
            "growth_level": self.probe.growth_level.get(),
            "lasting": self.lasting,
            "video_rate": self.video_rate(),
            "connections": self.effective_connections(),
            "startup": self.startup,
            "startup_epsilon": self.startup_epsilon.get(),
            "band_replicates": self.band.replicates,
            "band_leaves_out": self.band.miss.get(),
        });
        // Only if there are any: the hash of a benchmark without them is older than they are.
        if self.bursts > 0 {
            all["bursts"] = json!({ "count": self.bursts, "packets": self.burst_packets, "gap": self.burst_gap });
        }
        // Only where any can be: the hash of a benchmark without them is older than they are.
        let simulated = self.to.is_none() && !self.race.contestants.is_empty();
        let can_be = |give_up: &GiveUp| simulated && give_up.can_be(self.probe.overload_after);
        if let Some(give_up) = self.simulated_procedure().give_up.filter(can_be) {
            let GiveUp { budget: _, dependence, worth, growth, left, unsure } = give_up;
            let growth = growth.get();
            all["gives_up"] = json!({
                "dependence": dependence, "worth": worth, "growth": growth, "left": left, "unsure": unsure
            });
        }
        if !self.real.is_empty() {
            all["real"] = json!(self.real);
        }
        if let (Some(to), Some(all)) = (&self.to, all.as_object_mut()) {
            // Nothing else of a path, and of who is there, was described.
            all.insert("path".to_owned(), json!({ "to": to, "capacity": self.capacity() }));
            for simulated in ["mark", "others", "peers"] {
                all.remove(simulated);
            }
        }
        if let Some(burst) = self.burst {
            all["burst"] = json!(burst);
        }
        if let Some(film) = &self.film {
            let sizes: Vec<u8> = film.frames().iter().flat_map(|size| size.get().to_le_bytes()).collect();
            let hash = blake3::hash(&sizes).to_hex()[..16].to_owned();
            all["film"] =
                json!({ "frames": film.frames().len(), "frames_per_second": film.frames_per_second(), "blake3": hash });
        }
        if self.replicas > 0 {
            all["joint_replicas"] = self.replicas.into();
        }
        all
    }

    fn stationarity_percent(&self) -> u8 {
        match self.probe.stationarity_level {
            Level::One => 1,
            Level::Five => 5,
            Level::Ten => 10,
        }
    }

    fn independence(&self) -> String {
        let sides = match self.probe.sides {
            Sides::Two => "two-sided",
            Sides::TooFew => "too few",
        };
        // 100 times 0.07 is off by roundings that nobody wants to read.
        let percent = libm::round(self.probe.independence_level.get() * 1e8) / 1e6;
        format!("runs about the median, {sides}, {percent} %")
    }

    /// Hash of [`parameters`](Self::parameters): the first 16 hexadecimal digits of BLAKE3.
    #[must_use]
    pub fn hash(&self) -> String {
        blake3::hash(self.parameters().to_string().as_bytes()).to_hex()[..16].to_owned()
    }
}

impl BenchmarkResult {
    /// The whole result with its provenance; bit/s and seconds.
    #[must_use]
    pub fn to_json(&self) -> Json {
        json!({
            "flowstart_version": env!("CARGO_PKG_VERSION"),
            "schema_version": BENCHMARK_SCHEMA_VERSION,
            "benchmark_hash": self.benchmark.hash(),
            "parameters": self.benchmark.parameters(),
            "complete": self.complete,
            "simulated_seconds": self.simulated_seconds,
            "results": self.attained.iter().map(one).collect::<Vec<_>>(),
        })
    }
}

fn one(attained: &Attained) -> Json {
    let curve = &attained.estimate.curve;
    let rates: Vec<Json> = attained
        .band
        .iter()
        .map(|point| json!({ "t_s": secs(point.t), "low_bps": point.low, "bps": point.rate, "high_bps": point.high }))
        .collect();
    let startup = attained.startup.as_ref().map(|startup| {
        let points: Vec<Json> = startup
            .points()
            .zip(startup.median_points())
            .map(|((t, bits), (_, median))| json!({ "t_s": secs(t), "bits": bits, "median_bits": median }))
            .collect();
        json!({ "connections": startup.connections(), "points": points })
    });
    let (end, end_rate) = match attained.estimate.end {
        End::AllAccepted => ("all rates accepted", None),
        End::NonStationary(rate) => ("too high", Some(rate)),
        End::Undecided(rate) => ("undecided", Some(rate)),
    };
    let long_run = attained.estimate.long_run(flowstart_service_curve::Probability::FIVE_PERCENT);
    json!({
        "label": attained.label,
        "conditions": attained.conditions,
        "epsilon": curve.epsilon().get(),
        "long_term_rate_bps": curve.long_term_rate().as_bps(),
        "long_run": {
            "low_bps": long_run.low.as_bps(),
            "high_bps": long_run.high.map(|rate| rate.as_bps()),
            "served_bps": long_run.served.map(|rate| rate.as_bps()),
            "disagrees": long_run.disagrees,
        },
        "decided": attained.estimate.is_decided(),
        "origin_s": curve.origin().map(secs),
        "end": { "reason": end, "rate_bps": end_rate.map(|rate| rate.as_bps()) },
        "too_high_bps": attained.estimate.too_high().map(|rate| rate.as_bps()),
        "probes": attained.estimate.probes.iter().map(|p| probe(p, attained)).collect::<Vec<_>>(),
        "attainable_rate": rates,
        "video": { "largest_bound_s": attained.video.largest().map(secs), "mean_bound_s": attained.video.mean(),
                   "largest_backlog_bits": attained.video.backlog() },
        "burst_bound_s": attained.burst_bound.map(secs),
        "startup": startup,
        "bursts": attained.bursts.as_ref().map(|bursts| json!({
            "count": bursts.bursts(),
            "served_s": bursts.steps().iter().copied().map(secs).collect::<Vec<_>>(),
        })),
        "joint": attained.joint.as_ref().map(|joint| json!({
            "epsilon": joint.curve.epsilon().get(),
            "per_rate": joint.per_rate.get(),
            "tightness": joint.tightness,
        })),
    })
}

fn probe(probe: &RateProbe, attained: &Attained) -> Json {
    let epsilon = attained.estimate.epsilon;
    let (low, high) = probe.quantile_interval(epsilon, flowstart_service_curve::Probability::FIVE_PERCENT);
    let parts = attained.parts.iter().find(|parts| parts.rate == probe.rate).map(|parts| {
        let of = |part: Part| {
            let quantile = parts.quantile(part, epsilon).map(secs);
            json!({ "mean_s": parts.mean(part), "quantile_s": quantile })
        };
        json!({ "sender": of(Part::Sender), "network": of(Part::Network), "receiver": of(Part::Receiver) })
    });
    json!({
        "rate_bps": probe.rate.as_bps(),
        "verdict": verdict_name(probe.verdict),
        "thinning": probe.thinning,
        "samples": probe.samples.len(),
        "packets": probe.packets,
        "measured_s": secs(probe.measured),
        "worth_samples": probe.tells_a_quantile().then_some(probe.effective),
        "grown_s": probe.growth.map(|growth| growth.seconds),
        "growth_p": probe.growth.map(|growth| growth.p_value),
        "arrived": probe.arrived(),
        "quantile_s": probe.line(epsilon).map(|line| secs(line.delay)),
        "quantile_low_s": low.map(secs),
        "quantile_high_s": high.map(secs),
        "parts": parts,
        "dfgls": probe.stationarity.map(|test| test.statistic).filter(|x| x.is_finite()),
        "runs_z": probe.independence.map(|test| test.z),
    })
}

/// A verdict in words.
#[must_use]
pub fn verdict_name(verdict: ProbeVerdict) -> &'static str {
    match verdict {
        ProbeVerdict::Accepted(Accepted::Tested) => "accepted",
        ProbeVerdict::Accepted(Accepted::Constant) => "accepted: constant delays",
        ProbeVerdict::Accepted(Accepted::Dependent) => "accepted: dependent samples",
        ProbeVerdict::NonStationary => "too high",
        ProbeVerdict::Undecided(Undecided::UnitRoot) => "undecided: like a random walk",
        ProbeVerdict::Undecided(Undecided::Contradicted) => "undecided: refused below an accepted rate",
        ProbeVerdict::Undecided(Undecided::Dependent) => "undecided: still dependent",
        ProbeVerdict::Undecided(Undecided::TooFew { .. }) => "undecided: too few samples",
        ProbeVerdict::Undecided(Undecided::Missing { .. }) => "undecided: messages are missing",
    }
}

fn secs(span: Span) -> f64 {
    span.as_secs_f64()
}
