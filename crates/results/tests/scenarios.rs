//! The generated reference page is what the tables say now, and every scenario in the repository
//! can be run.

use std::fs;
use std::path::PathBuf;

use flowstart_parallel::Cancel;
use flowstart_results::{Value, results_page, run_scenario};
use flowstart_scenario::Scenario;
use flowstart_units::Span;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_reference_page_is_up_to_date() {
    let committed = fs::read_to_string(root().join("docs/results.md")).unwrap_or_default();
    assert!(committed == results_page(), "docs/results.md is old; run `cargo run --release -- docs` and commit it");
}

#[test]
fn every_scenario_of_the_repository_reads_prints_back_and_runs() {
    let mut count = 0;
    for entry in fs::read_dir(root().join("scenarios")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        count += 1;
        let mut scenario = Scenario::load(&path).unwrap_or_else(|error| panic!("{error}\n{}", error.snippet()));
        let again = Scenario::parse("effective", &scenario.effective()).unwrap();
        assert_eq!(scenario, again, "{}", path.display());
        assert!(!scenario.title.is_empty(), "{} has a title", path.display());
        scenario.duration = Span::from_millis(300);
        scenario.runs = 1;
        let results = run_scenario(&scenario, Some(1), &Cancel::default(), |_| {}).unwrap();
        assert_eq!(results.table("runs").unwrap().rows(), 1);
    }
    assert!(count >= 10, "{count}");
}

#[test]
fn a_flow_that_had_no_time_to_send_has_no_goodput() {
    let scenario = |start: &str| {
        let text = format!(
            "duration = \"1 s\"\n[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"10 ms\"\n\
             [[flow]]\nname = \"late\"\nstart = \"{start}\"\nsender.handshake = false\n"
        );
        let results = run_scenario(&Scenario::parse("late.toml", &text).unwrap(), Some(1), &Cancel::default(), |_| {});
        results.unwrap().table("flows").unwrap().get(0, "goodput_bps")
    };
    assert_eq!(scenario("1 s"), Value::Missing);
    let Value::Float(rate) = scenario("500 ms") else { panic!("half a second is time enough") };
    assert!((5e6..=1e7).contains(&rate), "{rate}");
}

#[test]
fn a_flow_that_was_to_start_after_the_run_did_not_start() {
    let text = "duration = \"1 s\"\n[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"10 ms\"\n\
                [[flow]]\nstart = \"2 s\"\n[[flow]]\nstart = \"500 ms\"\n";
    let scenario = Scenario::parse("never.toml", text).unwrap();
    let results = run_scenario(&scenario, Some(1), &Cancel::default(), |_| {}).unwrap();
    let starts = [0, 1].map(|row| results.table("flows").unwrap().get(row, "start_s"));
    assert_eq!(starts, [Value::Missing, Value::Float(0.5)]);
}

#[test]
fn the_same_seed_gives_the_same_bytes_for_any_number_of_threads() {
    let mut scenario = Scenario::load(&root().join("scenarios/web.toml")).unwrap();
    scenario.duration = Span::from_secs(4);
    scenario.runs = 6;
    scenario.output.packets = true;
    let hash = |threads| run_scenario(&scenario, Some(threads), &Cancel::default(), |_| {}).unwrap().hash();
    let one = hash(1);
    assert_eq!(one, hash(2));
    assert_eq!(one, hash(5));
    let mut other = scenario.clone();
    other.seed = 2;
    assert_ne!(one, run_scenario(&other, None, &Cancel::default(), |_| {}).unwrap().hash());
}

#[test]
fn results_are_written_whole_and_an_unwritable_folder_is_one_sentence() {
    use flowstart_results::{Format, Provenance, write_results};
    let mut scenario = Scenario::load(&root().join("scenarios/fair-queuing.toml")).unwrap();
    scenario.duration = Span::from_secs(1);
    let results = run_scenario(&scenario, None, &Cancel::default(), |_| {}).unwrap();
    let provenance = Provenance::new(&scenario, &results);
    let folder = tempfile::tempdir().unwrap();
    let formats = [Format::Csv, Format::Json];
    let written = write_results(folder.path(), &results, &provenance, &formats).unwrap();
    for name in ["runs.csv", "flows.csv", "links.csv", "samples.csv", "results.json", "effective.toml"] {
        assert!(written.iter().any(|path| path.ends_with(name)), "{name}");
    }
    let left: usize = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, written.len(), "no temporary files are left");
    let error = write_results(&PathBuf::from("/proc/nowhere"), &results, &provenance, &formats).unwrap_err();
    assert!(error.to_string().contains("/proc/nowhere cannot be written"), "{error}");
}

