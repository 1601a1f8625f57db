//! What the fuzz target `quick_start` does with bytes; the tests of the crate do the same with
//! random ones.

use flowstart_quick_start::RateCode;
use flowstart_quick_start::router::{AdmissionConfig, Router, RouterConfig};
use flowstart_quick_start::wire::{IpOption, Ipv4, Ipv6, TcpResponse};
use flowstart_units::{Rate, Span, Time};
use rand_core::SeedableRng;
use rand_pcg::Pcg64Mcg;

/// Reads and changes options wherever they may be in `bytes`; what was read is written the same.
/// Then a router forwards them.
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
    forward(bytes);
}

fn option_of(packet: &mut [u8]) -> Option<IpOption> {
    let four = Ipv4::new(packet).ok().and_then(|view| view.option().ok());
    four.or_else(|| Ipv6::new(packet).ok().and_then(|view| view.option().ok())).flatten()
}

/// A router that knows flows and shares forwards the same packet at once, a moment later, and when
/// it has forgotten it: no request is raised, no report touched.
fn forward(bytes: &[u8]) {
    let config = RouterConfig::new(AdmissionConfig::fair(Rate::from_mbps(100)));
    let mut router = Router::new(&config, Pcg64Mcg::seed_from_u64(1));
    for ms in [0, 10, 5000] {
        let mut packet = bytes.to_vec();
        let before = option_of(&mut packet);
        router.forward(Time::ZERO + Span::from_millis(ms), &mut packet);
        match (before, option_of(&mut packet)) {
            (Some(IpOption::Request { rate: asked, .. }), Some(IpOption::Request { rate, .. })) => {
                assert!(rate <= asked, "{rate:?} > {asked:?}");
            }
            (before, after) => assert_eq!(before, after),
        }
    }
}
