//! What a router has in mind, as of a moment.

use flowstart_units::{Bytes, Rate, Span};

/// Most samples of the load that the program keeps.
pub(crate) const MOST_SAMPLES: u32 = 20;
/// Where the samples of the meter begin in the program's memory.
const FIRST_SAMPLE: usize = 18 * 8;

/// What a router has seen and decided since it was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RouterState {
    /// The load measured last.
    pub load: Rate,
    /// Sum of the grants that count beside it.
    pub granted: Rate,
    /// Requests approved, at any rate.
    pub approved: u64,
    /// Requests denied after they were looked at.
    pub denied: u64,
    /// Requests not looked at because there were too many.
    pub ignored: u64,
    /// Reports of approved rate seen.
    pub reports: u64,
    /// Of them, those that said that nothing was approved.
    pub reports_of_zero: u64,
    /// Sum of all rates granted so far.
    pub granted_sum: Rate,
    /// Sum of all rates that reports named.
    pub reported_sum: Rate,
    /// Packets that left, segments of one super-packet counted as one.
    pub packets: u64,
    /// Bytes of IP that left.
    pub bytes: Bytes,
    /// Grants not used or not reported, and reports of another rate than was granted; only a router
    /// that remembers [flows](flowstart_quick_start::router::FlowsConfig) can tell.
    pub faults: u64,
    /// Reports that belong to no request; the same routers can tell.
    pub strays: u64,
}

impl RouterState {
    /// From the program's memory (`struct fs_router`).
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        // The lock and the turn come first.
        let words: Vec<u64> =
            bytes.get(8..)?.chunks_exact(8).map(|word| word.try_into().map_or(0, u64::from_ne_bytes)).collect();
        let word = |place: usize| words.get(place).copied();
        Some(Self {
            load: Rate::from_bps(word(2)?),
            granted: Rate::from_bps(word(3)?.saturating_add(word(4)?)),
            approved: word(6)?,
            denied: word(7)?,
            ignored: word(8)?,
            reports: word(9)?,
            reports_of_zero: word(10)?,
            granted_sum: Rate::from_bps(word(11)?),
            reported_sum: Rate::from_bps(word(12)?),
            packets: word(13)?,
            bytes: Bytes::new(word(14)?),
            faults: word(15)?,
            strays: word(16)?,
        })
    }

    /// The same at a moment of the clock that programs read: the program brings load and grants up
    /// to date with every packet, so what it has in mind is as old as the last one. `state` and
    /// `parameters` are its memory (`fs_router` and `fs_parameters` in bpf/fs_router.bpf.c).
    fn brought_to(self, now: u64, state: &[u8], parameters: &[u8]) -> Option<Self> {
        let wide = |bytes: &[u8], at: usize| Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
        let narrow = |bytes: &[u8], at: usize| Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
        let (interval, origin) = (wide(parameters, 8)?, wide(parameters, 16)?);
        let (samples, has_flows) = (narrow(parameters, 40)?.min(MOST_SAMPLES) as usize, narrow(parameters, 56)? > 0);
        let now = now.checked_sub(origin)?;
        let (turn, end, bytes) = (narrow(state, 4)? as usize, wide(state, 8)?, wide(state, 16)?);
        if interval == 0 || samples == 0 || now < end {
            return None;
        }
        let passed = (now - end) / interval + 1;
        let mut kept = (0..samples).map(|n| wide(state, FIRST_SAMPLE + 8 * n)).collect::<Option<Vec<_>>>()?;
        let first = Rate::of(Bytes::new(bytes), Span::from_nanos(interval)).as_bps();
        for n in 0..passed.min(samples as u64 + 1) as usize {
            kept[(turn + n) % samples] = if n == 0 { first } else { 0 };
        }
        let granted = match (has_flows, passed) {
            // Of sums the present interval's count for the one that follows, too.
            (false, 1) => wide(state, 32)?,
            (false, _) => 0,
            // What no data has followed for an interval is given back, what flows is in the load.
            (true, 1) => self.granted.as_bps(),
            (true, _) => 0,
        };
        let load = Rate::from_bps(kept.into_iter().max()?);
        Some(Self { load, granted: Rate::from_bps(granted), ..self })
    }

    /// The same at a moment of the clock that programs read; as it is if that cannot be told.
    pub(crate) fn at(self, now: u64, state: &[u8], parameters: &[u8]) -> Self {
        self.brought_to(now, state, parameters).unwrap_or(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;
    const ORIGIN: u64 = 7 * SECOND;
    const MBPS: u64 = 1_000_000;

    fn words(words: &[u64]) -> impl Iterator<Item = u8> + '_ {
        words.iter().flat_map(|word| word.to_ne_bytes())
    }

    /// Load and grants in Mbit/s this long after a first interval of 2 s, in which 1 MB left and 5
    /// Mbit/s were granted, after 3 in the one before.
    fn seen(after: u64, samples: u32, flows: u32) -> (u64, u64) {
        let narrow = [samples, 1, 14, 0, flows].into_iter().flat_map(u32::to_ne_bytes);
        let parameters: Vec<u8> = words(&[100 * MBPS, 2 * SECOND, ORIGIN, 1, 1]).chain(narrow).collect();
        let mut state = vec![0; 4];
        // The sample that is overwritten next.
        state.extend((samples - 1).to_ne_bytes());
        state.extend(words(&[2 * SECOND, 1_000_000, 9 * MBPS, 5 * MBPS, 3 * MBPS]));
        state.extend(words(&[0; 12]));
        state.extend(words(&[9 * MBPS; MOST_SAMPLES as usize]));
        let state_at =
            RouterState::read(&state).unwrap().at((ORIGIN + 2 * SECOND).wrapping_add(after), &state, &parameters);
        (state_at.load.as_bps() / MBPS, state_at.granted.as_bps() / MBPS)
    }

    #[test]
    fn load_and_grants_are_those_of_now_not_of_the_last_packet() {
        let before = 0_u64.wrapping_sub(1);
        assert_eq!(seen(before, 1, 0), (9, 8), "within the interval it is as it was");
        assert_eq!(seen(0, 1, 0), (4, 5));
        assert_eq!(seen(2 * SECOND - 1, 1, 0), (4, 5));
        assert_eq!(seen(2 * SECOND, 1, 0), (0, 0));
        // Of several samples the largest counts, until it is overwritten.
        assert_eq!(seen(2 * SECOND, 3, 0), (9, 0));
        assert_eq!(seen(4 * SECOND, 3, 0), (4, 0));
        assert_eq!(seen(6 * SECOND, 3, 0), (0, 0));
        // Flow by flow.
        assert_eq!(seen(0, 1, 1024), (4, 8));
        assert_eq!(seen(2 * SECOND, 1, 1024), (0, 0));
    }

    #[test]
    fn memory_of_another_form_is_as_it_was() {
        let state: Vec<u8> = words(&[0; 18]).collect();
        let read = RouterState::read(&state).unwrap();
        assert_eq!(read.at(u64::MAX, &state, &[]), read);
        assert_eq!(RouterState::read(&state[..100]), None);
    }
}
