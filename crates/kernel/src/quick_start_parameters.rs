//! Parameters of Quick-Start, in the order of the program's table (bpf/asking.h).

use crate::parameters::{Kind, Parameter};

/// The rates that can be asked for (RFC 4782 section 3.1), in order of their codes.
const RATES: &[&str] = &[
    "none",
    "80kbit/s",
    "160kbit/s",
    "320kbit/s",
    "640kbit/s",
    "1.28Mbit/s",
    "2.56Mbit/s",
    "5.12Mbit/s",
    "10.24Mbit/s",
    "20.48Mbit/s",
    "40.96Mbit/s",
    "81.92Mbit/s",
    "163.84Mbit/s",
    "327.68Mbit/s",
    "655.36Mbit/s",
    "1310.72Mbit/s",
];

const fn rate(name: &'static str, help: &'static str) -> Parameter {
    Parameter { name, kind: Kind::Choice(RATES), default: 15, least: 0, most: 15, help }
}

const fn switch(name: &'static str, default: u32, help: &'static str) -> Parameter {
    Parameter { name, kind: Kind::Switch, default, least: 0, most: 1, help }
}

/// In the program's order.
pub(crate) const QUICK_START: &[Parameter] = &[
    rate("request", "rate asked for; SO_MAX_PACING_RATE of a socket lowers it"),
    rate("answer", "the largest rate that this host answers with; none: requests are not answered"),
    switch("on_syn", 1, "whether connections opened here ask, on their SYN"),
    switch("on_syn_ack", 0, "whether connections opened by others ask, on the SYN/ACK"),
    Parameter {
        name: "least_window_percent",
        kind: Kind::Count,
        default: 100,
        least: 100,
        most: 10_000,
        help: "a grant is used if its window is more than this of the present one (RFC 4782 section 4.4)",
    },
    Parameter {
        name: "max_ssthresh",
        kind: Kind::Count,
        default: 100,
        least: 0,
        most: 1_000_000,
        help: "packets above which slow start after a grant is limited (RFC 3742); 0 for never",
    },
    switch("hystart", 0, "whether CUBIC may end slow start by delays after a grant"),
    Parameter {
        name: "lifetime",
        kind: Kind::Time,
        default: 3_000_000_000,
        least: 1_000_000,
        most: 4_000_000_000,
        help: "a grant that no data follows is forgotten after the RTT, at the latest after this",
    },
    switch("after_idle", 1, "whether connections that send again after an idle time ask again, on the first data"),
    switch("in_middle", 0, "whether others ask when the application suddenly writes more than the window holds"),
];
