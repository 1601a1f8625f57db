//! A part of the work, for one of several machines.

use std::fmt;
use std::str::FromStr;

/// Part `number` of `of`: cells and seeds are dealt out in turn, so that every part has about the
/// same work. What a part is does not depend on what is finished already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    number: usize,
    of: usize,
}

impl Shard {
    /// Most parts.
    pub const MOST: usize = 100_000;

    /// True if this part has the cell and seed with this place among all.
    #[must_use]
    pub fn holds(self, place: usize) -> bool {
        place % self.of == self.number - 1
    }
}

impl FromStr for Shard {
    type Err = String;

    /// Reads "3/16".
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            let most = Self::MOST;
            format!("\"{text}\" is not a part of the work; it looks like \"3/16\", the third of 16 (at most {most})")
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
    fn every_place_is_in_one_part() {
        let parts: Vec<Shard> = (1..=7).map(|number| format!("{number}/7").parse().unwrap()).collect();
        for place in 0..100 {
            assert_eq!(parts.iter().filter(|part| part.holds(place)).count(), 1, "{place}");
        }
    }

    #[test]
    fn what_is_no_part_is_refused() {
        for text in ["", "3", "0/4", "5/4", "a/b", "1/0", "-1/4", "1/100001"] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
        assert_eq!("3/16".parse::<Shard>().unwrap().to_string(), "3/16");
    }
}
