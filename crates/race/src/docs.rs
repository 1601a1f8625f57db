//! The reference page about the measures of a race, generated from their registry.

use flowstart_measure::measures::Measure;
use flowstart_scenario::GENERATED;
use flowstart_units::Bytes;

/// The page about the measures of a race, in Markdown.
#[must_use]
pub fn measures_page() -> String {
    let mut page = format!(
        "{GENERATED}\n# Measures of a race\n\nColumns of `summary.csv` and `runs.csv` and keys of `result.json` that `flowstart compare` writes. \
         t = 0 is when the first data bit of the (first) new flow reaches the bottleneck's queue; RTT0 is propagation both ways plus the \
         transmission of one packet; C_f is the flow's fair share of the capacity, B_f = C_f RTT0; the horizon is 40 RTT0 unless given. With several newcomers the \
         value is their mean; those that come later (`--phases`) have the time of their exit from their own first bit on, and everything \
         else from t = 0.\n\n\
         C_f is a share of what a policer lets through in the long run, if there is one, and not more than a sender's own link (`access`) \
         carries. Over ways in parallel the first newcomer takes the first way, and the others are spread as all connections are: C_f is then that of \
         each newcomer on its way with those who take it in the same run, and the queue, M9 and Jain's index are those of the first way \
         (of what is left to them in M9, arrivals are not taken off there).\n\n\
         Of a newcomer whose data do not reach the queue in the time in which it is watched, since its handshake is lost, M2 is the horizon, M3 all of \
         its share, and what it delivered nothing; its exit, queue and losses are missing, and what it did to others.\n\n\
         Of a capacity that changes C_f is the share of each moment: what left is set against what the share could have carried in the same time \
         (M2, M3, M10 and U min; where nothing could pass U is 1), E and window / BDP take B_f from the RTT0 before the exit (a packet at least), \
         M9 the capacity of the horizon, M7 that from the first data on. RTT0, and BDP as a unit, are of the mean.\n\n\
         Over recorded links (traces) a part of the deficit M3 comes from counting single packets in bins of a quarter of RTT0: over a trace of \
         2.88 Mbit/s that it uses fully the oracle has 5.5 BDP, over recorded LTE links 2.2 to 3.2. Nor is the oracle a strict bound there: over \
         `ATT-LTE-driving-2016.up` it takes a silence for a loss (1 MB in 1879 ms, with HyStart 1826). Nor is any ideal exact to the \
         packet: RTT0/2 has half a packet's transmission that no transfer needs, and slowdowns of 0.97 to 0.99 occur. Where that is more than a \
         fortieth of the ideal (short transfers over slow links) it is left out.\n\n| name | heading | unit | meaning |\n|---|---|---|---|\n"
    );
    let sizes = [Bytes::new(100_000)];
    for measure in Measure::all(&sizes, true) {
        page.push_str(&format!(
            "| `{}` | {} | {} | {} |\n",
            measure.name(),
            measure.heading(),
            measure.unit(),
            measure.help().replace('|', "\\|")
        ));
    }
    page.push_str("\n`completion_…` and `slowdown_…` exist for every size given.\n");
    page
}
