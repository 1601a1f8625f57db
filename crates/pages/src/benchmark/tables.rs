//! The tables of a benchmark.

use flowstart_benchmark::{Attained, BenchmarkResult, Part, verdict_name};
use flowstart_report::{Best, Cell, Color, Column, Table};
use flowstart_service_curve::{End, LongRun, Probability};
use flowstart_units::{Bytes, Rate, Span};

/// Lengths of intervals whose attainable rate stands in the table.
const LENGTHS_MS: [u64; 4] = [10, 100, 1_000, 10_000];
/// Times after the start of a new connection.
pub(super) const STARTUP_MS: [u64; 3] = [100, 300, 1_000];
/// Time after a burst was handed over.
const BURST_MS: u64 = 100;
/// A share of the long-term rate; when it is attained says how fast a flow control converges.
const FRACTION: f64 = 0.9;

/// The column of the rate after the highest that is sustained.
pub(super) const NEXT: &str = "next";

/// One row per contestant.
pub(super) fn summary(result: &BenchmarkResult, colors: &[Color]) -> Table {
    let joint = result.attained.iter().any(|one| one.joint.is_some());
    let startup = result.attained.iter().any(|one| one.startup.is_some());
    let bursts = result.attained.iter().any(|one| one.bursts.is_some());
    let mut columns = usual_columns();
    columns.extend(further_columns(result.benchmark.burst, joint, startup, bursts));
    let mut table = Table::new("Attainable rates", columns);
    for (one, color) in result.attained.iter().zip(colors) {
        table.push_colored(*color, row(one, result.benchmark.burst.is_some(), joint, startup, bursts));
    }
    table
}

/// Columns that every benchmark has.
fn usual_columns() -> Vec<Column> {
    let mut columns = vec![
        Column::key("contestant").help("Flow start and congestion avoidance, or the file of a measurement."),
        Column::number("long-term rate", "Mbit/s")
            .named("long_term_rate")
            .help("Largest payload rate that is sustained with a known quantile of its delays: the curve's rate for long intervals.")
            .best(Best::Highest)
            .apart(),
        Column::number("long run", "Mbit/s")
            .named("long_run")
            .help(
                "What is attained in the long run: where rates are too high, what those probes were served, and between which rates it lies, 95 %; \
                 otherwise between the highest that is sustained and the lowest that is too high, if there is one. A dash: what they were served disagrees with the verdicts.",
            )
            .best(Best::Highest)
            .apart(),
        Column::text("next").named(NEXT).help(
            "The next rate: too high, its delays grow; or undecided, a longer measurement may tell, and then the lowest that is too high. None if all \
             were accepted.",
        ),
    ];
    for ms in LENGTHS_MS {
        let length = Span::from_millis(ms);
        columns.push(
            Column::number(format!("a({length})"), "Mbit/s")
                .named(format!("attainable_rate_{ms}ms"))
                .help("Payload rate that an interval of this length has at least; 95 % bootstrap interval.")
                .best(Best::Highest)
                .apart(),
        );
    }
    columns.extend([
        Column::number("t0", "ms")
            .named("origin")
            .help("Up to this length nothing is guaranteed.")
            .best(Best::Lowest)
            .apart(),
        Column::number("90 % after", "s")
            .named("time_to_90")
            .help("Length of interval from which on 90 % of the long-term rate are attained.")
            .best(Best::Lowest)
            .apart(),
        Column::number("epsilon", "").help("Probability that the curve is violated, at most (union bound)."),
        Column::number("video", "ms")
            .named("video_bound")
            .help("Delay bound of a video's worst frame; missing where its rate is not attained.")
            .best(Best::Lowest)
            .apart(),
        Column::number("backlog", "kB")
            .named("video_backlog")
            .help("Bound of what the video leaves waiting at the sender and on the way.")
            .best(Best::Lowest)
            .apart(),
    ]);
    columns
}

