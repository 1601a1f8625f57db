mod reading;
mod records;
mod runs;
mod verdicts;

use super::*;
use flowstart_parallel::Cancel;
use flowstart_units::Span;

const GOOD: &str = r#"
title = "A small figure"
shows = "Something."

[scenario]
duration = "1 s"

[scenario.path]
capacity = "20 Mbit/s"
rtt = "10 ms"

[[scenario.flow]]
name = "bulk"

[[scenario.arrivals]]
load = "20 %"
sizes = { kind = "fixed", size = "20 kB" }
flow = { name = "web", algorithm = "cubic" }

[vary.control.hystart]
title = "with HyStart"
flow.algorithm = "hystart+cubic"

[vary.control.plain]
title = "without"
flow.algorithm = "slow_start+cubic"

[vary.rtt.near]
path.rtt = "10 ms"

[vary.rtt.far]
path.rtt = "40 ms"

[[claim]]
id = "queue"
origin = "paper"
source = "Fig. 1"
says = "HyStart keeps the queue shorter."
measure = { kind = "queue_delay", until = "500 ms", statistic = "max" }
of = "hystart"
ratio_to = "plain"
expect = "< 1"

[[claim]]
id = "transfers"
origin = "paper"
source = "Fig. 2"
says = "Transfers take a while."
measure = { kind = "completion_time", flow = "web", statistic = "median" }
of = ["plain", "near"]
expect = ">= 10 ms"
assumed = "Which transfers."

[[claim]]
id = "never"
origin = "paper"
source = "Fig. 3"
says = "It is faster than the link."
measure = { kind = "time_to_rate", rate = "30 Mbit/s" }
of = ["plain", "near"]
expect = "<= 500 ms"
why = "It cannot be."

[[picture]]
kind = "throughput"
title = "Throughput"
apart = ["rtt"]
"#;

fn figure(text: &str) -> Figure {
    Figure::parse("small", text, None).unwrap_or_else(|error| panic!("{error}\n{}", error.snippet()))
}

/// GOOD with one piece of text replaced: the error's line, message and snippet.
fn error(from: &str, to: &str) -> (usize, String) {
    assert!(GOOD.contains(from), "{from}");
    let error = Figure::parse("small.toml", &GOOD.replacen(from, to, 1), None).unwrap_err();
    (error.line().unwrap_or(0), error.to_string())
}

fn run(figure: &Figure, threads: usize) -> FigureResult {
    let options = ReproduceOptions { threads: Some(threads), pictures: true, ..ReproduceOptions::default() };
    reproduce(std::slice::from_ref(figure), &options).unwrap().unwrap().remove(0)
}

/// A grid of a few capacities over which a claim and a picture are taken together.
const GRID: &str = r#"
title = "A grid"
shows = "Something."

[scenario]
duration = "1 s"

[scenario.path]
rtt = "10 ms"

[[scenario.flow]]
name = "bulk"
algorithm = "cubic"

[vary.capacity.slow]
title = "10 Mbit/s"
path.capacity = "10 Mbit/s"

[vary.capacity.fast]
title = "30 Mbit/s"
path.capacity = "30 Mbit/s"

[vary.start.plain]
flow.flow_start = "slow_start"

[vary.start.hystart]
flow.flow_start = "hystart"

[[claim]]
id = "mean"
origin = "paper"
source = "Fig. 1"
says = "The links are used."
measure = { kind = "throughput", flow = "bulk", from = "500 ms" }
over_variants = "mean"
expect = "18 Mbit/s .. 20.1 Mbit/s"

[[claim]]
id = "largest"
origin = "paper"
source = "Fig. 1"
says = "Both starts end up alike."
measure = { kind = "throughput", flow = "bulk", from = "500 ms" }
of = "hystart"
ratio_to = "plain"
over_variants = "max"
expect = "0.9 .. 1.1"

[[picture]]
kind = "by_level"
title = "Throughput"
measure = { kind = "throughput", flow = "bulk", from = "500 ms" }
by = "capacity"
"#;

/// Two flows that share a queue: nothing is random, and what comes out depends on their phases.
const PHASES: &str = r#"
title = "Phases"
shows = "Something."

[replications]
by = "starts"
spread = "20 ms"
least = 4
most = 8
full = 8

[scenario]
duration = "3 s"
path = { capacity = "20 Mbit/s", rtt = "20 ms", buffer = "20 packets" }

[[scenario.flow]]
name = "first"
algorithm = "reno"

[[scenario.flow]]
name = "second"
algorithm = "reno"
start = "500 ms"

[[claim]]
id = "some"
origin = "paper"
source = "Fig. 1"
says = "The second gets something."
measure = { kind = "throughput", flow = "second", from = "1 s" }
expect = "> 10 kbit/s"

[[claim]]
id = "so-much"
origin = "ours"
source = "Fig. 1"
says = "It gets so much."
measure = { kind = "throughput", flow = "second", from = "1 s" }
expect = "< 10 Mbit/s"
"#;

/// The second flow's throughput over the runs of PHASES, and the result.
fn phases(by: &str) -> FigureResult {
    let text = PHASES.replace("by = \"starts\"\nspread = \"20 ms\"", by);
    run(&figure(&text), 1)
}
