//! A connection's log for the tools that read qlog: packets, and the windows behind them.
//!
//! JSON text sequences by draft-ietf-quic-qlog-main-schema-12, events by
//! draft-ietf-quic-qlog-quic-events-11. It begins with the data: packets of the handshake are not
//! in it, and neither are those that only acknowledge.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use flowstart_units::{Span, Time};
use serde_json::{Value, json};

/// A folder that is there, for a qlog (draft-ietf-quic-qlog-main-schema-12) of what each connection
/// sends: `TIME-CONNECTION-SIDE.qlog`, the time in milliseconds of Unix time. Where a log cannot be
/// written it ends, and the transfer goes on. So it does where all of them have as many bytes as
/// they may have together; the last event of such a log says so, and later connections have none.
#[derive(Clone, Debug)]
pub struct Qlog {
    folder: PathBuf,
    most: u64,
    shared: Arc<Shared>,
}

/// What all logs of a folder have in common.
#[derive(Debug, Default)]
struct Shared {
    /// Bytes that were written, or will be.
    bytes: AtomicU64,
    failure: Mutex<Option<(PathBuf, io::Error)>>,
    full: Mutex<Full>,
}

/// The first log that ended because there was no room for more.
#[derive(Debug, Default)]
enum Full {
    #[default]
    Not,
    At(PathBuf),
    Told,
}

impl Qlog {
    /// Bytes that all logs have together at most, unless it is said otherwise: enough for some
    /// gigabytes of data, and no disk is full of them. (own choice)
    pub const MOST: u64 = 1_000_000_000;

    /// Logs in this folder.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), most: Self::MOST, shared: Arc::default() }
    }

    /// The same with at most so many bytes of all logs together.
    #[must_use]
    pub fn with_most(self, most: u64) -> Self {
        Self { most, ..self }
    }

    /// The first file that could not be written since this was asked, and why. A log is complete
    /// only when its connection is dropped.
    #[must_use]
    pub fn take_failure(&self) -> Option<(PathBuf, io::Error)> {
        self.shared.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// The file that ended because the logs have as many bytes as they may have: said once.
    #[must_use]
    pub fn take_full(&self) -> Option<PathBuf> {
        let mut full = self.shared.full.lock().unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *full, Full::Told) {
            Full::At(file) => Some(file),
            before => {
                *full = before;
                None
            }
        }
    }

    /// Takes room for so many bytes; false if there is not as much.
    fn takes(&self, bytes: usize) -> bool {
        let room = |taken: u64| taken.checked_add(bytes as u64).filter(|all| *all <= self.most);
        self.shared.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room).is_ok()
    }

    fn is_full_at(&self, file: &Path) {
        let mut full = self.shared.full.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*full, Full::Not) {
            *full = Full::At(file.to_owned());
        }
    }
}

/// Bytes that the beginning of a log is taken to have.
const HEAD: usize = 700;

/// Bytes that are kept in each log for the event that says why it ends.
const LAST: usize = 300;

/// Writes events, each with its time since the log began.
pub(crate) struct Log {
    /// `None` once something could not be written: the log ends there.
    to: Option<Box<dyn Write + Send>>,
    /// Which file, and who is told.
    file: PathBuf,
    told: Qlog,
    began: Time,
    /// When the last event was.
    last: Time,
    metrics: Metrics,
}

/// What congestion control went by after a packet or an ACK. Only what changes is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Metrics {
    pub(crate) min_rtt: Span,
    pub(crate) srtt: Span,
    pub(crate) latest: Span,
    pub(crate) rttvar: Span,
    /// Bytes.
    pub(crate) cwnd: u64,
    /// Bytes; `None` while there is none.
    pub(crate) ssthresh: Option<u64>,
    /// Bits per second, of what is paced.
    pub(crate) pacing_rate: Option<u64>,
    /// Bytes of packets in flight.
    pub(crate) in_flight: u64,
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Log").field("began", &self.began).finish_non_exhaustive()
    }
}

/// Where a log is written if that can be done, the name of its file, and who is told.
type Place = (io::Result<Box<dyn Write + Send>>, PathBuf, Qlog);

/// Files of other programs that began in the same millisecond, at most.
const SAME_NAMES: u128 = 1000;

