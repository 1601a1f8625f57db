//! Two network namespaces of our own, joined by a pair of virtual interfaces, and transfers between
//! them.

#![allow(dead_code)]

pub(crate) mod packets;
pub(crate) mod worlds;

use std::fs::File;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use flowstart_emulator::Fidelity;
use flowstart_kernel::{Algorithm, Settings, findings, load, loaded, unload};
use flowstart_units::Span;
use nix::fcntl::{Flock, FlockArg};
use nix::sched::{CloneFlags, setns};
use nix::sys::socket::{setsockopt, sockopt};

/// How long a transfer may stand still before the test gives up.
const PATIENCE: Duration = Duration::from_secs(60);

/// One test at a time, on the whole machine: registrations are global. `None` if this machine
/// cannot register anything, or somebody has; the reason is printed.
pub(crate) fn alone() -> Option<Flock<File>> {
    alone_with(&Algorithm::ALL)
}

/// The same for Quick-Start and its routers, which whatever else is loaded does not touch.
pub(crate) fn alone_with_quick_start() -> Option<Flock<File>> {
    alone_with(&[Algorithm::QuickStart])
}

fn alone_with(ours: &[Algorithm]) -> Option<Flock<File>> {
    if let Some(missing) = findings().into_iter().find(|finding| !finding.good) {
        skipped(&format!("{}: {}", missing.what, missing.found));
        return None;
    }
    if !Command::new("ip").arg("-V").stdout(Stdio::null()).status().is_ok_and(|status| status.success()) {
        skipped("the command ip is missing (apt-get install iproute2)");
        return None;
    }
    let path = std::env::temp_dir().join("flowstart-kernel-tests.lock");
    let file = File::options().create(true).append(true).open(path).unwrap();
    let alone = Flock::lock(file, FlockArg::LockExclusive).map_err(|(_, error)| error).unwrap();
    // Somebody uses it, or a test was killed.
    if let Some(loaded) = loaded().iter().find(|loaded| ours.contains(&loaded.algorithm)) {
        skipped(&format!("{0} is loaded here; flowstart kernel unload {0}", loaded.algorithm));
        return None;
    }
    Some(alone)
}

/// Does something over a world whose engines look at the clock in time, and again where they did
/// not: the kernel's timeouts go on where the machine stands still, and what it asks and sends then
/// is not what it does over a path.
pub(crate) fn in_time<T>(mut act: impl FnMut() -> (T, Fidelity)) -> T {
    let most = Span::from_millis(50);
    let mut acts = (0..30).map(|_| act());
    acts.find(|(_, fidelity)| fidelity.longest_stall < most).expect("in time once").0
}

/// Past the test harness, which hides what successful tests print.
pub(crate) fn skipped(why: &str) {
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// A registered algorithm, which is taken away when the test is over, however it ends.
pub(crate) struct Registered(pub(crate) Algorithm);

impl Registered {
    pub(crate) fn new(algorithm: Algorithm, parameters: &[&str]) -> Self {
        let mut settings = Settings::new(algorithm);
        for parameter in parameters {
            settings.set(parameter).unwrap();
        }
        if let Err(problem) = load(&settings) {
            panic!("{problem}\n{}", problem.log);
        }
        Self(algorithm)
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let _ = unload(self.0);
    }
}

pub(crate) fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split(' ')).status().unwrap();
    assert!(status.success(), "ip {arguments}");
}

/// Two hosts and the wire between them.
pub(crate) struct Pair {
    names: [String; 2],
}

impl Pair {
    pub(crate) fn new() -> Self {
        let pair = Self { names: ["a", "b"].map(|end| format!("fs-{end}-{}", std::process::id())) };
        for name in &pair.names {
            // What a test that was killed left behind.
            let _ = Command::new("ip").args(["netns", "delete", name]).stderr(Stdio::null()).status();
            ip(&format!("netns add {name}"));
            ip(&format!("-n {name} link set lo up"));
        }
        let [a, b] = &pair.names;
        ip(&format!("link add fs0 netns {a} type veth peer name fs0 netns {b}"));
        for (place, name) in (1..).zip(&pair.names) {
            ip(&format!("-n {name} addr add {}/24 dev fs0", address(place)));
            ip(&format!("-n {name} link set fs0 up"));
        }
        pair
    }

    /// Runs `what` in a thread of host `end` (0 or 1).
    pub(crate) fn on<T: Send + 'static>(
        &self,
        end: usize,
        what: impl FnOnce() -> T + Send + 'static,
    ) -> thread::JoinHandle<T> {
        let namespace = File::open(format!("/run/netns/{}", self.names[end])).unwrap();
        thread::spawn(move || {
            setns(namespace, CloneFlags::CLONE_NEWNET).unwrap();
            what()
        })
    }

    /// The name of a host's namespace.
    pub(crate) fn name(&self, end: usize) -> &str {
        &self.names[end]
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "delete", name]).status();
        }
    }
}

