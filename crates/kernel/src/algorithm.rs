//! The algorithms by name.

use std::fmt;
use std::str::FromStr;

use crate::chirp_parameters::CHIRP;
use crate::parameters::{Kind, Parameter};
use crate::quick_start_parameters::QUICK_START;

/// A congestion control that can be loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Paced Chirping with the adaptive schedule, then CUBIC or Reno, DCTCP from the first mark on.
    PacedChirping,
    /// DCTCP (RFC 8257) with slow start.
    Dctcp,
    /// Quick-Start (RFC 4782), then slow start and CUBIC.
    QuickStart,
    /// Scalable TCP (Kelly 2003) with slow start.
    Scalable,
    /// Slow start and Reno (RFC 5681).
    SlowStartReno,
}

const DCTCP: &[Parameter] = &[
    Parameter {
        name: "gain_shift",
        kind: Kind::Count,
        default: 4,
        least: 1,
        most: 10,
        help: "the weight of a window in alpha is 1/2^n (RFC 8257 section 4.2)",
    },
    Parameter {
        name: "initial_alpha",
        kind: Kind::Ratio,
        default: 1024,
        least: 0,
        most: 1024,
        help: "share of marked packets that is assumed at the beginning",
    },
];

const SCALABLE: &[Parameter] = &[
    Parameter {
        name: "packets_per_increase",
        kind: Kind::Count,
        default: 100,
        least: 1,
        most: 1_000_000,
        help: "packets acknowledged per packet that the window grows by",
    },
    Parameter {
        name: "reduction_shift",
        kind: Kind::Count,
        default: 3,
        least: 1,
        most: 31,
        help: "a loss takes away 1/2^n of the window",
    },
];

impl Algorithm {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::PacedChirping, Self::Dctcp, Self::QuickStart, Self::Scalable, Self::SlowStartReno];

    /// The name in flowstart.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::PacedChirping => "paced_chirping",
            Self::Dctcp => "dctcp",
            Self::QuickStart => "quick_start",
            Self::Scalable => "scalable",
            Self::SlowStartReno => "slow_start_reno",
        }
    }

    /// The name in the kernel, for `net.ipv4.tcp_congestion_control`, `TCP_CONGESTION` and `ip
    /// route … congctl`.
    #[must_use]
    pub fn kernel_name(self) -> &'static str {
        match self {
            Self::PacedChirping => "fs_chirp",
            Self::Dctcp => "fs_dctcp",
            Self::QuickStart => "fs_quick_start",
            Self::Scalable => "fs_scalable",
            Self::SlowStartReno => "fs_reno",
        }
    }

    /// What it is, in a sentence.
    #[must_use]
    pub fn about(self) -> &'static str {
        match self {
            Self::PacedChirping => "Paced Chirping, then CUBIC or Reno, DCTCP from the first mark on; asks for ECN",
            Self::Dctcp => "DCTCP (RFC 8257) with slow start; asks for ECN",
            Self::QuickStart => "Quick-Start (RFC 4782): asks the routers for a rate, then slow start and CUBIC",
            Self::Scalable => "Scalable TCP (Kelly 2003) with slow start",
            Self::SlowStartReno => "slow start and Reno (RFC 5681)",
        }
    }

    /// What can be set when it is loaded.
    #[must_use]
    pub fn parameters(self) -> &'static [Parameter] {
        match self {
            Self::PacedChirping => CHIRP,
            Self::Dctcp => DCTCP,
            Self::QuickStart => QUICK_START,
            Self::Scalable => SCALABLE,
            Self::SlowStartReno => &[],
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// There is no such algorithm for the kernel. Its `Display` is a sentence with those there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownAlgorithm {
    text: String,
}

impl fmt::Display for UnknownAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let both = |algorithm: &Algorithm| format!("{} ({})", algorithm.name(), algorithm.kernel_name());
        let names: Vec<_> = Algorithm::ALL.iter().map(both).collect();
        // The simulator's is a later generation; who asks for it shall not take one for the other.
        let near = match self.text.as_str() {
            "adaptive_chirping" => "; an earlier generation of its schedule is paced_chirping here",
            _ => "",
        };
        write!(f, "there is no algorithm \"{}\" for the kernel; there are {}{near}", self.text, names.join(", "))
    }
}

impl std::error::Error for UnknownAlgorithm {}

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    /// Reads either name.
    fn from_str(text: &str) -> Result<Self, UnknownAlgorithm> {
        let known = |algorithm: &&Self| text == algorithm.name() || text == algorithm.kernel_name();
        Self::ALL.iter().find(known).copied().ok_or_else(|| UnknownAlgorithm { text: text.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_names_of_an_algorithm_are_understood() {
        for algorithm in Algorithm::ALL {
            assert_eq!(algorithm.name().parse(), Ok(algorithm));
            assert_eq!(algorithm.kernel_name().parse(), Ok(algorithm));
        }
        assert!("cubic".parse::<Algorithm>().unwrap_err().to_string().contains("dctcp (fs_dctcp)"));
        assert!("adaptive_chirping".parse::<Algorithm>().unwrap_err().to_string().contains("paced_chirping here"));
    }

    #[test]
    fn names_fit_into_the_kernels_16_bytes_with_their_zero() {
        assert!(Algorithm::ALL.iter().all(|algorithm| algorithm.kernel_name().len() < 16));
    }

    #[test]
    fn defaults_are_within_their_ranges() {
        for parameter in Algorithm::ALL.iter().flat_map(|algorithm| algorithm.parameters()) {
            assert!((parameter.least..=parameter.most).contains(&parameter.default), "{}", parameter.name);
        }
    }
}
