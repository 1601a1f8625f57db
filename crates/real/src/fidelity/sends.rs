//! How late the sender's timers were in a run of the kernel, for the simulated sender.

use flowstart_emulator::traffic::Sample;
use flowstart_units::{Bytes, Rate, Span, Time};

/// A window that has less room than this, in packets, may be what a burst waited for, and an ACK
/// what released it: twice the longest burst that the paths here see.
const ROOM: u32 = 24;
/// Samples before and after a burst that its pacing rate is looked for in.
const AROUND: usize = 2;
/// Bursts before and after one that are looked at for a schedule that was reckoned too early.
const NEAR: usize = 8;

/// When each burst of a paced flow was due by its pacing, and how much later it left. `sent` are
/// the times at which the packets left the host, with their payload; of the samples of the kernel's
/// state the pacing rate and the window count.
///
/// The arithmetic is Linux's (`tcp_update_skb_after_send`): a burst is due as long after the one
/// before as its bytes take at the pacing rate, less what that one was late by, but at most half of
/// it. So what leaves within that half belongs to one burst. The rate is known once in a
/// millisecond. Of those around the least counts, and what left before it was due was due then; for
/// what belongs to a burst the largest, or a burst might never end. Bursts that may have waited for
/// the window are left out, and what left after the last sample. Where a burst was taken for due
/// too early all that follow seem to be late by as much, for the schedule is made of what it was
/// before: what a burst and its neighbours are late by in common is taken off.
pub(super) fn late_sends(sent: &[(Time, u32)], samples: &[Sample]) -> Vec<(Time, Span)> {
    let (mut list, mut rest, mut next) = (Vec::new(), sent, 0);
    // When the next burst is due.
    let mut due = None::<Time>;
    let over = samples.last().map_or(Time::ZERO, |last| last.at);
    while let Some((left, _)) = rest.first().copied().filter(|(left, _)| *left <= over) {
        while samples.get(next).is_some_and(|sample| sample.at <= left) {
            next += 1;
        }
        let around = &samples[next.saturating_sub(AROUND)..(next + AROUND).min(samples.len())];
        let rates = || around.iter().filter_map(|sample| sample.info.pacing_rate).filter(|rate| *rate > 0);
        let before = next.checked_sub(1).map(|last| samples[last].info);
        let (Some(least), Some(most), Some(before)) = (rates().min(), rates().max(), before) else {
            (due, rest) = (None, &rest[1..]);
            continue;
        };
        let (bytes, packets) = burst(rest, most);
        let gap = taken(bytes, least);
        rest = &rest[packets..];
        let room = before.unacked.saturating_add(ROOM) < before.cwnd;
        let late = due.filter(|_| room).and_then(|due| left.checked_since(due)).unwrap_or(Span::ZERO);
        if room && due.is_some() {
            list.push((left - late, late));
        }
        due = Some(left + gap - late.min(gap / 2));
    }
    without_common(&list)
}

/// Without what each is late by in common with those near it.
fn without_common(list: &[(Time, Span)]) -> Vec<(Time, Span)> {
    let of = |(place, (due, late)): (usize, &(Time, Span))| {
        let near = &list[place.saturating_sub(NEAR)..(place + NEAR + 1).min(list.len())];
        let common = near.iter().map(|(_, late)| *late).min().unwrap_or(Span::ZERO);
        (*due + common, *late - common)
    };
    list.iter().enumerate().map(of).collect()
}

/// Bytes and packets of the burst that begins here, at this rate in bytes per second.
fn burst(sent: &[(Time, u32)], rate: u64) -> (u64, usize) {
    let (mut bytes, mut packets) = (0, 0);
    for (at, payload) in sent {
        if packets > 0 && at.since(sent[0].0) > taken(bytes, rate) / 2 {
            break;
        }
        packets += 1;
        bytes += u64::from(*payload);
    }
    (bytes, packets)
}

/// How long so many bytes take at a rate in bytes per second.
fn taken(bytes: u64, rate: u64) -> Span {
    Rate::from_bps(rate.saturating_mul(8)).transmission_time(Bytes::new(bytes))
}

#[cfg(test)]
mod tests {
    use flowstart_emulator::traffic::TcpInfo;

    use super::*;

    fn us(us: u64) -> Time {
        Time::ZERO + Span::from_micros(us)
    }

    /// Every millisecond: bytes per second, packets in flight and window.
    fn samples(rate: u64, unacked: u32, cwnd: u32) -> Vec<Sample> {
        let info = TcpInfo { pacing_rate: Some(rate), unacked, cwnd, ..TcpInfo::default() };
        (0..20).map(|ms| Sample { at: us(ms * 1_000), info, delivered: 0 }).collect()
    }