/// A small buffer, and an end in the middle of things.
const LOSSY: &str = r#"
duration = "500 ms"
output = { packets = true }
path = { capacity = "20 Mbit/s", rtt = "20 ms", buffer = "10 packets", loss = "1 %" }
[[flow]]
[[udp]]
rate = "2 Mbit/s"
"#;

#[test]
fn every_packet_sent_is_in_the_table_with_what_became_of_it() {
    let results = run_scenario(&Scenario::parse("lossy.toml", LOSSY).unwrap(), Some(1), &Cancel::default(), |_| {});
    let results = results.unwrap();
    let (flows, packets) = (results.table("flows").unwrap(), results.table("packets").unwrap());
    let text = |row, column| match packets.get(row, column) {
        Value::Text(text) => text.into_owned(),
        _ => String::new(),
    };
    let fates: Vec<String> = (0..packets.rows()).map(|row| text(row, "fate")).collect();
    let with = |fate: &str, flow: Option<i64>| {
        let of = |row: &usize| flow.is_none_or(|flow| packets.get(*row, "flow") == Value::Integer(flow));
        (0..packets.rows()).filter(|row| fates[*row] == fate).filter(of).count() as u64
    };
    assert_eq!(packets.rows() as u64, results.data_packets);
    for flow in [0, 1] {
        assert_eq!(Value::from(with("dropped", Some(flow as i64))), flows.get(flow, "dropped"));
    }
    assert!(with("in_flight", None) > 0, "something is always on its way");
    for (row, fate) in fates.iter().enumerate() {
        let (lost, came) = (fate == "dropped", fate == "received");
        assert_eq!(packets.get(row, "received_s") != Value::Missing, came, "{row}");
        assert_eq!(packets.get(row, "dropped_s") != Value::Missing, lost, "{row}");
        assert_eq!(text(row, "dropped_at") == "bottleneck", lost, "{row}");
        assert_eq!(["full", "loss"].contains(&text(row, "drop_reason").as_str()), lost, "{row}");
        assert!(matches!(packets.get(row, "sent_s"), Value::Float(_)), "{row}");
    }
    let reasons = |why: &str| (0..packets.rows()).filter(|row| text(*row, "drop_reason") == why).count();
    assert!(reasons("full") > 0 && reasons("loss") > 0);
}

#[test]
fn samples_of_links_count_what_the_links_do() {
    let text = "duration = \"2 s\"\npath = { capacity = \"10 Mbit/s\", rtt = \"20 ms\", overhead = 500 }\n\
                [output]\nsample = \"100 ms\"\n[[udp]]\nrate = \"20 Mbit/s\"\n";
    let results = run_scenario(&Scenario::parse("oh", text).unwrap(), Some(1), &Cancel::default(), |_| {}).unwrap();
    let (samples, links) = (results.table("samples").unwrap(), results.table("links").unwrap());
    let rates = (0..samples.rows()).filter_map(|row| match samples.get(row, "throughput_bps") {
        Value::Float(rate) => Some(rate),
        _ => None,
    });
    let bytes = (rates.sum::<f64>() * 0.1 / 8.0).round() as u64;
    assert_eq!(Value::from(bytes), links.get(0, "bytes"));
}

