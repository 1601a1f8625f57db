//! Captures of links as pcapng files.

use std::borrow::Cow;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::{DataLink, PcapError};
use tempfile::NamedTempFile;

use flowstart_network::Ecn;

use crate::Error;
use crate::record::{Fate, PacketRecord};
use crate::wire::{self, ETHERNET};

/// Most packets a capture holds, so that a forgotten capture does not fill the disk.
const MOST_PACKETS: u64 = 10_000_000;
/// Time stamps count nanoseconds (pcapng option `if_tsresol`).
const NANOSECONDS: u8 = 9;

/// Writes the packets of one link into a pcapng file: headers, at the time at which their
/// transmission began (marks included), with their wait in the queue as a comment; or at the time
/// at which they were dropped, on an interface of their own. Times count from the start of the
/// world.
pub struct Capture {
    path: PathBuf,
    writer: Option<PcapNgWriter<BufWriter<NamedTempFile>>>,
    packets: u64,
    error: Option<Error>,
}

/// Why a block could not be written. The library calls whatever the system says "Error reading
/// bytes".
fn why(error: &PcapError) -> String {
    match error {
        PcapError::IoError(error) if error.kind() == std::io::ErrorKind::StorageFull => {
            "no space is left on its disk".to_owned()
        }
        PcapError::IoError(error) => error.to_string(),
        other => other.to_string(),
    }
}

impl std::fmt::Debug for Capture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Capture into {}", self.path.display())
    }
}

impl Capture {
    /// A capture of the link called `name` into the file `path`, which appears when
    /// [`Capture::finish`] succeeds.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn new(name: &str, path: &Path) -> Result<Self, Error> {
        let wrong = |error: &dyn std::fmt::Display| Error::doing(format_args!("write {}", path.display()), error);
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let file = NamedTempFile::new_in(folder).map_err(|error| wrong(&error))?;
        let mut writer = PcapNgWriter::new(BufWriter::new(file)).map_err(|error| wrong(&why(&error)))?;
        for place in ["transmission", "dropped"] {
            let options = vec![
                InterfaceDescriptionOption::IfName(Cow::Owned(format!("{name}: {place}"))),
                InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
            ];
            let block = InterfaceDescriptionBlock { linktype: DataLink::ETHERNET, snaplen: 0, options };
            writer.write_pcapng_block(block).map_err(|error| wrong(&why(&error)))?;
        }
        Ok(Self { path: path.to_owned(), writer: Some(writer), packets: 0, error: None })
    }

    /// Adds a packet.
    pub fn add(&mut self, record: &PacketRecord<'_>) {
        let Some(writer) = self.writer.as_mut().filter(|_| self.packets < MOST_PACKETS) else { return };
        self.packets += 1;
        let mut headers = record.headers.to_vec();
        if record.ecn == Ecn::Ce {
            wire::set_ce(&mut headers);
        }
        let comment = match record.fate {
            Fate::Sent { began, .. } => {
                format!("waited {:.3} us", began.since(record.arrived).as_nanos() as f64 / 1e3)
            }
            Fate::Dropped { reason, .. } => format!("dropped by the queue: {}", reason.name()),
            Fate::Lost => "taken by the loss process".to_owned(),
        };
        let block = EnhancedPacketBlock {
            interface_id: u32::from(record.waited().is_none()),
            timestamp: Duration::from_nanos(record.time().as_nanos()),
            original_len: record.bytes + ETHERNET as u32,
            data: Cow::Owned(headers),
            options: vec![EnhancedPacketOption::Comment(Cow::Owned(comment))],
        };
        if let Err(error) = writer.write_pcapng_block(block) {
            self.error = Some(Error::doing(format_args!("write {}", self.path.display()), why(&error)));
            self.writer = None;
        }
    }

    /// Completes the file. Returns how many packets are in it.
    ///
    /// # Errors
    /// If something could not be written; then there is no file.
    pub fn finish(mut self) -> Result<u64, Error> {
        if let Some(error) = self.error {
            return Err(error);
        }
        if let Some(writer) = self.writer.take() {
            let wrong =
                |error: &dyn std::fmt::Display| Error::doing(format_args!("write {}", self.path.display()), error);
            let mut buffer = writer.into_inner();
            buffer.flush().map_err(|error| wrong(&why(&PcapError::IoError(error))))?;
            let file = buffer.into_inner().map_err(|error| wrong(&error))?;
            // Temporary files are private; results are not.
            let readable = std::os::unix::fs::PermissionsExt::from_mode(0o644);
            file.as_file().set_permissions(readable).map_err(|error| wrong(&error))?;
            file.persist(&self.path).map_err(|error| wrong(&error.error))?;
        }
        Ok(self.packets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_called_that() {
        let full = |error| why(&PcapError::IoError(error));
        let said = full(std::io::Error::from_raw_os_error(28));
        assert_eq!(said, "no space is left on its disk");
        let other = full(std::io::ErrorKind::BrokenPipe.into());
        assert!(other.contains("pipe") && !other.contains("reading"), "{other}");
    }
}
