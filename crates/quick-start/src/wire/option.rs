//! The data of the IP option: rate request and report of approved rate.

use core::fmt;

use crate::{Nonce, RateCode};

use super::{DATA_LENGTH, IPV4_LENGTH, IPV4_TYPE, IPV6_TYPE};

/// Function codes (RFC 4782 section 3.1).
const REQUEST: u8 = 0;
const REPORT: u8 = 8;
/// The two reserved bits below the nonce: sent as zero, ignored when read, left alone by routers.
const RESERVED_BITS: u32 = 2;
const RESERVED: u32 = (1 << RESERVED_BITS) - 1;

/// Bytes that are not what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Fewer bytes than the format says.
    Truncated,
    /// Another option, or another protocol version.
    OtherType,
    /// A length that the format does not allow.
    Length,
    /// A function of the option that nobody has assigned; routers leave such an option alone.
    Function(u8),
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated => f.write_str("the bytes end too early"),
            Self::OtherType => f.write_str("this is something else"),
            Self::Length => f.write_str("the length is wrong"),
            Self::Function(function) => write!(f, "function {function} is not assigned"),
        }
    }
}

impl core::error::Error for Malformed {}

/// What an option asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// A rate, from the routers on the path.
    Request,
    /// Nothing; it tells the routers what the receiver said.
    Report,
    /// Something else, 1 ..= 15 without 8.
    Unassigned(u8),
}

/// The Quick-Start option of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpOption {
    /// A rate request.
    Request {
        /// Rate asked for, or what routers have left of it; zero if one of them denied it.
        rate: RateCode,
        /// Quick-Start TTL: random at first, lowered by routers that approve.
        ttl: u8,
        /// Nonce.
        nonce: Nonce,
    },
    /// A report of the rate that was approved.
    Report {
        /// Rate the receiver answered with; zero after a denial.
        rate: RateCode,
        /// Nonce of the request as it was sent.
        nonce: Nonce,
    },
}

impl IpOption {
    /// The data behind type and length.
    #[must_use]
    pub fn to_data(self) -> [u8; DATA_LENGTH] {
        let (function, rate, ttl, nonce) = match self {
            Self::Request { rate, ttl, nonce } => (REQUEST, rate, ttl, nonce),
            Self::Report { rate, nonce } => (REPORT, rate, 0, nonce),
        };
        let [a, b, c, d] = (nonce.get() << RESERVED_BITS).to_be_bytes();
        [function << 4 | rate.get(), ttl, a, b, c, d]
    }

    /// The data behind type and length.
    ///
    /// # Errors
    /// If the function is not assigned.
    pub fn from_data(data: [u8; DATA_LENGTH]) -> Result<Self, Malformed> {
        let [first, ttl, a, b, c, d] = data;
        let rate = RateCode::of_nibble(first);
        let nonce = Nonce::new(u32::from_be_bytes([a, b, c, d]) >> RESERVED_BITS);
        match first >> 4 {
            REQUEST => Ok(Self::Request { rate, ttl, nonce }),
            REPORT => Ok(Self::Report { rate, nonce }),
            function => Err(Malformed::Function(function)),
        }
    }

    /// The option in an IPv4 header.
    #[must_use]
    pub fn to_ipv4(self) -> [u8; IPV4_LENGTH] {
        let [a, b, c, d, e, f] = self.to_data();
        [IPV4_TYPE, IPV4_LENGTH as u8, a, b, c, d, e, f]
    }

    /// The option in an IPv6 hop-by-hop header, which is as long but counts its length without type
    /// and length.
    #[must_use]
    pub fn to_ipv6(self) -> [u8; 2 + DATA_LENGTH] {
        let [a, b, c, d, e, f] = self.to_data();
        [IPV6_TYPE, DATA_LENGTH as u8, a, b, c, d, e, f]
    }

    /// Reads an option of IPv4 from its type octet on; what follows it does not matter.
    ///
    /// # Errors
    /// If it is another option, has another length, is cut off, or has a function that is not
    /// assigned.
    pub fn from_ipv4(bytes: &[u8]) -> Result<Self, Malformed> {
        Self::from_bytes(bytes, IPV4_TYPE, IPV4_LENGTH)
    }

    /// Reads an option of IPv6 from its type octet on; what follows it does not matter.
    ///
    /// # Errors
    /// If it is another option, has another length, is cut off, or has a function that is not
    /// assigned.
    pub fn from_ipv6(bytes: &[u8]) -> Result<Self, Malformed> {
        Self::from_bytes(bytes, IPV6_TYPE, DATA_LENGTH)
    }

    fn from_bytes(bytes: &[u8], kind: u8, length: usize) -> Result<Self, Malformed> {
        match bytes {
            [] => Err(Malformed::Truncated),
            [first, ..] if *first != kind => Err(Malformed::OtherType),
            [_] => Err(Malformed::Truncated),
            [_, said, ..] if usize::from(*said) != length => Err(Malformed::Length),
            [_, _, a, b, c, d, e, f, ..] => Self::from_data([*a, *b, *c, *d, *e, *f]),
            _ => Err(Malformed::Truncated),
        }
    }
}

/// The data of an option inside a packet that a router may change.
#[derive(Debug)]
pub struct OptionMut<'a>(&'a mut [u8; DATA_LENGTH]);

impl<'a> OptionMut<'a> {
    pub(super) fn new(data: &'a mut [u8; DATA_LENGTH]) -> Self {
        Self(data)
    }

    /// What the option asks for.
    #[must_use]
    pub fn function(&self) -> Function {
        match self.0[0] >> 4 {
            REQUEST => Function::Request,
            REPORT => Function::Report,
            other => Function::Unassigned(other),
        }
    }

    /// The rate.
    #[must_use]
    pub fn rate(&self) -> RateCode {
        RateCode::of_nibble(self.0[0])
    }

    /// The nonce.
    #[must_use]
    pub fn nonce(&self) -> Nonce {
        Nonce::new(self.nonce_field() >> RESERVED_BITS)
    }

    fn nonce_field(&self) -> u32 {
        let [_, _, a, b, c, d] = *self.0;
        u32::from_be_bytes([a, b, c, d])
    }

    /// Approves a request at `rate`, which must not be higher than the present one (it is not
    /// raised): lowers the Quick-Start TTL by `hops` (the amount by which the TTL of IP falls) and
    /// makes the bits of the steps taken away random (RFC 4782 section 3.3).
    pub fn approve(&mut self, rate: RateCode, hops: u8, random: u32) {
        let present = self.rate();
        let rate = rate.min(present);
        let nonce = self.nonce().lowered(present, rate, random);
        let field = nonce.get() << RESERVED_BITS | self.nonce_field() & RESERVED;
        self.0[0] = self.0[0] & 0xf0 | rate.get();
        self.0[1] = self.0[1].wrapping_sub(hops);
        self.0[2..].copy_from_slice(&field.to_be_bytes());
    }

    /// Denies a request: rate, Quick-Start TTL and nonce become zero (RFC 4782 section 3.3).
    pub fn zero(&mut self) {
        let field = self.nonce_field() & RESERVED;
        self.0[0] &= 0xf0;
        self.0[1] = 0;
        self.0[2..].copy_from_slice(&field.to_be_bytes());
    }
}
