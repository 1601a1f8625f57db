//! TCP: a connection per flow.

use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn, SockaddrIn6, connect, getsockopt, setsockopt, socket, sockopt,
};

use flowstart_units::{Bytes, Span};

use super::scene::{LOOK, Scene, Shared, TIMEOUT, is_pause, lock};
use super::stamps::Stamps;
use super::{FlowConfig, Gaps, TcpInfo, Traffic, Workload};
use crate::wire::{self, FlowKey};
use crate::{Error, Host};

/// What is written at once.
const CHUNK: usize = 128 << 10;
/// What is read at once.
const READ: usize = 256 << 10;

/// The kernel's congestion controls that this process may use.
#[must_use]
pub fn congestion_controls() -> Vec<String> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

/// Fails if the kernel has no congestion control of this name, and no module that brings it.
/// Whether this process may use it is seen where it is used.
///
/// # Errors
/// [`Error::NotPossible`] with those it has.
pub fn has_congestion_control(name: &str) -> Result<(), Error> {
    let socket = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)
        .map_err(|error| Error::doing("open a socket", error))?;
    match setsockopt(&socket, sockopt::TcpCongestion, &OsString::from(name)) {
        Err(nix::Error::ENOENT) => use_control(&socket, name),
        _ => Ok(()),
    }
}

/// A listener; with the congestion control of the sender, which some (DCTCP) need at both ends.
pub(super) fn listen(host: &Host, port: u16, congestion: Option<&str>) -> Result<TcpListener, Error> {
    let address = SocketAddr::new(host.address(), port);
    let listener = host
        .run(|| TcpListener::bind(address))?
        .map_err(|error| Error::doing(format_args!("listen on {address}"), error))?;
    if let Some(name) = congestion {
        use_control(&listener, name)?;
    }
    listener.set_nonblocking(true).map_err(|error| Error::doing("prepare a socket", error))?;
    Ok(listener)
}

fn use_control(socket: &impl std::os::fd::AsFd, name: &str) -> Result<(), Error> {
    setsockopt(socket, sockopt::TcpCongestion, &OsString::from(name)).map_err(|error| match error {
        nix::Error::ENOENT => Error::NotPossible(format!(
            "this kernel has no congestion control \"{name}\"; it has {}",
            congestion_controls().join(", ")
        )),
        nix::Error::EPERM => Error::NotPossible(format!(
            "the congestion control \"{name}\" is for root only; sysctl net.ipv4.tcp_allowed_congestion_control lists the others"
        )),
        other => Error::doing(format_args!("use the congestion control {name}"), other),
    })
}

/// Waits for a connection; `None` if everything ended before.
pub(super) fn accept(listener: &TcpListener, scene: &Scene<'_>) -> std::io::Result<Option<TcpStream>> {
    loop {
        match listener.accept() {
            Ok((stream, _)) => return Ok(Some(stream)),
            Err(error) if is_pause(&error) => {
                if scene.over() {
                    return Ok(None);
                }
                wait(listener, PollFlags::POLLIN);
            }
            Err(error) => return Err(error),
        }
    }
}

/// Takes the connection of a flow of this number and reads it to its end.
pub(super) fn receive(listener: &TcpListener, number: usize, size: Option<u64>, scene: &Scene<'_>, shared: &Shared) {
    let mut stream = match accept(listener, scene) {
        Ok(Some(stream)) => stream,
        Ok(None) => return,
        Err(error) => return shared.fail(error, scene),
    };
    if let Err(error) = stream.set_nonblocking(false).and_then(|()| stream.set_read_timeout(Some(TIMEOUT))) {
        return shared.fail(error, scene);
    }
    let (mut bytes, mut total) = (vec![0; READ], 0);
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return,
            Ok(read) => {
                let now = scene.clock.now();
                // What senders' kernels still have would come for seconds.
                if scene.is_past(now) {
                    return;
                }
                total += read as u64;
                shared.delivered.store(total, Ordering::Relaxed);
                (scene.read)(number, now, total);
                if Some(total) == size {
                    shared.change(|outcome| outcome.completed = Some(now));
                    scene.completed();
                }
            }
            Err(error) if is_pause(&error) && !scene.over() => {}
            // At the end connections are not closed in order.
            Err(_) => return,
        }
    }
}

