//! Files that change while they are fetched, in virtual time.

mod common;
#[path = "common/link.rs"]
mod link;

use std::fs::File;
use std::io::{Seek as _, Write as _};

use common::request;
use flowstart_quic::message::{Direction, Request};
use flowstart_quic::{Failed, Node as _, Service, Transferred};
use flowstart_units::{Span, Time};
use link::{Link, world};

const SIZE: usize = 3_000_000;

/// Fetches a file to which this is done after 700 ms, when half of it is sent; how long after that
/// the client is over.
fn fetch(contestant: (&str, &str), change: impl Fn(&mut File)) -> (Result<Transferred, Failed>, Span) {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("file");
    std::fs::write(&path, vec![7; SIZE]).unwrap();
    // Whatever is done to it now is done later than that.
    let before = std::time::SystemTime::now() - std::time::Duration::from_secs(5);
    File::options().write(true).open(&path).unwrap().set_modified(before).unwrap();
    let asked = Request { file: Some("file".to_owned()), size: None, ..request(Direction::Down, 0, contestant) };
    let service = Service { root: Some(root.path().to_owned()), ..Service::default() };
    let mut world = world(&Link::default(), asked, None, service);
    world.run_until(Time::ZERO + Span::from_millis(700));
    assert!(!world.client.is_over(world.now));
    change(&mut File::options().write(true).open(&path).unwrap());
    let (since, most) = (world.now, world.now + Span::from_secs(20));
    while !world.client.is_over(world.now) && world.now < most {
        world.step(Time::NEVER);
    }
    let after = world.now.since(since);
    (world.client.outcome(), after)
}

#[test]
fn a_file_that_changes_while_it_is_fetched_is_an_error_in_one_sentence() {
    let shorter = |file: &mut File| file.set_len(10_000).unwrap();
    let rewritten = |file: &mut File| {
        // As many bytes as before, those that are sent already.
        file.rewind().unwrap();
        file.write_all(&[8; 1000]).unwrap();
    };
    let longer = |file: &mut File| file.set_len(2 * SIZE as u64).unwrap();
    let changes: [(&str, &dyn Fn(&mut File), &str); 3] = [
        ("shorter", &shorter, "the file has become shorter while it was sent"),
        ("rewritten", &rewritten, "the file has changed while it was sent"),
        ("longer", &longer, "the file has changed while it was sent"),
    ];
    for contestant in [("slow_start", "cubic"), ("fair_queuing_probe", "delay_or_cubic")] {
        for (what, change, words) in &changes {
            let (outcome, after) = fetch(contestant, change);
            let said = outcome.unwrap_err().to_string();
            assert!(said.ends_with(words), "{what}: {said}");
            assert!(after < Span::from_secs(2), "{what}: {after}");
        }
        let (outcome, _) = fetch(contestant, |_| {});
        assert_eq!(outcome.unwrap().received.bytes, SIZE as u64);
    }
}
