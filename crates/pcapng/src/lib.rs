//! Captures as pcapng files that are there whole or not at all, whoever saw the packets.

#![forbid(unsafe_code)]

use std::borrow::Cow;
use std::fmt;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use flowstart_files::WholeFile;
use flowstart_units::Time;
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::{EnhancedPacketBlock, EnhancedPacketOption};
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::{DataLink, PcapError};

/// Most packets a capture holds, so that a forgotten capture does not fill the disk.
pub const MOST_PACKETS: u64 = 10_000_000;

/// A link's name as a file's, which stays in its folder and is no other link's: what could lead
/// elsewhere is written as in URLs.
#[must_use]
pub fn file_name(link: &str) -> String {
    link.replace('%', "%25").replace('/', "%2F").replace('\\', "%5C")
}

/// Time stamps count nanoseconds (pcapng option `if_tsresol`: 10 to the power of minus 9).
const NANOSECONDS: u8 = 9;

/// What a packet begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// An Ethernet header.
    Ethernet,
    /// An IPv4 header.
    Ipv4,
}

/// Why a capture could not be written. `Display` is the reason without the file's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(String);

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self(flowstart_files::why(&error))
    }
}

impl From<PcapError> for Error {
    /// The library calls whatever the system says "Error reading bytes".
    fn from(error: PcapError) -> Self {
        match error {
            PcapError::IoError(error) => error.into(),
            other => Self(other.to_string()),
        }
    }
}

/// A capture that is being written. The file appears under its name only when [`File::finish`]
/// succeeds.
pub struct File {
    path: PathBuf,
    writer: Option<PcapNgWriter<BufWriter<WholeFile>>>,
    packets: u64,
    error: Option<Error>,
}

impl fmt::Debug for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "File of {} packets for {}", self.packets, self.path.display())
    }
}

impl File {
    /// A capture into the file `path` whose packets begin with `layer`, seen at these places.
    ///
    /// # Errors
    /// If the folder cannot be made or written.
    pub fn create(path: &Path, layer: Layer, places: &[String]) -> Result<Self, Error> {
        let mut writer = PcapNgWriter::new(BufWriter::new(WholeFile::create(path)?))?;
        for place in places {
            writer.write_pcapng_block(InterfaceDescriptionBlock {
                linktype: match layer {
                    Layer::Ethernet => DataLink::ETHERNET,
                    Layer::Ipv4 => DataLink::IPV4,
                },
                snaplen: 0,
                options: vec![
                    InterfaceDescriptionOption::IfName(Cow::Borrowed(place)),
                    InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
                ],
            })?;
        }
        Ok(Self { path: path.to_owned(), writer: Some(writer), packets: 0, error: None })
    }

    /// True if another packet would be written: nothing failed yet, and there are fewer than
    /// [`MOST_PACKETS`].
    #[must_use]
    pub fn takes_more(&self) -> bool {
        self.writer.is_some() && self.packets < MOST_PACKETS
    }

    /// Adds a packet that was seen at `place` (counted from 0) at `time`: its headers, how many
    /// bytes it had, and what is to be said about it. What goes wrong is told by [`Self::finish`].
    pub fn add(&mut self, place: usize, time: Time, headers: Vec<u8>, bytes: u32, comment: Option<String>) {
        let Some(writer) = self.writer.as_mut().filter(|_| self.packets < MOST_PACKETS) else { return };
        self.packets += 1;
        let written = writer.write_pcapng_block(EnhancedPacketBlock {
            interface_id: place as u32,
            timestamp: Duration::from_nanos(time.as_nanos()),
            original_len: bytes,
            data: Cow::Owned(headers),
            options: comment.into_iter().map(|text| EnhancedPacketOption::Comment(Cow::Owned(text))).collect(),
        });
        if let Err(error) = written {
            self.error = Some(error.into());
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
            let mut buffer = writer.into_inner();
            buffer.flush()?;
            let file = buffer.into_inner().map_err(|error| Error(error.to_string()))?;
            file.finish()?;
        }
        Ok(self.packets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_called_that() {
        let said = |error: io::Error| Error::from(PcapError::IoError(error)).to_string();
        assert_eq!(said(io::ErrorKind::StorageFull.into()), "no space is left");
        let other = said(io::ErrorKind::BrokenPipe.into());
        assert!(other.contains("pipe") && !other.contains("reading"), "{other}");
    }

    #[test]
    fn a_file_is_there_when_it_is_finished_and_not_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new").join("link.pcapng");
        let mut file = File::create(&path, Layer::Ipv4, &["arrival".to_owned()]).unwrap();
        file.add(0, Time::from_nanos(1), vec![0x45; 20], 1500, Some("waited".to_owned()));
        assert!(!path.exists() && file.takes_more());
        assert_eq!(file.finish(), Ok(1));
        let bytes = std::fs::read(&path).unwrap();
        assert!(bytes.windows(6).any(|part| part == b"waited"));
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn what_is_dropped_unfinished_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        drop(File::create(&folder.path().join("link.pcapng"), Layer::Ethernet, &[]).unwrap());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[cfg(unix)]
    #[test]
    fn others_may_read_what_a_new_file_of_the_user_lets_them_read() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let (ours, plain) = (folder.path().join("link.pcapng"), folder.path().join("plain"));
        File::create(&ours, Layer::Ipv4, &[]).unwrap().finish().unwrap();
        std::fs::write(&plain, b"").unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&ours), mode(&plain));
    }
}
