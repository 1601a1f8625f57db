//! Who leaves others what is theirs.

use super::*;

/// Each of them made it a half or less, with the newcomer alone.
#[test]
fn jains_index_is_of_those_that_the_fair_share_counts() {
    let path = "capacity = \"20 Mbit/s\"\nrtt = \"20 ms\"\nreverse_capacity = \"10 Mbit/s\"";
    for (others, index) in [
        ("[[flow]]\nsize = \"10 kB\"", 1.0..=1.0),
        ("[[udp]]\nrate = \"1 Mbit/s\"\nlasting = \"100 ms\"", 1.0..=1.0),
        ("[[flow]]\nstart = \"40 s\"", 1.0..=1.0),
        ("[[flow]]\nforward = [\"reverse\"]\nreverse = [\"bottleneck\"]", 1.0..=1.0),
        ("[[arrivals]]\nload = \"5 %\"\nsizes = { kind = \"fixed\", size = \"10 kB\" }\nflow = {}", 1.0..=1.0),
        // Two of them share.
        ("[[flow]]\n[[flow]]\nsize = \"10 kB\"", 0.5..=0.999_999),
        ("[[udp]]\nrate = \"19 Mbit/s\"", 0.5..=0.7),
    ] {
        let race = race_against(path, others, "reno");
        let race = Race { warm_up: Some(Span::from_secs(2)), phase: Some(Span::from_secs(1)), runs: Some(1), ..race };
        let jain = mean(&race, measures::JAIN.measure());
        assert!(index.contains(&jain), "{others}: {jain}");
    }
}

/// They made it 78 % of 38, and 29 of 0.
#[test]
fn harm_is_the_same_whoever_was_there_and_is_over() {
    let path = "capacity = \"20 Mbit/s\"\nrtt = \"40 ms\"";
    let cubic = "[[flow]]\nalgorithm = \"cubic\"\n";
    let over = "[[flow]]\nalgorithm = \"cubic\"\nsize = \"10 kB\"\ncount = 8\n";
    for contestant in ["bbr", "cubic"] {
        let harm = |others: &str| {
            let race =
                Race { runs: Some(10), horizon: Some(Span::from_secs(20)), ..race_against(path, others, contestant) };
            mean(&race, measures::HARM.measure())
        };
        let (alone, after) = (harm(cubic), harm(&format!("{cubic}{over}")));
        assert!((alone - after).abs() < 1.0, "{contestant}: {alone} %, {after} %");
    }
}

/// 33, 11 and 37 % of harm where everybody had what is fair, and an index of 0.81 beside a paced
/// flow.
#[test]
fn who_leaves_everybody_the_max_min_share_does_no_harm_whatever_others_want() {
    // A queue in which senders keep what is left for them: with CoDel's a bursty rate loses some.
    let path = "capacity = \"20 Mbit/s\"\nrtt = \"40 ms\"\nbuffer = \"2 BDP\"\nqueue = { kind = \"drr\" }";
    let cubic = "[[flow]]\nalgorithm = \"cubic\"\n";
    for others in [
        "",
        "[[udp]]\nrate = \"5 Mbit/s\"\n",
        "[[udp]]\nrate = \"10 Mbit/s\"\n",
        "[[flow]]\nalgorithm = \"cubic\"\npaced = { rate = \"2 Mbit/s\", message = \"1448 B\" }\n",
        "[[arrivals]]\nload = \"40 %\"\nsizes = { kind = \"fixed\", size = \"50 kB\" }\nflow = {}\n",
        // More of them than have records.
        "[[arrivals]]\nload = \"40 %\"\nsizes = { kind = \"fixed\", size = \"3 kB\" }\nflow = {}\n",
    ] {
        let race = race_against(path, &format!("{cubic}{others}"), "cubic");
        let race = Race { runs: Some(2), horizon: Some(Span::from_secs(8)), ..race };
        let result = race.run(&RunOptions::default()).unwrap();
        let value = |measure: Measure| result.contestants[0].estimate(measure).unwrap().mean;
        let (harm, jain) = (value(measures::HARM.measure()), value(measures::JAIN.measure()));
        assert!(harm < 1.0, "{others}: {harm} %");
        assert!(jain > 0.99, "{others}: {jain}");
    }
}

/// The others' loss of what is theirs is harm beside datagrams, too.
#[test]
fn who_takes_more_than_the_max_min_share_does_harm_whatever_others_want() {
    let path = "capacity = \"20 Mbit/s\"\nrtt = \"40 ms\"";
    for others in ["", "[[udp]]\nrate = \"5 Mbit/s\"\n", "[[flow]]\nalgorithm = \"cubic\"\nsize = \"10 kB\"\n"] {
        let race = race_against(path, &format!("[[flow]]\nalgorithm = \"cubic\"\n{others}"), "bbr");
        let race = Race { runs: Some(5), horizon: Some(Span::from_secs(15)), ..race };
        let harm = mean(&race, measures::HARM.measure());
        assert!(harm > 15.0, "{others}: {harm} %");
    }
}

/// Mean of the one run of ten in which the reference did any: 15.9 times.
#[test]
fn harm_is_related_only_to_a_reference_that_does_some_in_every_run() {
    let path = "capacity = \"20 Mbit/s\"\nrtt = \"40 ms\"";
    let race = race_against(path, "[[flow]]\nalgorithm = \"cubic\"\n", "bbr");
    let race = Race { runs: Some(5), horizon: Some(Span::from_secs(10)), ..race };
    let contestants = ["bbr", "hystart+cubic"].map(|name| name.parse().unwrap()).to_vec();
    let result = Race { contestants, ..race }.run(&RunOptions::default()).unwrap();
    let theirs = result.contestants[1].values(measures::HARM.measure());
    let always = theirs.iter().all(|harm| *harm > 0.0);
    let expected = if always { 5 } else { 0 };
    assert_eq!(result.contestants[0].values(measures::HARM_RATIO.measure()).len(), expected, "{theirs:?}");
    assert!(!always, "else this says nothing: {theirs:?}");
}
