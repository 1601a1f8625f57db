//! Sizes of packets of the first window while the path MTU is not known.

/// Bytes of an IPv4 packet that every path carries without fragments in practice (RFC 1191 section
/// 5: the MTU to assume).
pub const SAFE_IPV4: u32 = 576;
/// Bytes of an IPv6 packet that every path carries (RFC 8200 section 5).
pub const SAFE_IPV6: u32 = 1280;

/// The next packet's size and whether it tells anything about the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Bytes, headers of IP and TCP included.
    pub bytes: u32,
    /// True if it shall leave with DF set although it may be too long: exactly one packet of a
    /// window.
    pub probes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing is known and no probe has left.
    Unknown,
    /// A probe that ends with this octet is under way.
    Probing(u64),
    /// Packets have this many bytes from now on.
    Known(u32),
}

/// How long the packets of a Quick-Start window are: a large window of packets that are all too
/// long for the path would be lost as a whole, so without knowledge of the path MTU only one of
/// them has full size, and the others a size that passes anywhere (RFC 4782 section 4.7.1). The
/// window in packets is that of [`packet`](Self::packet) bytes:
/// [`Sender::set_packet`](super::Sender::set_packet).
///
/// ```
/// use flowstart_quick_start::sender::{PathMtu, SAFE_IPV4};
///
/// let mut mtu = PathMtu::unknown(1500, SAFE_IPV4);
/// assert!(mtu.next(1460).probes);
/// assert_eq!(mtu.next(1996).bytes, 576);
/// mtu.on_delivered(1460);
/// assert_eq!(mtu.next(3456).bytes, 1500);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathMtu {
    full: u32,
    safe: u32,
    state: State,
}

impl PathMtu {
    /// A path known to carry packets of `bytes`.
    #[must_use]
    pub const fn known(bytes: u32) -> Self {
        Self { full: bytes, safe: bytes, state: State::Known(bytes) }
    }

    /// A path of which nothing is known: the hosts' own links carry packets of `full` bytes, any
    /// path those of `safe` bytes ([`SAFE_IPV4`], [`SAFE_IPV6`]).
    #[must_use]
    pub const fn unknown(full: u32, safe: u32) -> Self {
        let state = if full <= safe { State::Known(full) } else { State::Unknown };
        Self { full, safe, state }
    }

    /// Bytes of the packets that a window is counted in now.
    #[must_use]
    pub const fn packet(&self) -> u32 {
        match self.state {
            State::Known(bytes) => bytes,
            State::Unknown | State::Probing(_) => self.safe,
        }
    }

    /// The size of the next packet with new data; `end` is the octet behind its last one if it has
    /// full size.
    pub fn next(&mut self, end: u64) -> Size {
        let probes = self.state == State::Unknown;
        if probes {
            self.state = State::Probing(end);
        }
        Size { bytes: if probes { self.full } else { self.packet() }, probes }
    }

    /// Everything before this octet was delivered, cumulatively or selectively: if the probe was,
    /// packets have full size from now on.
    pub fn on_delivered(&mut self, end: u64) {
        if matches!(self.state, State::Probing(probe) if end >= probe) {
            self.state = State::Known(self.full);
        }
    }

    /// A router says that the probe was too long, and what would not be (RFC 1191 section 4; zero
    /// if it does not say that). True if the packet that begins with octet `first` is the probe:
    /// its loss says nothing about congestion, and what it carried is sent again in packets of the
    /// size that is known now.
    pub fn on_too_big(&mut self, first: u64, mtu: u32) -> bool {
        let State::Probing(end) = self.state else { return false };
        let probe = first < end;
        if probe {
            self.state = State::Known(mtu.clamp(self.safe, self.full));
        }
        probe
    }

    /// The packet that begins with octet `first` was lost, and no router said why: if it is the
    /// probe, packets stay short, and the loss is taken for one of congestion.
    pub fn on_lost(&mut self, first: u64) {
        if matches!(self.state, State::Probing(end) if first < end) {
            self.state = State::Known(self.safe);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(mtu: &mut PathMtu, count: u64) -> Vec<u32> {
        (0..count).map(|n| mtu.next(1460 + 536 * n).bytes).collect()
    }

    #[test]
    fn one_packet_of_a_window_has_full_size_and_the_rest_pass_anywhere_until_it_is_delivered() {
        let mut mtu = PathMtu::unknown(1500, SAFE_IPV4);
        assert_eq!(mtu.packet(), 576, "the window is counted in short packets");
        assert_eq!(sizes(&mut mtu, 4), [1500, 576, 576, 576]);
        mtu.on_delivered(1459);
        assert_eq!(sizes(&mut mtu, 1), [576], "a part of the probe is not the probe");
        mtu.on_delivered(1460);
        assert_eq!((sizes(&mut mtu, 2), mtu.packet()), (vec![1500; 2], 1500));
        let mut mtu = PathMtu::unknown(1500, SAFE_IPV6);
        assert_eq!(sizes(&mut mtu, 3), [1500, 1280, 1280]);
    }

    #[test]
    fn a_probe_that_is_too_long_tells_what_is_not_and_says_nothing_about_congestion() {
        let too_big = |mtu| {
            let mut path = PathMtu::unknown(1500, SAFE_IPV4);
            path.next(1460);
            (path.on_too_big(0, mtu), path.packet())
        };
        assert_eq!([too_big(1400), too_big(0), too_big(9000)], [(true, 1400), (true, 576), (true, 1500)]);
        let mut path = PathMtu::unknown(1500, SAFE_IPV4);
        path.next(1460);
        assert!(!path.on_too_big(1460, 1400), "the packet behind the probe is short");
        assert_eq!(path.packet(), 576);
    }

    #[test]
    fn a_probe_that_is_lost_without_a_word_leaves_packets_short() {
        let mut path = PathMtu::unknown(1500, SAFE_IPV4);
        path.next(1460);
        path.on_lost(1460);
        assert_eq!(path, PathMtu { state: State::Probing(1460), ..path });
        path.on_lost(0);
        assert_eq!(sizes(&mut path, 2), [576; 2], "and it is not tried again in this window");
    }

    #[test]
    fn a_path_that_is_known_or_no_longer_than_any_needs_no_probe() {
        for mut mtu in [PathMtu::known(1500), PathMtu::unknown(576, SAFE_IPV4)] {
            assert!(!mtu.next(1460).probes);
            assert!(!mtu.on_too_big(0, 576));
        }
    }
}
