//! The ticks that the kernel's CUBIC reckons its time in.

use std::fmt;
use std::ops::RangeInclusive;

use flowstart_congestion::avoidance::cubic::CubicConfig;
use flowstart_units::Span;
use nix::time::{ClockId, clock_getres};

/// Ticks per second that are simulated where a kernel's are not known: in records that do not say,
/// which are all of such a kernel.
pub(super) const USUAL: u32 = CubicConfig::LINUX_HZ;
/// Ticks per second that kernels have: `CONFIG_HZ` is 100 to 1000 on most architectures (Alpha's is
/// up to 1200), and more in kernels that somebody changed.
pub(super) const POSSIBLE: RangeInclusive<u32> = 100..=10_000;

/// Ticks per second of this machine's kernel (`CONFIG_HZ`), which anybody may ask for: the
/// resolution of its coarse clocks is a tick (`TICK_NSEC`; Linux 6.18, `posix_get_coarse_res` in
/// `kernel/time/posix-timers.c`).
///
/// # Errors
/// If that is no tick of a kernel; 250 per second are simulated then.
pub fn kernel_hz() -> Result<u32, UnknownTick> {
    let resolution = clock_getres(ClockId::CLOCK_MONOTONIC_COARSE).map(std::time::Duration::from);
    let resolution = resolution.map_err(UnknownTick::NotSaid)?;
    let resolution = Span::from_nanos(u64::try_from(resolution.as_nanos()).unwrap_or(u64::MAX));
    hz_of(resolution).ok_or(UnknownTick::Strange(resolution))
}

/// Why it is not known how long a kernel's tick is. Its `Display` is a sentence, which also says
/// what is simulated instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnknownTick {
    /// The kernel does not say it.
    NotSaid(nix::Error),
    /// Its coarse clock has this resolution, which is no kernel's tick.
    Strange(Span),
}

impl fmt::Display for UnknownTick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSaid(error) => write!(
                f,
                "this kernel does not say how long its tick is (resolution of CLOCK_MONOTONIC_COARSE: {error})"
            )?,
            Self::Strange(resolution) => write!(
                f,
                "this kernel's CLOCK_MONOTONIC_COARSE has a resolution of {resolution}, and a kernel's tick is {} to {}",
                tick(*POSSIBLE.end()),
                tick(*POSSIBLE.start())
            )?,
        }
        write!(f, ": CUBIC is simulated with {USUAL} ticks per second")
    }
}

impl std::error::Error for UnknownTick {}

/// Length of a tick.
fn tick(hz: u32) -> Span {
    Span::from_secs(1) / u64::from(hz)
}

/// Ticks per second of a kernel whose coarse clocks have this resolution, which is a tick rounded
/// to nanoseconds; `None` if no kernel has such ticks.
fn hz_of(resolution: Span) -> Option<u32> {
    let nanos = resolution.as_nanos();
    let hz = (Span::from_secs(1).as_nanos() + nanos / 2).checked_div(nanos)?;
    u32::try_from(hz).ok().filter(|hz| POSSIBLE.contains(hz) && resolution <= tick(*POSSIBLE.start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the kernel rounds it: `(NSEC_PER_SEC + HZ/2) / HZ` (`include/linux/jiffies.h`).
    fn resolution(hz: u64) -> Span {
        Span::from_nanos((1_000_000_000 + hz / 2) / hz)
    }

    #[test]
    fn the_resolution_of_coarse_clocks_tells_a_kernels_ticks() {
        for (nanos, hz) in [(10_000_000, 100), (4_000_000, 250), (3_333_333, 300), (1_000_000, 1000)] {
            assert_eq!(hz_of(Span::from_nanos(nanos)), Some(hz));
        }
        for hz in POSSIBLE {
            assert_eq!(hz_of(resolution(u64::from(hz))), Some(hz));
        }
    }

    #[test]
    fn what_is_no_tick_of_a_kernel_is_not_taken_for_one() {
        for nanos in [0, 1, 99_000, 10_000_001, 1_000_000_000, u64::MAX] {
            assert_eq!(hz_of(Span::from_nanos(nanos)), None, "{nanos}");
        }
    }

    #[test]
    fn this_kernel_has_ticks_or_a_sentence_says_what_is_done_without() {
        match kernel_hz() {
            Ok(hz) => assert!(POSSIBLE.contains(&hz), "{hz}"),
            Err(why) => assert!(why.to_string().ends_with("CUBIC is simulated with 250 ticks per second"), "{why}"),
        }
    }
}
