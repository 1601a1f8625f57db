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
    let shorter: fn(&mut File) = |file: &mut File| file.set_len(10_000).unwrap();
    let rewritten: fn(&mut File) = |file: &mut File| {
        // As many bytes as before, those that are sent already.
        file.rewind().unwrap();
        file.write_all(&[8; 1000]).unwrap();
    };
    let longer: fn(&mut File) = |file: &mut File| file.set_len(2 * SIZE as u64).unwrap();
    let changes: [fn(&mut File); 3] = [shorter, rewritten, longer];
    let words = ["the file has become shorter", "the file has changed", "the file has changed"];
    for contestant in [("slow_start", "cubic"), ("fair_queuing_probe", "delay_or_cubic")] {
        for (change, words) in changes.into_iter().zip(words) {
            let (outcome, after) = fetch(contestant, change);
            let said = outcome.unwrap_err().to_string();
            assert!(said.ends_with(&format!("{words} while it was sent")), "{words}: {said}");
            assert!(after < Span::from_secs(2), "{words}: {after}");
        }
        let (outcome, _) = fetch(contestant, |_| {});
        assert_eq!(outcome.unwrap().received.bytes, SIZE as u64);
    }
}
