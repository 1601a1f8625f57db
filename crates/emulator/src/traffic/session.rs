//! Users who ask servers for one reply after the other.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use flowstart_units::{Bytes, Time};

use super::scene::{Scene, Shared, TIMEOUT, is_pause, lock};
use super::{SessionConfig, SessionOutcome, tcp};
use crate::wire::{self, FlowKey};
use crate::{Error, Host};

/// What is read at once.
const READ: usize = 128 << 10;
/// Bytes of a request: how long the reply is to be.
const REQUEST: usize = 8;

/// What the threads of a session share.
#[derive(Debug, Default)]
pub(super) struct SessionShared {
    done: Mutex<Vec<Time>>,
    connections: Mutex<Vec<(Option<Bytes>, Arc<Shared>)>>,
    /// When the user began to open the latest connection.
    opened: Mutex<Time>,
    error: Mutex<Option<String>>,
}

impl SessionShared {
    /// Something failed, and everything ends; at the end connections are not closed in order, which
    /// is no failure.
    fn fail(&self, error: impl std::fmt::Display, scene: &Scene<'_>) {
        if !scene.over() {
            lock(&self.error).get_or_insert_with(|| error.to_string());
            scene.end();
        }
    }

    pub(super) fn outcome(self) -> SessionOutcome {
        let connections = lock(&self.connections);
        SessionOutcome {
            done: lock(&self.done).clone(),
            connections: connections.iter().map(|(size, shared)| (*size, shared.outcome())).collect(),
            error: lock(&self.error).take(),
        }
    }
}

/// Reads all of `bytes`; false if everything ended before, or at the end of the stream.
fn read_whole(mut stream: &TcpStream, bytes: &mut [u8], scene: &Scene<'_>) -> io::Result<bool> {
    let mut read = 0;
    while read < bytes.len() {
        match stream.read(&mut bytes[read..]) {
            Ok(0) => return Ok(false),
            Ok(more) => read += more,
            Err(error) if is_pause(&error) => {
                if scene.over() {
                    return Ok(false);
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))
}

/// The server: takes the user's connections, one after the other, and answers their requests.
pub(super) fn serve(listener: &TcpListener, config: &SessionConfig, scene: &Scene<'_>, session: &SessionShared) {
    loop {
        let stream = match tcp::accept(listener, scene) {
            Ok(Some(stream)) => stream,
            Ok(None) => return,
            Err(error) => return session.fail(error, scene),
        };
        let shared = Arc::<Shared>::default();
        if let Err(error) = answer(&stream, config, scene, session, &shared) {
            session.fail(error, scene);
        }
        scene.settle(&shared);
        if scene.over() {
            tcp::forget(&stream);
        }
    }
}

/// Answers the requests of one connection.
fn answer(
    stream: &TcpStream,
    config: &SessionConfig,
    scene: &Scene<'_>,
    session: &SessionShared,
    shared: &Arc<Shared>,
) -> io::Result<()> {
    prepare(stream)?;
    let (own, peer) = (stream.local_addr()?, stream.peer_addr()?);
    let opened = *lock(&session.opened);
    shared.change(|outcome| {
        outcome.started = Some(opened);
        outcome.key = Some(FlowKey {
            source: own.ip(),
            destination: peer.ip(),
            source_port: own.port(),
            destination_port: peer.port(),
            protocol: wire::TCP,
        });
    });
    {
        let mut connections = lock(&session.connections);
        // A connection with a single reply is a transfer like any other.
        let single = !config.persistent || config.replies.len() == 1;
        let size = config.replies.get(connections.len()).filter(|_| single).map(|(_, bytes)| *bytes);
        connections.push((size, shared.clone()));
    }
    scene.watch(shared, OwnedFd::from(stream.try_clone()?));
    let mut request = [0; REQUEST];
    while read_whole(stream, &mut request, scene)? {
        if !tcp::write(stream, u64::from_be_bytes(request), scene) {
            break;
        }
    }
    Ok(())
}

/// The user: asks for the replies, each some time after the last.
pub(super) fn ask(
    user: &Host,
    (address, port): (IpAddr, u16),
    config: &SessionConfig,
    scene: &Scene<'_>,
    session: &SessionShared,
) {
    let mut connection = None;
    let mut last = config.start;
    for (think, bytes) in &config.replies {
        if !scene.wait_until(last + *think) {
            return;
        }
        let mut stream = match connection
            .take()
            .map_or_else(|| open(user, (address, port), scene, session), |open| Ok(Some(open)))
        {
            Ok(Some(stream)) => stream,
            Ok(None) => return,
            Err(error) => return session.fail(error, scene),
        };
        match fetch(&mut stream, *bytes, scene, session) {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => return session.fail(error, scene),
        }
        last = scene.clock.now();
        lock(&session.done).push(last);
        if config.persistent {
            connection = Some(stream);
        } else {
            complete(session, last);
        }
    }
    if config.replies.len() == 1 {
        complete(session, last);
    }
    scene.completed();
}

/// The latest connection carried one reply, which is complete.
fn complete(session: &SessionShared, now: Time) {
    if let Some((Some(_), shared)) = lock(&session.connections).last() {
        shared.change(|outcome| outcome.completed = Some(now));
    }
}

fn open(
    user: &Host,
    (address, port): (IpAddr, u16),
    scene: &Scene<'_>,
    session: &SessionShared,
) -> Result<Option<TcpStream>, Error> {
    *lock(&session.opened) = scene.clock.now();
    let stream = user.run(|| tcp::connect_to(SocketAddr::new(address, port), None, scene))??;
    if let Some(stream) = &stream {
        prepare(stream).map_err(|error| Error::doing("prepare a socket", error))?;
    }
    Ok(stream)
}

/// Asks for a reply and reads it; false if everything ended before.
fn fetch(stream: &mut TcpStream, bytes: Bytes, scene: &Scene<'_>, session: &SessionShared) -> io::Result<bool> {
    stream.write_all(&bytes.get().to_be_bytes())?;
    let mut buffer = vec![0; READ];
    let mut left = bytes.get();
    let mut shared: Option<Arc<Shared>> = None;
    while left > 0 {
        let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(READ);
        match stream.read(&mut buffer[..wanted]) {
            Ok(0) => return Ok(false),
            Ok(_) if scene.is_past(scene.clock.now()) => return Ok(false),
            Ok(read) => {
                left -= read as u64;
                // The server has written this down before it answered.
                let connection = || lock(&session.connections).last().map(|(_, shared)| shared.clone());
                if shared.is_none() {
                    shared = connection();
                }
                if let Some(shared) = &shared {
                    shared.delivered.fetch_add(read as u64, Ordering::Relaxed);
                }
            }
            Err(error) if is_pause(&error) => {
                if scene.over() {
                    return Ok(false);
                }
            }
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}
