//! Which of a fixed set of things comes next: a winner tree over their times.

use flowstart_units::Time;

/// The earliest time of a subtree and whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Winner {
    time: Time,
    slot: u32,
}

/// Up to this many slots are searched one by one (measured: a tree of three levels costs more
/// instructions).
const FEW: usize = 8;

/// With few slots, time and slot share a word, so that the search is seven comparisons of integers.
/// The time is cut to 61 bits (73 years of nanoseconds); what is later is never.
const FEW_BITS: u32 = FEW.ilog2();

/// Up to this many slots groups of four have such words, in place of [`Winner`]s. Their times are
/// cut to 58 bits (9 years). More slots would leave too little for the time.
const SOME: usize = 64;
const SOME_BITS: u32 = SOME.ilog2();
/// Members of a group.
const GROUP: usize = 4;
/// With up to this many slots the groups are the slots themselves.
const GROUPED: usize = SOME / GROUP;

/// Words of times and slots: the earliest of every four, and the earliest of every four of these.
/// To change one takes six comparisons, and to find the first three; the levels of a binary tree
/// would wait for one another.
#[derive(Clone, Debug)]
struct Groups {
    /// Not used if there are at most [`GROUPED`].
    slots: [u64; SOME],
    /// The earliest of every four slots, or the slots.
    groups: [u64; GROUPED],
    /// The earliest of every four of them.
    last: [u64; GROUP],
}

/// The least of a group in which `word` was just put at `place`. It is not read again: that would
/// take longer than the comparisons.
#[inline(always)]
fn least_with<const N: usize>(words: &[u64; N], place: usize, word: u64) -> u64 {
    // Without the remainder the compiler would not know that all are there.
    let other = |distance: usize| words[(place ^ distance) % N];
    word.min(other(1)).min(other(2).min(other(3)))
}

impl Groups {
    fn new() -> Self {
        let words = |slot| pack::<SOME_BITS>(Time::NEVER, slot);
        let mut groups = Self { slots: std::array::from_fn(words), groups: [0; GROUPED], last: [0; GROUP] };
        groups.groups = std::array::from_fn(words);
        groups.last = std::array::from_fn(|last| words(last * GROUP));
        groups
    }

    #[inline(always)]
    fn set_group(&mut self, place: usize, word: u64) {
        let place = place % GROUPED;
        self.groups[place] = word;
        self.last[place / GROUP] = least_with(&self.groups, place, word);
    }

    #[inline(always)]
    fn set_slot(&mut self, slot: usize, word: u64) {
        let slot = slot % SOME;
        self.slots[slot] = word;
        self.set_group(slot / GROUP, least_with(&self.slots, slot, word));
    }

    #[inline(always)]
    fn first(&self) -> u64 {
        let [a, b, c, d] = self.last;
        a.min(b).min(c.min(d))
    }
}

/// Which of a set of slots has the earliest time: every slot has a time ([`Time::NEVER`] if it has
/// nothing to do). With many slots this is a winner tree: changing a slot's time costs the
/// logarithm of the number of slots; unlike in a heap a time can change in place, so there are no
/// stale entries. At equal times the lower slot wins, which makes the order of events a function of
/// the configuration alone.
#[derive(Clone, Debug)]
pub(crate) struct Tournament {
    /// Times and slots if there are at most [`FEW`], the time in the upper bits.
    few: [u64; FEW],
    /// The same if there are more, and at most [`SOME`].
    some: Groups,
    /// Empty unless there are more than that. A complete binary tree: node 1 is the root, the
    /// leaves start at `leaves`.
    nodes: Vec<Winner>,
    leaves: usize,
    slots: usize,
}

/// Time and slot in a word of which the slot has the lowest `BITS`.
#[inline]
fn pack<const BITS: u32>(time: Time, slot: usize) -> u64 {
    time.as_nanos().min(u64::MAX >> BITS) << BITS | slot as u64
}

#[inline]
fn unpack<const BITS: u32>(word: u64) -> Time {
    match word >> BITS {
        latest if latest == u64::MAX >> BITS => Time::NEVER,
        nanos => Time::from_nanos(nanos),
    }
}

impl Tournament {
    /// A tree of `slots` slots that have nothing to do.
    pub(crate) fn new(slots: usize) -> Self {
        let few = std::array::from_fn(|slot| pack::<FEW_BITS>(Time::NEVER, slot));
        let leaves = slots.next_power_of_two().max(FEW);
        let mut tree = Self { few, some: Groups::new(), nodes: Vec::new(), leaves, slots };
        if leaves > SOME {
            tree.nodes = vec![Winner { time: Time::NEVER, slot: 0 }; 2 * leaves];
            for slot in 0..leaves {
                tree.nodes[leaves + slot].slot = slot as u32;
            }
            tree.play();
        }
        tree
    }