/// A file of this time that was not there, or of the next millisecond of which there is none:
/// another program may write logs into the same folder.
fn new_file(folder: &Path, day: u128, rest: &str) -> (io::Result<std::fs::File>, PathBuf) {
    let mut tried = (day..day + SAME_NAMES).map(|day| {
        let file = folder.join(format!("{day}-{rest}.qlog"));
        (std::fs::File::create_new(&file), file)
    });
    let is_free = |to: &io::Result<std::fs::File>| {
        to.as_ref().err().is_none_or(|error| error.kind() != io::ErrorKind::AlreadyExists)
    };
    let mut last = (Err(io::ErrorKind::AlreadyExists.into()), folder.to_owned());
    for each in &mut tried {
        last = each;
        if is_free(&last.0) {
            break;
        }
    }
    last
}

fn millis(span: Span) -> Value {
    json!(span.as_nanos() as f64 / 1e6)
}

impl Log {
    /// A log in a new file of a folder: `DAYTIME-CONNECTION-SIDE.qlog`, with the time in
    /// milliseconds of Unix time.
    pub(crate) fn create(told: Qlog, now: Time, connection: usize, server: bool, title: &str) -> Self {
        let side = if server { "server" } else { "client" };
        let day = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_millis();
        let name = format!("{connection}-{side}");
        if !told.takes(HEAD + LAST) {
            // Where there is no room for a beginning there is no file.
            told.is_full_at(&told.folder.join(format!("{day}-{name}.qlog")));
            let metrics = Metrics::default();
            return Self { to: None, file: PathBuf::new(), told, began: now, last: now, metrics };
        }
        let (to, file) = new_file(&told.folder, day, &name);
        let to = to.map(|file| Box::new(BufWriter::new(file)) as Box<dyn Write + Send>);
        Self::begin((to, file, told), now, side, title)
    }

    fn begin((to, file, told): Place, now: Time, side: &str, title: &str) -> Self {
        let mut log = Self { to: None, file, told, began: now, last: now, metrics: Metrics::default() };
        match to {
            Ok(to) => log.to = Some(to),
            Err(error) => log.fail(error),
        }
        log.write(&json!({
            "file_schema": "urn:ietf:params:qlog:file:sequential",
            "serialization_format": "application/qlog+json-seq",
            "title": title,
            "trace": {
                "vantage_point": { "type": side },
                "event_schemas": [
                    "urn:ietf:params:qlog:events:quic-11",
                    "urn:ietf:params:qlog:events:loglevel",
                ],
                "common_fields": {
                    "time_format": "relative_to_epoch",
                    "reference_time": { "clock_type": "monotonic", "epoch": "unknown" },
                },
            },
        }));
        log
    }

    /// It ends here.
    fn fail(&mut self, error: io::Error) {
        self.to = None;
        let mut failure = self.told.shared.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.get_or_insert_with(|| (std::mem::take(&mut self.file), error));
    }

    fn write(&mut self, record: &Value) {
        self.write_text(&format!("\u{1e}{record}\n"));
    }

    fn write_text(&mut self, text: &str) {
        if let Some(to) = &mut self.to
            && let Err(error) = to.write_all(text.as_bytes())
        {
            self.fail(error);
        }
    }

    /// Something happened. An ACK that was read late arrived before packets left that are in the
    /// log already: what it says is written with the time of the last of them.
    fn event(&mut self, now: Time, name: &str, data: &Value) {
        if self.to.is_none() {
            return;
        }
        let now = now.max(self.last);
        self.last = now;
        let time = millis(now.since(self.began));
        let record = json!({ "time": time, "name": format!("quic:{name}"), "data": data });
        let text = format!("\u{1e}{record}\n");
        if self.told.takes(text.len()) {
            return self.write_text(&text);
        }
        let message = format!("the log ends here: all logs have {} bytes at most", self.told.most);
        self.write(&json!({ "time": time, "name": "loglevel:warning", "data": { "message": message } }));
        if let Some(mut to) = self.to.take() {
            self.told.is_full_at(&self.file);
            if let Err(error) = to.flush() {
                self.fail(error);
            }
        }
    }

    /// A packet left.
    pub(crate) fn sent(&mut self, now: Time, packet: u64, bytes: u32) {
        let header = json!({ "packet_type": "1RTT", "packet_number": packet });
        self.event(now, "packet_sent", &json!({ "header": header, "raw": { "length": bytes } }));
    }

    /// A packet is deemed lost.
    pub(crate) fn lost(&mut self, now: Time, packet: u64) {
        self.event(now, "packet_lost", &json!({ "header": { "packet_type": "1RTT", "packet_number": packet } }));
    }

    /// A packet was acknowledged.
    pub(crate) fn acked(&mut self, now: Time, packet: u64) {
        let data = json!({ "packet_number_space": "application_data", "packet_numbers": [packet] });
        self.event(now, "packets_acked", &data);
    }

