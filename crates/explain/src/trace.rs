//! A chirp from a file.

use std::path::Path;

use flowstart_congestion::start::paced_chirping::reading::Point;
use flowstart_units::Span;

use super::{Chirp, ExplainError};
use flowstart_scenario::read;

/// Fewest packets of a chirp: the shortest that Paced Chirping sends.
pub const FEWEST_PACKETS: usize = 5;
/// Most packets that are taken for one chirp; a file with more is something else.
pub const MOST_PACKETS: usize = 1000;

/// Reads a chirp from a CSV file with the columns `sent` and `acked`: when each packet left and
/// when the ACK came that told of it, in seconds since any moment, a line per packet in order of
/// departure. Packets with the same `acked` came in one ACK.
///
/// # Errors
/// A file that cannot be read, or the first line that is wrong.
pub fn read_trace(path: &Path) -> Result<Chirp, ExplainError> {
    let text = read(path).map_err(ExplainError::new)?;
    parse_trace(&path.display().to_string(), &text)
}

/// Reads the same from the text of a file; `name` is used in errors.
///
/// # Errors
/// The first line that is wrong.
pub fn parse_trace(name: &str, text: &str) -> Result<Chirp, ExplainError> {
    times(text).map(|times| chirp(&times)).map_err(|message| ExplainError::new(format!("{name}: {message}")))
}

/// When a packet left and when it was acknowledged, in ns.
struct Times {
    sent: u64,
    acked: u64,
}

fn times(text: &str) -> Result<Vec<Times>, String> {
    let mut reader =
        csv::ReaderBuilder::new().trim(csv::Trim::All).comment(Some(b'#')).flexible(true).from_reader(text.as_bytes());
    let headers = reader.headers().map_err(|error| format!("is not CSV: {error}"))?.clone();
    let column = |wanted: &str| {
        headers.iter().position(|name| name == wanted).ok_or_else(|| {
            let found = headers.iter().collect::<Vec<_>>().join(", ");
            format!("line 1: there is no column \"{wanted}\" (found: {found}); a chirp has the columns sent,acked")
        })
    };
    let (sent, acked) = (column("sent")?, column("acked")?);
    let mut times: Vec<Times> = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| format!("is not CSV: {error}"))?;
        let line = record.position().map_or(0, csv::Position::line);
        let seconds = |column: usize, name: &str| {
            let field = record.get(column).unwrap_or_default();
            // Through the units' reader, which is exact to the nanosecond also for times
            // since 1970.
            let plain = !field.is_empty() && field.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
            let time = plain.then(|| format!("{field} s").parse::<Span>().ok()).flatten();
            time.map(Span::as_nanos).ok_or_else(|| match field {
                "" => format!(
                    "line {line}: {name} is empty; a chirp says something only if every packet was acknowledged"
                ),
                _ => format!("line {line}: {name}: \"{field:.60}\" is not a time in seconds such as 0.0125"),
            })
        };
        let packet = Times { sent: seconds(sent, "sent")?, acked: seconds(acked, "acked")? };
        if packet.acked < packet.sent {
            return Err(format!("line {line}: acked before it was sent"));
        }
        if times.last().is_some_and(|before| packet.sent < before.sent) {
            return Err(format!(
                "line {line}: sent before the packet of the line before; packets come in order of sending"
            ));
        }
        times.push(packet);
        if times.len() > MOST_PACKETS {
            return Err(format!("line {line}: more than {MOST_PACKETS} packets are not one chirp"));
        }
    }
    if times.len() < FEWEST_PACKETS {
        return Err(format!("{} packets; a chirp has at least {FEWEST_PACKETS}", times.len()));
    }
    Ok(times)
}

fn chirp(times: &[Times]) -> Chirp {
    // Packets of one ACK are told of together; the RTT is the newest one's, as in Linux.
    let rtts: Vec<u64> = times
        .chunk_by(|one, other| one.acked == other.acked)
        .flat_map(|group| {
            let newest = group.last().map_or(0, |newest| newest.acked - newest.sent);
            std::iter::repeat_n(newest, group.len())
        })
        .collect();
    let base = rtts.iter().copied().min().unwrap_or(0);
    let mut chirp = Chirp { gaps: Vec::new(), delays: Vec::new(), points: Vec::new() };
    let (mut gaps, mut packets) = (0_u64, 0);
    for (k, (packet, rtt)) in times.iter().zip(&rtts).enumerate() {
        let gap = if k == 0 { 0 } else { packet.sent - times[k - 1].sent };
        let delay = rtt - base;
        chirp.gaps.push(gap);
        chirp.delays.push(delay);
        gaps = gaps.saturating_add(gap);
        packets += 1;
        if times.get(k + 1).is_none_or(|next| next.acked != packet.acked) {
            chirp.points.push(Point { gaps, packets, delay });
            (gaps, packets) = (0, 0);
        }
    }
    chirp
}