#[test]
fn a_document_of_half_a_minute_is_small_and_packets_are_in_a_file_of_their_own() {
    use flate2::read::GzDecoder;
    use flowstart_results::{COMPRESSED_PACKETS, Format, PACKETS_FILE, Provenance, write_results};
    use std::io::Read as _;
    let text = "duration = \"30 s\"\noutput = { packets = true }\n\
                path = { capacity = \"100 Mbit/s\", rtt = \"20 ms\" }\n[[flow]]\n";
    let scenario = Scenario::parse("half a minute", text).unwrap();
    let results = run_scenario(&scenario, Some(1), &Cancel::default(), |_| {}).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let provenance = Provenance::new(&scenario, &results);
    write_results(folder.path(), &results, &provenance, &[Format::Csv, Format::Json]).unwrap();
    let document = fs::read_to_string(folder.path().join("results.json")).unwrap();
    assert!(document.len() < 5_000_000, "{}", document.len());
    assert!(!document.contains("\"packets\": ["));
    let packets = fs::read_to_string(folder.path().join(PACKETS_FILE)).unwrap();
    assert_eq!(packets.lines().count() as u64, results.data_packets + 1);
    // Compressed all of it is small, and the other file of an earlier run is not left there.
    let write = |format| write_results(folder.path(), &results, &provenance, &[format, Format::Json]).unwrap();
    let written = write(Format::CsvWithGzip);
    let bytes: u64 = written.iter().map(|path| fs::metadata(path).unwrap().len()).sum();
    assert!(bytes < 5_000_000, "{bytes}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), written.len());
    let compressed = fs::File::open(folder.path().join(COMPRESSED_PACKETS)).unwrap();
    let mut text = String::new();
    GzDecoder::new(compressed).read_to_string(&mut text).unwrap();
    assert!(text == packets, "the same table");
    let written = write(Format::Csv);
    assert!(written.iter().any(|path| path.ends_with(PACKETS_FILE)));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), written.len());
}

#[test]
fn what_is_made_ready_while_a_run_goes_on_is_what_is_made_afterwards() {
    use flowstart_results::{COMPRESSED_PACKETS, Format, Provenance, run_to_write, write_results};
    // A pair of connections with one stream, one that loses packets, one whose application waits.
    let flows = "[[flow]]\nalgorithm = \"fair_queuing_probe+delay_or_cubic\"\n[[flow]]\n\
                 [[udp]]\nrate = \"5 Mbit/s\"\n";
    for unread in ["", "receiver = { auto_read = false }\n"] {
        let text = format!(
            "duration = \"6 s\"\noutput = {{ packets = true }}\n\
             path = {{ capacity = \"100 Mbit/s\", rtt = \"20 ms\", loss = \"0.01 %\" }}\n{flows}[[flow]]\nsize = \"100 kB\"\n{unread}"
        );
        let scenario = Scenario::parse("ready.toml", &text).unwrap();
        let written = |threads, formats: &[Format]| {
            let results = run_to_write(&scenario, formats, Some(threads), &Cancel::default(), |_| {}).unwrap();
            assert!(results.data_packets > 40_000, "more than two portions: {}", results.data_packets);
            let folder = tempfile::tempdir().unwrap();
            let provenance = Provenance::new(&scenario, &results);
            write_results(folder.path(), &results, &provenance, &[Format::CsvWithGzip, Format::Csv]).unwrap();
            let files = [COMPRESSED_PACKETS, "packets.csv"].map(|file| fs::read(folder.path().join(file)).ok());
            (files, results.hash(), results.table("packets").unwrap().get(30_000, "sent_s"))
        };
        let afterwards = written(1, &[]);
        assert!(written(2, &[]) == afterwards);
        assert!(written(2, &[Format::CsvWithGzip]) == afterwards);
    }
}

#[test]
fn a_completion_time_is_given_with_and_without_the_handshake() {
    let text = "path = { capacity = \"100 Mbit/s\", rtt = \"20 ms\" }\n[[flow]]\nsize = \"10 kB\"\n\
                [[flow]]\nsize = \"10 kB\"\nsender = { handshake = false }\n";
    let results = run_scenario(&Scenario::parse("two", text).unwrap(), Some(1), &Cancel::default(), |_| {}).unwrap();
    let flows = results.table("flows").unwrap();
    let seconds = |row, column| match flows.get(row, column) {
        Value::Float(seconds) => seconds,
        other => panic!("{column}: {other:?}"),
    };
    // The SYN, and it waits for no more than a packet.
    let handshake = seconds(0, "completion_with_handshake_s") - seconds(0, "completion_time_s");
    assert!((0.020..0.0215).contains(&handshake), "{handshake}");
    assert_eq!(seconds(1, "completion_with_handshake_s"), seconds(1, "completion_time_s"));
}