    /// What congestion control goes by now.
    pub(crate) fn metrics(&mut self, now: Time, metrics: Metrics) {
        let before = std::mem::replace(&mut self.metrics, metrics);
        let mut data = serde_json::Map::new();
        let mut differs = |name: &str, changed: bool, value: Value| {
            if changed {
                data.insert(name.to_owned(), value);
            }
        };
        let known = metrics.min_rtt != Span::MAX;
        differs("min_rtt", before.min_rtt != metrics.min_rtt && known, millis(metrics.min_rtt));
        differs("smoothed_rtt", before.srtt != metrics.srtt, millis(metrics.srtt));
        differs("latest_rtt", before.latest != metrics.latest, millis(metrics.latest));
        differs("rtt_variance", before.rttvar != metrics.rttvar, millis(metrics.rttvar));
        differs("congestion_window", before.cwnd != metrics.cwnd, json!(metrics.cwnd));
        differs("bytes_in_flight", before.in_flight != metrics.in_flight, json!(metrics.in_flight));
        let threshold = before.ssthresh != metrics.ssthresh && metrics.ssthresh.is_some();
        differs("ssthresh", threshold, json!(metrics.ssthresh));
        let rate = before.pacing_rate != metrics.pacing_rate && metrics.pacing_rate.is_some();
        differs("pacing_rate", rate, json!(metrics.pacing_rate));
        if !data.is_empty() {
            self.event(now, "recovery_metrics_updated", &Value::Object(data));
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        if let Some(to) = &mut self.to
            && let Err(error) = to.flush()
        {
            self.fail(error);
        }
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// Takes 100 bytes.
    struct Small(usize);

    impl Write for Small {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            if self.0 > 100 { Err(std::io::ErrorKind::StorageFull.into()) } else { Ok(bytes.len()) }
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn records_are_a_json_text_sequence_and_name_only_what_changed() {
        let written = Shared::default();
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        let to = Ok(Box::new(written.clone()) as Box<dyn Write + Send>);
        let place = (to, PathBuf::new(), Qlog::new(Path::new("")));
        let mut log = Log::begin(place, at(5), "client", "slow_start+cubic");
        let metrics = Metrics { min_rtt: Span::MAX, cwnd: 14_520, ..Metrics::default() };
        log.metrics(at(5), metrics);
        log.sent(at(6), 7, 1452);
        log.metrics(at(16), Metrics { min_rtt: Span::from_millis(10), ..metrics });
        log.metrics(at(17), Metrics { min_rtt: Span::from_millis(10), ..metrics });
        log.acked(at(17), 7);
        log.lost(at(18), 9);
        let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        let records: Vec<&str> = text.split('\u{1e}').collect();
        assert_eq!(records[0], "");
        assert!(records.iter().skip(1).all(|record| record.ends_with('\n')));
        let head: Value = serde_json::from_str(records[1]).unwrap();
        assert_eq!(
            (&head["trace"]["vantage_point"]["type"], &head["title"]),
            (&json!("client"), &json!("slow_start+cubic"))
        );
        let events: Vec<Value> = records[2..].iter().map(|record| serde_json::from_str(record).unwrap()).collect();
        let packet = |number: u64| json!({ "packet_type": "1RTT", "packet_number": number });
        let expected = [
            json!({ "time": 0.0, "name": "quic:recovery_metrics_updated", "data": { "congestion_window": 14_520 } }),
            json!({ "time": 1.0, "name": "quic:packet_sent",
                    "data": { "header": packet(7), "raw": { "length": 1452 } } }),
            json!({ "time": 11.0, "name": "quic:recovery_metrics_updated", "data": { "min_rtt": 10.0 } }),
            json!({ "time": 12.0, "name": "quic:packets_acked",
                    "data": { "packet_number_space": "application_data", "packet_numbers": [7] } }),
            json!({ "time": 13.0, "name": "quic:packet_lost", "data": { "header": packet(9) } }),
        ];
        assert_eq!(events, expected);
    }

    #[test]
    fn a_log_that_cannot_be_written_ends_and_that_is_told() {
        let qlog = Qlog::new(Path::new("/nowhere"));
        let to = Ok(Box::new(Small(0)) as Box<dyn Write + Send>);
        let place = (to, PathBuf::from("full.qlog"), qlog.clone());
        let mut log = Log::begin(place, Time::ZERO, "server", "slow_start+cubic");
        log.sent(Time::ZERO, 1, 1452);
        assert!(log.to.is_none());
        let (file, error) = qlog.take_failure().unwrap();
        assert_eq!((file, error.kind()), (PathBuf::from("full.qlog"), io::ErrorKind::StorageFull));
        let mut log = Log::create(qlog.clone(), Time::ZERO, 1, true, "slow_start+cubic");
        log.sent(Time::ZERO, 1, 1452);
        let (file, error) = qlog.take_failure().unwrap();
        assert!(file.starts_with("/nowhere") && error.kind() == io::ErrorKind::NotFound, "{error}");
        assert!(qlog.take_failure().is_none());
    }

    #[test]
    fn logs_have_no_more_bytes_than_they_may_have_and_say_where_they_end() {
        let folder = tempfile::tempdir().unwrap();
        let most = 20_000;
        let qlog = Qlog::new(folder.path()).with_most(most);
        let mut logs: Vec<Log> =
            (0..3).map(|number| Log::create(qlog.clone(), Time::ZERO, number, false, "slow_start+cubic")).collect();
        for packet in 0..1000 {
            logs.iter_mut().for_each(|log| log.sent(Time::from_nanos(packet), packet, 1452));
            if packet == 10 {
                assert_eq!(qlog.take_full(), None);
            }
        }
        let file = qlog.take_full().unwrap();
        assert!(file.starts_with(folder.path()) && file.exists(), "{}", file.display());
        assert_eq!(qlog.take_full(), None, "once");
        // What is said is complete before the connection is over.
        let read =
            || std::fs::read_dir(folder.path()).unwrap().map(|entry| std::fs::read_to_string(entry.unwrap().path()));
        let texts: Vec<String> = read().map(Result::unwrap).collect();
        assert_eq!(texts.len(), 3);
        let all: usize = texts.iter().map(String::len).sum();
        assert!((15_000..=20_000).contains(&all), "{all}");
        for text in &texts {
            let records: Vec<Value> =
                text.split('\u{1e}').skip(1).map(|record| serde_json::from_str(record).unwrap()).collect();
            assert!(records[0].to_string().contains("urn:ietf:params:qlog:events:loglevel"));
            assert_eq!(records.last().unwrap()["name"], "loglevel:warning");
            assert!(records.last().unwrap().to_string().len() < LAST && records[0].to_string().len() < HEAD);
        }
        // Connections that come later have none.
        drop(Log::create(qlog.clone(), Time::ZERO, 3, false, ""));
        assert!(read().count() == 3 && qlog.take_failure().is_none() && qlog.take_full().is_none());
    }

    #[test]
    fn logs_that_begin_in_the_same_millisecond_have_different_names() {
        let folder = tempfile::tempdir().unwrap();
        let named = |day| {
            let (to, file) = new_file(folder.path(), day, "0-client");
            to.unwrap();
            file.file_name().unwrap().to_string_lossy().into_owned()
        };
        assert_eq!([named(7), named(7), named(7)], ["7-0-client.qlog", "8-0-client.qlog", "9-0-client.qlog"]);
        let (failed, file) = new_file(&folder.path().join("none"), 7, "0-client");
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(file.ends_with("7-0-client.qlog"), "the first is named");
    }

    /// ACKs that are read late are told with the time at which they arrived.
    #[test]
    fn time_does_not_run_backwards_in_a_log() {
        let written = Shared::default();
        let at = |millis| Time::ZERO + Span::from_millis(millis);
        let place = (Ok(Box::new(written.clone()) as Box<dyn Write + Send>), PathBuf::new(), Qlog::new(Path::new("")));
        let mut log = Log::begin(place, at(5), "client", "");
        log.sent(at(9), 7, 1452);
        log.acked(at(8), 6);
        log.sent(at(10), 8, 1452);
        let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        let times: Vec<Value> = text
            .split('\u{1e}')
            .skip(2)
            .map(|record| serde_json::from_str::<Value>(record).unwrap()["time"].clone())
            .collect();
        assert_eq!(times, [json!(4.0), json!(4.0), json!(5.0)]);
    }

    /// What is written stays in a buffer until the end, which said nothing.
    #[test]
    fn a_log_that_cannot_be_completed_is_told() {
        let qlog = Qlog::new(Path::new("/nowhere"));
        let to = Ok(Box::new(BufWriter::new(Small(0))) as Box<dyn Write + Send>);
        let log = Log::begin((to, PathBuf::from("full.qlog"), qlog.clone()), Time::ZERO, "server", "");
        assert!(qlog.take_failure().is_none());
        drop(log);
        assert!(qlog.take_failure().is_some());
    }
}
