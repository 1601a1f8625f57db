//! The wire formats: vectors computed from RFC 4782 or captured behind real routers, and any bytes
//! at all.

use flowstart_quick_start::wire::{IpOption, Ipv4, Ipv6, Malformed, TcpResponse, checksum, hop_by_hop};
use flowstart_quick_start::{Nonce, RateCode, ttl_difference};
use proptest::prelude::*;

const NONCE: u32 = 0x2aaa_aaaa;

fn code(n: u8) -> RateCode {
    RateCode::new(n).unwrap()
}

/// A SYN of 68 bytes from 10.0.1.2 to 10.0.2.2, id 0x1234, don't fragment, TTL 64, with a request
/// for code 7.
fn request() -> Vec<u8> {
    let mut packet = vec![0x47, 0, 0, 0x44, 0x12, 0x34, 0x40, 0, 0x40, 6, 0x99, 0xc6, 10, 0, 1, 2, 10, 0, 2, 2];
    packet.extend([0x19, 8, 0x07, 0x5b, 0xaa, 0xaa, 0xaa, 0xa8]);
    packet.resize(68, 0);
    packet
}

#[test]
fn a_request_is_written_and_read_as_the_vector_says() {
    let option = IpOption::Request { rate: code(7), ttl: 91, nonce: Nonce::new(NONCE) };
    assert_eq!(option.to_ipv4(), [0x19, 8, 0x07, 0x5b, 0xaa, 0xaa, 0xaa, 0xa8]);
    let mut packet = request();
    assert_eq!(checksum(&packet[..28]), 0, "the header of the vector has the right checksum");
    let view = Ipv4::new(&mut packet).unwrap();
    assert_eq!(view.option(), Ok(Some(option)));
    assert_eq!((view.ttl(), view.total_length()), (64, 68));
    assert_eq!(ttl_difference(64, 91), 0xe5);
}

#[test]
fn the_option_put_into_a_plain_packet_gives_the_vector() {
    let mut plain = vec![0x45, 0, 0, 0x3c, 0x12, 0x34, 0x40, 0, 0x40, 6, 0, 0, 10, 0, 1, 2, 10, 0, 2, 2];
    plain.resize(60, 0);
    let option = IpOption::Request { rate: code(7), ttl: 91, nonce: Nonce::new(NONCE) };
    assert_eq!(Ipv4::with_option(&plain, option), Some(request()));
}

#[test]
fn a_router_that_grants_code_6_changes_what_the_captured_packet_shows() {
    let mut packet = request();
    let mut view = Ipv4::new(&mut packet).unwrap();
    // The two bits of the step taken away become 01.
    view.change_option(|mut option| option.approve(code(6), 1, 0x1000)).unwrap();
    view.lower_ttl(1);
    assert_eq!(packet[..20], [0x47, 0, 0, 0x44, 0x12, 0x34, 0x40, 0, 0x3f, 6, 0xdb, 0xc7, 10, 0, 1, 2, 10, 0, 2, 2]);
    assert_eq!(packet[20..28], [0x19, 8, 0x06, 0x5a, 0xaa, 0xaa, 0x6a, 0xa8]);
    assert_eq!(checksum(&packet[..28]), 0);
    assert_eq!(ttl_difference(packet[8], 0x5a), 0xe5, "both TTLs fell");
}

#[test]
fn a_response_is_valid_for_the_rate_granted_and_not_for_the_rate_asked() {
    let response = TcpResponse::from_bytes(&[0x1b, 8, 0x06, 0xe5, 0xaa, 0xaa, 0x6a, 0xa8]).unwrap();
    assert_eq!(response, TcpResponse { rate: code(6), ttl_difference: 0xe5, nonce: Nonce::new(0x2aaa_9aaa) });
    assert_eq!(response.to_bytes(), [0x1b, 8, 0x06, 0xe5, 0xaa, 0xaa, 0x6a, 0xa8]);
    assert!(response.nonce.agrees_with(Nonce::new(NONCE), code(6)));
    assert!(!response.nonce.agrees_with(Nonce::new(NONCE), code(7)));
}

#[test]
fn a_router_that_knows_nothing_changes_only_ttl_and_checksum() {
    let mut packet = request();
    Ipv4::new(&mut packet).unwrap().lower_ttl(1);
    assert_eq!(packet[8..12], [0x3f, 6, 0x9a, 0xc6]);
    assert_eq!(packet[20..28], request()[20..28]);
    assert_eq!(ttl_difference(packet[8], packet[23]), 228);
}