#[test]
fn a_flow_without_a_round_trip_time_has_none_in_its_samples() {
    let text = "duration = \"1 s\"\n[path]\ncapacity = \"10 Mbit/s\"\nrtt = \"250 ms\"\n[[flow]]\n";
    let results = run_scenario(&Scenario::parse("slow.toml", text).unwrap(), Some(1), &Cancel::default(), |_| {});
    let results = results.unwrap();
    let samples = results.table("samples").unwrap();
    assert_eq!((samples.get(0, "t_s"), samples.get(0, "rtt_us")), (Value::Float(0.0), Value::Missing));
    assert_eq!(samples.get(0, "snd_cwnd_pkts"), Value::Integer(10));
    let last = (0..samples.rows()).rfind(|row| samples.get(*row, "snd_cwnd_pkts") != Value::Missing);
    let Value::Float(rtt) = samples.get(last.unwrap(), "rtt_us") else { panic!("it has been measured") };
    assert!(rtt >= 250_000.0, "{rtt}");
}

/// In the table `samples` a datagram flow's bytes arrive when its packets do; the picture of a
/// scenario is drawn from it.
#[test]
fn samples_count_the_bytes_of_datagrams_that_arrived() {
    let text = "duration = \"1 s\"\n[path]\ncapacity = \"8 Mbit/s\"\nrtt = \"20 ms\"\n[[udp]]\nname = \"call\"\nrate = \"4 Mbit/s\"\npacket = \"500 B\"\n";
    let scenario = Scenario::parse("call.toml", text).unwrap();
    let results = run_scenario(&scenario, Some(1), &Cancel::default(), |_| {}).unwrap();
    let samples = results.table("samples").unwrap();
    let delivered: f64 = (0..samples.rows())
        .filter_map(|row| match samples.get(row, "delivered_bps") {
            flowstart_results::Value::Float(rate) => Some(rate * 0.1 / 8.0),
            _ => None,
        })
        .sum();
    // 1000 packets a second of 500 bytes, those of the last 10 ms still on their way.
    assert!((delivered - 0.99 * 500_000.0).abs() <= 1000.0, "{delivered}");
}

/// It was the time on the wire behind the shaper: a twentieth, and half behind a policer of half.
#[test]
fn a_link_behind_a_shaper_or_policer_is_used_by_what_it_sent_of_its_rate() {
    for (medium, expected) in [
        ("shaper = { burst = \"64 kB\", line = \"1 Gbit/s\" }", 0.99),
        ("policer = { rate = \"25 Mbit/s\", burst = \"64 kB\" }", 1.0),
        ("", 0.99),
    ] {
        let text = format!(
            "duration = \"5 s\"\n[path]\ncapacity = \"50 Mbit/s\"\nrtt = \"20 ms\"\nmedium = {{ {medium} }}\n\
             [[udp]]\nrate = \"49.5 Mbit/s\"\n"
        );
        let scenario = Scenario::parse("shaped", &text).unwrap();
        let results = run_scenario(&scenario, Some(1), &Cancel::default(), |_| {}).unwrap();
        let Value::Float(share) = results.table("links").unwrap().get(0, "utilisation") else { panic!("there is one") };
        assert!((share - expected).abs() < 0.01, "{medium}: {share}");
    }
}

/// The seconds of a column, or microseconds; `None` where it is empty.
fn number(table: &flowstart_results::Table, row: usize, column: &str) -> Option<f64> {
    match table.get(row, column) {
        Value::Float(number) => Some(number),
        _ => None,
    }
}

/// It was empty for one of them, and too early for the other.
#[test]
fn packets_of_two_connections_say_when_they_were_read() {
    let text = "duration = \"3 s\"\noutput = { packets = true }\n[path]\ncapacity = \"20 Mbit/s\"\nrtt = \"20 ms\"\n\
                queue = \"fq_codel\"\n[[flow]]\nalgorithm = \"two_flow_probe+cubic\"\nsize = \"3 MB\"\n";
    let scenario = Scenario::parse("two", text).unwrap();
    let results = run_scenario(&scenario, Some(1), &Cancel::default(), |_| {}).unwrap();
    let packets = results.table("packets").unwrap();
    let (mut of, mut unread, mut last) = ([0, 0], 0, 0.0_f64);
    for row in 0..packets.rows() {
        let Value::Integer(flow) = packets.get(row, "flow") else { panic!("every packet has a flow") };
        let Some(received) = number(packets, row, "received_s") else { continue };
        of[flow as usize] += 1;
        let Some(read) = number(packets, row, "read_s") else {
            unread += 1;
            continue;
        };
        assert!(read >= received, "{read} {received}");
        let waited = number(packets, row, "receiver_stack_us").unwrap();
        assert!((waited - (read - received) * 1e6).abs() < 1.0, "{waited}");
        last = last.max(read);
    }
    assert!(of[0] > 100 && of[1] > 10, "{of:?}");
    // Some come twice, which were read before.
    let segments = 3_000_000_usize.div_ceil(1448);
    let read = of[0] + of[1] - unread;
    assert!((segments..segments + 20).contains(&read), "{unread} of {of:?}");
    assert_eq!(Some(last), number(results.table("flows").unwrap(), 0, "completed_s"));
}

