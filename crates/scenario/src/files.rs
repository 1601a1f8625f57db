//! Files that a scenario names.

use std::fmt::Display;
use std::io::Read as _;
use std::path::Path as FilePath;

use flowstart_network::parse_mahimahi;
use flowstart_units::{Bytes, Span};

use super::{FlowSpec, RateSpec, Scenario, ScenarioError, SpecError};

/// Largest scenario, trace or flow list that is read, so that a wrong file name does not fill the
/// memory.
const LARGEST_FILE: u64 = 256 << 20;

/// Reads a text file of at most 256 MiB. A pipe or a device may be read too; as neither says how
/// long it is, no more than that is taken from it.
///
/// # Errors
/// A sentence with the file's name, if it cannot be read, is longer, or is not text in UTF-8.
pub fn read(path: &FilePath) -> Result<String, ScenarioError> {
    let name = path.display().to_string();
    let wrong = |message: String| ScenarioError::file(&name, message);
    let failed =
        |error: std::io::Error| wrong(format!("cannot be read: {}", flowstart_files::why_unread(path, &error)));
    let file = std::fs::File::open(path).map_err(failed)?;
    flowstart_files::reads(path);
    let length = file.metadata().map_err(failed)?.len();
    if length > LARGEST_FILE {
        return Err(wrong(format!("is {length} bytes long; files of more than {LARGEST_FILE} bytes are not read")));
    }
    let mut bytes = Vec::new();
    file.take(LARGEST_FILE + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > LARGEST_FILE {
        return Err(wrong(format!("does not end; more than {LARGEST_FILE} bytes are not read")));
    }
    String::from_utf8(bytes).map_err(|_| wrong("is not text in UTF-8".to_owned()))
}

impl Scenario {
    /// Puts the contents of the files it names in the place of their names.
    pub(super) fn resolve(&mut self, folder: &FilePath) -> Result<(), ScenarioError> {
        for rate in self.rates() {
            if let RateSpec::Trace(file) = rate {
                let path = folder.join(&*file);
                let text = read(&path)?;
                let schedule = parse_mahimahi(&text)
                    .map_err(|error| ScenarioError::file(&path.display().to_string(), error.to_string()))?;
                *rate = RateSpec::from_schedule(&schedule);
            }
        }
        let mut flows = Vec::new();
        for flow in std::mem::take(&mut self.flow) {
            match &flow.list {
                Some(file) => flows.extend(read_list(&folder.join(file), &flow)?),
                None => flows.push(flow),
            }
        }
        self.flow = flows;
        Ok(())
    }

    fn rates(&mut self) -> impl Iterator<Item = &mut RateSpec> {
        let path = self.path.iter_mut().flat_map(|path| {
            let ways = path.ways.iter_mut().filter_map(|way| way.capacity.as_mut());
            std::iter::once(&mut path.capacity).chain(path.reverse_capacity.as_mut()).chain(ways)
        });
        path.chain(self.link.iter_mut().flat_map(|link| {
            let ways = link.ways.iter_mut().filter_map(|way| way.capacity.as_mut());
            std::iter::once(&mut link.capacity).chain(ways)
        }))
    }
}

/// One flow per line of a CSV file with the columns `start` and `bytes`.
fn read_list(path: &FilePath, kind: &FlowSpec) -> Result<Vec<FlowSpec>, ScenarioError> {
    let name = path.display().to_string();
    let text = read(path)?;
    parse_flow_list(&text, kind).map_err(|message| ScenarioError::file(&name, message))
}

/// Reads a list of flows of this kind from the text of its file.
///
/// # Errors
/// The first line that is wrong, and what would be right.
pub fn parse_flow_list(text: &str, kind: &FlowSpec) -> Result<Vec<FlowSpec>, SpecError> {
    let not_csv = |error: csv::Error| SpecError::new(format!("is not CSV: {error}"));
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).comment(Some(b'#')).from_reader(text.as_bytes());
    let headers = reader.headers().map_err(not_csv)?.clone();
    let column = |wanted: &str| {
        headers.iter().position(|name| name == wanted).ok_or_else(|| {
            let found = headers.iter().collect::<Vec<_>>().join(", ");
            SpecError::new(format!(
                "has no column \"{wanted}\" (found: {found:.60}); a flow list has the columns start,bytes"
            ))
        })
    };
    let (start, bytes) = (column("start")?, column("bytes")?);
    let mut flows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(not_csv)?;
        let line = record.position().map_or(0, csv::Position::line);
        let field = |column: usize| record.get(column).unwrap_or_default();
        let wrong = |column: &str, error: &dyn Display| SpecError::new(format!("line {line}: {column}: {error}"));
        let start = with_unit(field(start), "s").parse::<Span>().map_err(|error| wrong("start", &error))?;
        let size = with_unit(field(bytes), "B").parse::<Bytes>().map_err(|error| wrong("bytes", &error))?;
        if size.get() == 0 {
            return Err(wrong("bytes", &"a transfer has at least 1 byte"));
        }
        let one = FlowSpec { list: None, start, size: Some(size), count: 1, every: Span::ZERO, ..kind.clone() };
        flows.push(one);
    }
    Ok(flows)
}

/// Bare numbers in a list are seconds and bytes, as the columns say.
fn with_unit(field: &str, unit: &str) -> String {
    if field.parse::<f64>().is_ok() { format!("{field} {unit}") } else { field.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind() -> FlowSpec {
        toml::from_str("algorithm = \"cubic\"").unwrap()
    }

    #[test]
    #[cfg(unix)]
    fn what_does_not_end_is_read_no_further_than_the_largest_file() {
        let error = read(FilePath::new("/dev/zero")).unwrap_err().to_string();
        assert!(error.contains("/dev/zero") && error.contains("does not end"), "{error}");
    }

    #[test]
    fn a_flow_list_gives_a_flow_per_line() {
        let flows = parse_flow_list("start,bytes\n0,1000\n# a remark\n500 ms, 2 MB\n", &kind()).unwrap();
        let read: Vec<_> = flows.iter().map(|flow| (flow.start, flow.size.unwrap())).collect();
        let wanted = [(Span::ZERO, Bytes::new(1000)), (Span::from_millis(500), Bytes::new(2_000_000))];
        assert_eq!(read, wanted);
    }

    #[test]
    fn a_bad_flow_list_is_refused_with_the_line() {
        assert!(
            parse_flow_list("when,bytes\n0,1\n", &kind())
                .unwrap_err()
                .to_string()
                .contains("no column \"start\" (found: when, bytes)")
        );
        assert!(
            parse_flow_list("start,bytes\n0,1\n-1,5\n", &kind()).unwrap_err().to_string().starts_with("line 3: start:")
        );
        assert!(parse_flow_list("start,bytes\n0,0\n", &kind()).unwrap_err().to_string().contains("at least 1 byte"));
        assert!(parse_flow_list("start,bytes\n0\n", &kind()).is_err());
    }
}
