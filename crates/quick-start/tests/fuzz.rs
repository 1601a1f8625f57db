//! The fuzz target's entry, with what the stable toolchain has: random bytes, and packets of which
//! a few bytes are wrong.

mod common;
#[path = "../../../fuzz/entries/quick_start.rs"]
mod entry;

use common::{code, with};
use flowstart_quick_start::Nonce;
use flowstart_quick_start::wire::{IpOption, hop_by_hop};
use proptest::prelude::*;

fn request() -> IpOption {
    IpOption::Request { rate: code(7), ttl: 91, nonce: Nonce::new(0x2aaa_aaaa) }
}

/// A packet of IPv6 with a request.
fn of_ipv6() -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0, 0, 36, 0, 64];
    packet.extend([1; 32]);
    packet.extend(hop_by_hop(6, request()));
    packet.extend([0; 20]);
    packet
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..96)) {
        entry::quick_start(&bytes);
    }

    #[test]
    fn no_packet_with_a_few_wrong_bytes_or_a_missing_end_makes_it_panic(
        six: bool, wrong in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6), length: prop::sample::Index,
    ) {
        let mut packet = if six { of_ipv6() } else { with(request(), 1, 12) };
        for (place, value) in wrong {
            let place = place.index(packet.len());
            packet[place] = value;
        }
        packet.truncate(length.index(packet.len() + 1));
        entry::quick_start(&packet);
        // From every place on: options within what is taken for options.
        (0..packet.len().min(64)).for_each(|from| entry::quick_start(&packet[from..]));
    }
}