/// It was said to be read when it arrived.
#[test]
fn what_nobody_reads_is_not_said_to_be_read() {
    let text = "duration = \"2 s\"\noutput = { packets = true }\n[path]\ncapacity = \"20 Mbit/s\"\nrtt = \"20 ms\"\n\
                [[flow]]\nsize = \"100 kB\"\nreceiver.auto_read = false\n[[flow]]\nsize = \"100 kB\"\n";
    let scenario = Scenario::parse("unread", text).unwrap();
    let results = run_scenario(&scenario, Some(1), &Cancel::default(), |_| {}).unwrap();
    let [packets, flows, samples, runs] =
        ["packets", "flows", "samples", "runs"].map(|name| results.table(name).unwrap());
    for row in 0..packets.rows() {
        let reads = packets.get(row, "flow") == Value::Integer(1);
        assert!(number(packets, row, "received_s").is_some());
        assert_eq!(number(packets, row, "read_s").is_some(), reads);
        assert_eq!(number(packets, row, "receiver_stack_us").is_some(), reads);
    }
    assert_eq!(flows.get(0, "bytes_delivered"), Value::Integer(0));
    assert_eq!(flows.get(1, "bytes_delivered"), Value::Integer(100_000));
    assert_eq!(runs.get(0, "delivered_bytes"), Value::Integer(100_000));
    let unread = (0..samples.rows())
        .filter(|row| matches!(samples.get(*row, "series"), Value::Text(name) if name.ends_with("#0")));
    assert!(unread.map(|row| number(samples, row, "delivered_bps").unwrap()).all(|rate| rate == 0.0));
}

/// 0.15000000000000002 stood there.
#[test]
fn bins_begin_at_times_as_they_are_written() {
    let text = "duration = \"2 s\"\noutput = { sample = \"50 ms\" }\n[path]\ncapacity = \"20 Mbit/s\"\nrtt = \"20 ms\"\n\
                [[flow]]\n";
    let scenario = Scenario::parse("bins", text).unwrap();
    let results = run_scenario(&scenario, Some(1), &Cancel::default(), |_| {}).unwrap();
    let samples = results.table("samples").unwrap();
    assert!(samples.rows() > 60);
    for line in String::from_utf8(samples.to_csv()).unwrap().lines().skip(1) {
        let time = line.split(',').nth(1).unwrap();
        assert!(time.len() <= "1.95".len(), "{time}");
    }
}

/// It said "complete" of the run before, beside tables of two.
#[test]
fn a_folder_that_could_not_be_written_to_the_end_is_not_said_to_be_complete() {
    use flowstart_results::{Format, Provenance, write_results};
    let text = "duration = \"1 s\"\n[path]\ncapacity = \"20 Mbit/s\"\nrtt = \"20 ms\"\n[[flow]]\n";
    let scenario = Scenario::parse("folder", text).unwrap();
    let results = run_scenario(&scenario, Some(1), &Cancel::default(), |_| {}).unwrap();
    let provenance = Provenance::new(&scenario, &results);
    let folder = tempfile::tempdir().unwrap();
    let write = || write_results(folder.path(), &results, &provenance, &[Format::Csv]);
    let complete = || {
        let text = fs::read_to_string(folder.path().join("provenance.json")).unwrap();
        serde_json::from_str::<serde_json::Value>(&text).unwrap()["complete"].as_bool()
    };
    write().unwrap();
    assert_eq!(complete(), Some(true));
    // In the middle something is in the way.
    fs::remove_file(folder.path().join("links.csv")).unwrap();
    fs::create_dir(folder.path().join("links.csv")).unwrap();
    assert!(write().unwrap_err().to_string().contains("links.csv"));
    assert_eq!(complete(), Some(false));
    fs::remove_dir(folder.path().join("links.csv")).unwrap();
    write().unwrap();
    assert_eq!(complete(), Some(true));
}

