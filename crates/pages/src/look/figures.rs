//! Figures of a look, as they are said.

/// RTTs that differ by no more than this are one number, in milliseconds.
const ONE_RTT: f64 = 0.2;

/// One number of two, if they are hardly apart.
pub(super) fn one([least, most]: [f64; 2]) -> Option<f64> {
    (most - least <= ONE_RTT).then_some(f64::midpoint(least, most))
}

/// A round trip in words.
pub(super) fn round_trip(rtt: Option<[f64; 2]>, digits: usize) -> String {
    match rtt.map(|rtt| (one(rtt), rtt)) {
        Some((Some(rtt), _)) => format!("{rtt:.digits$} ms"),
        // Of a lower bound that says next to nothing.
        Some((None, [least, most])) if least <= 0.0 => format!("at most {most:.digits$} ms"),
        Some((None, [least, most])) => format!("{least:.digits$} to {most:.digits$} ms"),
        None => "not found out".to_owned(),
    }
}

/// A rate in Mbit/s to three digits; down to 0.1 two of them behind the point are enough.
pub(super) fn mbps(rate: f64) -> String {
    match rate {
        rate if rate > 0.0 && rate < 0.1 => {
            // Zeros behind the point before the first other digit.
            let shifted = std::iter::successors(Some(rate * 10.0), |rate| Some(rate * 10.0));
            let zeros = shifted.take(12).take_while(|rate| *rate < 1.0).count();
            format!("{rate:.digits$}", digits = zeros + 3)
        }
        rate if rate < 10.0 => format!("{rate:.2}"),
        rate if rate < 100.0 => format!("{rate:.1}"),
        rate => format!("{rate:.0}"),
    }
}

/// Kilobytes of a bucket of a few packets.
pub(super) fn kilobytes(bytes: Option<u64>) -> String {
    format!("{:.1}", bytes.unwrap_or(0) as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_has_three_digits_however_small() {
        for (rate, said) in [
            (0.0, "0.00"),
            (1e-300, "0.000000000000000"),
            (0.004_631, "0.00463"),
            (0.064, "0.0640"),
            (0.099_96, "0.1000"),
            (0.13, "0.13"),
            (9.99, "9.99"),
            (10.0, "10.0"),
            (99.9, "99.9"),
            (721.5, "722"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(mbps(rate), said, "{rate}");
        }
    }

    #[test]
    fn a_round_trip_of_which_no_least_is_known_is_at_most_so_long() {
        assert_eq!(round_trip(Some([0.0, 2600.74]), 1), "at most 2600.7 ms");
        assert_eq!(round_trip(Some([26.91, 30.13]), 2), "26.91 to 30.13 ms");
        assert_eq!(round_trip(Some([30.0, 30.1]), 2), "30.05 ms");
        assert_eq!(round_trip(None, 2), "not found out");
    }
}
