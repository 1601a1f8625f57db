//! IPv4 headers, as far as hosts and routers of Quick-Start need them.

use alloc::vec::Vec;

use super::{DATA_LENGTH, IPV4_LENGTH, IPV4_TYPE, IpOption, Malformed, OptionMut};

/// Header without options.
const PLAIN: usize = 20;
/// Longest header.
const LONGEST: usize = 60;
const TOTAL_LENGTH: usize = 2;
const TTL: usize = 8;
const CHECKSUM: usize = 10;
/// Options without a length (RFC 791 section 3.1).
const END: u8 = 0;
const NO_OPERATION: u8 = 1;

/// One's complement sum of 16-bit words; an odd byte counts as the high one.
fn sum(bytes: &[u8]) -> u16 {
    let (words, odd) = bytes.as_chunks::<2>();
    let sum: u64 = words.iter().map(|word| u64::from(u16::from_be_bytes(*word))).sum();
    let sum = sum + odd.first().map_or(0, |byte| u64::from(*byte) << 8);
    folded(sum)
}

/// The sum of the four words of a number.
fn folded(sum: u64) -> u16 {
    fold(u32::from(fold(sum as u32)) + u32::from(fold((sum >> 32) as u32)))
}

/// Carries added until there are none.
fn fold(sum: u32) -> u16 {
    let once = (sum & 0xffff) + (sum >> 16);
    ((once & 0xffff) + (once >> 16)) as u16
}

/// The Internet checksum (RFC 1071) of `bytes`; over a header with its checksum in place it is 0.
#[must_use]
pub fn checksum(bytes: &[u8]) -> u16 {
    !sum(bytes)
}

/// An IPv4 packet in a buffer that holds at least its header.
#[derive(Debug)]
pub struct Ipv4<'a> {
    packet: &'a mut [u8],
    header: usize,
}

impl<'a> Ipv4<'a> {
    /// Looks at a packet.
    ///
    /// # Errors
    /// If it is not version 4, its header length is impossible, or the header is cut off.
    #[inline]
    pub fn new(packet: &'a mut [u8]) -> Result<Self, Malformed> {
        let first = *packet.first().ok_or(Malformed::Truncated)?;
        if first >> 4 != 4 {
            return Err(Malformed::OtherType);
        }
        let header = usize::from(first & 0x0f) * 4;
        if header < PLAIN {
            return Err(Malformed::Length);
        }
        if packet.len() < header {
            return Err(Malformed::Truncated);
        }
        Ok(Self { packet, header })
    }

    /// Length of the packet in bytes, as its header says.
    #[must_use]
    #[inline]
    pub fn total_length(&self) -> u16 {
        self.word(TOTAL_LENGTH)
    }

    /// Time to live.
    #[must_use]
    #[inline]
    pub fn ttl(&self) -> u8 {
        self.packet[TTL]
    }

    /// The header.
    #[must_use]
    pub fn header(&self) -> &[u8] {
        &self.packet[..self.header]
    }

    /// True if there are options: the only packets a router has to look at more closely.
    #[must_use]
    #[inline]
    pub fn has_options(&self) -> bool {
        self.header > PLAIN
    }

