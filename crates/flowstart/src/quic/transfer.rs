//! Serving and transferring.

use std::fs::File;
use std::io::{IsTerminal as _, Write as _};
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::time::Instant;

use flowstart_files::WholeFile;
use flowstart_pages::transfer;
use flowstart_quic::controller;
use flowstart_quic::message::{Direction, OLDEST, Request};
use flowstart_quic::tls::Identity;
use flowstart_quic::{Clock, Limits, News, Qlog, Server, Service, Sink, SoFar, Sockets};
use flowstart_race::Carrier;
use flowstart_units::{Bytes, Span, Time};

use super::kept::{Keeping, Kept, learning, today};
use super::target::{Ended, Target, plain, session};
use super::{FetchArgs, ServeArgs, lines, wrong};
use crate::interrupt;
use crate::output::{Done, Failure, ending, note, prepare_file, prepare_folder, print, print_json, write_file};

/// What a transfer lasts if nothing is said.
const USUAL: Span = Span::from_secs(10);

/// How long a server that ends tells it to those who are there.
const FAREWELL: Span = Span::from_millis(200);

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
    let learning = learning(&args.memory)?;
    let kept = Kept::open(&args.memory)?;
    if args.most_bytes == Bytes::ZERO || args.most_time.is_zero() {
        return Err(wrong("with --most-bytes or --most-time of zero nobody could be served"));
    }
    if args.peer_bytes == Bytes::ZERO || args.peer_time.is_zero() {
        return Err(wrong("with --peer-bytes or --peer-time of zero nobody could be served"));
    }
    let address = args.bind.with_port(args.port).map_err(wrong)?;
    let socket =
        UdpSocket::bind(address).map_err(|error| wrong(format!("cannot listen at {address}: {}", plain(&error))))?;
    let clock = Clock::start();
    let qlog = args.qlog.as_deref().map(|folder| Qlog::new(folder).with_most(args.qlog_most.get()));
    let place = place(socket.local_addr().map_err(wrong)?);
    let stack = args.stack.into();
    let (connections, qlogs) = (args.connections, qlog.clone());
    let limits = Limits { stack, connections, qlog: qlogs, place, learning, ..Limits::default() };
    let service = Service {
        most_bytes: args.most_bytes.get(),
        most_time: args.most_time,
        per_peer: args.per_peer,
        peer_bytes: args.peer_bytes.get(),
        peer_time: args.peer_time,
        root: args.root.clone(),
        ..Service::default()
    };
    let make = Box::new(|start: &str, avoidance: &str, mtu| controller(start, avoidance, mtu));
    let mut server = Server::new(clock, &limits, &identity, service, make, args.one_off).map_err(wrong)?;
    let mut keeping = kept.map(|(kept, memory)| {
        server.remember(memory, Box::new(today));
        Keeping::new(kept)
    });
    let mut sockets = Sockets::of_server(vec![socket], clock).map_err(wrong)?;
    let address = sockets.address(0).map_err(wrong)?;
    print(&format!("serving at {address}\nfingerprint {}\n", identity.fingerprint()))?;
    punctual(&sockets);
    let cancel = interrupt::listen();
    let (mut over, mut log) = (None, lines::Log::default());
    let watch = &mut |server: &mut Server, now: Time| {
        let all = server.take_news();
        let new = all.iter().any(|news| matches!(news, News::Learnt(..)));
        log.lines(now, all.iter().map(transfer::news)).iter().for_each(|line| note(line));
        if let Err(Failure::Usage(why)) = logged(qlog.as_ref()) {
            note(&format!("a log ends early: {why}"));
        }
        tell_full(qlog.as_ref(), args.qlog_most);
        if let (Some(keeping), Some(memory)) = (&mut keeping, server.changed_memory())
            && let Some(why) = keeping.keep(now, new, memory)
        {
            note(&format!("what was learnt is not kept: {why}"));
        }
        if cancel.is_cancelled() && over.is_none() {
            server.stop(now, "the server ends");
            over = Some(now + FAREWELL);
        }
        over.is_none_or(|over| now < over)
    };
    sockets.run(&mut server, watch).map_err(wrong)?;
    watch(&mut server, Time::ZERO);
    log.left_out().iter().for_each(|line| note(line));
    Ok(())
}