pub(crate) fn address(place: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 213, 0, place))
}

/// A listener on host 1 whose connections use `control` too, so that both ends speak ECN if one
/// asks for it.
pub(crate) fn listen(pair: &Pair, control: &'static str) -> (SocketAddr, TcpListener) {
    let listener = pair
        .on(1, move || {
            let listener = TcpListener::bind((address(2), 0)).unwrap();
            setsockopt(&listener, sockopt::TcpCongestion, &control.into()).unwrap();
            listener
        })
        .join()
        .unwrap();
    (listener.local_addr().unwrap(), listener)
}

/// A connection from this host that uses `control`.
pub(crate) fn connect(to: SocketAddr, control: &str) -> TcpStream {
    connect_from(None, to, control)
}

/// The same, from a port of one's own choice.
pub(crate) fn connect_from(port: Option<u16>, to: SocketAddr, control: &str) -> TcpStream {
    connected(port, None, to, control)
}

/// The same, with a largest pacing rate in bytes per second that is set before.
pub(crate) fn connect_limited(limit: u64, to: SocketAddr, control: &str) -> TcpStream {
    connected(None, Some(limit), to, control)
}

fn connected(port: Option<u16>, limit: Option<u64>, to: SocketAddr, control: &str) -> TcpStream {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrStorage, bind, connect, socket};
    use std::os::fd::AsRawFd;
    let family = if to.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    let socket = socket(family, SockType::Stream, SockFlag::empty(), None).unwrap();
    setsockopt(&socket, sockopt::TcpCongestion, &control.into()).unwrap();
    if let Some(limit) = limit {
        limit_rate(&socket, limit);
    }
    if let Some(port) = port {
        bind(socket.as_raw_fd(), &SockaddrStorage::from(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)))).unwrap();
    }
    connect(socket.as_raw_fd(), &SockaddrStorage::from(to)).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// A connection sends no faster than this (SO_MAX_PACING_RATE).
pub(crate) fn limit_rate(stream: &impl std::os::fd::AsRawFd, bytes_per_second: u64) {
    // SAFETY: the pointer and the length are those of a local integer, which the call reads.
    let refused = unsafe {
        nix::libc::setsockopt(
            stream.as_raw_fd(),
            nix::libc::SOL_SOCKET,
            nix::libc::SO_MAX_PACING_RATE,
            (&raw const bytes_per_second).cast(),
            size_of::<u64>() as nix::libc::socklen_t,
        )
    };
    assert_eq!(refused, 0, "{}", std::io::Error::last_os_error());
}

/// Bytes that tell at every place where they are from.
pub(crate) fn pattern(from: u64, buffer: &mut [u8]) {
    for (place, byte) in (from..).zip(buffer) {
        *byte = (place.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8;
    }
}

/// Writes `bytes` of the pattern and closes.
pub(crate) fn send(mut stream: TcpStream, bytes: u64) -> std::io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    let mut sent = 0;
    while sent < bytes {
        let part = buffer.len().min((bytes - sent) as usize);
        pattern(sent, &mut buffer[..part]);
        stream.write_all(&buffer[..part])?;
        sent += part as u64;
    }
    stream.shutdown(Shutdown::Write)
}

/// Reads to the end; the number of bytes if all of them were right.
pub(crate) fn receive(mut stream: TcpStream) -> Result<u64, String> {
    stream.set_read_timeout(Some(PATIENCE)).map_err(|error| error.to_string())?;
    let (mut buffer, mut expected) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    let mut received = 0;
    loop {
        let part = match stream.read(&mut buffer) {
            // Whoever was stopped and goes on.
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            read => read.map_err(|error| format!("after {received} bytes: {error}"))?,
        };
        if part == 0 {
            return Ok(received);
        }
        pattern(received, &mut expected[..part]);
        if buffer[..part] != expected[..part] {
            return Err(format!("wrong bytes after {received}"));
        }
        received += part as u64;
    }
}

/// Transfers `bytes` from host 0 to host 1 with `control` and returns what arrived.
pub(crate) fn transfer(pair: &Pair, control: &'static str, bytes: u64) -> Result<u64, String> {
    let (to, listener) = listen(pair, control);
    let sender = pair.on(0, move || send(connect(to, control), bytes));
    let received = listener.accept().map_err(|error| error.to_string()).and_then(|(stream, _)| receive(stream));
    sender.join().map_err(|_| "the sender failed".to_owned())?.map_err(|error| error.to_string())?;
    received
}