    /// Every node becomes the winner of the two below it.
    fn play(&mut self) {
        for node in (1..self.leaves).rev() {
            let (left, right) = (self.nodes[2 * node], self.nodes[2 * node + 1]);
            self.nodes[node] = if right.time < left.time { right } else { left };
        }
    }

    /// The earliest time and its slot; [`Time::NEVER`] if nobody has anything to do.
    #[inline]
    pub(crate) fn first(&self) -> (Time, usize) {
        if self.leaves == FEW {
            // In pairs, so that the comparisons need not wait for each other.
            let [a, b, c, d, e, f, g, h] = self.few;
            let first = a.min(b).min(c.min(d)).min(e.min(f).min(g.min(h)));
            (unpack::<FEW_BITS>(first), first as usize % FEW)
        } else if self.leaves <= SOME {
            let root = self.some.first();
            (unpack::<SOME_BITS>(root), root as usize % SOME)
        } else {
            (self.nodes[1].time, self.nodes[1].slot as usize)
        }
    }

    /// The time of a slot.
    #[inline(always)]
    pub(crate) fn time(&self, slot: usize) -> Time {
        if self.leaves == FEW {
            unpack::<FEW_BITS>(self.few[slot % FEW])
        } else if self.leaves <= GROUPED {
            unpack::<SOME_BITS>(self.some.groups[slot % GROUPED])
        } else if self.leaves <= SOME {
            unpack::<SOME_BITS>(self.some.slots[slot % SOME])
        } else {
            self.nodes[self.leaves + slot].time
        }
    }

    /// Changes the time of a slot.
    // Inlined for up to [`GROUPED`] slots: several times per packet, and all that a path of some
    // lanes has.
    #[inline(always)]
    pub(crate) fn set(&mut self, slot: usize, time: Time) {
        if self.leaves == FEW {
            self.few[slot % FEW] = pack::<FEW_BITS>(time, slot % FEW);
        } else if self.leaves <= GROUPED {
            self.some.set_group(slot, pack::<SOME_BITS>(time, slot % GROUPED));
        } else {
            self.set_of_many(slot, time);
        }
    }

    #[inline(never)]
    fn set_of_many(&mut self, slot: usize, time: Time) {
        if self.leaves <= SOME {
            self.some.set_slot(slot, pack::<SOME_BITS>(time, slot % SOME));
        } else {
            self.set_leaf(slot, time);
        }
    }

    fn set_leaf(&mut self, slot: usize, time: Time) {
        let mut node = self.leaves + slot;
        self.nodes[node].time = time;
        while node > 1 {
            let left = self.nodes[node & !1];
            let right = self.nodes[node | 1];
            node >>= 1;
            let winner = if right.time < left.time { right } else { left };
            if self.nodes[node] == winner {
                return;
            }
            self.nodes[node] = winner;
        }
    }

    /// Adds slots until there are at least `slots`.
    pub(crate) fn grow(&mut self, slots: usize) {
        if slots <= self.slots {
            return;
        }
        if slots <= self.leaves {
            self.slots = slots;
            return;
        }
        let mut larger = Self::new(slots.max(2 * self.leaves));
        larger.slots = slots;
        for slot in 0..self.slots {
            larger.set(slot, self.time(slot));
        }
        *self = larger;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Differential: the tree against a search through all slots.
        #[test]
        fn the_root_is_always_the_earliest_slot_and_the_lowest_at_a_tie(
            slots in 1_usize..90,
            changes in proptest::collection::vec((0_usize..200, 0_u64..50, 0_usize..8), 1..200),
        ) {
            let mut tree = Tournament::new(slots);
            let mut times = vec![Time::NEVER; slots];
            for (slot, time, growth) in changes {
                if growth == 7 {
                    let slots = times.len() + slot % 50;
                    tree.grow(slots);
                    times.resize(slots, Time::NEVER);
                }
                let slot = slot % times.len();
                let time = if time == 0 { Time::NEVER } else { Time::from_nanos(time) };
                tree.set(slot, time);
                times[slot] = time;
                let earliest = *times.iter().min().unwrap();
                prop_assert_eq!(tree.first().0, earliest);
                if earliest < Time::NEVER {
                    prop_assert_eq!(tree.first().1, times.iter().position(|t| *t == earliest).unwrap());
                }
                prop_assert_eq!(tree.time(slot), time);
            }
        }
    }
}
