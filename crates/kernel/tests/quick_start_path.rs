//! Quick-Start over real routers: network namespaces in a row, whose kernels forward. Needs root;
//! says `skipped: …` otherwise.

#![cfg(feature = "ebpf")]

mod common;

use std::fs::File;
use std::net::{IpAddr, TcpListener};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use common::worlds::CONTROL;
use common::{Registered, alone_with_quick_start, connect, ip, receive, send};
use flowstart_kernel::{Algorithm, HostCounts, LoadedRouter, RouterSettings, attach_host, host_counts, load_router};
use flowstart_units::Rate;
use nix::sched::{CloneFlags, setns};

/// Namespaces in a row: a host, routers, a host. Each has `left` and `right`, as far as there is
/// somebody.
struct Row {
    names: Vec<String>,
}

impl Row {
    fn new(routers: usize) -> Self {
        let row = Self { names: (0..routers + 2).map(|n| format!("fs-row{n}-{}", std::process::id())).collect() };
        for name in &row.names {
            let _ = Command::new("ip").args(["netns", "delete", name]).stderr(std::process::Stdio::null()).status();
            ip(&format!("netns add {name}"));
            ip(&format!("-n {name} link set lo up"));
        }
        for place in 0..row.names.len() {
            // Link-local addresses would be tried out first, for a second.
            row.on(place, || set("ipv6/conf/default/accept_dad", "0")).join().unwrap();
        }
        for (place, pair) in row.names.windows(2).enumerate() {
            let [a, b] = pair else { unreachable!() };
            ip(&format!("link add right netns {a} type veth peer name left netns {b}"));
            for (name, device, end) in [(a, "right", 1), (b, "left", 2)] {
                ip(&format!("-n {name} addr add 10.215.{place}.{end}/24 dev {device}"));
                ip(&format!("-n {name} addr add fd15:{place}::{end}/64 dev {device} nodad"));
                ip(&format!("-n {name} link set {device} up"));
            }
        }
        let last = row.names.len() - 1;
        for (place, name) in row.names.iter().enumerate() {
            if place > 0 && place < last {
                row.on(place, forward).join().unwrap();
            }
            // Everything to the right over the next on the right, everything to the left likewise.
            for net in 0..last {
                let via = if net > place {
                    format!("via 10.215.{place}.2 dev right;via fd15:{place}::2 dev right")
                } else if net + 1 < place {
                    format!("via 10.215.{0}.1 dev left;via fd15:{0}::1 dev left", place - 1)
                } else {
                    continue;
                };
                let (v4, v6) = via.split_once(';').unwrap();
                ip(&format!("-n {name} route add 10.215.{net}.0/24 {v4}"));
                ip(&format!("-n {name} -6 route add fd15:{net}::/64 {v6}"));
            }
        }
        row
    }

    fn on<T: Send + 'static>(&self, place: usize, what: impl FnOnce() -> T + Send + 'static) -> thread::JoinHandle<T> {
        let namespace = File::open(format!("/run/netns/{}", self.names[place])).unwrap();
        thread::spawn(move || {
            setns(namespace, CloneFlags::CLONE_NEWNET).unwrap();
            what()
        })
    }

    /// The last host.
    fn server(&self, v6: bool) -> IpAddr {
        let net = self.names.len() - 2;
        if v6 { format!("fd15:{net}::2") } else { format!("10.215.{net}.2") }.parse().unwrap()
    }

    /// A router of ours towards the right.
    fn router(&self, place: usize, megabits: u64) -> LoadedRouter {
        load_router("right", Some(&self.names[place]), &RouterSettings::new(Rate::from_mbps(megabits))).unwrap()
    }

    fn hosts(&self) {
        attach_host("right", Some(&self.names[0])).unwrap();
        attach_host("left", Some(self.names.last().unwrap())).unwrap();
    }

    /// Transfers from the first to the last host; what arrived.
    fn transfer(&self, v6: bool, bytes: u64) -> Result<u64, String> {
        let server = self.server(v6);
        let last = self.names.len() - 1;
        let listener = self.on(last, move || TcpListener::bind((server, 0)).unwrap()).join().unwrap();
        let to = listener.local_addr().unwrap();
        let stream = self.on(0, move || connect(to, CONTROL)).join().unwrap();
        let sender = thread::spawn(move || send(stream, bytes));
        let received = receive(listener.accept().unwrap().0);
        sender.join().unwrap().unwrap();
        received
    }
}

