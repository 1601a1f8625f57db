//! Captures of any link as pcapng files that Wireshark opens: real IPv4, TCP and UDP headers with
//! nanosecond times, payload cut off.

mod wire;

use std::path::{Path, PathBuf};

use flowstart_network::Packet;
pub use flowstart_pcapng::file_name;
use flowstart_pcapng::{File, Layer};
use flowstart_simulator::{LinkId, Observer};
use flowstart_units::Time;

use flowstart_results::WriteError;

pub use wire::headers;

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
#[derive(Debug)]
pub struct Capture {
    link: LinkId,
    path: PathBuf,
    file: File,
}

impl Capture {
    /// A capture of link number `link`, called `name`, into the file `path`.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn new(link: LinkId, name: &str, path: &Path) -> Result<Self, WriteError> {
        let places = ["arrival at the queue", "transmission"].map(|place| format!("{name}: {place}"));
        let file = File::create(path, Layer::Ipv4, &places).map_err(|error| WriteError::new(path, error))?;
        Ok(Self { link, path: path.to_owned(), file })
    }

    fn write(&mut self, now: Time, point: Point, packet: &Packet) {
        if self.file.takes_more() {
            self.file.add(point as usize, now, headers(packet), u32::from(packet.bytes), None);
        }
    }

    /// Completes the file. Returns how many packets are in it.
    ///
    /// # Errors
    /// If something could not be written; then there is no file.
    pub fn finish(self) -> Result<u64, WriteError> {
        self.file.finish().map_err(|error| WriteError::new(&self.path, error))
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
    use std::fs::File;
    use std::time::Duration;

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
