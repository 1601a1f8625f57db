//! What a race measures: one list, from which tables, files and documentation are made.

use flowstart_units::Bytes;

/// A number measured in every run of a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Measure {
    /// Time of the exit in milliseconds after t = 0.
    ExitMs,
    /// Time of the exit in RTT0 after t = 0.
    ExitRtts,
    /// Window at the exit over the BDP.
    ExitWindow,
    /// M6, E.
    ExitQuality,
    /// neqo's ratio of bytes in flight to window at detection.
    ExitInFlight,
    /// M6, U_min.
    Undershoot,
    /// M2 with x = 0.5, 0.8 and 0.9, in percent.
    TimeTo(u8),
    /// M3, L.
    Deficit,
    /// M3, L_dup.
    Duplicates,
    /// Megabytes read by the receiving application after so many RTT0.
    Delivered(u8),
    /// Completion time of the transfer of this size.
    Completion(Bytes),
    /// M7, its ratio to the ideal.
    Slowdown(Bytes),
    /// Queueing delay of the transfer of this size.
    TransferDelay(Bytes),
    /// M7, the geometric mean of the ratios of all sizes.
    SlowdownMean,
    /// Largest queueing delay.
    DelayMax,
    /// 99th percentile of the queueing delay.
    DelayP99,
    /// Mean queueing delay.
    DelayMean,
    /// M4, O_pk.
    OvershootPeak,
    /// M4, O_ar.
    OvershootArea,
    /// M5, own packets lost that left before the exit.
    LostBefore,
    /// M5, own packets lost that left after the exit.
    LostAfter,
    /// M5, others' packets lost.
    LostOthers,
    /// M5 while the start lasts, of all flows, because of the newcomers.
    StartLost,
    /// Own retransmissions.
    Retransmitted,
    /// Own retransmission timeouts.
    Timeouts,
    /// Own packets that met a congestion mark.
    Marked,
    /// M11.
    Overhead,
    /// M8 at this percentile.
    AddedDelay(u8),
    /// Queueing delay of the newcomers' own packets while they start, above what there was without them, at this percentile.
    StartOwnDelay(u8),
    /// M8 while the start lasts, at this percentile.
    StartOthersDelay(u8),
    /// M8, time with the queue 1 ms above before.
    BusyTime,
    /// M9.
    Harm,
    /// M9, relative to the reference contestant.
    HarmRatio,
    /// M10.
    Convergence,
    /// M10, Jain's index over the last 10 RTT0 of the horizon.
    Jain,
}

/// Which value of a measure is the better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Small values.
    Lower,
    /// Large values.
    Higher,
    /// Neither as such.
    Neither,
}

/// A measure in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasureInfo {
    /// Name in files, with its unit.
    pub name: String,
    /// Heading in tables, without the unit.
    pub heading: String,
    /// Unit, empty for plain numbers.
    pub unit: &'static str,
    /// Digits after the point in tables.
    pub digits: u8,
    /// Which value is better.
    pub better: Better,
    /// What is measured, where, and the formula.
    pub help: String,
}

/// Levels of M2 in percent.
pub const TIME_TO_LEVELS: [u8; 3] = [50, 80, 90];
/// Round trips after which delivered bytes are reported.
pub const DELIVERED_RTTS: [u8; 3] = [5, 10, 20];
/// Percentiles of M8.
pub const ADDED_PERCENTILES: [u8; 4] = [50, 95, 99, 100];
/// Percentiles of the delay that newcomers add while they start.
pub const START_PERCENTILES: [u8; 2] = [99, 100];