    /// Two packets of 1000 bytes at each of these times, in us, at 2 MB/s: a burst takes 1 ms.
    fn late(bursts: &[u64], samples: &[Sample]) -> Vec<(u64, u64)> {
        let sent: Vec<_> = bursts.iter().flat_map(|at| [(us(*at), 1_000), (us(at + 3), 1_000)]).collect();
        late_sends(&sent, samples).iter().map(|(due, late)| (due.as_nanos() / 1_000, late.as_micros())).collect()
    }

    const RATE: u64 = 2_000_000;

    #[test]
    fn a_burst_is_late_by_what_its_bytes_did_not_take() {
        let samples = samples(RATE, 50, 100);
        // The second is 70 us late and makes up for it, the fourth 600 us and makes up for 500.
        let late = late(&[1_100, 2_170, 3_100, 4_700, 5_230, 6_200], &samples);
        assert_eq!(late, [(2_100, 70), (3_100, 0), (4_100, 600), (5_200, 30), (6_200, 0)]);
    }

    #[test]
    fn what_leaves_within_half_of_its_time_is_one_burst() {
        let late = |sent: &[u64]| {
            let sent: Vec<_> = sent.iter().map(|at| (us(*at), 1_000)).collect();
            late_sends(&sent, &samples(RATE, 50, 100))
                .iter()
                .map(|(due, late)| (due.as_nanos() / 1_000, late.as_micros()))
                .collect::<Vec<_>>()
        };
        // The first two take 1 ms, and the third with them 1.5 ms; one that comes later is the
        // next, early as it is.
        assert_eq!(late(&[1_100, 1_101, 1_600, 2_600, 3_110]), [(2_600, 0), (3_100, 10)]);
        assert_eq!(late(&[1_100, 1_101, 1_601, 2_120]), [(1_601, 0), (2_101, 19)]);
    }

    #[test]
    fn what_may_have_waited_for_the_window_is_not_late() {
        let bursts = [1_100, 2_170, 3_100];
        assert_eq!(late(&bursts, &samples(RATE, 75, 100)), [(2_100, 70), (3_100, 0)]);
        assert_eq!(late(&bursts, &samples(RATE, 76, 100)), []);
        assert_eq!(late(&bursts, &[]), []);
        let unpaced = samples(RATE, 50, 100).into_iter().map(|mut sample| {
            sample.info.pacing_rate = None;
            sample
        });
        assert_eq!(late(&bursts, &unpaced.collect::<Vec<_>>()), []);
    }

    #[test]
    fn where_the_rate_changes_the_least_around_counts_and_nothing_is_early() {
        let mut samples = samples(RATE, 50, 100);
        for sample in &mut samples[4..] {
            sample.info.pacing_rate = Some(RATE / 2);
        }
        // Slower from 3.05 ms on, seen at 4 ms; then what was reckoned with the slower rate is
        // early.
        let late = late(&[1_050, 2_050, 3_050, 5_050, 7_080, 9_050], &samples);
        assert_eq!(late, [(2_050, 0), (3_050, 0), (5_050, 0), (7_050, 30), (9_050, 0)]);
    }

    #[test]
    fn a_schedule_that_was_reckoned_too_early_is_put_right() {
        let us = Span::from_micros;
        let at = |late: u64, place: u64| (Time::ZERO + us(1_000 * place), us(late));
        let row = |late: &[u64]| (0..).zip(late).map(|(place, late)| at(*late, place)).collect::<Vec<_>>();
        // From the twentieth on 400 us of each are none; those near the step are late by what they
        // are.
        let late: Vec<u64> = (0..40).map(|place| if place < 20 { 10 } else { 410 + place % 2 * 50 }).collect();
        let right = without_common(&row(&late));
        assert_eq!(right[5], (Time::ZERO + us(5_010), us(0)));
        assert_eq!([12, 20, 27, 28, 29].map(|place| right[place].1.as_micros()), [0, 400, 450, 0, 50]);
        assert_eq!(right[29].0, Time::ZERO + us(29_410));
        assert_eq!(without_common(&[]), []);
    }

    /// A burst went on for ever when packets came at twice the rate that one of the samples had.
    #[test]
    fn a_burst_ends_where_the_rate_was_low_for_a_moment() {
        let mut samples = samples(RATE, 50, 100);
        samples[3].info.pacing_rate = Some(RATE / 4);
        let bursts: Vec<u64> = (1..15).map(|ms| ms * 1_000 + 50).collect();
        assert_eq!(late(&bursts, &samples).len(), bursts.len() - 1);
    }
}
