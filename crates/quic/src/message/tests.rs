use super::*;

#[test]
fn messages_arrive_whole_however_they_are_cut() {
    let messages = [
        Message::Join(7),
        Message::Refused("too many".into()),
        Message::Received(Received { bytes: 1, nanos: 2, intact: true, first: 1 }),
        Message::Readings(Readings { first: 3, told: u64::MAX, ages: vec![9, 0], waits: vec![1, 2] }),
    ];
    let wire: Vec<u8> = messages.iter().flat_map(Message::encode).collect();
    let mut decoder = Decoder::default();
    let mut read = Vec::new();
    for byte in wire {
        decoder.push(&[byte]);
        while let Some(message) = decoder.message().unwrap() {
            read.push(message);
        }
    }
    assert_eq!(read, messages);
}

#[test]
fn of_many_messages_at_once_each_is_read_once() {
    let wire = Message::Join(7).encode().repeat(100);
    let mut decoder = Decoder::default();
    decoder.push(&wire[..20]);
    let mut read = usize::from(decoder.message().unwrap().is_some());
    decoder.push(&wire[20..]);
    read += std::iter::from_fn(|| decoder.message().unwrap()).count();
    assert_eq!(read, 100);
    decoder.push(b"");
    assert!(decoder.buffer.is_empty());
}

#[test]
fn what_the_other_end_says_is_short_and_turns_nothing_around() {
    assert_eq!(
        harmless("a\u{1b}[2J\r\n\u{9b}\u{202e}\u{2028}é"),
        "a\u{fffd}[2J\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}é"
    );
    assert_eq!(harmless(&"x".repeat(500)), "x".repeat(500));
    assert_eq!(harmless(&"x".repeat(9000)), "x".repeat(500) + "…");
}

/// A report as clients and servers of version 4 wrote it, and were able to read.
const OLD: &str = r#"{"bytes":430000,"nanos":5,"packets":300,"lost":0,"marked":0,"acks":290,
        "min_rtt":1,"mean_rtt":2,"max_rtt":3,"jitter":4,"exit":null,"exit_after":null,"late":[1,2],
        "real_time":true,"queue":{"isolation":"shared","confidence":0.99,"rate":5,"after":6},
        "resumed":null,"look":{"rates":[1,2,3],"burst":{"peak":7,"bytes":8},"rtt":1,"packet":1480,
        "jitter":9,"queue":10,"lost":0,"overflowed":false,"ecn":true}}"#;

fn keys(value: &serde_json::Value, before: &str, all: &mut Vec<String>) {
    for (key, value) in value.as_object().into_iter().flatten() {
        all.push(format!("{before}{key}"));
        keys(value, &format!("{before}{key}."), all);
    }
}

#[test]
fn reports_of_other_versions_are_read_and_old_ends_are_told_nothing_that_they_do_not_know() {
    let old: Report = serde_json::from_str(OLD).unwrap();
    let look = old.look.clone().unwrap();
    assert_eq!((look.behind, look.tested, look.decided()), (None, 0, false));
    // Those of a later version have words that nobody knows yet.
    let mut newer: serde_json::Value = serde_json::from_str(OLD).unwrap();
    for place in ["", "/look", "/look/burst", "/queue"] {
        newer.pointer_mut(place).unwrap()["of_a_later_version"] = serde_json::json!([1]);
    }
    for message in [
        serde_json::json!({ "report": newer }),
        serde_json::json!({ "received": { "bytes": 1, "nanos": 2, "intact": true, "later": 3 } }),
        serde_json::json!({ "readings": { "first": 0, "told": 2, "ages": [1], "later": {} } }),
    ] {
        let document = serde_json::to_vec(&message).unwrap();
        let mut decoder = Decoder::default();
        decoder.push(&[&(document.len() as u32).to_be_bytes()[..], &document].concat());
        let read = decoder.message().unwrap().unwrap();
        assert!(!matches!(&read, Message::Report(report) if **report != old), "{read:?}");
    }
    // What a sender of this version says to an end of the old one.
    let rates = vec![100, 101, 900];
    let now = Looked {
        rates,
        behind: Some(100),
        tested: 40_000,
        burst: None,
        doubt: Some(Doubt::Few),
        between: Some([1, 2]),
        ..look
    };
    let said = Report { look: Some(now.clone().in_version(4)), ..old.clone() };
    assert_eq!(said.look.as_ref().unwrap().rates, [100, 101]);
    let (mut before, mut words) = (Vec::new(), Vec::new());
    keys(&serde_json::from_str(OLD).unwrap(), "", &mut before);
    keys(&serde_json::to_value(&said).unwrap(), "", &mut words);
    assert!(words.iter().all(|word| before.contains(word)), "{words:?}");
    assert_eq!(now.clone().in_version(5), now);
}

#[test]
fn what_is_no_message_is_an_error_and_lengths_are_bounded() {
    for wrong in [&b"\0\0\0\x02{}"[..], b"\xff\xff\xff\xff", b"\0\0\0\x0f{\"join\":\"seven\"}", b"GET / HTTP/1.1\r\n"] {
        let mut decoder = Decoder::default();
        decoder.push(wrong);
        assert!(decoder.message().is_err(), "{wrong:?}");
        read_control(wrong);
    }
}
#[test]
fn who_does_not_ask_for_readings_says_what_was_said_before_there_were_any() {
    let quiet = Paced { message: 1448, gap: 5, tell: false };
    assert_eq!(serde_json::to_string(&quiet).unwrap(), r#"{"message":1448,"gap":5}"#);
    let asks = Paced { tell: true, ..quiet };
    for paced in [quiet, asks] {
        assert_eq!(serde_json::from_str::<Paced>(&serde_json::to_string(&paced).unwrap()).unwrap(), paced);
    }
}
