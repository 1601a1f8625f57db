//! IPv6 packets with a hop-by-hop header.

use super::{DATA_LENGTH, IPV6_TYPE, IpOption, Malformed, OptionMut};

const FIXED: usize = 40;
const PAYLOAD_LENGTH: usize = 4;
const NEXT_HEADER: usize = 6;
const HOP_LIMIT: usize = 7;
/// Next-header value of the hop-by-hop header (RFC 8200 section 4.3).
const HOP_BY_HOP: u8 = 0;
/// Padding options (RFC 8200 section 4.2).
const PAD_1: u8 = 0;
const PAD_N: u8 = 1;
/// Options, paddings of one byte among them, that are looked at in search of Quick-Start's: more
/// would let a flood of headers full of padding slow a router down (own choice).
const MOST_OPTIONS: u32 = 64;
/// Length of a hop-by-hop header with a Quick-Start option: 2 + 8 bytes, padded to a multiple of 8.
const EXTENSION: usize = 16;

/// A whole hop-by-hop header with this option and six bytes of padding, in front of `next_header`.
#[must_use]
pub fn hop_by_hop(next_header: u8, option: IpOption) -> [u8; EXTENSION] {
    let [a, b, c, d, e, f, g, h] = option.to_ipv6();
    [next_header, 1, a, b, c, d, e, f, g, h, PAD_N, 4, 0, 0, 0, 0]
}

/// An IPv6 packet in a buffer that holds at least its fixed header.
#[derive(Debug)]
pub struct Ipv6<'a> {
    packet: &'a mut [u8],
}

impl<'a> Ipv6<'a> {
    /// Looks at a packet.
    ///
    /// # Errors
    /// If it is not version 6 or shorter than 40 bytes.
    #[inline]
    pub fn new(packet: &'a mut [u8]) -> Result<Self, Malformed> {
        let first = *packet.first().ok_or(Malformed::Truncated)?;
        if first >> 4 != 6 {
            return Err(Malformed::OtherType);
        }
        if packet.len() < FIXED {
            return Err(Malformed::Truncated);
        }
        Ok(Self { packet })
    }

    /// Length of the packet in bytes, fixed header included, as it says.
    #[must_use]
    #[inline]
    pub fn total_length(&self) -> u32 {
        let payload = u16::from_be_bytes([self.packet[PAYLOAD_LENGTH], self.packet[PAYLOAD_LENGTH + 1]]);
        u32::from(payload) + FIXED as u32
    }

    /// Hop limit.
    #[must_use]
    #[inline]
    pub fn hop_limit(&self) -> u8 {
        self.packet[HOP_LIMIT]
    }

    /// True if there are hop-by-hop options: the only packets a router has to look at more closely.
    #[must_use]
    #[inline]
    pub fn has_options(&self) -> bool {
        self.packet[NEXT_HEADER] == HOP_BY_HOP
    }

    /// Lowers the hop limit by `hops`, down to 0. Returns the new one.
    #[inline]
    pub fn lower_hop_limit(&mut self, hops: u8) -> u8 {
        self.packet[HOP_LIMIT] = self.packet[HOP_LIMIT].saturating_sub(hops);
        self.packet[HOP_LIMIT]
    }

    /// Where the data of the Quick-Start option is.
    fn locate(&self) -> Result<Option<usize>, Malformed> {
        if !self.has_options() {
            return Ok(None);
        }
        let length = *self.packet.get(FIXED + 1).ok_or(Malformed::Truncated)?;
        let end = FIXED + 8 * (usize::from(length) + 1);
        if end > self.packet.len() {
            return Err(Malformed::Truncated);
        }
        let mut at = FIXED + 2;
        for _ in 0..MOST_OPTIONS {
            if at >= end {
                return Ok(None);
            }
            match self.packet[at] {
                PAD_1 => at += 1,
                kind => {
                    let length = usize::from(*self.packet[..end].get(at + 1).ok_or(Malformed::Truncated)?);
                    if at + 2 + length > end {
                        return Err(Malformed::Truncated);
                    }
                    if kind == IPV6_TYPE {
                        return if length == DATA_LENGTH { Ok(Some(at + 2)) } else { Err(Malformed::Length) };
                    }
                    at += 2 + length;
                }
            }
        }
        Ok(None)
    }

    /// The Quick-Start option, if the packet has one.
    ///
    /// # Errors
    /// If the hop-by-hop header is cut off, an option reaches over its end, or the Quick-Start
    /// option is malformed.
    pub fn option(&self) -> Result<Option<IpOption>, Malformed> {
        match self.locate()? {
            Some(data) => IpOption::from_ipv6(&self.packet[data - 2..]).map(Some),
            None => Ok(None),
        }
    }

    /// Lets `change` change the data of the Quick-Start option, if there is one, and returns its
    /// result. There is no checksum to mend: IPv6 has none, and the pseudo-header of TCP does not
    /// cover options.
    ///
    /// # Errors
    /// If the hop-by-hop header is cut off or an option reaches over its end.
    pub fn change_option<T>(&mut self, change: impl FnOnce(OptionMut<'_>) -> T) -> Result<Option<T>, Malformed> {
        let Some(at) = self.locate()? else { return Ok(None) };
        let data: Option<&mut [u8; DATA_LENGTH]> = self.packet[at..at + DATA_LENGTH].as_mut().try_into().ok();
        Ok(data.map(|data| change(OptionMut::new(data))))
    }

    /// Overwrites the Quick-Start option, if there is one, with padding of the same length. Returns
    /// true if there was one.
    ///
    /// # Errors
    /// If the hop-by-hop header is cut off or an option reaches over its end.
    pub fn remove_option(&mut self) -> Result<bool, Malformed> {
        let Some(at) = self.locate()? else { return Ok(false) };
        self.packet[at - 2] = PAD_N;
        self.packet[at..at + DATA_LENGTH].fill(0);
        Ok(true)
    }
}
