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
const SLOT_BITS: u32 = FEW.ilog2();
const LATEST: u64 = u64::MAX >> SLOT_BITS;

/// Which of a set of slots has the earliest time: every slot has a time ([`Time::NEVER`] if it has
/// nothing to do). With many slots this is a winner tree: changing a slot's time costs the
/// logarithm of the number of slots; unlike in a heap a time can change in place, so there are no
/// stale entries. At equal times the lower slot wins, which makes the order of events a function of
/// the configuration alone.
#[derive(Clone, Debug)]
pub(crate) struct Tournament {
    /// Times and slots if there are at most [`FEW`], the time in the upper bits.
    few: [u64; FEW],
    /// Empty if there are few. Otherwise a complete binary tree: node 1 is the root, the leaves
    /// start at `leaves`.
    nodes: Vec<Winner>,
    leaves: usize,
    slots: usize,
}

#[inline]
fn pack(time: Time, slot: usize) -> u64 {
    time.as_nanos().min(LATEST) << SLOT_BITS | slot as u64
}

#[inline]
fn unpack(word: u64) -> Time {
    match word >> SLOT_BITS {
        LATEST => Time::NEVER,
        nanos => Time::from_nanos(nanos),
    }
}

impl Tournament {
    /// A tree of `slots` slots that have nothing to do.
    pub(crate) fn new(slots: usize) -> Self {
        let few = std::array::from_fn(|slot| pack(Time::NEVER, slot));
        if slots <= FEW {
            return Self { few, nodes: Vec::new(), leaves: FEW, slots };
        }
        let leaves = slots.next_power_of_two();
        let mut nodes = vec![Winner { time: Time::NEVER, slot: 0 }; 2 * leaves];
        for slot in 0..leaves {
            nodes[leaves + slot].slot = slot as u32;
        }
        for node in (1..leaves).rev() {
            nodes[node] = nodes[2 * node];
        }
        Self { few, nodes, leaves, slots }
    }

    /// The earliest time and its slot; [`Time::NEVER`] if nobody has anything to do.
    #[inline]
    pub(crate) fn first(&self) -> (Time, usize) {
        match self.nodes.get(1) {
            None => {
                // In pairs, so that the comparisons need not wait for each other.
                let [a, b, c, d, e, f, g, h] = self.few;
                let first = a.min(b).min(c.min(d)).min(e.min(f).min(g.min(h)));
                (unpack(first), first as usize % FEW)
            }
            Some(root) => (root.time, root.slot as usize),
        }
    }

    /// The time of a slot.
    #[inline]
    pub(crate) fn time(&self, slot: usize) -> Time {
        if self.nodes.is_empty() { unpack(self.few[slot % FEW]) } else { self.nodes[self.leaves + slot].time }
    }

    /// Changes the time of a slot.
    #[inline]
    pub(crate) fn set(&mut self, slot: usize, time: Time) {
        if self.nodes.is_empty() {
            self.few[slot % FEW] = pack(time, slot % FEW);
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
            larger.nodes[larger.leaves + slot].time = self.time(slot);
        }
        for node in (1..larger.leaves).rev() {
            let (left, right) = (larger.nodes[2 * node], larger.nodes[2 * node + 1]);
            larger.nodes[node] = if right.time < left.time { right } else { left };
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
            slots in 1_usize..40,
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
