//! The other end of a real path.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use crate::quic::PORT;

/// Where `flowstart serve` runs: a name or an address, and a UDP port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) host: String,
    pub(crate) port: u16,
}

/// A name or an address, without brackets, and the port if there is one.
pub(crate) fn split(text: &str) -> Result<(&str, Option<u16>), String> {
    let wrong = || format!("\"{text}\" is not HOST or HOST:PORT, such as 192.0.2.7, [2001:db8::7]:4433 or lab:4433");
    // The zone of a link-local address is the system's to read.
    let is_v6 = |text: &str| {
        let (address, zone) = text.split_once('%').unwrap_or((text, "0"));
        !zone.is_empty() && address.parse::<Ipv6Addr>().is_ok()
    };
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !is_v6(text) && !text.ends_with(']') => {
            let port = port.parse().ok().filter(|port| *port > 0);
            (host, Some(port.ok_or_else(wrong)?))
        }
        _ => (text, None),
    };
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let right = match bare {
        Some(inside) => is_v6(inside),
        None => !host.is_empty() && (is_v6(host) || !host.contains([':', '[', ']', '%'])),
    };
    if !right || host.contains(char::is_whitespace) {
        return Err(wrong());
    }
    Ok((bare.unwrap_or(host), port))
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (host, port) = split(text)?;
        Ok(Self { host: host.to_owned(), port: port.unwrap_or(PORT) })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_host_with_or_without_a_port_in_all_its_spellings() {
        for (text, host, port) in [
            ("lab", "lab", PORT),
            ("lab:5000", "lab", 5000),
            ("192.0.2.7", "192.0.2.7", PORT),
            ("192.0.2.7:1", "192.0.2.7", 1),
            ("::1", "::1", PORT),
            ("2001:db8::4433", "2001:db8::4433", PORT),
            ("[::1]", "::1", PORT),
            ("[::1]:65535", "::1", 65535),
            ("fe80::1%eth0", "fe80::1%eth0", PORT),
            ("[fe80::1%2]:5000", "fe80::1%2", 5000),
        ] {
            let place: Place = text.parse().unwrap();
            assert_eq!(place, Place { host: host.to_owned(), port });
            assert_eq!(place.to_string().parse(), Ok(place));
        }
        for text in [
            "",
            ":",
            ":5",
            "lab:",
            "lab:0",
            "lab:65536",
            "lab:x",
            "a:b:c",
            "[lab]:5",
            "[::1",
            "::1]:5",
            "l ab",
            "fe80::1%",
            "lab%2",
        ] {
            assert!(text.parse::<Place>().unwrap_err().contains("is not HOST"), "{text}");
        }
    }
}