/// Connects at the flow's time and writes what it has to; of a paced flow that is to be stamped the
/// socket says when the kernel sent it.
pub(super) fn send(
    host: &Host,
    (address, port): (IpAddr, u16),
    (flow, stamped): (&FlowConfig, bool),
    scene: &Scene<'_>,
    shared: &Arc<Shared>,
    seed: u64,
) {
    let Traffic::Tcp { congestion, workload } = &flow.traffic else { return };
    if !scene.wait_until(flow.start) {
        return;
    }
    let now = scene.clock.now();
    shared.change(|outcome| outcome.started = Some(now));
    let opened = host.run(|| connect_to(SocketAddr::new(address, port), congestion.as_deref(), scene));
    let stream = match opened.and_then(|opened| opened) {
        Ok(Some(stream)) => stream,
        Ok(None) => return,
        Err(error) => return shared.fail(error, scene),
    };
    if let (Ok(own), Ok(peer)) = (stream.local_addr(), stream.peer_addr()) {
        let key = FlowKey {
            source: own.ip(),
            destination: peer.ip(),
            source_port: own.port(),
            destination_port: peer.port(),
            protocol: wire::TCP,
        };
        shared.change(|outcome| outcome.key = Some(key));
    }
    if let Ok(copy) = stream.try_clone() {
        scene.watch(shared, OwnedFd::from(copy));
    }
    if let Err(error) = stream.set_write_timeout(Some(TIMEOUT)).and_then(|()| stream.set_nodelay(true)) {
        return shared.fail(error, scene);
    }
    let mut stamps = stamped.then(|| Stamps::ask(&stream, scene.clock)).and_then(|asked| match asked {
        Ok(stamps) => Some(stamps),
        Err(error) => {
            shared.change(|outcome| outcome.unstamped = Some(error.desc().to_owned()));
            None
        }
    });
    let done = match workload {
        Workload::Greedy => write(&stream, u64::MAX, scene),
        Workload::Sized(size) => write(&stream, size.get(), scene),
        Workload::Paced { rate, message, poisson, lasting } => {
            let mut gaps = Gaps::new(rate.transmission_time(*message), *poisson, seed);
            let (mut next, end) = (flow.start, flow.start + *lasting);
            loop {
                if next >= end || !scene.wait_until(next) || !write(&stream, message.get(), scene) {
                    break true;
                }
                stamps.iter_mut().for_each(|stamps| stamps.take(&stream));
                next += gaps.next().max(Span::from_nanos(1));
            }
        }
        Workload::Script(writes) => {
            writes.iter().all(|(after, bytes): &(Span, Bytes)| {
                scene.wait_until(flow.start + *after) && write(&stream, bytes.get(), scene)
            });
            true
        }
    };
    if let Some(mut stamps) = stamps {
        stamps.take(&stream);
        shared.change(|outcome| outcome.stamps = stamps.finish());
    }
    // A connection whose end does not matter any more is dropped at once, so that nothing lingers.
    if done && !matches!(workload, Workload::Greedy) {
        let _ = stream.shutdown(Shutdown::Write);
    }
    // A transfer is watched until all of it is acknowledged, others to the end.
    let sized = workload.size().is_some();
    let acknowledged = || TcpInfo::of(stream.as_fd()).is_ok_and(|info| info.unacked == 0);
    let is_whole = || sized && lock(&shared.outcome).completed.is_some() && acknowledged();
    let mut over = false;
    while !over && !is_whole() {
        over = !scene.wait_until(scene.clock.now() + LOOK);
    }
    scene.settle(shared);
    if over {
        forget(&stream);
    }
}

/// What a connection has not sent by the end is not sent any more.
pub(super) fn forget(stream: &TcpStream) {
    // Where that is not possible the kernel gives it up later.
    let _ = setsockopt(stream, sockopt::Linger, &libc::linger { l_onoff: 1, l_linger: 0 });
}

/// Opens a connection from the host that the calling thread is in; `None` if everything ended
/// before it came about.
pub(super) fn connect_to(
    to: SocketAddr,
    congestion: Option<&str>,
    scene: &Scene<'_>,
) -> Result<Option<TcpStream>, Error> {
    let family = if to.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    // A handshake on a path that loses packets takes minutes to fail: it must not block.
    let socket = socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK, None)
        .map_err(|error| Error::doing("open a socket", error))?;
    if let Some(name) = congestion {
        use_control(&socket, name)?;
    }
    let failed = |error: nix::Error| Error::doing(format_args!("connect to {to}"), error);
    let begun = match to {
        SocketAddr::V4(to) => connect(socket.as_raw_fd(), &SockaddrIn::from(to)),
        SocketAddr::V6(to) => connect(socket.as_raw_fd(), &SockaddrIn6::from(to)),
    };
    match begun {
        Ok(()) => {}
        Err(nix::Error::EINPROGRESS) => {
            while !wait(&socket, PollFlags::POLLOUT) {
                if scene.over() {
                    return Ok(None);
                }
            }
            match getsockopt(&socket, sockopt::SocketError).map_err(failed)? {
                0 => {}
                error => return Err(failed(nix::Error::from_raw(error))),
            }
        }
        Err(error) => return Err(failed(error)),
    }
    let stream = TcpStream::from(socket);
    stream.set_nonblocking(false).map_err(|error| Error::doing("prepare a socket", error))?;
    Ok(Some(stream))
}

/// Waits for an event on a socket, for a while; true if it is there.
fn wait(socket: &impl std::os::fd::AsFd, event: PollFlags) -> bool {
    let mut fds = [PollFd::new(socket.as_fd(), event)];
    let timeout = PollTimeout::try_from(TIMEOUT).unwrap_or(PollTimeout::ZERO);
    // An interrupted wait is a short one.
    poll(&mut fds, timeout).is_ok_and(|ready| ready > 0)
}

/// Writes so many bytes; false if everything ended before.
pub(super) fn write(mut stream: &TcpStream, mut left: u64, scene: &Scene<'_>) -> bool {
    static ZEROS: [u8; CHUNK] = [0; CHUNK];
    while left > 0 {
        if scene.over() {
            return false;
        }
        let chunk = usize::try_from(left).unwrap_or(usize::MAX).min(CHUNK);
        match stream.write(&ZEROS[..chunk]) {
            Ok(written) => left -= written as u64,
            Err(error) if is_pause(&error) => {}
            // The receiver has gone, which happens only at the end.
            Err(_) => return false,
        }
    }
    true
}
