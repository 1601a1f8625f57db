//! Names and scenario tables of flow starts and congestion avoidances.

use flowstart_congestion::{AvoidanceConfig, StartConfig};

#[test]
fn every_name_gives_the_algorithm_of_that_name() {
    for name in StartConfig::NAMES {
        let config = StartConfig::from_name(name).unwrap();
        assert_eq!(config.name(), *name);
        assert_eq!(config.validate(), Ok(()));
    }
    for name in AvoidanceConfig::NAMES {
        let config = AvoidanceConfig::from_name(name).unwrap();
        assert_eq!(config.name(), *name);
        assert_eq!(config.validate(), Ok(()));
    }
}

#[test]
fn common_spellings_are_understood() {
    for (spelling, name) in [
        ("HyStart++", "hystart_plus_plus"),
        ("HyStart", "hystart"),
        ("slow-start", "slow_start"),
        ("Paced Chirping", "paced_chirping"),
        ("paced-chirping", "paced_chirping"),
    ] {
        assert_eq!(StartConfig::from_name(spelling).unwrap().name(), name);
    }
    assert_eq!(AvoidanceConfig::from_name("NewReno").unwrap().name(), "reno");
}

#[cfg(feature = "serde")]
mod tables {
    use super::*;
    use flowstart_congestion::Pacing;
    use flowstart_congestion::start::HystartConfig;
    use flowstart_units::Span;

    fn start(json: &str) -> Result<StartConfig, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[test]
    fn a_plain_name_has_the_default_constants() {
        assert_eq!(start("\"hystart\""), Ok(StartConfig::Hystart(HystartConfig::default())));
        assert_eq!(start("\"slow_start\""), Ok(StartConfig::SlowStart));
    }

    #[test]
    fn a_table_changes_constants_wherever_its_name_stands() {
        let expected =
            HystartConfig { delay_detector: false, ack_delta: Span::from_millis(3), ..HystartConfig::default() };
        for json in [
            r#"{ "name": "hystart", "delay_detector": false, "ack_delta": "3 ms" }"#,
            r#"{ "delay_detector": false, "name": "hystart", "ack_delta": "3 ms" }"#,
            r#"{ "delay_detector": false, "ack_delta": "3 ms", "name": "HyStart" }"#,
        ] {
            assert_eq!(start(json), Ok(StartConfig::Hystart(expected)), "{json}");
        }
        assert_eq!(start(r#"{ "name": "slow_start" }"#), Ok(StartConfig::SlowStart));
    }

    #[test]
    fn errors_say_what_would_be_right() {
        for (json, parts) in [
            ("\"hystrat\"", vec!["unknown flow start \"hystrat\"", "did you mean \"hystart\"?", "slow_start"]),
            (r#"{ "name": "hystrat" }"#, vec!["did you mean \"hystart\"?"]),
            (r#"{ "delay_detector": false }"#, vec!["needs the `name` of a flow start"]),
            (r#"{ "name": "hystart", "delay": false }"#, vec!["unknown field `delay`", "`delay_detector`"]),
            (r#"{ "delay": false, "name": "hystart" }"#, vec!["unknown field `delay`", "`delay_detector`"]),
            (r#"{ "name": "slow_start", "delay": false }"#, vec!["unknown field `delay`"]),
            (r#"{ "name": "hystart", "ack_delta": 3 }"#, vec!["ms"]),
            ("7", vec!["the name of a flow start or a table with its `name`"]),
        ] {
            let error = start(json).unwrap_err();
            for part in parts {
                assert!(error.contains(part), "{json}: {error}");
            }
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        for name in StartConfig::NAMES {
            let config = StartConfig::from_name(name).unwrap();
            assert_eq!(start(&serde_json::to_string(&config).unwrap()), Ok(config));
        }
        for name in AvoidanceConfig::NAMES {
            let config = AvoidanceConfig::from_name(name).unwrap();
            let json = serde_json::to_string(&config).unwrap();
            assert_eq!(serde_json::from_str::<AvoidanceConfig>(&json).unwrap(), config);
        }
        for pacing in [Pacing::Off, Pacing::LINUX] {
            let json = serde_json::to_string(&pacing).unwrap();
            assert_eq!(serde_json::from_str::<Pacing>(&json).unwrap(), pacing);
        }
    }

    #[test]
    fn pacing_is_off_or_on_or_a_table() {
        let read = |json: &str| serde_json::from_str::<Pacing>(json).map_err(|error| error.to_string());
        assert_eq!(read("\"off\""), Ok(Pacing::Off));
        assert_eq!(read("\"on\""), Ok(Pacing::LINUX));
        assert_eq!(read("{}"), Ok(Pacing::LINUX));
        let slower =
            Pacing::Window { start_percent: 125, avoidance_percent: 120, unpaced_packets: 10, catch_up_percent: 50 };
        assert_eq!(read(r#"{ "start_percent": 125 }"#), Ok(slower));
        assert!(read("\"yes\"").unwrap_err().contains("\"off\", \"on\" or a table"));
    }

    #[test]
    fn the_schema_lists_names_and_constants() {
        let schema = serde_json::to_value(schemars::schema_for!(StartConfig)).unwrap();
        let any = schema["anyOf"].as_array().unwrap();
        assert_eq!(any[0]["enum"].as_array().unwrap().len(), StartConfig::NAMES.len());
        assert_eq!(any.len(), 1 + StartConfig::NAMES.len());
        let hystart = any.iter().find(|table| table["properties"]["name"]["const"] == "hystart").unwrap();
        assert_eq!(hystart["properties"]["low_window"]["default"], 16);
        assert!(hystart["properties"]["low_window"]["description"].as_str().unwrap().contains("hystart_low_window"));
        assert_eq!(hystart["additionalProperties"], false);
    }
}