impl Measure {
    /// All measures of a race with transfers of `sizes`; those that need flows that were there before only if there are any.
    #[must_use]
    pub fn all(sizes: &[Bytes], background: bool) -> Vec<Self> {
        let mut all = vec![
            Self::ExitMs,
            Self::ExitRtts,
            Self::ExitWindow,
            Self::ExitQuality,
            Self::ExitInFlight,
            Self::Undershoot,
        ];
        all.extend(TIME_TO_LEVELS.map(Self::TimeTo));
        all.extend([Self::Deficit, Self::Duplicates]);
        all.extend(DELIVERED_RTTS.map(Self::Delivered));
        all.extend(sizes.iter().flat_map(|size| [Self::Completion(*size), Self::Slowdown(*size)]));
        if !sizes.is_empty() {
            all.push(Self::SlowdownMean);
        }
        all.extend(sizes.iter().map(|size| Self::TransferDelay(*size)));
        all.extend([Self::DelayMax, Self::DelayP99, Self::DelayMean, Self::OvershootPeak, Self::OvershootArea]);
        all.extend(START_PERCENTILES.map(Self::StartOwnDelay));
        all.extend([Self::LostBefore, Self::LostAfter, Self::LostOthers, Self::StartLost]);
        all.extend([Self::Retransmitted, Self::Timeouts, Self::Marked, Self::Overhead]);
        if background {
            all.extend(START_PERCENTILES.map(Self::StartOthersDelay));
            all.extend(ADDED_PERCENTILES.map(Self::AddedDelay));
            all.extend([Self::BusyTime, Self::Harm, Self::HarmRatio, Self::Convergence]);
        }
        all.push(Self::Jain);
        all
    }