/// What this server and no other of its identity has: where it listens, and on which machine.
fn place(address: SocketAddr) -> String {
    // The number that a Linux system has from when it was installed (machine-id(5)).
    let machine = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
    format!("{address} {}", machine.trim())
}

/// What could not be logged.
fn logged(qlog: Option<&Qlog>) -> Done {
    let failure = qlog.and_then(Qlog::take_failure);
    failure.map_or(Ok(()), |(file, error)| Err(Failure::file("write", &file, &error)))
}

/// Says once if logs ended because they had as many bytes as they may have.
fn tell_full(qlog: Option<&Qlog>, most: Bytes) {
    if let Some(file) = qlog.and_then(Qlog::take_full) {
        note(&format!("logs end at {most} in all, the first in {}; --qlog-most lets them be larger", file.display()));
    }
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
        Ok(bytes) => Identity::from_bytes(&bytes).ok_or_else(|| {
            wrong(format!(
                "{} is no identity that flowstart made: name another file, or remove this one",
                path.display()
            ))
        }),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            prepare_file(path)?;
            let identity = Identity::generate().map_err(wrong)?;
            let mut options = File::options();
            options.write(true).create_new(true);
            #[cfg(unix)]
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
            let mut file = options.open(path).map_err(|error| Failure::file("write", path, &error))?;
            if let Err(error) = file.write_all(&identity.to_bytes()).and_then(|()| file.sync_all()) {
                // A part of it would be taken for somebody else's file the next time.
                let _ = std::fs::remove_file(path);
                return Err(Failure::file("write", path, &error));
            }
            Ok(identity)
        }
        Err(error) => Err(Failure::file("read", path, &error)),
    }
}

/// Checks that what is asked for beside the transfer goes with it.
fn goes_together(args: &FetchArgs) -> Done {
    if args.out.as_deref() == Some(Path::new("-")) {
        return Err(wrong("--output - would be a file of that name, as standard output has the result; name a file"));
    }
    if args.memory.memory.is_some() && !args.reverse {
        return Err(wrong("--memory is that of the sender: name it at `serve`, or send from here with --reverse"));
    }
    if args.qlog.is_some() && !args.reverse {
        note("this end sends no data, and so logs none: name --qlog at `serve`, or send from here with --reverse");
    }
    if let (Some(memory), Some(out)) = (&args.memory.memory, &args.out)
        && (memory == out
            || std::fs::canonicalize(memory)
                .is_ok_and(|one| std::fs::canonicalize(out).is_ok_and(|other| one == other)))
    {
        return Err(wrong(format!("{} would be overwritten, which is the memory: name another file", out.display())));
    }
    Ok(())
}

/// What the server is asked for.
fn request(args: &FetchArgs) -> Request {
    let time = match (args.size, args.time, &args.file) {
        (None, None, None) => Some(USUAL),
        // As in iperf3.
        (_, time, _) => time.filter(|time| !time.is_zero()),
    };
    let contestant = &args.contestant;
    Request {
        version: OLDEST,
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
    }
}

