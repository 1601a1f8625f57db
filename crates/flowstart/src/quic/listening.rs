//! The address that a server listens at.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};
use std::str::FromStr;

/// An address of this machine, with the zone that link-local ones need (RFC 4007, section 11).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listening {
    address: IpAddr,
    zone: Option<String>,
}

impl Listening {
    /// The address of a socket with this port.
    ///
    /// # Errors
    /// If there is no such interface, or one should have been named: in a sentence.
    #[cfg_attr(not(feature = "quic"), allow(dead_code))]
    pub(crate) fn with_port(&self, port: u16) -> Result<SocketAddr, String> {
        match &self.zone {
            // Numbers of interfaces are the system's to know.
            Some(zone) => (self.to_string().as_str(), port)
                .to_socket_addrs()
                .ok()
                .and_then(|mut found| found.next())
                .ok_or_else(|| format!("cannot listen at {self}: there is no interface {zone}")),
            None if matches!(self.address, IpAddr::V6(six) if six.is_unicast_link_local()) => {
                Err(format!("cannot listen at {self}: a link-local address needs its interface, such as {self}%eth0"))
            }
            None => Ok(SocketAddr::new(self.address, port)),
        }
    }
}

impl FromStr for Listening {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(address) = text.parse() {
            return Ok(Self { address, zone: None });
        }
        let zoned = text.split_once('%').and_then(|(address, zone)| Some((address.parse::<Ipv6Addr>().ok()?, zone)));
        match zoned {
            Some((six, zone)) if six.is_unicast_link_local() && !zone.is_empty() => {
                Ok(Self { address: six.into(), zone: Some(zone.to_owned()) })
            }
            Some(_) => Err(format!("\"{text}\": only a link-local address has an interface, such as fe80::7%eth0")),
            None => Err(format!("\"{text}\" is no address such as 192.0.2.7, 2001:db8::7, fe80::7%eth0 or ::")),
        }
    }
}

impl fmt::Display for Listening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.zone {
            Some(zone) => write!(f, "{}%{zone}", self.address),
            None => write!(f, "{}", self.address),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Listening, String> {
        text.parse()
    }

    #[test]
    fn an_address_is_read_and_only_a_link_local_one_has_an_interface() {
        for text in ["127.0.0.1", "0.0.0.0", "::", "2001:db8::7", "fe80::7", "fe80::7%eth0", "fe80::7%2"] {
            assert_eq!(read(text).map(|read| read.to_string()), Ok(text.to_owned()));
        }
        for text in ["2001:db8::7%eth0", "fe80::7%", "::%lo"] {
            assert!(read(text).unwrap_err().contains("only a link-local address"), "{text}");
        }
        for text in ["", "eth0", "[::1]", "127.0.0.1:80", "127.0.0.1%lo", "%eth0"] {
            assert!(read(text).unwrap_err().contains("is no address such as"), "{text}");
        }
    }

    #[test]
    fn an_interface_is_found_by_its_number_and_one_that_is_missing_is_named() {
        let address = |text: &str| read(text).unwrap().with_port(4433);
        assert_eq!(address("127.0.0.1"), Ok("127.0.0.1:4433".parse().unwrap()));
        assert_eq!(address("::"), Ok("[::]:4433".parse().unwrap()));
        let Ok(SocketAddr::V6(six)) = address("fe80::7%1") else { panic!("IPv6") };
        assert_eq!((six.scope_id(), six.port()), (1, 4433));
        assert!(address("fe80::7%fs-none").unwrap_err().contains("there is no interface fs-none"));
        assert!(address("fe80::7").unwrap_err().contains("needs its interface, such as fe80::7%eth0"));
    }
}
