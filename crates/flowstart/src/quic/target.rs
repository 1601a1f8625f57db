//! A server to speak to, and what is driven against it.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs as _, UdpSocket};

use flowstart_congestion::ControllerConfig;
use flowstart_quic::message::{Direction, Request};
use flowstart_quic::tls::Fingerprint;
use flowstart_quic::{
    Client, Clock, LearningConfig, Limits, Memory, Node as _, Observed, Qlog, Sink, SoFar, Sockets, Stack, Transferred,
    controller, first_to_answer,
};
use flowstart_units::{Span, Time};

use super::args::{PORT, ServerArgs};
use super::kept::today;
use super::wrong;
use crate::benchmark::place::split;
use crate::output::Failure;

/// What the system says of a socket, in words.
pub(super) fn plain(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::AddrInUse => "something listens there already".to_owned(),
        std::io::ErrorKind::AddrNotAvailable => "this machine has no such address".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

/// How a transfer ended.
pub(super) enum Ended {
    Whole(Box<Transferred>),
    /// It was interrupted, and this is known of it here.
    Stopped(Box<SoFar>),
}

/// Where to, and whom to expect there.
pub(crate) struct Target {
    pub(crate) to: SocketAddr,
    /// All addresses of a name that has several, which are tried from the first on.
    several: Vec<SocketAddr>,
    host: String,
    pub(super) pinned: Option<Fingerprint>,
    /// Where connections are logged.
    pub(super) qlog: Option<Qlog>,
    /// The stack of this end.
    pub(super) stack: Stack,
    /// UDP payload of a full packet in bytes, either way.
    pub(super) mtu: u16,
    /// How what this end sends teaches about the path.
    pub(super) learning: LearningConfig,
}

impl Target {
    /// The server that a command names.
    pub(super) fn of(ServerArgs { host, port, fingerprint, insecure, stack }: &ServerArgs) -> Result<Self, Failure> {
        let (bare, named) = split(host).map_err(wrong)?;
        let port = match (named, port) {
            (Some(named), Some(port)) if named != *port => {
                return Err(wrong(format!(
                    "the port is named twice, {named} in {host} and {port} after -p: leave one out"
                )));
            }
            (Some(named), _) => named,
            (None, port) => port.unwrap_or(PORT),
        };
        let found = Self::find(bare, port, fingerprint.as_deref(), *insecure)?;
        Ok(Self { stack: (*stack).into(), ..found })
    }

    /// Looks the host up. Beyond this machine somebody must have said whom to expect.
    pub(crate) fn find(host: &str, port: u16, fingerprint: Option<&str>, insecure: bool) -> Result<Self, Failure> {
        let pinned = fingerprint.map(str::parse::<Fingerprint>).transpose().map_err(wrong)?;
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let all: Vec<SocketAddr> = match bare.parse::<IpAddr>() {
            // IPv4 in the clothes of IPv6 is IPv4.
            Ok(ip) => vec![SocketAddr::new(ip.to_canonical(), port)],
            Err(_) => in_turn((bare, port).to_socket_addrs().into_iter().flatten()),
        };
        // A system knows no address by that.
        let zoned = bare.split_once('%').and_then(|(six, zone)| Some((six.parse::<Ipv6Addr>().ok()?, zone)));
        if let Some((six, zone)) = zoned
            && all.is_empty()
        {
            return Err(wrong(match six.is_unicast_link_local() {
                true => format!("there is no interface {zone} here, behind which {six} could be"),
                false => format!("{six} is the same behind every interface: leave out %{zone}"),
            }));
        }
        let first = *all.first().ok_or_else(|| wrong(format!("there is no host {host:?}")))?;
        let mut several = all;
        several.retain(|to| match to {
            SocketAddr::V6(six) => !six.ip().is_unicast_link_local() || six.scope_id() != 0,
            SocketAddr::V4(_) => true,
        });
        if several.is_empty() {
            let six = first.ip();
            return Err(wrong(format!("{six} is on each link of this machine: name which, such as {six}%eth0")));
        }
        let named = several[0];
        if pinned.is_none() && !insecure {
            several.retain(|to| to.ip().is_loopback());
        }
        let Some(to) = several.first().copied() else {
            return Err(wrong(format!(
                "who answers at {named} must be known: name the fingerprint that its `flowstart serve` prints \
                 with --fingerprint, or say --insecure"
            )));
        };
        let host = bare.to_owned();
        let Limits { stack, mtu, learning, .. } = Limits::default();
        Ok(Self { to, several, host, pinned, qlog: None, stack, mtu, learning })
    }

    /// Of several addresses that which answers first is taken. Where there is one nothing is sent.
    pub(crate) fn settle(&mut self) -> Result<(), Failure> {
        if self.several.len() > 1 {
            self.to = first_to_answer(&self.host, &self.several, self.stack).map_err(wrong)?;
            self.several = vec![self.to];
        }
        Ok(())
    }

    /// Transfers. What this end sends begins with what is in `memory`, and adds to it. `live` is
    /// called with bytes and RTT, if there is one, now and then, and ends it by returning false.
    pub(super) fn transfer(
        &self,
        request: Request,
        sink: Sink,
        memory: Option<&mut Memory>,
        live: &mut dyn FnMut(Time, u64, Option<Span>) -> bool,
    ) -> Result<(Ended, bool), Failure> {
        let mut config = controller(&request.start, &request.avoidance, self.mtu).map_err(wrong)?;
        let mut memory = memory.filter(|_| request.direction == Direction::Up);
        let place = self.to.ip();
        let proposed = memory.as_mut().and_then(|memory| memory.propose(place, today(), &mut config));
        let mut stopped = None;
        let (client, real_time) = self.drive(request, (config, sink), proposed, &mut |client, now| {
            if stopped.is_none() && !live(now, client.progress(), client.last_rtt(now)) {
                stopped = Some(client.so_far(now));
                client.stop(now, "interrupted");
            }
        })?;
        // A jump that failed is none to be repeated, however the transfer ended.
        if let Some(memory) = memory {
            memory.learn(place, today(), proposed, client.lesson());
        }
        if let Some(so_far) = stopped {
            return Ok((Ended::Stopped(Box::new(so_far)), real_time));
        }
        let transferred = client.outcome().map_err(wrong)?;
        Ok((Ended::Whole(Box::new(transferred)), real_time))
    }

    /// Drives a client until it is over, and says whether packets left with real-time priority.
    /// `watch` sees it ten times a second or more often.
    pub(super) fn drive(
        &self,
        request: Request,
        ends: (ControllerConfig, Sink),
        resumed: Option<Observed>,
        watch: &mut dyn FnMut(&mut Client, Time),
    ) -> Result<(Client, bool), Failure> {
        let clock = Clock::start();
        // When messages of an application leave is of interest only where they are timed.
        let departures = request.paced.is_some_and(|paced| paced.tell);
        let (stack, qlog, mtu, learning) = (self.stack, self.qlog.clone(), self.mtu, self.learning);
        let limits = Limits { stack, qlog, departures, mtu, learning, ..Limits::default() };
        let any = if self.to.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" };
        let mut client =
            Client::new(clock, clock.now(), &limits, self.to, self.pinned, request, ends).map_err(wrong)?;
        client.resume(resumed);
        let mut sockets = Vec::new();
        for _ in 0..client.sockets() {
            let socket = UdpSocket::bind(any).map_err(wrong)?;
            // Only then the system says when nobody listens there.
            socket.connect(self.to).map_err(|error| wrong(format!("cannot reach {}: {}", self.to, plain(&error))))?;
            sockets.push(socket);
        }
        let mut sockets = Sockets::new(sockets, clock).map_err(wrong)?;
        let watch = &mut |client: &mut Client, now: Time| {
            watch(client, now);
            true
        };
        sockets.run(&mut client, watch).map_err(wrong)?;
        Ok((client, sockets.is_real_time()))
    }
}

/// Each address once, of IPv4 and IPv6 in turn, as the system orders those of a family.
fn in_turn(found: impl Iterator<Item = SocketAddr>) -> Vec<SocketAddr> {
    let (six, four): (Vec<SocketAddr>, Vec<SocketAddr>) = found.partition(SocketAddr::is_ipv6);
    let mut all = Vec::new();
    for number in 0..four.len().max(six.len()) {
        for to in [four.get(number), six.get(number)].into_iter().flatten() {
            if !all.contains(to) {
                all.push(*to);
            }
        }
    }
    all
}

/// A number that nobody guesses.
pub(super) fn session() -> u64 {
    use std::hash::{BuildHasher as _, RandomState};
    RandomState::new().hash_one(std::process::id())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_names_an_interface_that_is_none_or_not_needed_is_told() {
        let said = |host: &str| match Target::find(host, 4433, None, true) {
            Err(failure) => failure.told().1,
            Ok(found) => panic!("{:?}", found.to),
        };
        assert_eq!(said("::1%lo"), "::1 is the same behind every interface: leave out %lo");
        assert_eq!(said("[2001:db8::7%eth0]"), "2001:db8::7 is the same behind every interface: leave out %eth0");
        let missing = said("fe80::7%fs-none");
        assert_eq!(missing, "there is no interface fs-none here, behind which fe80::7 could be");
    }

    #[test]
    fn addresses_of_both_families_come_in_turn_and_each_once() {
        let all = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<SocketAddr>>();
        let found = all(&["[2001:db8::1]:1", "[2001:db8::2]:1", "192.0.2.1:1", "192.0.2.1:1", "[2001:db8::3]:1"]);
        let expected = all(&["192.0.2.1:1", "[2001:db8::1]:1", "[2001:db8::2]:1", "[2001:db8::3]:1"]);
        assert_eq!(in_turn(found.into_iter()), expected);
    }
}
