//! DCTCP, Scalable and Reno as programs, on the running kernel. Needs root; says `skipped: …`
//! otherwise.

#![cfg(feature = "ebpf")]

mod common;

use common::{Pair, Registered, alone, connect, listen, receive, send, transfer};
use flowstart_kernel::{Algorithm, Settings, load, loaded, unload};

const SIMPLE: [Algorithm; 3] = [Algorithm::Dctcp, Algorithm::Scalable, Algorithm::SlowStartReno];

fn kernel_has(algorithm: Algorithm) -> bool {
    let names = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap();
    names.split_whitespace().any(|name| name == algorithm.kernel_name())
}

fn default_control() -> String {
    std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap()
}

#[test]
fn every_program_passes_the_verifier_and_carries_a_megabyte_intact() {
    let Some(_alone) = alone() else { return };
    let default = default_control();
    let pair = Pair::new();
    for algorithm in SIMPLE {
        let _registered = Registered::new(algorithm, &[]);
        assert!(kernel_has(algorithm));
        assert_eq!(transfer(&pair, algorithm.kernel_name(), 1_000_000), Ok(1_000_000));
    }
    assert!(SIMPLE.into_iter().all(|algorithm| !kernel_has(algorithm)));
    assert_eq!(default_control(), default);
}

#[test]
fn a_registered_program_is_listed_with_the_parameters_it_was_given() {
    let Some(_alone) = alone() else { return };
    let registered = Registered::new(Algorithm::Dctcp, &["gain_shift=5", "initial_alpha=0.25"]);
    let found = loaded().into_iter().find(|loaded| loaded.algorithm == registered.0).unwrap();
    let settings = found.settings.unwrap();
    assert_eq!((settings.value("gain_shift"), settings.value("initial_alpha")), (Some(5), Some(256)));
}

#[test]
fn a_second_registration_and_a_second_removal_are_refused_with_a_remedy() {
    let Some(_alone) = alone() else { return };
    let registered = Registered::new(Algorithm::Scalable, &[]);
    let again = load(&Settings::new(registered.0)).unwrap_err();
    assert!(again.to_string().contains("flowstart kernel unload scalable"), "{again}");
    unload(registered.0).unwrap();
    let twice = unload(registered.0).unwrap_err();
    assert!(twice.to_string().contains("is not loaded"), "{twice}");
}

#[test]
fn a_connection_outlives_the_removal_of_its_program() {
    let Some(_alone) = alone() else { return };
    let pair = Pair::new();
    for algorithm in SIMPLE {
        let registered = Registered::new(algorithm, &[]);
        let name = algorithm.kernel_name();
        let (to, listener) = listen(&pair, name);
        let stream = pair.on(0, move || connect(to, name)).join().unwrap();
        let (accepted, _) = listener.accept().unwrap();
        unload(registered.0).unwrap();
        assert!(!kernel_has(algorithm));
        let sender = std::thread::spawn(move || send(stream, 3_000_000));
        assert_eq!(receive(accepted), Ok(3_000_000));
        sender.join().unwrap().unwrap();
    }
}
