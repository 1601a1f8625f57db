//! What a stage of the detection asks for.

use crate::answer::Isolation;

/// How the packets of a batch leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrangement {
    /// Trains a little faster than the bottleneck, lone packets together behind each.
    Spaced,
    /// The same right behind the first train, but lone packets one by one among the last of a
    /// train.
    AtOnce,
    /// One train that goes on at about the rate of the bottleneck once some of it is queued, lone
    /// packets together behind every few of it.
    Sustained,
    /// A train alone, and one beside a train of connection 1.
    Together,
    /// Bursts that overflow the buffer, a lone packet between the last two of each.
    Bursts,
}

/// What a stage of the detection asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Nothing new.
    Stay,
    /// A chirp, as too little of what was sent arrived.
    Chirp,
    /// The batch that was planned behind the first train is on its way.
    Planned,
    /// Another batch, with trains of this many packets.
    Batch { arrangement: Arrangement, length: u32 },
    /// Packets spread in time, and a batch with trains of this many packets behind them.
    Again { length: u32 },
    /// The end, with this answer.
    Answer(Isolation),
}
