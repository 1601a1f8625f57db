//! A part of the work, for one of several machines.

use std::fmt;
use std::str::FromStr;

use super::FrontierError;

/// Part `number` of `of`: cells and seeds are dealt out to the part that has least to do so far,
/// the most expensive of a seed first, so that every part has about the same work. What a part is
/// does not depend on what is finished already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    number: usize,
    of: usize,
}

impl Shard {
    /// Most parts.
    pub const MOST: usize = 100_000;
}

/// Deals out work.
#[derive(Debug)]
pub(crate) struct Dealer {
    shard: Shard,
    /// What every part has to do so far.
    costs: Vec<f64>,
}

impl Dealer {
    /// Nothing is dealt out yet.
    pub(crate) fn new(shard: Shard) -> Self {
        Self { shard, costs: vec![0.0; shard.of] }
    }

    /// Deals out work of this cost; true if this part gets it.
    pub(crate) fn deal(&mut self, cost: f64) -> bool {
        let mut least = 0;
        for (part, sum) in self.costs.iter().enumerate() {
            if *sum < self.costs[least] {
                least = part;
            }
        }
        self.costs[least] += cost;
        least == self.shard.number - 1
    }
}

impl FromStr for Shard {
    type Err = FrontierError;

    /// Reads "3/16".
    fn from_str(text: &str) -> Result<Self, FrontierError> {
        let wrong = || {
            let most = Self::MOST;
            FrontierError::new(format!(
                "\"{text}\" is not a part of the work; it looks like \"3/16\", the third of 16 (at most {most})"
            ))
        };
        let (number, of) = text.split_once('/').ok_or_else(wrong)?;
        let (number, of) = number.trim().parse().ok().zip(of.trim().parse().ok()).ok_or_else(wrong)?;
        if (1..=of).contains(&number) && of <= Self::MOST { Ok(Self { number, of }) } else { Err(wrong()) }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_work_is_in_one_part_and_the_parts_differ_by_one_work_at_most() {
        let mut parts: Vec<Dealer> =
            (1..=7).map(|number| Dealer::new(format!("{number}/7").parse().unwrap())).collect();
        for _ in 0..100 {
            assert_eq!(parts.iter_mut().filter_map(|part| part.deal(5.0).then_some(())).count(), 1);
        }
        assert!(parts[0].costs.iter().all(|cost| *cost == 70.0 || *cost == 75.0), "{parts:?}");
    }

    #[test]
    fn what_is_no_part_is_refused() {
        for text in ["", "3", "0/4", "5/4", "a/b", "1/0", "-1/4", "1/100001"] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
        assert_eq!("3/16".parse::<Shard>().unwrap().to_string(), "3/16");
    }
}
