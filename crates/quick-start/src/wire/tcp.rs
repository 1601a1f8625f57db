//! The Quick-Start response option of TCP.

use crate::{Nonce, RateCode};

use super::{Malformed, TCP_KIND, TCP_LENGTH};

/// What a receiver answers to a request (RFC 4782 section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpResponse {
    /// Rate that came through, or less.
    pub rate: RateCode,
    /// TTL difference at the receiver.
    pub ttl_difference: u8,
    /// Nonce that came through.
    pub nonce: Nonce,
}

/// Option kinds of TCP without a length (RFC 9293 section 3.1).
const END: u8 = 0;
const NO_OPERATION: u8 = 1;

impl TcpResponse {
    /// The option.
    #[must_use]
    pub fn to_bytes(self) -> [u8; TCP_LENGTH] {
        let [a, b, c, d] = (self.nonce.get() << 2).to_be_bytes();
        [TCP_KIND, TCP_LENGTH as u8, self.rate.get(), self.ttl_difference, a, b, c, d]
    }

    /// Reads the option from its kind on; what follows it does not matter. Reserved bits are
    /// ignored.
    ///
    /// # Errors
    /// If it is another option, has another length or is cut off.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Malformed> {
        match bytes {
            [] => Err(Malformed::Truncated),
            [kind, ..] if *kind != TCP_KIND => Err(Malformed::OtherType),
            [_] => Err(Malformed::Truncated),
            [_, length, ..] if usize::from(*length) != TCP_LENGTH => Err(Malformed::Length),
            [_, _, rate, ttl_difference, a, b, c, d, ..] => Ok(Self {
                rate: RateCode::of_nibble(*rate),
                ttl_difference: *ttl_difference,
                nonce: Nonce::new(u32::from_be_bytes([*a, *b, *c, *d]) >> 2),
            }),
            _ => Err(Malformed::Truncated),
        }
    }

    /// The first response among the options of a TCP header, if there is one.
    ///
    /// # Errors
    /// If an option before it has an impossible length, or the response itself is malformed.
    pub fn find(mut options: &[u8]) -> Result<Option<Self>, Malformed> {
        loop {
            match options {
                [] | [END, ..] => return Ok(None),
                [NO_OPERATION, rest @ ..] => options = rest,
                [TCP_KIND, ..] => return Self::from_bytes(options).map(Some),
                [_] => return Err(Malformed::Truncated),
                [_, length, ..] if *length < 2 => return Err(Malformed::Length),
                [_, length, ..] => options = options.get(usize::from(*length)..).ok_or(Malformed::Truncated)?,
            }
        }
    }
}
