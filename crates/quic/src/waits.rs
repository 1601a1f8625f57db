//! How long the other end waited until it acknowledged.
//!
//! An ACK says how long the newest packet that it tells of had been there (ACK Delay, RFC 9000
//! section 19.3). The stack takes that from the RTT before it smooths it, and tells nobody. But the
//! smoothed RTT before and after the ACK, which it does tell, give the RTT back that went in:
//! `after = (7 * before + adjusted) / 8` (RFC 9002 section 5.3). What is missing of the RTT was
//! waited.
//!
//! It does so only where the RTT without the wait is not below the smallest one ever seen with its
//! wait, for an end might say anything. Here that would hide the waits of all packets that met no
//! queue. So once, as data begins, an ACK is counted as one that took no time: nothing is below
//! that, and of the smoothed RTT it is an eighth for a moment, which makes the stack's timeouts
//! longer.

use std::time::Duration;

use flowstart_units::Span;

/// The unit of the delay in an ACK: an exponent of 3, which is the default and what noq sends.
const UNIT: u64 = 8_000;
/// The stack divides by eight and drops the rest.
const DROPPED: u64 = 8;
/// An end waits no longer (max_ack_delay, RFC 9000 section 18.2).
const LONGEST: u64 = 25_000_000;

/// How long the other end waited before an ACK that took `rtt` and changed the smoothed RTT like
/// this. Zero if it does not say, or if what it says makes no sense.
pub(crate) fn waited(rtt: Duration, before: Duration, after: Duration) -> Span {
    let nanos = |duration: Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    let (rtt, before, after) = (nanos(rtt), nanos(before), nanos(after));
    let adjusted = after.saturating_mul(8).saturating_sub(before.saturating_mul(7));
    let waited = rtt.saturating_sub(adjusted);
    // Anything else is no delay of an ACK: the ACK told of nothing new, say.
    let told = waited % UNIT;
    if told >= DROPPED || waited > LONGEST + DROPPED || waited > rtt {
        Span::ZERO
    } else {
        Span::from_nanos(waited - told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the stack smooths (noq-proto 1.4.0, `RttEstimator::update`).
    fn smooth(before: Duration, rtt: Duration, delay: Duration) -> Duration {
        (7 * before + (rtt - delay)) / 8
    }

    #[test]
    fn what_was_waited_comes_out_of_the_smoothed_time_to_the_nanosecond() {
        let mut before = Duration::from_nanos(20_000_003);
        for (n, units) in (0..2000_u64).zip([0, 1, 2, 40, 700, 3125].into_iter().cycle()) {
            let rtt = Duration::from_nanos(30_000_000 + n * 7919);
            let delay = Duration::from_nanos(units * UNIT);
            let after = smooth(before, rtt, delay);
            assert_eq!(waited(rtt, before, after), Span::from_nanos(units * UNIT), "{n}");
            before = after;
        }
    }

    #[test]
    fn what_is_no_delay_counts_for_nothing() {
        let ms = Duration::from_millis;
        // The estimate did not move, it moved for another reason, and more than anybody waits.
        assert_eq!(waited(ms(30), ms(20), ms(20)), Span::from_millis(10), "this looks like one");
        assert_eq!(waited(ms(30), Duration::from_nanos(20_004_321), Duration::from_nanos(20_004_321)), Span::ZERO);
        assert_eq!(waited(ms(90), ms(20), smooth(ms(20), ms(90), ms(40))), Span::ZERO);
        assert_eq!(waited(Duration::ZERO, Duration::MAX, Duration::ZERO), Span::ZERO);
        assert_eq!(waited(ms(5), ms(20), ms(20)), Span::ZERO);
    }
}
