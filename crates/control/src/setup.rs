//! What an algorithm is made from.

/// What the algorithms of a connection must know of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Connection {
    /// Initial window in packets, at least 1.
    pub initial_window: u32,
    /// Maximum segment size in payload bytes.
    pub mss: u32,
    /// True if packets are paced when no algorithm says when they leave.
    pub paced: bool,
    /// Seed of the algorithm's own randomness.
    pub seed: u64,
}

/// Which algorithm, with its constants, and for what connection.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a, C> {
    /// The algorithm's name and constants.
    pub config: &'a C,
    /// The connection it is for.
    pub connection: Connection,
}
