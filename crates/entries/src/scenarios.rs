//! Scenarios, and what they name.

use std::sync::OnceLock;

use flowstart_network::{Transmitter, parse_mahimahi};
use flowstart_reproduce::Figure;
use flowstart_scenario::{Profile, Scenario, parse_flow_list};
use flowstart_torture::{Judgement, Limits, judge};
use flowstart_units::{Rate, Span, Time};
use tempfile::TempDir;

use crate::text;

/// A scenario is read, and prints back to the same.
///
/// # Panics
/// If it does not.
pub fn scenario(bytes: &[u8]) {
    let Some(Ok(scenario)) = text(bytes).map(|text| Scenario::parse("fuzz.toml", text)) else { return };
    match Scenario::parse("effective.toml", &scenario.effective()) {
        Ok(again) => assert!(again == scenario, "effective parameters read back to another scenario"),
        Err(error) => panic!("effective parameters do not read back: {error}"),
    }
}

/// What a scenario may hold to be run within a fuzzer's patience.
const MOST_FLOWS: u64 = 50;
const MOST_USERS: u64 = 5;
const LONGEST_VISIT: Span = Span::from_secs(600);
const LONGEST_TEXT: usize = 20_000;
const PACKETS: u64 = 300;

/// A scenario is run, cut off after some hundred packets, and judged by the invariants of
/// `flowstart-torture`.
///
/// # Panics
/// If one does not hold.
pub fn run(bytes: &[u8]) {
    let Some(text) = text(bytes).filter(|text| text.len() <= LONGEST_TEXT) else { return };
    let Ok(scenario) = Scenario::parse("fuzz.toml", text) else { return };
    let flows: u64 = scenario.flow.iter().map(|flow| u64::from(flow.count)).sum();
    let users: u64 = scenario.web.iter().map(|web| u64::from(web.users)).sum();
    if flows > MOST_FLOWS || users > MOST_USERS || (users > 0 && scenario.duration > LONGEST_VISIT) {
        return;
    }
    let Ok(table) = text.parse::<toml::Table>() else { return };
    if let Judgement::Violated { what, .. } = judge(&table, Limits::packets(PACKETS)) {
        panic!("{what}");
    }
}

/// A list of flows.
pub fn flow_list(bytes: &[u8]) {
    let kind = Scenario::parse("kind.toml", "[path]\ncapacity = \"1 Mbit/s\"\nrtt = \"10 ms\"\n[[flow]]\n");
    if let (Some(text), Ok(kind)) = (text(bytes), kind)
        && let Some(kind) = kind.flow.first()
    {
        let _ = parse_flow_list(text, kind);
    }
}

/// A Mahimahi trace, and a link whose rate varies so.
///
/// # Panics
/// If a packet's last bit leaves before its first.
pub fn trace(bytes: &[u8]) {
    let Some(Ok(schedule)) = text(bytes).map(parse_mahimahi) else { return };
    if schedule.validate().is_err() {
        return;
    }
    let mut transmitter = Transmitter::new(&schedule);
    let mut now = Time::ZERO;
    for _ in 0..50 {
        let done = transmitter.transmit(now, 1500);
        assert!(done >= now, "a transmission ends before it begins");
        if done == Time::NEVER {
            return;
        }
        now = done;
    }
}

/// A figure of a paper with its variants, claims and pictures.
pub fn figure(bytes: &[u8]) {
    if let Some(text) = text(bytes) {
        let _ = Figure::parse("fuzz.toml", text, None);
    }
}

/// A file with a profile of a path, and the path with other capacities.
pub fn profile(bytes: &[u8]) {
    static FOLDER: OnceLock<Option<TempDir>> = OnceLock::new();
    let Some(folder) = FOLDER.get_or_init(|| tempfile::tempdir().ok()) else { return };
    let file = folder.path().join("fuzz.toml");
    if std::fs::write(&file, bytes).is_err() {
        return;
    }
    let Ok(profile) = file.to_string_lossy().parse::<Profile>() else { return };
    for mbps in [1, 1_000_000] {
        let _ = profile.with_capacity(Rate::from_mbps(mbps));
    }
}
