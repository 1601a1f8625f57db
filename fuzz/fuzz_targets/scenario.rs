//! Reading scenarios never panics, and what was read prints back to the same: `cargo +nightly fuzz run scenario`.

#![no_main]

use flowstart_scenario::Scenario;

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(scenario) = Scenario::parse("fuzz.toml", text) {
        let again = Scenario::parse("effective.toml", &scenario.effective()).expect("effective parameters read back");
        assert_eq!(again, scenario);
    }
});
