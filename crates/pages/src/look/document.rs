//! What a look says to programs: no more than the table says to people.

use serde_json::{Value, json};

use flowstart_quic::message::Doubt;
use flowstart_quic::{Capacity, Reading};

use super::{known, one};

/// What is said of one direction.
pub(super) fn document(way: &Reading, back: &Reading) -> Value {
    let ms = |nanos: u64| nanos as f64 / 1e6;
    let (looked, said) = (way.looked(), way.capacity(back));
    // Infinite numbers are null in JSON.
    let [capacity, least, most] = match said {
        Capacity::Known(_) => way.trains().map_or([None; 3], |all| all.map(Some)),
        Capacity::AtLeast(least) => [None, Some(least), None],
        Capacity::Between { least, most, .. } => [None, Some(least), Some(most).filter(|most| most.is_finite())],
        Capacity::Unknown => [None; 3],
    };
    let held = looked.doubt == Some(Doubt::Uneven);
    json!({
        "capacity_mbps": capacity,
        "capacity_least_mbps": least,
        "capacity_most_mbps": most,
        "capacity_steady": least.map(|_| capacity.is_some()),
        "capacity_at_least": least.map(|_| most.is_none()),
        "capacity_doubt": way.doubt(back),
        "rtt_ms": known(way, back).and_then(one),
        "rtt_least_ms": known(way, back).map(|[least, _]| least),
        "rtt_most_ms": known(way, back).map(|[_, most]| most),
        "jitter_ms": ms(looked.jitter),
        "packets_per_ack": way.merged(),
        "burst_bytes": way.burst().map(|burst| burst.bytes).or(way.small_bucket(back)),
        "burst_mbps": way.burst().map(|burst| burst.peak as f64 / 1e6),
        "burst_tested_bytes": (looked.tested > 0).then_some(looked.tested),
        "longest_queue_ms": ms(looked.queue),
        "away_ms": (looked.away > 0).then(|| ms(looked.away)),
        "buffer_ms": (looked.overflowed && !held).then(|| ms(looked.queue)),
        "ecn": looked.ecn,
        "isolation": way.isolation(back),
        "confidence": way.confidence(back),
        "report": way.report(),
    })
}

#[cfg(test)]
mod tests {
    use flowstart_quic::message::Burst;
    use flowstart_quic::{ReadingConfig, Transferred};

    use super::super::tests::outcome;
    use super::*;

    fn read(outcome: &Transferred) -> Reading<'_> {
        Reading::new(&outcome.report, ReadingConfig::USUAL).unwrap()
    }

    fn capacity(way: &Transferred, back: &Transferred) -> [Value; 5] {
        let said = document(&read(way), &read(back));
        ["mbps", "least_mbps", "most_mbps", "steady", "at_least"].map(|name| said[format!("capacity_{name}")].clone())
    }

    fn doubted(rates: &[u64], between: [u64; 2]) -> Transferred {
        let mut outcome = outcome(rates, 0);
        let look = outcome.report.look.as_mut().unwrap();
        (look.doubt, look.between) = (Some(Doubt::Uneven), Some(between));
        outcome
    }

    /// A cable modem's grants: trains of 60 Mbit/s, and "6.98 or more" in the table.
    #[test]
    fn programs_are_told_no_figure_where_people_are_told_none() {
        let (back, no) = (outcome(&[5_000_000; 3], 0), Value::Null);
        let trains = [6_000_000, 60_000_000, 90_000_000];
        let says = |said: [Value; 5], expected: Value| assert_eq!(json!(said), expected);
        says(capacity(&back, &back), json!([5.0, 5.0, 5.0, true, false]));
        // "or more".
        says(capacity(&doubted(&trains, [6_980_000, u64::MAX]), &back), json!([no, 6.98, no, false, true]));
        // A range, of trains or of what is made of them, and one that is hardly one.
        says(capacity(&outcome(&[5_000_000, 49_000_000, 51_000_000], 0), &back), json!([no, 5.0, 51.0, false, false]));
        says(capacity(&doubted(&trains, [8_000_000, 9_000_000]), &back), json!([no, 8.0, 9.0, false, false]));
        says(capacity(&outcome(&[130_000], 0), &back), json!([no, 0.13, no, false, true]));
        // ACKs of 62 bytes for packets of 1250: 1 Mbit/s bears those of 20.2.
        let slow = outcome(&[1_000_000; 3], 0);
        says(capacity(&outcome(&[20_000_000; 3], 0), &slow), json!([no, 20.0, no, false, true]));
        says(capacity(&outcome(&[19_000_000, 90_000_000], 0), &slow), json!([no, 19.0, no, false, true]));
        says(capacity(&outcome(&[], 0), &back), json!([no, no, no, no, no]));
    }

    #[test]
    fn where_the_capacity_is_undecided_no_burst_is_said() {
        let burst = |mut way: Transferred| {
            let look = way.report.look.as_mut().unwrap();
            (look.burst, look.rtt) = (Some(Burst { peak: 60_000_000, bytes: 9_000 }), 41_000_000);
            let said = document(&read(&way), &read(&way));
            ["burst_bytes", "burst_mbps", "rtt_least_ms"].map(|name| said[name].clone())
        };
        // 1250 bytes of 41 ms, and an ACK of 62, at the speed of the burst ...
        let [bytes, mbps, rtt] = burst(outcome(&[5_000_000; 3], 0));
        assert_eq!((bytes, mbps), (json!(9_000), json!(60.0)));
        assert!(rtt.as_f64().unwrap() > 40.8, "{rtt}");
        for undecided in [doubted(&[5_000_000; 3], [1_000_000, u64::MAX]), outcome(&[1_000_000, 60_000_000], 0)] {
            let [bytes, mbps, rtt] = burst(undecided);
            assert_eq!((bytes, mbps), (Value::Null, Value::Null));
            // ... or at 1 Mbit/s.
            assert!(rtt.as_f64().unwrap() < 31.0, "{rtt}");
        }
    }

    #[test]
    fn programs_are_told_for_how_long_nothing_passed() {
        let mut way = outcome(&[5_000_000; 3], 0);
        let away = |way: &Transferred| document(&read(way), &read(way))["away_ms"].clone();
        assert_eq!(away(&way), Value::Null);
        way.report.look.as_mut().unwrap().away = 1_002_000_000;
        assert_eq!(away(&way), json!(1002.0));
    }

    #[test]
    fn of_what_is_unknown_there_is_no_confidence() {
        let found = |isolation: &str, rate: u64| {
            let queue = json!({ "isolation": isolation, "confidence": 1.0, "rate": 1, "after": 1 });
            let mut outcome = outcome(&[rate; 3], 0);
            outcome.report.queue = Some(serde_json::from_value(queue).unwrap());
            outcome
        };
        let says = |way: &Transferred, back: &Transferred| {
            let said = document(&read(way), &read(back));
            [said["isolation"].clone(), said["confidence"].clone()]
        };
        let (shared, fast) = (found("shared", 5_000_000), found("shared", 200_000_000));
        // Of servers of before.
        assert_eq!(json!(says(&found("unknown", 5_000_000), &shared)), json!(["unknown", null]));
        assert_eq!(json!(says(&shared, &shared)), json!(["shared", 1.0]));
        // ACKs fill the way back.
        assert_eq!(json!(says(&fast, &shared)), json!(["unknown", null]));
    }
}