/// Columns of what is there only if it was asked for: a bound of a burst, joint calibration, new
/// connections and bursts into idle ones.
fn further_columns(burst: Option<Bytes>, joint: bool, startup: bool, bursts: bool) -> Vec<Column> {
    let mut columns = Vec::new();
    if let Some(burst) = burst {
        columns.push(
            Column::number("burst", "ms")
                .named("burst_bound")
                .help(format!("Delay bound of a burst of {burst} into the steady state."))
                .best(Best::Lowest)
                .apart(),
        );
    }
    if joint {
        columns.extend([
            Column::number("joint epsilon'", "%")
                .named("joint_epsilon_per_rate")
                .help("Probability that each rate may use if all rates together may use epsilon, in replicas with the same random numbers."),
            Column::number("tightness", "")
                .named("tightness")
                .help("How many times the union bound's share of each rate that is; 1 if nothing is gained."),
        ]);
    }
    if startup {
        columns.extend(STARTUP_MS.map(|ms| {
            Column::number(format!("S0({})", Span::from_millis(ms)), "kB")
                .named(format!("startup_{ms}ms"))
                .help("What all but 5 % of new greedy connections have delivered so long after they were opened.")
                .best(Best::Highest)
                .apart()
        }));
    }
    if bursts {
        let length = Span::from_millis(BURST_MS);
        columns.push(
            Column::number(format!("burst({length})"), "kB")
                .named(format!("burst_{BURST_MS}ms"))
                .help("What all but 5 % of bursts into an idle connection are served so long after they were handed over.")
                .best(Best::Highest)
                .apart(),
        );
    }
    columns
}

fn row(one: &Attained, burst: bool, joint: bool, startup: bool, bursts: bool) -> Vec<Cell> {
    let curve = &one.estimate.curve;
    let next = match one.estimate.end {
        End::AllAccepted => Cell::Missing,
        End::NonStationary(rate) => Cell::text(format!("{rate} too high")),
        End::Undecided(rate) => Cell::text(match one.estimate.too_high() {
            Some(above) => format!("{rate} undecided, {above} too high"),
            None => format!("{rate} undecided"),
        }),
    };
    let mut cells =
        vec![Cell::text(&one.label), Cell::number(curve.long_term_rate().as_mbps_f64(), 2), long_run(one), next];
    for ms in LENGTHS_MS {
        let point = one.band.iter().min_by_key(|point| point.t.as_nanos().abs_diff(Span::from_millis(ms).as_nanos()));
        cells.push(
            point.map_or(Cell::Missing, |point| Cell::quantity(point.rate / 1e6, point.low / 1e6, point.high / 1e6, 2)),
        );
    }
    let ms = |span: Option<Span>| Cell::number_or_missing(span.map(Span::as_millis_f64), 1);
    cells.push(ms(curve.origin()));
    cells.push(Cell::number_or_missing(curve.time_to_fraction(FRACTION).map(Span::as_secs_f64), 2));
    cells.push(Cell::number(curve.epsilon().get(), 2));
    cells.push(ms(one.video.largest()));
    cells.push(Cell::number_or_missing(one.video.backlog().map(|bits| kilobytes(bits as u64)), 0));
    if burst {
        cells.push(ms(one.burst_bound));
    }
    if joint {
        cells.push(Cell::number_or_missing(one.joint.as_ref().map(|joint| joint.per_rate.get() * 100.0), 2));
        cells.push(Cell::number_or_missing(one.joint.as_ref().map(|joint| joint.tightness), 2));
    }
    if startup {
        cells.extend(STARTUP_MS.map(|ms| {
            let bits = one.startup.as_ref().map(|startup| startup.service(Span::from_millis(ms)));
            Cell::number_or_missing(bits.map(kilobytes), 0)
        }));
    }
    if bursts {
        let bits = one.bursts.as_ref().map(|bursts| bursts.service(Span::from_millis(BURST_MS)));
        cells.push(Cell::number_or_missing(bits.map(kilobytes), 0));
    }
    cells
}

/// Where the long-term rate lies.
pub(super) fn long_run(one: &Attained) -> Cell {
    let LongRun { low, high, served, disagrees } = one.estimate.long_run(Probability::FIVE_PERCENT);
    let mbps = |rate: Rate| rate.as_mbps_f64();
    match (served, high) {
        _ if disagrees => Cell::Missing,
        (Some(served), Some(high)) => Cell::quantity(mbps(served.clamp(low, high)), mbps(low), mbps(high), 2),
        _ => Cell::between(mbps(low), high.map(mbps), 2),
    }
}

/// A number of bits in units of 1000 bytes.
pub(super) fn kilobytes(bits: u64) -> f64 {
    bits as f64 / Bytes::new(1_000).bits() as f64
}

