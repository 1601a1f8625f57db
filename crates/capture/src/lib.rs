//! Captures of any link as pcapng files that Wireshark opens: real IPv4, TCP and UDP headers with
//! nanosecond times, payload cut off.

mod wire;

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::{DataLink, PcapError};
use tempfile::NamedTempFile;

use flowstart_network::Packet;
use flowstart_simulator::{LinkId, Observer};
use flowstart_units::Time;

use flowstart_results::WriteError;

pub use wire::headers;

/// Most packets a capture holds, so that a forgotten capture does not fill the disk.
const MOST_PACKETS: u64 = 10_000_000;

/// Time stamps count nanoseconds (pcapng option `if_tsresol`: 10 to the power of minus 9).
const NANOSECONDS: u8 = 9;

/// The points of a link where packets are seen; each is an interface of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Point {
    /// On arrival, before the queue.
    Arrival = 0,
    /// When the transmission begins, behind the queue (marks are set here).
    Transmission = 1,
}

/// Writes what passes a link into a pcapng file; an observer. The file appears under its name only
/// when [`Capture::finish`] succeeds.
pub struct Capture {
    link: LinkId,
    path: PathBuf,
    writer: Option<PcapNgWriter<BufWriter<NamedTempFile>>>,
    packets: u64,
    error: Option<WriteError>,
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
        write!(f, "Capture of link {} into {}", self.link, self.path.display())
    }
}

impl Capture {
    /// A capture of link number `link`, called `name`, into the file `path`.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn new(link: LinkId, name: &str, path: &Path) -> Result<Self, WriteError> {
        let wrong = |error: &dyn std::fmt::Display| WriteError::new(path, error);
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        std::fs::create_dir_all(folder).map_err(|error| wrong(&error))?;
        let file = NamedTempFile::new_in(folder).map_err(|error| wrong(&error))?;
        let mut writer = PcapNgWriter::new(BufWriter::new(file)).map_err(|error| wrong(&why(&error)))?;
        for place in ["arrival at the queue", "transmission"] {
            writer
                .write_pcapng_block(InterfaceDescriptionBlock {
                    linktype: DataLink::IPV4,
                    snaplen: 0,
                    options: vec![
                        InterfaceDescriptionOption::IfName(Cow::Owned(format!("{name}: {place}"))),
                        InterfaceDescriptionOption::IfTsResol(NANOSECONDS),
                    ],
                })
                .map_err(|error| wrong(&why(&error)))?;
        }
        Ok(Self { link, path: path.to_owned(), writer: Some(writer), packets: 0, error: None })
    }

    fn write(&mut self, now: Time, point: Point, packet: &Packet) {
        let Some(writer) = &mut self.writer else { return };
        if self.packets >= MOST_PACKETS {
            return;
        }
        self.packets += 1;
        let block = EnhancedPacketBlock {
            interface_id: point as u32,
            timestamp: Duration::from_nanos(now.as_nanos()),
            original_len: u32::from(packet.bytes),
            data: Cow::Owned(headers(packet)),
            options: vec![],
        };
        if let Err(error) = writer.write_pcapng_block(block) {
            self.error = Some(WriteError::new(&self.path, why(&error)));
            self.writer = None;
        }
    }

    /// Completes the file. Returns how many packets are in it.
    ///
    /// # Errors
    /// If something could not be written; then there is no file.
    pub fn finish(mut self) -> Result<u64, WriteError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        if let Some(writer) = self.writer.take() {
            let wrong = |error: &dyn std::fmt::Display| WriteError::new(&self.path, error);
            let mut buffer = writer.into_inner();
            buffer.flush().map_err(|error| wrong(&why(&PcapError::IoError(error))))?;
            let file = buffer.into_inner().map_err(|error| wrong(&error))?;
            let _: File = file.persist(&self.path).map_err(|error| wrong(&error.error))?;
        }
        Ok(self.packets)
    }
}

impl Observer for Capture {
    fn arrived(&mut self, now: Time, link: LinkId, packet: &Packet, _packets: u64, _bytes: u64) {
        if link == self.link {
            self.write(now, Point::Arrival, packet);
        }
    }

