//! Quick-Start on the wire (RFC 4782 sections 3.1, 3.2 and 4.1). Every function is total: any bytes
//! are either read or refused.

mod ipv4;
mod ipv6;
mod option;
mod tcp;

pub use ipv4::{Ipv4, checksum};
pub use ipv6::{Ipv6, hop_by_hop};
pub use option::{Function, IpOption, Malformed, OptionMut};
pub use tcp::TcpResponse;

/// Type octet of the IPv4 option: not copied into fragments, class 0 (control), number 25 (RFC 4782
/// section 3.1).
pub const IPV4_TYPE: u8 = 25;
/// Length of the IPv4 option in bytes.
pub const IPV4_LENGTH: usize = 8;
/// Type octet of the IPv6 hop-by-hop option: skip it if unknown, it may change on the way (RFC 4782
/// section 3.2).
pub const IPV6_TYPE: u8 = 0x26;
/// Kind of the TCP option (RFC 4782 section 4.1).
pub const TCP_KIND: u8 = 27;
/// Length of the TCP option in bytes.
pub const TCP_LENGTH: usize = 8;
/// Bytes of the IP option behind type and length, the same in IPv4 and IPv6.
pub const DATA_LENGTH: usize = 6;