/// Tables as Parquet stayed from a run before, beside CSV of another.
#[test]
fn no_table_of_an_earlier_run_is_left_in_another_format() {
    use flowstart_results::{Encoding, Format, Provenance, write_results};
    let text = "duration = \"1 s\"\n[path]\ncapacity = \"20 Mbit/s\"\nrtt = \"20 ms\"\n[[flow]]\n";
    let scenario = Scenario::parse("folder", text).unwrap();
    let results = run_scenario(&scenario, Some(1), &Cancel::default(), |_| {}).unwrap();
    let provenance = Provenance::new(&scenario, &results);
    let folder = tempfile::tempdir().unwrap();
    let parquet = Format::Tables(Encoding { ending: "parquet", encode: |_, _| Ok(b"PAR1".to_vec()) });
    let others = folder.path().join("notes.parquet");
    fs::write(&others, "somebody's own").unwrap();
    let left_by = |formats: &[Format]| {
        let mut written = write_results(folder.path(), &results, &provenance, formats).unwrap();
        written.push(others.clone());
        written.sort();
        let mut left: Vec<PathBuf> = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path()).collect();
        left.sort();
        assert_eq!(left, written);
    };
    left_by(&[Format::Csv, Format::Json, parquet]);
    left_by(&[Format::Csv, Format::Json]);
    left_by(&[parquet]);
    left_by(&[Format::CsvWithGzip]);
    left_by(&[Format::Json]);
}

/// They were waited for.
#[test]
fn runs_that_are_not_over_are_given_up_when_they_are_cancelled() {
    let text = "duration = \"20000 s\"\n[path]\ncapacity = \"1 Gbit/s\"\nrtt = \"20 ms\"\n[[flow]]\n[output]\nsample = \"0 s\"\n";
    let scenario = Scenario::parse("long", text).unwrap();
    let cancel = Cancel::default();
    let asked = cancel.clone();
    let waiting = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(300));
        asked.cancel();
    });
    let began = std::time::Instant::now();
    let results = run_scenario(&scenario, Some(1), &cancel, |_| {}).unwrap();
    waiting.join().unwrap();
    assert!(began.elapsed() < std::time::Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!((results.finished, results.asked), (0, 1));
    assert_eq!(results.table("runs").unwrap().rows(), 0);
}

/// A load is of what the path carries while transfers arrive, not of the fastest moment.
#[test]
fn a_load_over_a_capacity_in_steps_is_of_its_mean_while_transfers_arrive() {
    let utilisation = |capacity: &str, start: &str| {
        let text = format!(
            "duration = \"60 s\"\n[path]\ncapacity = {capacity}\nrtt = \"20 ms\"\n[[arrivals]]\nload = \"50 %\"\n\
             sizes = {{ kind = \"fixed\", size = \"30 kB\" }}\nflow = {{ start = \"{start}\" }}\n"
        );
        let scenario = Scenario::parse("load", &text).unwrap();
        let results = run_scenario(&scenario, Some(1), &Cancel::default(), |_| {}).unwrap();
        let links = results.table("links").unwrap();
        let Value::Float(share) = links.get(0, "utilisation") else { panic!("there is one link") };
        share
    };
    let steady = utilisation("\"20 Mbit/s\"", "0 s");
    assert!((0.48..0.6).contains(&steady), "{steady}");
    // A second of ten times the rate before anything arrives, and halves of different rates.
    let after = utilisation("[{ at = \"0 s\", rate = \"200 Mbit/s\" }, { at = \"1 s\", rate = \"20 Mbit/s\" }]", "1 s");
    assert!((0.48..0.6).contains(&after), "{after}");
    let halves = utilisation(
        "{ period = \"2 s\", steps = [{ at = \"0 s\", rate = \"30 Mbit/s\" }, { at = \"1 s\", rate = \"10 Mbit/s\" }] }",
        "0 s",
    );
    assert!((0.45..0.75).contains(&halves), "{halves}");
}
