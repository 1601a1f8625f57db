//! What a server lets clients have.

use std::fs::File;
use std::net::{IpAddr, Ipv6Addr};
use std::path::{Component, Path, PathBuf};

use flowstart_units::Span;

/// What a server lets clients have.
#[derive(Clone, Debug, PartialEq)]
pub struct Service {
    /// Bytes of one transfer at most; default 10 GB.
    pub most_bytes: u64,
    /// Time of one transfer at most; default 60 s.
    pub most_time: Span,
    /// Connections of one peer at the same time; default 8.
    pub per_peer: usize,
    /// Leading bits of an IPv6 address that make a peer, 0 ..= 128; default 64. A host may have any
    /// address of its link's /64, and as many as it likes (RFC 4291 section 2.5.4, RFC 7934). Whole
    /// addresses count over IPv4, also where one is part of an IPv6 address (RFC 6052 section 2.1),
    /// and on a link of one's own, where all have the same prefix.
    pub peer_bits: u8,
    /// Bytes of one peer's transfers in [`peer_window`](Self::peer_window) at most; default 100 GB,
    /// ten of the largest transfers.
    pub peer_bytes: u64,
    /// Time of one peer's transfers in that window at most, summed over those that run at the same
    /// time; default 3600 s, so that one may always run.
    pub peer_time: Span,
    /// How long what a peer has had counts, from the end of the transfer; default 3600 s.
    pub peer_window: Span,
    /// The folder whose files may be fetched; none by default.
    pub root: Option<PathBuf>,
}

impl Default for Service {
    fn default() -> Self {
        Self {
            most_bytes: 10_000_000_000,
            most_time: Span::from_secs(60),
            per_peer: 8,
            peer_bits: 64,
            peer_bytes: 100_000_000_000,
            peer_time: Span::from_secs(3600),
            peer_window: Span::from_secs(3600),
            root: None,
        }
    }
}

/// What RFC 6052 (section 2.1) puts before an IPv4 address.
const OF_IPV4: [u16; 6] = [0x64, 0xff9b, 0, 0, 0, 0];

impl Service {
    /// Bits of an address that say who it is of.
    fn bits(&self, address: Ipv6Addr) -> u8 {
        let of_ipv4 = address.segments().starts_with(&OF_IPV4);
        let near = address.is_unicast_link_local() || address.is_loopback();
        if of_ipv4 || near { 128 } else { self.peer_bits.min(128) }
    }

    /// Whether two addresses count as those of one peer.
    pub(crate) fn is_one_peer(&self, one: IpAddr, other: IpAddr) -> bool {
        match (one.to_canonical(), other.to_canonical()) {
            (IpAddr::V6(one), IpAddr::V6(other)) => {
                let bits = self.bits(one).max(self.bits(other));
                (one.to_bits() ^ other.to_bits()).leading_zeros() >= u32::from(bits)
            }
            (one, other) => one == other,
        }
    }

    /// The first address of the peer that an address counts as; no other peer has it.
    pub(crate) fn network(&self, address: IpAddr) -> IpAddr {
        match address.to_canonical() {
            IpAddr::V6(address) => {
                let rest = u32::from(128 - self.bits(address));
                let kept = u128::MAX.checked_shl(rest).unwrap_or(0);
                IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & kept))
            }
            address => address,
        }
    }

    /// Whose limits are meant.
    pub(crate) fn whose(&self, address: IpAddr) -> String {
        match address.to_canonical() {
            IpAddr::V6(address) if self.bits(address) < 128 => format!("the addresses of one /{}", self.peer_bits),
            _ => "one address".to_owned(),
        }
    }

    /// Why a connection from there is one too many.
    pub(crate) fn enough(&self, address: IpAddr, connections: usize) -> String {
        format!("{connections} at a time from {} are enough", self.whose(address))
    }
}

