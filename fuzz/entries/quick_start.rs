//! What the fuzz target `quick_start` does with bytes; the tests of the crate do the same with random ones.

use flowstart_quick_start::RateCode;
use flowstart_quick_start::wire::{IpOption, Ipv4, Ipv6, TcpResponse};

/// Reads and changes options wherever they may be in `bytes`; what was read is written the same.
pub(crate) fn quick_start(bytes: &[u8]) {
    if let Ok(option) = IpOption::from_ipv4(bytes) {
        assert_eq!(IpOption::from_ipv4(&option.to_ipv4()), Ok(option));
    }
    if let Ok(Some(response)) = TcpResponse::find(bytes) {
        assert_eq!(TcpResponse::from_bytes(&response.to_bytes()), Ok(response));
    }
    let mut packet = bytes.to_vec();
    if let Ok(mut view) = Ipv4::new(&mut packet) {
        let _ =
            (view.option(), view.change_option(|mut option| option.approve(RateCode::MIN, 1, 5)), view.remove_option());
        view.lower_ttl(1);
    }
    let mut packet = bytes.to_vec();
    if let Ok(mut view) = Ipv6::new(&mut packet) {
        let _ = (view.option(), view.change_option(|mut option| option.zero()), view.remove_option());
        view.lower_hop_limit(1);
    }
}