/// Transfers.
pub(crate) fn fetch(args: &FetchArgs) -> Done {
    let began = Instant::now();
    if args.most_time.is_some_and(Span::is_zero) {
        return Err(wrong("--most-time is above zero; without it no transfer is given up"));
    }
    Carrier::Quic.check([&args.contestant]).map_err(wrong)?;
    let qlog = args.qlog.as_deref().map(|folder| Qlog::new(folder).with_most(args.qlog_most.get()));
    let mut target = Target::of(&args.server)?;
    target.qlog.clone_from(&qlog);
    if let Some(folder) = &args.qlog {
        prepare_folder(folder)?;
    }
    goes_together(args)?;
    target.learning = learning(&args.memory)?;
    let mut kept = Kept::open(&args.memory)?;
    let request = request(args);
    let (content, result) = match &args.file {
        Some(_) => (args.out.as_ref(), None),
        None => (None, args.out.as_ref()),
    };
    if let Some(result) = result {
        ending(result, &["json"])?;
        prepare_file(result)?;
    }
    target.settle()?;
    let mut arriving = match content {
        Some(out) => {
            prepare_file(out)?;
            Some((out, WholeFile::create(out).map_err(|error| Failure::file("write", out, &error))?))
        }
        None => None,
    };
    let sink = match &mut arriving {
        Some((out, file)) => {
            let file = file.as_file_mut().try_clone();
            Sink::File(file.map_err(|error| Failure::file("write", out, &error))?)
        }
        None => Sink::Check,
    };
    let cancel = interrupt::listen();
    let mut line = lines::Live::new(!args.json && std::io::stderr().is_terminal());
    let memory = kept.as_mut().map(|(_, memory)| memory);
    let ended = target.transfer(request.clone(), sink, memory, &mut |now, bytes, rtt| {
        line.show(now, bytes, rtt);
        let elapsed = Span::from_nanos(u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX));
        !cancel.is_cancelled() && args.most_time.is_none_or(|most| elapsed < most)
    });
    line.clear();
    tell_full(qlog.as_ref(), args.qlog_most);
    let remembered = match &mut kept {
        Some((kept, memory)) if memory.is_changed() => kept.write(memory),
        _ => Ok(()),
    };
    let (outcome, real_time) = match ended? {
        (Ended::Whole(outcome), real_time) => (*outcome, real_time),
        (Ended::Stopped(so_far), real_time) => {
            let said = interrupted(args, &request, &so_far, real_time);
            return match args.most_time.filter(|_| !cancel.is_cancelled()) {
                Some(most) => given_up(said, target.to, most),
                None => said,
            };
        }
    };
    if let Some((out, file)) = arriving {
        file.finish().map_err(|error| Failure::file("write", out, &error))?;
    }
    let document = transfer::json(&request, args.server.stack.into(), &outcome, real_time);
    let written = result.map_or(Ok(()), |result| write_file(result, format!("{document:#}\n").as_bytes()));
    if args.json {
        print_json(&document)?;
    } else {
        if !real_time {
            note("without real-time priority: packets leave milliseconds late when the machine is busy");
        }
        print(&transfer::text(&request, &outcome))?;
    }
    if let Some(why) = transfer::cut_short(&request, &outcome.received).filter(|_| !cancel.is_cancelled()) {
        note(&why);
    }
    // What could not be kept does not hide what was found.
    written.and(remembered).and(logged(qlog.as_ref()))?;
    if outcome.received.intact { Ok(()) } else { Err(Failure::Check) }
}

/// Of a transfer that was stopped because it took too long that is what went wrong.
fn given_up(said: Done, to: SocketAddr, most: Span) -> Done {
    match said {
        Err(Failure::Interrupted | Failure::InterruptedEarly) => {
            let seconds = most.as_secs_f64();
            Err(wrong(format!("the transfer with {to} was not over after {seconds} s (--most-time)")))
        }
        said => said,
    }
}

/// Says what is known of a transfer that was interrupted. Of a file nothing is kept, and where it
/// was to be written no result is.
fn interrupted(args: &FetchArgs, request: &Request, so_far: &SoFar, real_time: bool) -> Done {
    let received = so_far.received.as_ref().map_or(0, |received| received.bytes);
    let sent = so_far.report.as_ref().map_or(0, |report| report.bytes);
    if received + sent == 0 {
        return Err(Failure::InterruptedEarly);
    }
    let document = transfer::json_so_far(request, args.server.stack.into(), so_far, real_time);
    let result = args.out.as_ref().filter(|_| args.file.is_none());
    let written = result.map_or(Ok(()), |result| write_file(result, format!("{document:#}\n").as_bytes()));
    if args.json {
        print_json(&document)?;
    } else {
        print(&transfer::text_so_far(request, so_far))?;
    }
    written?;
    Err(if args.file.is_some() { Failure::InterruptedEarly } else { Failure::Interrupted })
}
