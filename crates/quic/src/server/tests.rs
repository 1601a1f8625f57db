use super::*;

fn server(service: Service) -> Server {
    let identity = Identity::generate().unwrap();
    let make = Box::new(|start: &str, avoidance: &str, mtu| crate::controller(start, avoidance, mtu));
    Server::new(Clock::start(), &Limits::default(), &identity, service, make, false).unwrap()
}

#[test]
fn connections_of_all_addresses_of_an_ipv6_network_count_together() {
    let mut server = server(Service { per_peer: 3, ..Service::default() });
    let mut number = 0;
    let mut refused = |address: &str| {
        number += 1;
        server.accept(Time::ZERO, number, SocketAddr::new(address.parse().unwrap(), 5000 + number as u16));
        server.unwanted.remove(&number)
    };
    for last in 1..=3 {
        assert_eq!(refused(&format!("2001:db8::{last}")), None);
        assert_eq!(refused(&format!("192.0.2.{last}")), None);
    }
    let why = refused("2001:db8::4:5:6:7");
    assert_eq!(why.as_deref(), Some("3 at a time from the addresses of one /64 are enough"));
    assert_eq!(refused("2001:db8:0:1::1"), None);
    assert_eq!(refused("192.0.2.1"), None);
    assert_eq!(refused("::ffff:192.0.2.1"), None);
    assert_eq!(refused("192.0.2.1").as_deref(), Some("3 at a time from one address are enough"));
}
