//! Serving and transferring.

use std::fs::File;
use std::io::{IsTerminal as _, Write as _};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _, UdpSocket};
use std::path::{Path, PathBuf};

use flowstart_quic::controller;
use flowstart_quic::message::{Direction, Request, VERSION};
use flowstart_quic::tls::{Fingerprint, Identity};
use flowstart_quic::{Client, Clock, Limits, Memory, News, Node as _, Server, Service, Sink, Sockets, Transferred};
use flowstart_units::{Span, Time};

use super::args::ServerArgs;
use super::kept::{Kept, learnt, today};
use super::{FetchArgs, ServeArgs, show, wrong};
use crate::interrupt;
use crate::output::{Done, Failure, ending, note, prepare_file, prepare_folder, print, print_json, write_file};

/// What a transfer lasts if nothing is said.
const USUAL: Span = Span::from_secs(10);

/// Serves until it is interrupted.
pub(crate) fn serve(args: &ServeArgs) -> Done {
    let identity = match &args.identity {
        Some(path) => identity(path)?,
        None => Identity::generate().map_err(wrong)?,
    };
    if let Some(root) = &args.root
        && !root.is_dir()
    {
        return Err(wrong(format!("cannot serve {}: it is no folder", root.display())));
    }
    if let Some(folder) = &args.qlog {
        prepare_folder(folder)?;
    }
    let kept = Kept::open(&args.memory)?;
    let address = SocketAddr::new(args.bind, args.port);
    let socket =
        UdpSocket::bind(address).map_err(|error| wrong(format!("cannot listen at {address}: {}", plain(&error))))?;
    let clock = Clock::start();
    let limits = Limits { connections: args.connections, qlog: args.qlog.clone(), ..Limits::default() };
    let service = Service {
        most_bytes: args.most_bytes.get(),
        most_time: args.most_time,
        per_peer: args.per_peer,
        root: args.root.clone(),
    };
    let make = Box::new(|start: &str, avoidance: &str, mtu| controller(start, avoidance, mtu));
    let mut server = Server::new(clock, &limits, &identity, service, make, args.one_off).map_err(wrong)?;
    let kept = kept.map(|(kept, memory)| {
        server.remember(memory, Box::new(today));
        kept
    });
    let mut sockets = Sockets::new(vec![socket], clock).map_err(wrong)?;
    let address = sockets.address(0).map_err(wrong)?;
    print(&format!("serving at {address}\nfingerprint {}\n", identity.fingerprint()))?;
    punctual(&sockets);
    let cancel = interrupt::listen();
    let watch = &mut |server: &mut Server, _: Time| {
        for news in server.take_news() {
            match news {
                News::Asked(peer, request) => note(&show::asked(peer, &request)),
                News::Refused(peer, why) => note(&format!("{peer} refused: {why}")),
                News::Complete(peer, received) => note(&format!("{peer} {}", show::received(&received))),
                News::Learnt(peer, lesson) => note(&format!("{peer} {}", learnt(&lesson))),
            }
        }
        if let (Some(kept), Some(memory)) = (&kept, server.changed_memory())
            && let Err(Failure::Usage(why)) = kept.write(memory)
        {
            note(&format!("what was learnt is not kept: {why}"));
        }
        !cancel.is_cancelled()
    };
    sockets.run(&mut server, watch).map_err(wrong)?;
    watch(&mut server, Time::ZERO);
    Ok(())
}

/// Says it if departures cannot be punctual.
pub(super) fn punctual(sockets: &Sockets) {
    if !sockets.is_real_time() {
        note("without real-time priority: packets leave milliseconds late when the machine is busy");
    }
}