/// A file below `root` by the name a client gave; nothing outside of it, whatever the name or links
/// say.
pub(crate) fn below(root: &Path, name: &str) -> Result<File, String> {
    let relative = Path::new(name);
    let no_file = || format!("there is no file {name:?}");
    if !relative.components().all(|part| matches!(part, Component::Normal(_))) || name.is_empty() {
        return Err(no_file());
    }
    let root = root.canonicalize().map_err(|_| no_file())?;
    let path = root.join(relative).canonicalize().map_err(|_| no_file())?;
    // Looked at before it is opened: to open a pipe waits for whoever writes into it.
    let is_file = std::fs::metadata(&path).is_ok_and(|metadata| metadata.is_file());
    if path.starts_with(&root) && is_file { File::open(&path).map_err(|_| no_file()) } else { Err(no_file()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_is_an_address_of_ipv4_or_a_network_of_ipv6() {
        let usual = Service::default();
        let one = |one: &str, other: &str| {
            let [one, other] = [one, other].map(|address| address.parse().unwrap());
            assert_eq!(usual.is_one_peer(one, other), usual.is_one_peer(other, one));
            usual.is_one_peer(one, other)
        };
        for (address, same, other) in [
            ("2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff", "2001:db8:0:1::1"),
            ("2001:db8::1", "2001:db8::1", "2001:db8:0:1::1"),
            ("fd00::1", "fd00::2", "fd00:1::1"),
            ("192.0.2.7", "192.0.2.7", "192.0.2.8"),
            ("::ffff:192.0.2.7", "192.0.2.7", "::ffff:192.0.2.8"),
            // A translator's clients are hosts of IPv4.
            ("64:ff9b::192.0.2.7", "64:ff9b::192.0.2.7", "64:ff9b::192.0.2.8"),
            ("fe80::1", "fe80::1", "fe80::2"),
            ("::1", "::1", "::2"),
            ("2001:db8::1", "2001:db8::2", "192.0.2.7"),
        ] {
            assert!(one(address, same), "{address} {same}");
            assert!(!one(address, other), "{address} {other}");
            let [network, same, other] = [address, same, other].map(|text| usual.network(text.parse().unwrap()));
            assert!(network == same && network != other, "{address}");
        }
        let [near, far] = ["2001:db8::1", "2001:db8::2"].map(|address| address.parse().unwrap());
        for (bits, same) in [(0, true), (126, true), (127, false), (128, false), (255, false)] {
            assert_eq!(Service { peer_bits: bits, ..Service::default() }.is_one_peer(near, far), same, "{bits}");
        }
        assert_eq!(usual.enough(near, 8), "8 at a time from the addresses of one /64 are enough");
        assert_eq!(usual.enough("::ffff:192.0.2.7".parse().unwrap(), 8), "8 at a time from one address are enough");
    }

    #[test]
    fn files_are_below_the_root_and_nowhere_else() {
        let root = std::env::temp_dir().join(format!("flowstart-root-{}", std::process::id()));
        std::fs::create_dir_all(root.join("in")).unwrap();
        std::fs::write(root.join("in/a.txt"), b"abc").unwrap();
        assert!(below(&root, "in/a.txt").is_ok());
        for name in ["", ".", "in", "../in/a.txt", "/etc/passwd", "in/../../x", "none"] {
            assert!(below(&root, name).is_err(), "{name}");
        }
        #[cfg(unix)]
        {
            let pipe = root.join("pipe");
            assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
            let (sender, said) = std::sync::mpsc::channel();
            let folder = root.clone();
            std::thread::spawn(move || sender.send(below(&folder, "pipe").is_err()));
            let waited = said.recv_timeout(std::time::Duration::from_secs(60));
            assert_eq!(waited, Ok(true), "a pipe that nobody writes into");
            std::os::unix::fs::symlink("/etc/passwd", root.join("out")).unwrap();
            assert!(below(&root, "out").is_err(), "a link that leads out");
        }
        std::fs::remove_dir_all(&root).unwrap();
    }
}