impl Drop for Row {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "delete", name]).status();
        }
    }
}

/// Sets a switch of this thread's network namespace.
fn set(switch: &str, value: &str) {
    // /proc/sys/net is that of the thread which looks.
    std::fs::write(format!("/proc/sys/net/{switch}"), value).unwrap();
}

fn forward() {
    set("ipv4/ip_forward", "1");
    set("ipv6/conf/all/forwarding", "1");
}

#[test]
fn of_two_routers_in_a_row_the_smaller_decides_and_both_hear_what_was_approved() {
    let Some(_alone) = alone_with_quick_start() else { return };
    for v6 in [false, true] {
        for (first, second) in [(100, 30), (30, 100)] {
            let _registered = Registered::new(Algorithm::QuickStart, &[]);
            let row = Row::new(2);
            row.hosts();
            let routers = [row.router(1, first), row.router(2, second)];
            assert_eq!(row.transfer(v6, 200_000), Ok(200_000));
            let counts = host_counts().unwrap();
            let when = format!("IPv6: {v6}, {first} then {second} Mbit/s: {counts:?}");
            let good = HostCounts { asked: 1, granted: 1, reports: 1, heard: 1, answered: 1, ..HostCounts::default() };
            // Next to nothing fits into the round trip of such a path.
            assert_eq!(HostCounts { too_small: 0, used: 0, ..counts }, good, "{when}");
            let approved = Rate::from_bps(20_480_000);
            let given = |capacity| if capacity == 100 && first == 100 { Rate::from_bps(81_920_000) } else { approved };
            let states = routers.map(|router| router.state().unwrap());
            assert_eq!(states[0].granted_sum, given(first), "{when}");
            assert_eq!(states[1].granted_sum, approved, "{when}");
            assert_eq!(states.map(|state| (state.reports, state.reported_sum)), [(1, approved); 2], "{when}");
        }
    }
}

#[test]
fn behind_a_router_that_knows_nothing_of_it_the_ttl_says_so() {
    let Some(_alone) = alone_with_quick_start() else { return };
    for v6 in [false, true] {
        let _registered = Registered::new(Algorithm::QuickStart, &[]);
        let row = Row::new(2);
        row.hosts();
        let _router = row.router(1, 100);
        assert_eq!(row.transfer(v6, 200_000), Ok(200_000));
        let counts = host_counts().unwrap();
        assert_eq!((counts.wrong_ttl, counts.granted, counts.reports), (1, 0, 1), "IPv6: {v6}: {counts:?}");
    }
}

#[test]
fn routers_come_and_go_under_load_and_every_byte_arrives() {
    let Some(_alone) = alone_with_quick_start() else { return };
    let _registered = Registered::new(Algorithm::QuickStart, &[]);
    let row = Row::new(1);
    row.hosts();
    let done = AtomicBool::new(false);
    let turns = thread::scope(|scope| {
        let turns = scope.spawn(|| {
            let mut turns = 0;
            while !done.load(Ordering::Relaxed) || turns < 3 {
                row.router(1, 100).unload().unwrap();
                turns += 1;
            }
            turns
        });
        for _ in 0..20 {
            assert_eq!(row.transfer(false, 3_000_000), Ok(3_000_000));
        }
        done.store(true, Ordering::Relaxed);
        turns.join().unwrap()
    });
    let counts = host_counts().unwrap();
    assert_eq!((counts.asked, counts.lost, counts.failed), (20, 0, 0), "{turns} routers: {counts:?}");
}
