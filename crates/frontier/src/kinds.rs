//! What is unpleasant about a path, and who else is on it.

use std::fmt;
use std::str::FromStr;

use flowstart_race::Acks;
use flowstart_scenario::nearest;

use super::{FrontierError, rough};

/// What is unpleasant about a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathKind {
    /// Nothing; the receiver acknowledges every segment.
    Clean,
    /// 0.1 % of the packets are lost at random before the queue.
    Loss,
    /// Packets are delayed at random behind the queue, by up to 5 % of the RTT, without reordering.
    Jitter,
    /// The receiver acknowledges as Linux does: every segment at the very beginning, then every
    /// second one or after 40 ms.
    DelayedAcks,
    /// A kind of rough path, or a profile, by its name.
    Rough(&'static str),
}

/// Who else is on the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LoadKind {
    /// Nobody.
    Idle,
    /// One greedy flow of the newcomer's kind: CUBIC over a queue that drops, DCTCP over one that
    /// marks.
    Greedy,
    /// Datagrams of 1500 B at random moments (Poisson) that take 20 % of the capacity.
    Udp,
    /// One greedy BBR flow.
    Bbr,
    /// One greedy DCTCP flow. Cells of the rough grid have it where the queue marks.
    Dctcp,
    /// Transfers of 3 kB to 3 MB at random moments (Poisson) that offer 30 % of the capacity.
    Web,
}

impl PathKind {
    /// Those of the smooth grid, in its order.
    pub const ALL: [Self; 4] = [Self::Clean, Self::Loss, Self::Jitter, Self::DelayedAcks];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Loss => "loss",
            Self::Jitter => "jitter",
            Self::DelayedAcks => "delayed_acks",
            Self::Rough(name) => name,
        }
    }

    /// When the receiver acknowledges.
    #[must_use]
    pub fn acks(self) -> Acks {
        match self {
            // As receivers are.
            Self::DelayedAcks | Self::Rough(_) => Acks::Delayed,
            Self::Clean | Self::Loss | Self::Jitter => Acks::EverySegment,
        }
    }
}

impl LoadKind {
    /// All, in the order of the grid.
    pub const ALL: [Self; 6] = [Self::Idle, Self::Greedy, Self::Udp, Self::Bbr, Self::Dctcp, Self::Web];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Greedy => "greedy",
            Self::Udp => "udp",
            Self::Bbr => "bbr",
            Self::Dctcp => "dctcp",
            Self::Web => "web",
        }
    }
}

macro_rules! by_name {
    ($type:ident, $what:literal, $other:expr) => {
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }

        impl FromStr for $type {
            type Err = FrontierError;

            fn from_str(text: &str) -> Result<Self, FrontierError> {
                let other: fn(&str) -> Option<Result<Self, FrontierError>> = $other;
                if let Some(found) = other(text.trim()) {
                    return found;
                }
                let wanted = text.trim().to_lowercase().replace(['-', ' '], "_");
                Self::known().into_iter().find(|kind| kind.name().to_lowercase() == wanted).ok_or_else(|| {
                    let known: Vec<&str> = Self::known().into_iter().map(Self::name).collect();
                    let meant = nearest(&wanted, known.iter().copied())
                        .map_or(String::new(), |meant| format!("; did you mean \"{meant}\"?"));
                    let known = known.join(", ");
                    FrontierError::new(format!("there is no {} \"{text}\"; there are {known}{meant}", $what))
                })
            }
        }
    };
}

impl PathKind {
    /// All that have a name.
    fn known() -> Vec<Self> {
        Self::ALL.into_iter().chain(rough::all().iter().map(|rough| Self::Rough(&rough.name))).collect()
    }

    /// The kinds of the rough grid.
    #[must_use]
    pub fn rough() -> Vec<Self> {
        rough::kinds().iter().map(|rough| Self::Rough(&rough.name)).collect()
    }
}

impl LoadKind {
    fn known() -> Vec<Self> {
        Self::ALL.to_vec()
    }
}

by_name!(PathKind, "path", |text: &str| text
    .ends_with(".toml")
    .then(|| rough::from_file(text).map(PathKind::Rough).map_err(FrontierError::from)));
by_name!(LoadKind, "load", |_: &str| None);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_with_hyphens_and_a_wrong_one_is_answered_with_the_nearest() {
        assert_eq!("Delayed-ACKs".parse(), Ok(PathKind::DelayedAcks));
        assert!("jiter".parse::<PathKind>().unwrap_err().to_string().contains("did you mean \"jitter\"?"));
        assert!("idel".parse::<LoadKind>().unwrap_err().to_string().contains("there is no load"));
        for kind in PathKind::known() {
            assert_eq!(kind.name().parse(), Ok(kind));
        }
    }
}