/// One row per rate.
pub(super) fn probes(result: &BenchmarkResult, colors: &[Color]) -> Table {
    let columns = vec![
        Column::key("contestant"),
        Column::number("rate", "Mbit/s").help("Payload rate of the probe."),
        Column::text("verdict").help("What the tests say."),
        Column::number("thinning", "").help("Every so-many-th sample was kept."),
        Column::number("packets", "").help("Packets of the probe that were watched."),
        Column::number("watched", "s").help("For how long, without the warm-up."),
        Column::number("worth", "")
            .help("How many independent samples the quantile is worth; of rates that are too high there is none."),
        Column::number("arrived", "%").help("Of what was offered, as far as delays that grow say."),
        Column::number("quantile", "ms").help("Delay quantile; 95 % interval from order statistics."),
        Column::number("mean", "ms").help("Mean delay of all packets after the warm-up."),
        Column::number("DF-GLS", "").named("dfgls").help("Statistic of the stationarity test; stationary below -1.97."),
        Column::number("runs z", "")
            .named("runs_z")
            .help("Statistic of the runs test; independent between -1.96 and 1.96."),
    ];
    let mut table = Table::new("Probes", columns);
    for (one, color) in result.attained.iter().zip(colors) {
        let epsilon = one.estimate.epsilon;
        for probe in &one.estimate.probes {
            let (low, high) = probe.quantile_interval(epsilon, Probability::FIVE_PERCENT);
            let quantile = match (probe.line(epsilon), low, high) {
                (Some(line), Some(low), Some(high)) => {
                    let ms = [line.delay, low, high].map(Span::as_millis_f64);
                    Cell::quantity(ms[0], ms[1], ms[2], 1)
                }
                (Some(line), ..) => Cell::number(line.delay.as_millis_f64(), 1),
                (None, ..) => Cell::Missing,
            };
            let statistic = probe.stationarity.map(|test| test.statistic).filter(|x| x.is_finite());
            table.push_colored(
                *color,
                vec![
                    Cell::text(&one.label),
                    Cell::number(probe.rate.as_mbps_f64(), 2),
                    Cell::text(verdict_name(probe.verdict)),
                    Cell::count(probe.thinning),
                    Cell::count(probe.packets),
                    Cell::number(probe.measured.as_secs_f64(), 0),
                    Cell::number_or_missing(probe.tells_a_quantile().then_some(probe.effective), 0),
                    Cell::number(probe.arrived() * 100.0, 1),
                    quantile,
                    Cell::number_or_missing(probe.delays.mean().map(|mean| mean * 1e3), 1),
                    Cell::number_or_missing(statistic, 1),
                    Cell::number_or_missing(probe.independence.map(|test| test.z), 1),
                ],
            );
        }
    }
    table
}

/// One row per rate whose messages tell where their delays arise; `None` if none does.
pub(super) fn parts(result: &BenchmarkResult, colors: &[Color]) -> Option<Table> {
    let mut columns =
        vec![Column::key("contestant"), Column::number("rate", "Mbit/s").help("Payload rate of the probe.")];
    let of = [
        (
            Part::Sender,
            "sender",
            "From the application's write until the sender's stack first sends the message's end.",
        ),
        (
            Part::Network,
            "network",
            "From then until it first reaches the receiver's stack, by retransmission if need be.",
        ),
        (
            Part::Receiver,
            "receiver",
            "From then until the other application reads it: the wait for what was lost before it.",
        ),
    ];
    for (_, name, help) in of {
        columns.push(Column::number(format!("{name}, mean"), "ms").named(format!("{name}_mean")).help(help));
        columns.push(
            Column::number(format!("{name}, quantile"), "ms")
                .named(format!("{name}_quantile"))
                .help("What a fraction epsilon of all messages after the warm-up exceeds."),
        );
    }
    columns.push(Column::number("messages", "").help("Messages that were seen at all four places after the warm-up."));
    let mut table = Table::new("Where delays arise", columns);
    let rows = result
        .attained
        .iter()
        .zip(colors)
        .flat_map(|(one, color)| one.parts.iter().map(move |parts| (one, color, parts)));
    for (one, color, parts) in rows {
        let mut cells = vec![Cell::text(&one.label), Cell::number(parts.rate.as_mbps_f64(), 2)];
        for (part, ..) in of {
            cells.push(Cell::number_or_missing(parts.mean(part).map(|mean| mean * 1e3), 2));
            let quantile = parts.quantile(part, one.estimate.epsilon);
            cells.push(Cell::number_or_missing(quantile.map(Span::as_millis_f64), 2));
        }
        cells.push(Cell::count(parts.count()));
        table.push_colored(*color, cells);
    }
    result.attained.iter().any(|one| !one.parts.is_empty()).then_some(table)
}