#[test]
fn a_denial_by_zeroing_is_the_vector() {
    let mut packet = request();
    let mut view = Ipv4::new(&mut packet).unwrap();
    view.change_option(|mut option| option.zero()).unwrap();
    view.lower_ttl(1);
    assert_eq!(packet[8..12], [0x3f, 6, 0xf7, 0x74]);
    assert_eq!(packet[20..28], [0x19, 8, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn reports_are_written_as_the_vectors_say() {
    let report = |n| IpOption::Report { rate: code(n), nonce: Nonce::new(NONCE) };
    assert_eq!(report(6).to_ipv4(), [0x19, 8, 0x86, 0, 0xaa, 0xaa, 0xaa, 0xa8]);
    assert_eq!(report(0).to_ipv4(), [0x19, 8, 0x80, 0, 0xaa, 0xaa, 0xaa, 0xa8]);
    assert_eq!(IpOption::from_ipv4(&report(6).to_ipv4()), Ok(report(6)));
}

#[test]
fn the_hop_by_hop_header_is_padded_to_16_bytes() {
    let option = IpOption::Request { rate: code(7), ttl: 91, nonce: Nonce::new(NONCE) };
    let header = hop_by_hop(6, option);
    assert_eq!(header, [6, 1, 0x26, 6, 0x07, 0x5b, 0xaa, 0xaa, 0xaa, 0xa8, 1, 4, 0, 0, 0, 0]);
    let mut packet = vec![0x60, 0, 0, 0, 0, 36, 0, 64];
    packet.extend([0; 32]);
    packet.extend(header);
    packet.extend([0; 20]);
    let mut view = Ipv6::new(&mut packet).unwrap();
    assert_eq!((view.hop_limit(), view.total_length(), view.option()), (64, 76, Ok(Some(option))));
    view.change_option(|mut option| option.approve(code(6), 1, 0x1000)).unwrap();
    view.lower_hop_limit(1);
    let granted = IpOption::Request { rate: code(6), ttl: 90, nonce: Nonce::new(0x2aaa_9aaa) };
    assert_eq!((view.hop_limit(), view.option()), (63, Ok(Some(granted))));
    assert_eq!(view.remove_option(), Ok(true));
    assert_eq!(view.option(), Ok(None));
}

#[test]
fn a_response_is_found_between_the_other_options_of_a_syn_ack() {
    let response = TcpResponse { rate: code(7), ttl_difference: 3, nonce: Nonce::new(NONCE) };
    let mut options = vec![2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 3, 3, 7];
    assert_eq!(TcpResponse::find(&options), Ok(None));
    options.extend(response.to_bytes());
    assert_eq!(TcpResponse::find(&options), Ok(Some(response)));
    assert!(options.len() <= 40);
    assert_eq!(TcpResponse::find(&[2, 1]), Err(Malformed::Length));
    assert_eq!(TcpResponse::find(&[27, 8, 7]), Err(Malformed::Truncated));
    assert_eq!(TcpResponse::find(&[27, 9, 7, 0, 0, 0, 0, 0, 0]), Err(Malformed::Length));
}

#[test]
fn functions_that_nobody_assigned_and_other_lengths_are_refused() {
    assert_eq!(IpOption::from_ipv4(&[0x19, 8, 0x37, 1, 0, 0, 0, 0]), Err(Malformed::Function(3)));
    assert_eq!(IpOption::from_ipv4(&[0x19, 7, 0x07, 1, 0, 0, 0, 0]), Err(Malformed::Length));
    assert_eq!(IpOption::from_ipv4(&[0x99, 8, 0x07, 1, 0, 0, 0, 0]), Err(Malformed::OtherType));
    assert_eq!(IpOption::from_ipv4(&[0x19, 8, 0x07]), Err(Malformed::Truncated));
}

#[test]
fn checksums_stay_right_wherever_in_a_word_the_option_begins() {
    for before in 0..=4 {
        let mut packet = request();
        packet[0] = 0x48;
        packet.splice(20..28, [1; 12]);
        let option = IpOption::Request { rate: code(7), ttl: 91, nonce: Nonce::new(NONCE) };
        packet[20 + before..28 + before].copy_from_slice(&option.to_ipv4());
        packet[10..12].fill(0);
        let check = checksum(&packet[..32]);
        packet[10..12].copy_from_slice(&check.to_be_bytes());
        let mut view = Ipv4::new(&mut packet).unwrap();
        assert_eq!(view.option(), Ok(Some(option)));
        view.change_option(|mut option| option.approve(code(5), 1, 0x1234_5678)).unwrap();
        assert_eq!(checksum(view.header()), 0, "{before} bytes before the option");
        assert_eq!(view.remove_option(), Ok(true));
        assert_eq!((checksum(view.header()), &view.header()[20..]), (0, &[1; 12][..]));
    }
}

fn option() -> impl Strategy<Value = IpOption> {
    (any::<bool>(), 0_u8..=15, any::<u8>(), any::<u32>()).prop_map(|(report, n, ttl, nonce)| {
        let (rate, nonce) = (code(n), Nonce::new(nonce));
        if report { IpOption::Report { rate, nonce } } else { IpOption::Request { rate, ttl, nonce } }
    })
}

/// An IPv4 packet with up to four other options around.
fn plain_packet() -> impl Strategy<Value = Vec<u8>> {
    (proptest::collection::vec(any::<u8>(), 12), 0_usize..=8, 0_usize..40).prop_map(|(addresses, words, payload)| {
        let header = 20 + 4 * words;
        let mut packet = vec![0x40 | (header / 4) as u8, 0, 0, (header + payload) as u8, 0x12, 0x34];
        packet.extend(addresses);
        packet.resize(20, 7);
        packet.resize(header, 1);
        packet.resize(header + payload, 0);
        packet[10..12].fill(0);
        let check = checksum(&packet[..header]);
        packet[10..12].copy_from_slice(&check.to_be_bytes());
        packet
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(option in option(), n in 0_u8..=15, difference: u8, nonce: u32) {
        prop_assert_eq!(IpOption::from_ipv4(&option.to_ipv4()), Ok(option));
        prop_assert_eq!(IpOption::from_ipv6(&option.to_ipv6()), Ok(option));
        let response = TcpResponse { rate: code(n), ttl_difference: difference, nonce: Nonce::new(nonce) };
        prop_assert_eq!(TcpResponse::from_bytes(&response.to_bytes()), Ok(response));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..120), first in 0_usize..3) {
        let mut bytes = bytes;
        if let Some(byte) = bytes.first_mut() {
            *byte = [*byte, 0x40 | *byte & 0x0f, 0x60][first];
        }
        let _ = (IpOption::from_ipv4(&bytes), IpOption::from_ipv6(&bytes), TcpResponse::find(&bytes), checksum(&bytes));
        let length = bytes.len();
        if let Ok(mut view) = Ipv4::new(&mut bytes) {
            let _ = (view.option(), view.change_option(|mut o| o.approve(RateCode::MIN, 1, 5)), view.remove_option());
            view.lower_ttl(1);
        }
        if let Ok(mut view) = Ipv6::new(&mut bytes) {
            let _ = (view.option(), view.change_option(|mut o| o.zero()), view.remove_option());
            view.lower_hop_limit(1);
        }
        prop_assert_eq!(bytes.len(), length);
    }

    #[test]
    fn a_reader_that_ignores_reserved_bits_and_a_router_that_keeps_them(bytes: [u8; 6], n in 0_u8..=15, random: u32) {
        let mut packet = request();
        packet[22..28].copy_from_slice(&bytes);
        packet[22] &= 0x0f;
        let reserved = packet[27] & 3;
        let before = RateCode::new(packet[22]).unwrap();
        let check = { packet[10..12].fill(0); checksum(&packet[..28]) };
        packet[10..12].copy_from_slice(&check.to_be_bytes());
        let mut view = Ipv4::new(&mut packet).unwrap();
        view.change_option(|mut option| option.approve(code(n), 1, random)).unwrap();
        prop_assert_eq!(checksum(view.header()), 0);
        prop_assert_eq!(packet[27] & 3, reserved);
        prop_assert_eq!(packet[22], before.min(code(n)).get(), "a router never raises a rate");
    }

    #[test]
    fn headers_stay_right_through_insertion_change_and_removal(packet in plain_packet(), option in option(), hops: u8) {
        let Some(mut with) = Ipv4::with_option(&packet, option) else {
            prop_assert!(packet[0] & 0x0f > 13);
            return Ok(());
        };
        prop_assert_eq!(with.len(), packet.len() + 8);
        let mut view = Ipv4::new(&mut with).unwrap();
        prop_assert_eq!(checksum(view.header()), 0);
        prop_assert_eq!(view.option(), Ok(Some(option)));
        view.change_option(|mut o| o.zero()).unwrap();
        view.lower_ttl(hops);
        prop_assert_eq!(checksum(view.header()), 0);
        prop_assert_eq!(view.remove_option(), Ok(true));
        prop_assert_eq!(checksum(view.header()), 0);
        prop_assert_eq!(view.option(), Ok(None));
    }
}
