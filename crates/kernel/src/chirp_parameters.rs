//! Parameters of `fs_chirp`, in the order of `struct fs_parameters` (bpf/flow.h). Those of the
//! schedule are the ones of `AdaptiveChirpingConfig` in flowstart-congestion, where their sources
//! are.

use crate::parameters::{Kind, Parameter};

const RATIO_ONE: u32 = 1024;
const MICRO: u32 = 1000;
const MILLI: u32 = 1_000_000;
const SECOND: u32 = 1_000_000_000;

const fn count(name: &'static str, default: u32, least: u32, most: u32, help: &'static str) -> Parameter {
    Parameter { name, kind: Kind::Count, default, least, most, help }
}

/// In units of 1/1024.
const fn ratio(name: &'static str, default: u32, least: u32, most: u32, help: &'static str) -> Parameter {
    Parameter { name, kind: Kind::Ratio, default, least, most, help }
}

const fn time(name: &'static str, default: u32, help: &'static str) -> Parameter {
    Parameter { name, kind: Kind::Time, default, least: MICRO, most: SECOND, help }
}

const fn switch(name: &'static str, default: bool, help: &'static str) -> Parameter {
    Parameter { name, kind: Kind::Switch, default: default as u32, least: 0, most: 1, help }
}

/// All of them.
pub(crate) const CHIRP: &[Parameter] = &[
    switch("ecn", true, "ask for ECN; from the first mark on it goes on as DCTCP"),
    Parameter {
        name: "avoidance",
        kind: Kind::Choice(&["cubic", "reno"]),
        default: 0,
        least: 0,
        most: 1,
        help: "how it goes on without ECN; reno also if the kernel was built without CUBIC",
    },
    count("packets", 16, 5, 64, "packets of every chirp but the first, which is the initial window"),
    count(
        "probe_divisor",
        64,
        1,
        10_000,
        "after an unclear first chirp the next is centred on the RTT divided by this",
    ),
    time("min_first_gap", 200 * MICRO, "shortest such gap"),
    time("max_first_gap", MILLI, "longest such gap"),
    ratio("geometry", 2 * RATIO_ONE, RATIO_ONE, 3 * RATIO_ONE, "first gap of a chirp divided by its average gap"),
    ratio("centre", 1280, RATIO_ONE, 4 * RATIO_ONE, "chirps are centred on the gap read last times this"),
    ratio(
        "growth",
        8 * RATIO_ONE,
        RATIO_ONE,
        16 * RATIO_ONE,
        "the load may grow by this per round trip if chirps show room",
    ),
    ratio("blind_growth", 1536, RATIO_ONE, 4 * RATIO_ONE, "the same while chirps are unclear"),
    count(
        "doubling_packets",
        48,
        0,
        10_000,
        "packets per round trip up to which the load doubles while chirps are unclear",
    ),
    count("min_points", 4, 2, 64, "fewest ACKs a chirp must have brought to be read"),
    count("contrast", 1, 0, 100, "delays must rise by this many times the noise"),
    Parameter {
        name: "jitter",
        kind: Kind::Time,
        default: 10 * MICRO,
        least: 0,
        most: SECOND,
        help: "delays this much above the smallest are no queue: what this host's own timing adds",
    },
    ratio("crowded", 614, 0, RATIO_ONE, "share of a change of the gaps at the receiver above which a path is crowded"),
    count("agreeing", 2, 1, 100, "chirps in a row that must agree on the capacity"),
    ratio("tolerance", 256, 0, RATIO_ONE, "they agree if they differ by at most this share"),
    count("delay_samples", 8, 1, 1000, "RTTs whose smallest is compared while chirps are unclear"),
    ratio("delay_share", 128, 0, RATIO_ONE, "rise of that RTT that ends the start, as a share of the smallest RTT"),
    time("min_delay", 2 * MILLI, "the least such rise"),
    time("max_delay", 16 * MILLI, "the largest such rise"),
    count("pardoned_losses", 3, 0, 1000, "losses that are not taken for congestion far below the capacity shown"),
    ratio("loss_factor", 717, 0, RATIO_ONE, "factor of the window after a loss during the start"),
    count("max_rounds", 40, 1, 10_000, "round trips after which the start ends in any case"),
    ratio(
        "stall",
        2 * RATIO_ONE,
        RATIO_ONE,
        100 * RATIO_ONE,
        "a chirp whose packets left this much further apart is unclear",
    ),
    ratio("mark_share", 512, 0, RATIO_ONE, "share of a round's packets that must be marked to end the start"),
    switch("again", true, "chirp again after idle times, timeouts, and when marks stay away"),
    count("min_quiet_rounds", 4, 1, 10_000, "fewest round trips without a mark that count as silence"),
    count("min_silences", 8, 0, 10_000, "silences that must be measured before they alone decide"),
    ratio(
        "quiet_periods",
        2 * RATIO_ONE,
        RATIO_ONE,
        100 * RATIO_ONE,
        "until then: saw-tooth periods that count as silence",
    ),
    ratio(
        "quiet_deviations",
        4 * RATIO_ONE,
        0,
        100 * RATIO_ONE,
        "silence is longer than the mean by this many deviations",
    ),
    count("max_backoff", 6, 0, 15, "vain attempts double the silence for the next, at most so often"),
    ratio(
        "gain",
        1126,
        RATIO_ONE,
        16 * RATIO_ONE,
        "the capacity found counts as more if the window grows by this factor",
    ),
    ratio(
        "restart_gap",
        2 * RATIO_ONE,
        RATIO_ONE,
        16 * RATIO_ONE,
        "after idle times chirps begin at the known gap times this",
    ),
    count("gain_shift", 4, 1, 10, "DCTCP: the weight of a window in alpha is 1/2^n"),
    ratio(
        "initial_alpha",
        0,
        0,
        RATIO_ONE,
        "DCTCP: share of marked packets that is assumed at the beginning (the authors' module: 0)",
    ),
    ratio(
        "stale_rtt",
        2 * RATIO_ONE,
        RATIO_ONE,
        100 * RATIO_ONE,
        "a smoothed RTT of more than this many times an ACK's tells of a silence before",
    ),
    ratio("drowned", 20, 0, RATIO_ONE, "a chirp with more noise than this share of the smallest RTT says nothing"),
    ratio("clear", 128, 0, RATIO_ONE, "unless the noise is at most this share of the gap that it shows"),
    count("standing_out", 4, 0, 100, "a queue that ends the start is this many times the noise"),
    ratio(
        "patience",
        1536,
        0,
        16 * RATIO_ONE,
        "round trips without a chirp that can be read after which slow start goes on instead",
    ),
    ratio(
        "refuted",
        1280,
        RATIO_ONE,
        16 * RATIO_ONE,
        "so does it if a round trip delivers this many times what chirps show",
    ),
    ratio(
        "again_growth",
        8 * RATIO_ONE,
        RATIO_ONE,
        1000 * RATIO_ONE,
        "chirp again if the window known before is at least this many times the one of now",
    ),
    count(
        "late_divisor",
        4,
        1,
        1000,
        "slow start that goes on grows by a packet per so many once it fills what chirps showed",
    ),
    count("unread", 2, 1, 100, "and so many chirps in a row that cannot be read"),
];