    #[inline]
    fn word(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.packet[at], self.packet[at + 1]])
    }

    /// Lowers the TTL by `hops`, down to 0, and mends the checksum (RFC 1624 equation 3). Returns
    /// the new TTL.
    #[inline]
    pub fn lower_ttl(&mut self, hops: u8) -> u8 {
        let before = self.word(TTL);
        self.packet[TTL] = self.packet[TTL].saturating_sub(hops);
        let after = self.word(TTL);
        let mended = fold(u32::from(!self.word(CHECKSUM)) + u32::from(!before) + u32::from(after));
        self.packet[CHECKSUM..CHECKSUM + 2].copy_from_slice(&(!mended).to_be_bytes());
        self.packet[TTL]
    }

    /// Where the data of the Quick-Start option is. At most 40 steps over other options.
    fn locate(&self) -> Result<Option<usize>, Malformed> {
        let mut at = PLAIN;
        while at < self.header {
            match self.packet[at] {
                END => return Ok(None),
                NO_OPERATION => at += 1,
                kind => {
                    let length = usize::from(*self.packet[..self.header].get(at + 1).ok_or(Malformed::Truncated)?);
                    if length < 2 || kind == IPV4_TYPE && length != IPV4_LENGTH {
                        return Err(Malformed::Length);
                    }
                    if at + length > self.header {
                        return Err(Malformed::Truncated);
                    }
                    if kind == IPV4_TYPE {
                        return Ok(Some(at + 2));
                    }
                    at += length;
                }
            }
        }
        Ok(None)
    }

    fn data_mut(&mut self, at: usize) -> Option<&mut [u8; DATA_LENGTH]> {
        self.packet.get_mut(at..at + DATA_LENGTH)?.try_into().ok()
    }

    /// The Quick-Start option, if the header has one.
    ///
    /// # Errors
    /// If an option has an impossible length, or the Quick-Start option is malformed.
    pub fn option(&self) -> Result<Option<IpOption>, Malformed> {
        match self.locate()? {
            Some(data) => IpOption::from_ipv4(&self.packet[data - 2..self.header]).map(Some),
            None => Ok(None),
        }
    }

    /// Lets `change` change the data of the Quick-Start option, if there is one, and mends the
    /// checksum (by the difference, so that a header damaged before stays damaged). The result of
    /// `change` is returned.
    ///
    /// # Errors
    /// If an option has an impossible length.
    pub fn change_option<T>(&mut self, change: impl FnOnce(OptionMut<'_>) -> T) -> Result<Option<T>, Malformed> {
        let Some(at) = self.locate()? else { return Ok(None) };
        Ok(self.exchange(at, |data| change(OptionMut::new(data))))
    }

    /// Overwrites the Quick-Start option, if there is one, with no-operation options, and mends the
    /// checksum: it is gone, but the header keeps its length. Returns true if there was one.
    ///
    /// # Errors
    /// If an option has an impossible length.
    pub fn remove_option(&mut self) -> Result<bool, Malformed> {
        let Some(at) = self.locate()? else { return Ok(false) };
        let before = !sum(self.header());
        self.packet[at - 2..at + DATA_LENGTH].fill(NO_OPERATION);
        let after = sum(self.header());
        self.mend(before, after);
        Ok(true)
    }

    fn exchange<T>(&mut self, at: usize, change: impl FnOnce(&mut [u8; DATA_LENGTH]) -> T) -> Option<T> {
        let before = !self.sum_around(at);
        let result = change(self.data_mut(at)?);
        let after = self.sum_around(at);
        self.mend(before, after);
        Some(result)
    }

    /// The sum of the four words in which the data of an option at `at` is: with type and length in
    /// front, or with a byte more on either side if it begins within a word.
    #[inline]
    fn sum_around(&self, at: usize) -> u16 {
        let words = self.packet[(at - 1) & !1..].first_chunk();
        words.map_or(0, |words| folded(u64::from_be_bytes(*words)))
    }

    fn mend(&mut self, not_before: u16, after: u16) {
        let mended = fold(u32::from(!self.word(CHECKSUM)) + u32::from(not_before) + u32::from(after));
        self.packet[CHECKSUM..CHECKSUM + 2].copy_from_slice(&(!mended).to_be_bytes());
    }

    /// The packet with `option` as its last option (before the end of the list), its lengths and
    /// checksum right; `None` if the header has no room or the packet would be longer than IPv4
    /// allows. The options it had must end at the end of the header or with an end-of-options
    /// octet.
    #[must_use]
    pub fn with_option(packet: &[u8], option: IpOption) -> Option<Vec<u8>> {
        let mut copy = packet.to_vec();
        let view = Ipv4::new(&mut copy).ok()?;
        let (header, total) = (view.header, view.total_length());
        if header + IPV4_LENGTH > LONGEST {
            return None;
        }
        let total = total.checked_add(IPV4_LENGTH as u16)?;
        let mut longer = Vec::with_capacity(packet.len() + IPV4_LENGTH);
        longer.extend_from_slice(&packet[..PLAIN]);
        // In front of the options there are: they may end with an end-of-options octet.
        longer.extend_from_slice(&option.to_ipv4());
        longer.extend_from_slice(&packet[PLAIN..]);
        let words = (header + IPV4_LENGTH) / 4;
        longer[0] = 0x40 | words as u8;
        longer[TOTAL_LENGTH..TOTAL_LENGTH + 2].copy_from_slice(&total.to_be_bytes());
        longer[CHECKSUM..CHECKSUM + 2].fill(0);
        let check = checksum(&longer[..header + IPV4_LENGTH]);
        longer[CHECKSUM..CHECKSUM + 2].copy_from_slice(&check.to_be_bytes());
        Some(longer)
    }
}
