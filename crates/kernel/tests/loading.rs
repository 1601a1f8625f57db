//! Loading, listing and watching by several at once, and after somebody was killed. Needs root;
//! says `skipped: …` otherwise.

#![cfg(feature = "ebpf")]

mod common;

use std::sync::Barrier;

use common::{Registered, alone};
use flowstart_kernel::{Algorithm, Settings, Watch, load, loaded, unload, unseen};

fn kernel_has(algorithm: Algorithm) -> bool {
    let names = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    names.split_whitespace().any(|name| name == algorithm.kernel_name())
}

/// Takes an algorithm away when the test is over, however it ends.
struct Away(Algorithm);

impl Drop for Away {
    fn drop(&mut self) {
        let _ = unload(self.0);
    }
}

#[test]
fn of_two_loads_at_once_one_succeeds_and_what_it_loaded_stays() {
    let Some(_alone) = alone() else { return };
    let algorithm = Algorithm::Scalable;
    let _away = Away(algorithm);
    for _ in 0..20 {
        let together = Barrier::new(2);
        let results = std::thread::scope(|scope| {
            let load = || {
                together.wait();
                load(&Settings::new(algorithm))
            };
            [scope.spawn(load), scope.spawn(load)].map(|thread| thread.join().unwrap())
        });
        let [first, second] = results;
        let refused = match (first, second) {
            (Ok(_), Err(problem)) | (Err(problem), Ok(_)) => problem.to_string(),
            both => panic!("{both:?}"),
        };
        assert!(refused.contains("flowstart kernel unload scalable"), "{refused}");
        assert!(kernel_has(algorithm), "who was told that it is loaded was told the truth");
        assert_eq!(loaded().iter().filter(|loaded| loaded.algorithm == algorithm).count(), 1);
        unload(algorithm).unwrap();
        assert!(!kernel_has(algorithm));
    }
}

#[test]
fn what_a_load_that_was_killed_left_behind_is_replaced() {
    let Some(_alone) = alone() else { return };
    let algorithm = Algorithm::Dctcp;
    let _away = Away(algorithm);
    let folder = load(&Settings::new(algorithm)).unwrap().folder;
    // Parameters are pinned, the registration is not: so it is when a load is killed in between.
    std::fs::remove_file(folder.join("link")).unwrap();
    assert!(folder.join("parameters").exists());
    assert!(loaded().iter().all(|loaded| loaded.algorithm != algorithm), "half of it is not loaded");
    load(&Settings::new(algorithm)).unwrap();
    assert!(kernel_has(algorithm) && loaded().iter().any(|loaded| loaded.algorithm == algorithm));
}

#[test]
fn a_second_watcher_is_refused_with_a_sentence_and_may_come_after_the_first() {
    let Some(_alone) = alone() else { return };
    let _registered = Registered::new(Algorithm::PacedChirping, &[]);
    let first = Watch::new(|_| {}).unwrap();
    let refused = Watch::new(|_| {}).err().expect("events can be read by one only").to_string();
    let own = std::process::id().to_string();
    assert!(refused.contains("watches fs_chirp already") && refused.contains(&own), "{refused}");
    drop(first);
    Watch::new(|_| {}).unwrap();
}

#[test]
fn who_may_see_everything_is_told_that_nothing_is_hidden() {
    let Some(_alone) = alone() else { return };
    let _registered = Registered::new(Algorithm::Scalable, &[]);
    assert!(unseen().is_none());
}
