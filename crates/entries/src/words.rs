//! Short texts of the command line, and frames.

use flowstart_kernel::{Algorithm, Settings};
use flowstart_race::Contestant;

use crate::text;

/// A contestant of a race: its name is read as the same contestant.
///
/// # Panics
/// If it is not.
pub fn contestant(bytes: &[u8]) {
    let Some(Ok(contestant)) = text(bytes).map(str::parse::<Contestant>) else { return };
    let name = contestant.name();
    match name.parse::<Contestant>() {
        Ok(again) => assert_eq!(again.name(), name, "a contestant's name is read as another"),
        Err(error) => panic!("the name \"{name}\" of a contestant is not read: {error}"),
    }
}

/// Parameters of a program for the kernel, one per line: what is set and shown can be set.
///
/// # Panics
/// If it cannot.
pub fn settings(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    for algorithm in Algorithm::ALL {
        let mut settings = Settings::new(algorithm);
        for line in text.lines() {
            let _ = settings.set(line);
        }
        let shown: Vec<String> =
            settings.iter().map(|(parameter, value)| format!("{}={}", parameter.name, parameter.show(value))).collect();
        let mut again = Settings::new(algorithm);
        for line in &shown {
            if let Err(error) = again.set(line) {
                panic!("{line} was shown and cannot be set: {error}");
            }
        }
    }
}

/// A frame in the emulator: read, marked, and read as the same with the mark.
///
/// # Panics
/// If a mark changes anything else.
#[cfg(target_os = "linux")]
pub fn frame(bytes: &[u8]) {
    let Some((key, length, _)) = flowstart_emulator::read_frame(bytes) else { return };
    let mut marked = bytes.to_vec();
    flowstart_emulator::mark_frame(&mut marked);
    match flowstart_emulator::read_frame(&marked) {
        Some((key_now, length_now, ecn)) => {
            assert_eq!((key_now, length_now), (key, length), "a mark changed a frame");
            assert_eq!(ecn, flowstart_network::Ecn::Ce, "a mark was not set");
        }
        None => panic!("a marked frame is not read"),
    }
}
