//! Refusing configurations that cannot be simulated, with the place and what would be right.

use flowstart_units::{Bytes, Rate, Span};

use crate::ways::{MOST_ROUTES, groups_of};
use crate::{
    ArrivalConfig, ConfigError, FlowConfig, LinkId, SessionConfig, SimulationConfig, Sizes, TcpConfig, Traffic,
    UdpConfig, Workload,
};

/// The smallest datagram: an IPv4 and a UDP header.
const SMALLEST_DATAGRAM: u16 = 28;

fn wrong<T>(place: impl Into<String>, message: impl Into<String>) -> Result<T, ConfigError> {
    Err(ConfigError { place: place.into(), message: message.into() })
}

impl SimulationConfig {
    /// Checks everything that can be checked before running.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn validate(&self) -> Result<(), ConfigError> {
        for (index, link) in self.links.iter().enumerate() {
            if let Err(error) = link.validate() {
                return wrong(format!("links[{index}]"), error.to_string());
            }
        }
        self.check_ways()?;
        for (index, flow) in self.flows.iter().enumerate() {
            self.check_flow(&format!("flows[{index}]"), flow)?;
        }
        for (index, arrivals) in self.arrivals.iter().enumerate() {
            let place = format!("arrivals[{index}]");
            self.check_flow(&format!("{place}.flow"), &arrivals.flow)?;
            check_arrivals(&place, arrivals)?;
        }
        for (index, session) in self.sessions.iter().enumerate() {
            let place = format!("sessions[{index}]");
            self.check_flow(&format!("{place}.flow"), &session.flow)?;
            check_session(&place, session)?;
        }
        Ok(())
    }

    fn check_ways(&self) -> Result<(), ConfigError> {
        let mut seen: Vec<LinkId> = Vec::new();
        for (group, links) in self.ways.iter().enumerate() {
            let place = |way: usize| format!("ways[{group}][{way}]");
            if links.is_empty() {
                return wrong(format!("ways[{group}]"), "a group of links in parallel has at least one link");
            }
            for (way, link) in links.iter().enumerate() {
                if *link >= self.links.len() {
                    return wrong(place(way), format!("there is no link {link}; there are {}", self.links.len()));
                }
                if seen.contains(link) {
                    return wrong(place(way), format!("link {link} is in parallel twice; a link is one of one group"));
                }
                seen.push(*link);
            }
        }
        Ok(())
    }

    /// Refuses ways that a flow cannot take.
    fn check_place(&self, place: &str, flow: &FlowConfig) -> Result<(), ConfigError> {
        let groups = || groups_of(&self.ways, flow).map(|group| &self.ways[group]);
        for links in groups() {
            let path = || flow.forward.iter().chain(&flow.reverse).filter(|link| links.contains(*link));
            if path().count() > 1 {
                return wrong(
                    place,
                    "two links of the path are in parallel to each other; a packet crosses one of them",
                );
            }
            for (connection, way) in flow.place.ways.iter().enumerate() {
                if *way as usize >= links.len() {
                    return wrong(
                        format!("{place}.place.ways[{connection}]"),
                        format!("there is no way {way}; they are 0 to {}", links.len() - 1),
                    );
                }
            }
        }
        let routes = groups().fold(1_usize, |routes, links| routes.saturating_mul(links.len()));
        if routes > MOST_ROUTES {
            return wrong(
                place,
                format!("there are {routes} ways through these links; at most {MOST_ROUTES} are known"),
            );
        }
        if !flow.place.ways.is_empty() && groups().next().is_none() {
            return wrong(format!("{place}.place.ways"), "there are no links in parallel on its path");
        }
        Ok(())
    }

    fn check_flow(&self, place: &str, flow: &FlowConfig) -> Result<(), ConfigError> {
        for (name, path) in [("forward", &flow.forward), ("reverse", &flow.reverse)] {
            for (position, link) in path.iter().enumerate() {
                let place = || format!("{place}.{name}[{position}]");
                if *link >= self.links.len() {
                    return wrong(place(), format!("there is no link {link}; there are {}", self.links.len()));
                }
                let seen: &[LinkId] = &path[..position];
                if seen.contains(link) {
                    return wrong(place(), format!("link {link} is on the path twice; a packet crosses a link once"));
                }
            }
        }
        self.check_place(place, flow)?;
        if flow.access.rate.as_bps() == 0 {
            return wrong(format!("{place}.access.rate"), "an access link of rate 0 lets nothing through");
        }
        match &flow.traffic {
            Traffic::Tcp(tcp) => check_tcp(place, tcp),
            Traffic::Udp(udp) => check_datagrams(&format!("{place}.udp"), udp),
        }
    }
}

