//! What a connection has sent, counted.

/// Counts of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets sent that ask for an ACK.
    pub sent: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets delivered.
    pub delivered: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Packets deemed lost.
    pub lost: u64,
    /// Packets whose ACK reported more congestion marks.
    pub marked: u64,
    /// ACKs that told of something new.
    pub acks: u64,
}

impl Counts {
    /// Those of two paths.
    pub(super) fn and(&self, other: &Self) -> Self {
        Self {
            sent: self.sent + other.sent,
            bytes: self.bytes + other.bytes,
            delivered: self.delivered + other.delivered,
            delivered_bytes: self.delivered_bytes + other.delivered_bytes,
            lost: self.lost + other.lost,
            marked: self.marked + other.marked,
            acks: self.acks + other.acks,
        }
    }
}

/// Packets sent whose data the stack does not send again. That of lost ones waits to leave, unless
/// they were given up only here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ForGood {
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

impl ForGood {
    /// How much of so many bytes of data in them is acknowledged, if so many of their own are.
    pub(crate) fn acknowledged(&self, data: u64, delivered: u64) -> u64 {
        let share = u128::from(data) * u128::from(delivered.min(self.bytes)) / u128::from(self.bytes.max(1));
        u64::try_from(share).unwrap_or(data)
    }

    /// Bytes of data in them, if each has so many bytes that are none.
    pub(crate) fn data(&self, framing: u64) -> u64 {
        self.bytes.saturating_sub(self.packets * framing)
    }
}