    fn transmitted(&mut self, now: Time, link: LinkId, packet: &Packet, _arrived: Time, _done: Time) {
        if link == self.link {
            self.write(now, Point::Transmission, packet);
        }
    }
}

/// Captures of several links at once.
#[derive(Debug, Default)]
pub struct Captures(pub Vec<Capture>);

impl Observer for Captures {
    fn arrived(&mut self, now: Time, link: LinkId, packet: &Packet, packets: u64, bytes: u64) {
        for capture in &mut self.0 {
            capture.arrived(now, link, packet, packets, bytes);
        }
    }

    fn transmitted(&mut self, now: Time, link: LinkId, packet: &Packet, arrived: Time, done: Time) {
        for capture in &mut self.0 {
            capture.transmitted(now, link, packet, arrived, done);
        }
    }
}

#[cfg(test)]
mod tests {
    use flowstart_simulator::Simulation;
    use pcap_file::pcapng::{Block, PcapNgReader};

    use super::*;
    use flowstart_scenario::Scenario;

    const LOSSY: &str = r#"
duration = "1 s"
[path]
capacity = "10 Mbit/s"
rtt = "20 ms"
queue = "step_mark 1 ms"
loss = "every 50"
[[flow]]
algorithm = "slow_start+dctcp"
size = "300 kB"
[[udp]]
rate = "1 Mbit/s"
packet = "500 B"
"#;

    #[test]
    fn a_full_disk_is_called_that() {
        let full = |error| why(&PcapError::IoError(error));
        let said = full(std::io::Error::from_raw_os_error(28));
        assert_eq!(said, "no space is left on its disk");
        let other = full(std::io::ErrorKind::BrokenPipe.into());
        assert!(other.contains("pipe") && !other.contains("reading"), "{other}");
    }

    #[test]
    fn a_capture_reads_back_with_an_independent_parser_in_order_of_time() {
        let compiled = Scenario::parse("t", LOSSY).unwrap().simulation(0).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("link.pcapng");
        let capture = Capture::new(0, "bottleneck", &path).unwrap();
        let (outcome, capture) = Simulation::new(&compiled.simulation, capture).unwrap().run();
        assert!(!path.exists(), "the file appears only when it is complete");
        let written = capture.finish().unwrap();
        let mut reader = PcapNgReader::new(File::open(&path).unwrap()).unwrap();
        let (mut seen, mut last, mut transmitted, mut marked, mut tcp, mut udp) = (0, Duration::ZERO, 0, 0, 0, 0);
        while let Some(block) = reader.next_block() {
            let Block::EnhancedPacket(packet) = block.unwrap() else { continue };
            seen += 1;
            assert!(packet.timestamp >= last);
            last = packet.timestamp;
            let mut whole = packet.data.to_vec();
            whole.resize(packet.original_len as usize, 0);
            let headers = etherparse::PacketHeaders::from_ip_slice(&whole).unwrap();
            let Some(etherparse::NetHeaders::Ipv4(ip, _)) = headers.net else { panic!() };
            assert_eq!(u32::from(ip.total_len), packet.original_len);
            assert_eq!(ip.header_checksum, ip.calc_header_checksum());
            match headers.transport {
                Some(etherparse::TransportHeader::Tcp(_)) => tcp += 1,
                Some(etherparse::TransportHeader::Udp(_)) => udp += 1,
                other => panic!("{other:?}"),
            }
            if packet.interface_id == 1 {
                transmitted += 1;
                marked += u64::from(ip.ecn.value() == 3);
            }
        }
        assert_eq!(seen, written);
        assert_eq!(transmitted, outcome.links[0].packets);
        assert_eq!(marked, outcome.links[0].marked);
        assert!(marked > 0 && tcp > 100 && udp > 100);
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_one_clear_sentence() {
        let error = Capture::new(0, "x", Path::new("/proc/nowhere/x.pcapng")).unwrap_err().to_string();
        assert!(error.starts_with("/proc/nowhere/x.pcapng cannot be written: "), "{error}");
    }
}