    /// The measure in words.
    #[must_use]
    pub fn info(self) -> MeasureInfo {
        use Better::{Higher, Lower, Neither};
        let info = |name: &str, heading: &str, unit, digits, better, help: &str| MeasureInfo {
            name: name.to_owned(),
            heading: heading.to_owned(),
            unit,
            digits,
            better,
            help: help.to_owned(),
        };
        match self {
            Self::ExitMs => info(
                "exit_ms",
                "exit",
                "ms",
                1,
                Neither,
                "When the start ended, after the first data bit of the new flow reached the bottleneck's queue (t = 0).",
            ),
            Self::ExitRtts => info("exit_rtts", "exit", "RTT", 1, Neither, "The same in base round-trip times (RTT0)."),
            Self::ExitWindow => info(
                "exit_window_bdp",
                "window / BDP",
                "",
                2,
                Neither,
                "Congestion window in wire bytes when the start ended, before the reduction a loss or mark brings, over B_f = C_f RTT0 \
                 (neqo: slow_start_exit_detection_cwnd over the BDP).",
            ),
            Self::ExitQuality => info(
                "exit_quality",
                "E",
                "",
                2,
                Neither,
                "M6: log2(window at exit / B_f); 0 is exact, -1 half of it, 1 twice.",
            ),
            Self::ExitInFlight => info(
                "exit_in_flight_per_window",
                "in flight / window",
                "",
                2,
                Neither,
                "Packets in flight over window when the start ended (neqo: slow_start_exit_bytes_in_flight / slow_start_exit_detection_cwnd).",
            ),
            Self::Undershoot => info(
                "undershoot",
                "U min",
                "",
                2,
                Higher,
                "M6: smallest utilisation of any RTT0 that lies within the 10 RTT0 after the exit.",
            ),
            Self::TimeTo(percent) => info(
                &format!("time_to_{percent}_percent_rtts"),
                &format!("to {percent} %"),
                "RTT",
                1,
                Lower,
                &format!(
                    "M2: smallest t in RTT0 from which U(t) = (egress(t) - egress(t - RTT0)) / (C_f RTT0) stays at {percent} % or more \
                          for 2 RTT0; beyond the horizon counts as the horizon."
                ),
            ),
            Self::Deficit => info(
                "deficit_bdp",
                "deficit",
                "BDP",
                2,
                Lower,
                "M3: L = (1/B_f) integral over the horizon of max(0, C_f - e(t)) dt, e = egress rate over RTT0/4: data not carried although \
                 there was room (quicly compares starts by the integral of delivered bytes).",
            ),
            Self::Duplicates => info(
                "duplicates_bdp",
                "duplicates",
                "BDP",
                2,
                Lower,
                "M3: L_dup, bytes that left the bottleneck a second time, in BDP.",
            ),
            Self::Delivered(rtts) => info(
                &format!("delivered_{rtts}_rtts_mb"),
                &format!("after {rtts} RTT"),
                "MB",
                3,
                Higher,
                &format!("Stream bytes the receiving application had read by t = {rtts} RTT0."),
            ),
            Self::Completion(size) => info(
                &format!("completion_{}_ms", compact(size)),
                &format!("{size}"),
                "ms",
                1,
                Lower,
                &format!(
                    "M7: completion time of a transfer of {size} in a run of its own: from the first bit sent to the last byte \
                          delivered in order."
                ),
            ),
            Self::Slowdown(size) => info(
                &format!("slowdown_{}", compact(size)),
                &format!("{size} / ideal"),
                "",
                2,
                Lower,
                "M7: completion time over the ideal RTT0/2 + (bytes on the wire) / C.",
            ),
            Self::TransferDelay(size) => info(
                &format!("queue_delay_p99_{}_ms", compact(size)),
                &format!("{size} P99 queue"),
                "ms",
                2,
                Lower,
                &format!(
                    "99th percentile of the queueing delay at the bottleneck of the packets of a transfer of {size} in a run of its own, \
                          what other flows cause included."
                ),
            ),
            Self::SlowdownMean => info(
                "slowdown_geometric_mean",
                "mean / ideal",
                "",
                2,
                Lower,
                "M7: geometric mean of the ratios of all sizes.",
            ),
            Self::DelayMax => info(
                "delay_max_ms",
                "max",
                "ms",
                2,
                Lower,
                "Longest wait of a data packet at the bottleneck until its transmission began, within the horizon, all flows.",
            ),
            Self::DelayP99 => {
                info("delay_p99_ms", "P99", "ms", 2, Lower, "99th percentile (nearest rank) of that wait.")
            }
            Self::DelayMean => info("delay_mean_ms", "mean", "ms", 2, Lower, "Mean of that wait."),
            Self::OvershootPeak => info(
                "overshoot_peak_ms",
                "overshoot",
                "ms",
                2,
                Lower,
                "M4: O_pk, largest queueing delay within the horizon minus the mean over the 10 RTT0 before t = 0.",
            ),
            Self::OvershootArea => info(
                "overshoot_area_rtt2",
                "overshoot area",
                "RTT^2",
                3,
                Lower,
                "M4: O_ar, integral over the horizon of the queueing delay above that mean, over RTT0^2.",
            ),
            Self::LostBefore => info(
                "lost_before_exit",
                "lost before exit",
                "",
                0,
                Lower,
                "M5: the new flow's packets dropped within the horizon that were sent before the start ended.",
            ),
            Self::LostAfter => info(
                "lost_after_exit",
                "after",
                "",
                0,
                Lower,
                "M5: its packets dropped within the horizon that were sent later.",
            ),
            Self::LostOthers => info(
                "lost_others",
                "lost, others",
                "",
                0,
                Lower,
                "M5: packets of the other flows dropped within the horizon.",
            ),
            Self::StartLost => info(
                "start_lost",
                "lost in the start",
                "",
                0,
                Lower,
                "M5: packets of all flows that the bottleneck's queue dropped (not those a loss process took) until one RTT0 after the \
                 start's end, minus those dropped without the newcomer (paired runs, same seed).",
            ),
            Self::Retransmitted => info(
                "retransmitted",
                "retransmitted",
                "",
                0,
                Lower,
                "M5: retransmissions of the new flow within the horizon.",
            ),
            Self::Timeouts => info(
                "timeouts",
                "timeouts",
                "",
                0,
                Lower,
                "M5: retransmission timeouts of the new flow in the whole run.",
            ),
            Self::Marked => info(
                "marked",
                "marked",
                "",
                0,
                Neither,
                "Packets of the new flow that left the bottleneck with a congestion mark within the horizon.",
            ),
            Self::Overhead => info(
                "overhead_percent",
                "overhead",
                "%",
                2,
                Lower,
                "M11: payload bytes sent within the horizon over those sent for the first time, minus 1 (which for a complete transfer is bytes sent \
                 over bytes delivered, minus 1).",
            ),
            Self::AddedDelay(percentile) => info(
                &format!("added_delay_p{percentile}_ms"),
                &format!("added P{percentile}"),
                "ms",
                2,
                Lower,
                &format!(
                    "M8: {percentile}th percentile of the queueing delay of the other flows' packets within the horizon, minus the same \
                          without the newcomer (paired runs, same seed)."
                ),
            ),
            Self::StartOwnDelay(percentile) => info(
                &format!("start_own_delay_p{percentile}_ms"),
                &format!("own P{percentile} in the start"),
                "ms",
                2,
                Lower,
                &format!(
                    "{percentile}th percentile of the queueing delay of the new flow's own packets that arrive at the bottleneck until one RTT0 after the \
                          start's end; with others there, minus that of the others' packets without the newcomer (paired runs, same seed)."
                ),
            ),
            Self::StartOthersDelay(percentile) => info(
                &format!("start_others_delay_p{percentile}_ms"),
                &format!("others' P{percentile} in the start"),
                "ms",
                2,
                Lower,
                &format!(
                    "{percentile}th percentile of the queueing delay of the others' packets that arrive at the bottleneck until one RTT0 after the new \
                          flow's start ended, minus that without the newcomer (paired runs, same seed)."
                ),
            ),
            Self::BusyTime => info(
                "busy_time_ms",
                "queue > +1 ms",
                "ms",
                0,
                Lower,
                "M8: time within the horizon during which the queue was more than 1 ms above its mean before t = 0.",
            ),
            Self::Harm => info(
                "harm_percent",
                "harm",
                "%",
                1,
                Lower,
                "M9: max(0, (x_without - x_with - fair loss) / x_without) for the other flows' bytes through the bottleneck over the horizon, \
                 fair loss = x_without - their max-min share.",
            ),
            Self::HarmRatio => info(
                "harm_ratio",
                "harm / ref.",
                "",
                2,
                Lower,
                "M9: harm over that of the reference contestant, CUBIC with Linux's HyStart, if it races.",
            ),
            Self::Convergence => info(
                "convergence_rtts",
                "converged",
                "RTT",
                1,
                Lower,
                "M10: first t in RTT0 from which the newcomer's U(t) stays within 0.8 ... 1.25 for 10 RTT0; missing if none within the horizon.",
            ),
            Self::Jain => info(
                "jain_index",
                "Jain",
                "",
                3,
                Higher,
                "M10: Jain's index of all flows' bytes through the bottleneck over the last 10 RTT0 of the horizon; 1 with a single flow.",
            ),
        }
    }
}

/// A size in a column's name: "100 kB" becomes "100kb".
fn compact(size: Bytes) -> String {
    size.to_string().to_lowercase().replace(' ', "").replace('.', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_say_their_unit() {
        let all = Measure::all(&[Bytes::new(100_000), Bytes::new(1_500_000)], true);
        let mut names: Vec<String> = all.iter().map(|m| m.info().name).collect();
        names.sort();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(names.contains(&"completion_100kb_ms".to_owned()) && names.contains(&"slowdown_1_5mb".to_owned()));
        for measure in all {
            let info = measure.info();
            assert!(
                info.name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'),
                "{}",
                info.name
            );
            let unit = match info.unit {
                "%" => "percent".to_owned(),
                "RTT" => "rtts".to_owned(),
                unit => unit.to_lowercase().replace('^', ""),
            };
            assert!(info.name.ends_with(&unit) || info.name.contains(&unit), "{} {unit}", info.name);
        }
    }

    #[test]
    fn measures_of_harm_need_somebody_to_harm() {
        assert!(!Measure::all(&[], false).contains(&Measure::Harm));
        assert!(Measure::all(&[], true).contains(&Measure::Harm));
    }
}
