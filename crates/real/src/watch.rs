//! What the kernels of the hosts say of the connections of programs that run there.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use flowstart_emulator::traffic::TcpInfo;
use flowstart_emulator::{FlowKey, TcpWatch, World};
use flowstart_units::{Span, Time};

/// What was said of a connection, and when.
pub(super) type States = HashMap<FlowKey, Vec<(Time, TcpInfo)>>;

/// Shortest time between two questions: with a hundred pairs of hosts each takes some milliseconds.
const SHORTEST: Span = Span::from_millis(10);
/// Most states that are kept of all connections together, some hundred megabytes.
const MOST: usize = 2_000_000;

/// Asks until the other end of `over` is gone, once per `every` (not at all if that is zero). `say`
/// hears if nothing can be asked.
pub(super) fn watch(world: &World, every: Span, over: &Receiver<()>, say: &dyn Fn(&str)) -> States {
    let mut states = States::new();
    if every.is_zero() {
        return states;
    }
    let watches: Vec<TcpWatch> = match world.hosts().iter().map(flowstart_emulator::Host::tcp_watch).collect() {
        Ok(watches) => watches,
        Err(error) => {
            say(&format!("without the kernel's view of connections: {error}"));
            return states;
        }
    };
    let step = Duration::from_nanos(every.max(SHORTEST).as_nanos());
    let mut kept = 0;
    while kept < MOST {
        for watch in &watches {
            let at = world.clock().now();
            for (key, info) in watch.connections().unwrap_or_default() {
                states.entry(key).or_default().push((at, info));
                kept += 1;
            }
        }
        // However long the step is, the end is not to wait for it.
        if over.recv_timeout(step) != Err(RecvTimeoutError::Timeout) {
            break;
        }
    }
    states
}