/// The identity in a file, which is made if it is not there.
fn identity(path: &Path) -> Result<Identity, Failure> {
    match std::fs::read(path) {
        Ok(bytes) => Identity::from_bytes(&bytes)
            .ok_or_else(|| wrong(format!("{} is no identity that flowstart made", path.display()))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            prepare_file(path)?;
            let identity = Identity::generate().map_err(wrong)?;
            let mut options = File::options();
            options.write(true).create_new(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            options
                .open(path)
                .and_then(|mut file| file.write_all(&identity.to_bytes()))
                .map_err(|error| Failure::file("write", path, &error))?;
            Ok(identity)
        }
        Err(error) => Err(Failure::file("read", path, &error)),
    }
}

fn plain(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::AddrInUse => "something listens there already".to_owned(),
        std::io::ErrorKind::AddrNotAvailable => "this machine has no such address".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}

/// Where to, and whom to expect there.
pub(super) struct Target {
    pub(super) to: SocketAddr,
    pub(super) pinned: Option<Fingerprint>,
    /// Where connections are logged.
    pub(super) qlog: Option<PathBuf>,
}

impl Target {
    /// Looks the host up. Beyond this machine somebody must have said whom to expect.
    pub(super) fn find(args: &ServerArgs) -> Result<Self, Failure> {
        let ServerArgs { host, port, fingerprint, insecure } = args;
        let pinned = fingerprint.as_deref().map(str::parse::<Fingerprint>).transpose().map_err(wrong)?;
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let to = match bare.parse::<IpAddr>() {
            Ok(ip) => SocketAddr::new(ip, *port),
            Err(_) => (bare, *port)
                .to_socket_addrs()
                .ok()
                .and_then(|found| found.min_by_key(SocketAddr::is_ipv6))
                .ok_or_else(|| wrong(format!("there is no host {host:?}")))?,
        };
        if pinned.is_none() && !insecure && !to.ip().is_loopback() {
            return Err(wrong(format!(
                "who answers at {to} must be known: name the fingerprint that its `flowstart serve` prints \
                 with --fingerprint, or say --insecure"
            )));
        }
        Ok(Self { to, pinned, qlog: None })
    }

    /// Transfers. What this end sends begins with what is in `memory`, and adds to it. `live` is
    /// called with bytes and RTT now and then, and ends it by returning false.
    pub(super) fn transfer(
        &self,
        request: Request,
        sink: Sink,
        memory: Option<&mut Memory>,
        live: &mut dyn FnMut(Time, u64, Span) -> bool,
    ) -> Result<(Transferred, bool), Failure> {
        let clock = Clock::start();
        let limits = Limits { qlog: self.qlog.clone(), ..Limits::default() };
        let mut config = controller(&request.start, &request.avoidance, limits.mtu).map_err(wrong)?;
        let mut memory = memory.filter(|_| request.direction == Direction::Up);
        let place = self.to.ip();
        let proposed = memory.as_mut().and_then(|memory| memory.propose(place, today(), &mut config));
        let any = if self.to.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" };
        let mut client =
            Client::new(clock, clock.now(), &limits, self.to, self.pinned, request, (config, sink)).map_err(wrong)?;
        client.resume(proposed);
        let mut sockets = Vec::new();
        for _ in 0..client.sockets() {
            let socket = UdpSocket::bind(any).map_err(wrong)?;
            // Only then the system says when nobody listens there.
            socket.connect(self.to).map_err(|error| wrong(format!("cannot reach {}: {}", self.to, plain(&error))))?;
            sockets.push(socket);
        }
        let mut sockets = Sockets::new(sockets, clock).map_err(wrong)?;
        let mut stopped = false;
        let watch = &mut |client: &mut Client, now: Time| {
            if !stopped && !live(now, client.progress(), client.last_rtt()) {
                stopped = true;
                client.stop(now, "interrupted");
            }
            true
        };
        sockets.run(&mut client, watch).map_err(wrong)?;
        if stopped {
            return Err(Failure::Interrupted);
        }
        let transferred = client.outcome().map_err(wrong)?;
        if let Some(memory) = memory {
            memory.learn(place, today(), proposed, transferred.lesson);
        }
        Ok((transferred, sockets.is_real_time()))
    }
}

/// A number that nobody guesses.
pub(super) fn session() -> u64 {
    use std::hash::{BuildHasher as _, RandomState};
    RandomState::new().hash_one(std::process::id())
}

/// Transfers.
pub(crate) fn fetch(args: &FetchArgs) -> Done {
    let target = Target { qlog: args.qlog.clone(), ..Target::find(&args.server)? };
    if let Some(folder) = &args.qlog {
        prepare_folder(folder)?;
    }
    if args.memory.memory.is_some() && !args.reverse {
        return Err(wrong("--memory is that of the sender: name it at `serve`, or send from here with --reverse"));
    }
    let mut kept = Kept::open(&args.memory)?;
    let time = match (args.size, args.time, &args.file) {
        (None, None, None) => Some(USUAL),
        (_, time, _) => time,
    };
    let contestant = &args.contestant;
    let request = Request {
        version: VERSION,
        session: session(),
        connections: u8::try_from(contestant.start.connections().clamp(1, 2)).unwrap_or(1),
        direction: if args.reverse { Direction::Up } else { Direction::Down },
        size: args.size.map(|size| size.get()),
        nanos: time.map(Span::as_nanos),
        streams: args.parallel,
        start: contestant.start.name().to_owned(),
        avoidance: contestant.avoidance.name().to_owned(),
        file: args.file.clone(),
        look: false,
        paced: None,
    };
    let (content, result) = match &args.file {
        Some(_) => (args.out.as_ref(), None),
        None => (None, args.out.as_ref()),
    };
    if let Some(result) = result {
        ending(result, &["json"])?;
        prepare_file(result)?;
    }
    let part = content.map(|out| out.with_extension("flowstart-part"));
    let sink = match (content, &part) {
        (Some(out), Some(part)) => {
            prepare_file(out)?;
            Sink::File(File::create(part).map_err(|error| Failure::file("write", part, &error))?)
        }
        _ => Sink::Check,
    };
    let cancel = interrupt::listen();
    let mut line = show::Live::new(!args.json && std::io::stderr().is_terminal());
    let memory = kept.as_mut().map(|(_, memory)| memory);
    let ended = target.transfer(request.clone(), sink, memory, &mut |now, bytes, rtt| {
        line.show(now, bytes, rtt);
        !cancel.is_cancelled()
    });
    line.clear();
    if let Some((kept, memory)) = &mut kept
        && memory.is_changed()
    {
        kept.write(memory)?;
    }
    if let (Some(out), Some(part)) = (content, &part) {
        match &ended {
            Ok(_) => std::fs::rename(part, out).map_err(|error| Failure::file("write", out, &error))?,
            // It is ours, and incomplete.
            Err(_) => drop(std::fs::remove_file(part)),
        }
    }
    let (outcome, real_time) = ended?;
    let document = show::json(&request, &outcome, real_time);
    if let Some(result) = result {
        write_file(result, format!("{document:#}\n").as_bytes())?;
    }
    if args.json {
        print_json(&document)?;
    } else {
        if !real_time {
            note("without real-time priority: packets leave milliseconds late when the machine is busy");
        }
        print(&show::text(&request, &outcome))?;
    }
    if outcome.received.intact { Ok(()) } else { Err(Failure::Check) }
}