/// The ends, the controller, and what is written. Ends and controllers made from values out of
/// range would work with others, which nobody asked for.
fn check_tcp(place: &str, tcp: &TcpConfig) -> Result<(), ConfigError> {
    for (part, checked) in [
        ("controller", tcp.controller.validate()),
        ("sender", tcp.sender.validate()),
        ("receiver", tcp.receiver.validate()),
    ] {
        if let Err(error) = checked {
            return wrong(format!("{place}.{part}"), error.to_string());
        }
    }
    check_workload(&format!("{place}.workload"), &tcp.workload)
}

fn check_workload(place: &str, workload: &Workload) -> Result<(), ConfigError> {
    match workload {
        Workload::Sized(bytes) | Workload::Replies(bytes) if bytes.get() == 0 => {
            wrong(place, "a transfer has at least 1 byte")
        }
        Workload::Paced { rate, message, .. } if rate.as_bps() == 0 || message.get() == 0 => {
            wrong(place, "paced writes need a rate above 0 and messages of at least 1 byte")
        }
        Workload::Paced { rate, message, .. } => check_gap(place, *rate, *message),
        Workload::Script(writes) if !writes.is_sorted_by_key(|(after, _)| *after) => {
            wrong(place, "the writes of a script must be in order of time")
        }
        Workload::Script(writes) if writes.iter().all(|(_, bytes)| bytes.get() == 0) => {
            wrong(place, "a script writes at least 1 byte")
        }
        _ => Ok(()),
    }
}

fn check_datagrams(place: &str, udp: &UdpConfig) -> Result<(), ConfigError> {
    if udp.rate.as_bps() == 0 {
        return wrong(format!("{place}.rate"), "datagrams need a rate above 0");
    }
    if udp.packet < SMALLEST_DATAGRAM {
        return wrong(format!("{place}.packet"), format!("a datagram has at least {SMALLEST_DATAGRAM} B of headers"));
    }
    check_gap(&format!("{place}.rate"), udp.rate, Bytes::new(udp.packet.into()))
}

/// Less than a nanosecond apart they would not come at the rate that was asked for.
fn check_gap(place: &str, rate: Rate, bytes: Bytes) -> Result<(), ConfigError> {
    let most = Rate::of(bytes, Span::from_nanos(1));
    if rate <= most {
        return Ok(());
    }
    wrong(
        place,
        format!(
            "{rate} would be more than {bytes} in a nanosecond, the shortest time there is; a rate of at most {most} \
             can be kept"
        ),
    )
}

fn check_session(place: &str, session: &SessionConfig) -> Result<(), ConfigError> {
    if matches!(session.flow.traffic, Traffic::Udp(_)) {
        return wrong(format!("{place}.flow"), "replies come on TCP connections, not in datagrams");
    }
    if session.replies.is_empty() || session.replies.iter().any(|reply| reply.bytes.get() == 0) {
        return wrong(format!("{place}.replies"), "a session has at least one reply, each of at least 1 byte");
    }
    Ok(())
}

fn check_arrivals(place: &str, arrivals: &ArrivalConfig) -> Result<(), ConfigError> {
    if matches!(arrivals.flow.traffic, Traffic::Udp(_)) {
        return wrong(format!("{place}.flow"), "arrivals start TCP transfers, not datagram flows");
    }
    if arrivals.mean_gap.is_zero() {
        return wrong(format!("{place}.mean_gap"), "the mean time between arrivals must be above 0");
    }
    let place = format!("{place}.sizes");
    match arrivals.sizes {
        Sizes::Fixed(bytes) if bytes.get() == 0 => wrong(place, "a transfer has at least 1 byte"),
        Sizes::Pareto { shape, .. } | Sizes::TruncatedPareto { shape, .. } if !(shape > 0.0 && shape.is_finite()) => {
            wrong(place, "the shape of a Pareto distribution is above 0")
        }
        Sizes::TruncatedPareto { min, max, .. } if min.get() == 0 || max < min => {
            wrong(place, "a truncated Pareto distribution needs 0 < min <= max")
        }
        Sizes::LogNormal { sigma, .. } if !(sigma >= 0.0 && sigma.is_finite()) => {
            wrong(place, "sigma of a log-normal distribution is 0 or more")
        }
        Sizes::Pareto { min, max, .. } | Sizes::LogNormal { min, max, .. } if max < min => {
            wrong(place, "the largest size is below the smallest")
        }
        _ => Ok(()),
    }
}
