//! ACKs that come together: merged by a receiver, held up by a late packet, or by a way back that
//! serves in turns. They say no more than one ACK does.

use alloc::vec::Vec;

use flowstart_control::InvalidConfig;

use super::flight::Measured;
use super::reading::{Point, ReadingRule, read};

/// When ACKs come by a clock: that of what is served in turns on the way back, or of a way back on
/// which ACKs queue. The source of its constants is this project's own measurements.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields, default)
)]
pub struct ClockConfig {
    /// Share of the period by which times between ACKs may miss it, 0 ..= 0.5; default 0.05.
    pub exactness: f64,
    /// ACKs of packets that waited, equally far apart in one chirp, that are no chance, at least 1;
    /// default 2.
    pub alone: u32,
    /// So many of them with those of the chirp before, if they were as far apart, at least 1;
    /// default 3.
    pub together: u32,
}

impl Default for ClockConfig {
    fn default() -> Self {
        Self { exactness: 0.05, alone: 2, together: 3 }
    }
}

impl ClockConfig {
    pub(super) fn validate(&self) -> Result<(), InvalidConfig> {
        let check = InvalidConfig::unless;
        check((0.0..=0.5).contains(&self.exactness), "exactness", "between 0 and 0.5")?;
        check(self.alone >= 1, "alone", "at least 1")?;
        check(self.together >= 1, "together", "at least 1")
    }

    /// True if this time is the period, but for what it may miss.
    fn is_exact(&self, time: f64, period: f64) -> bool {
        (time - period).abs() <= self.exactness * period
    }
}

/// Points whose ACKs came together as one, with the delay of the last: they arrived closer than
/// their packets left times `share`. A queue that grows never brings packets closer together; what
/// holds them back and lets them go at once does. So does a queue that empties, as the first packet
/// of a chirp finds one that the last packets of the one before have left: where the path is known
/// to carry a packet per `gap` ns, ACKs that come as it lets packets go, but for the same share, do
/// not come together.
#[must_use]
pub(super) fn together(points: &[Point], share: f64, gap: Option<u64>) -> Vec<Point> {
    let path = |packets: u32| gap.map_or(f64::INFINITY, |gap| gap as f64 * f64::from(packets));
    let mut joined: Vec<Point> = Vec::with_capacity(points.len());
    for point in points {
        let (gaps, delay) = (point.gaps as f64, point.delay as f64);
        match joined.last_mut() {
            Some(last) if gaps + delay - (last.delay as f64) < gaps.min(path(point.packets)) * share => {
                *last = Point {
                    gaps: last.gaps.saturating_add(point.gaps),
                    packets: last.packets.saturating_add(point.packets),
                    delay: point.delay,
                };
            }
            _ => joined.push(*point),
        }
    }
    joined
}

/// Mean square in ns² of how much longer packets waited than the last of those whose ACKs came with
/// theirs: what joining the points hides. `joined` are these `points`, joined.
#[must_use]
pub(super) fn hidden(points: &[Point], joined: &[Point]) -> f64 {
    let mut squares = 0.0;
    let mut rest = points.iter();
    for batch in joined {
        let mut packets = batch.packets;
        while packets > 0 {
            let Some(point) = rest.next() else { break };
            packets = packets.saturating_sub(point.packets.max(1));
            let longer = point.delay.abs_diff(batch.delay) as f64;
            squares += longer * longer;
        }
    }
    squares / points.len().max(1) as f64
}

/// The longest part of a chirp without a step: on a route that changes in mid-chirp, or behind a
/// burst of others', delays jump once by what says nothing of a queue. A step is a change from one
/// point to the next that is more than `share` of all changes, and more than `gaps` of the chirp's
/// mean gaps: packets that queue behind each other wait longer step by step.
#[must_use]
pub(super) fn without_step(points: &[Point], share: f64, gaps: f64) -> &[Point] {
    let mut part = points;
    while part.len() > 1 {
        let changes = || part.windows(2).map(|pair| pair[1].delay.abs_diff(pair[0].delay));
        let (time, packets) = part[1..]
            .iter()
            .fold((0.0, 0.0), |(time, packets), point| (time + point.gaps as f64, packets + f64::from(point.packets)));
        let (at, largest) = (1..).zip(changes()).max_by_key(|(_, change)| *change).unwrap_or((1, 0));
        let all: u64 = changes().fold(0, u64::saturating_add);
        if largest as f64 <= share * all as f64 || largest as f64 * packets <= gaps * time {
            break;
        }
        let (before, after) = part.split_at(at);
        part = if before.len() > after.len() { before } else { after };
    }
    part
}

/// Time in ns between the ACKs of two points.
fn interval(before: Point, after: Point) -> f64 {
    after.gaps.saturating_add(after.delay).saturating_sub(before.delay) as f64
}

/// The period in ns of the clock by which the ACKs of these points came, if they did: all times
/// between two are multiples of the shortest, whatever number of packets came with it. (Where a
/// queue spaces them, as many packets take as long.)
#[must_use]
fn tick(points: &[Point], clock: ClockConfig) -> Option<u64> {
    /// Fewest points beside the first.
    const FEWEST: usize = 3;
    let times = points.windows(2).map(|pair| (interval(pair[0], pair[1]), pair[1].packets));
    if points.len() <= FEWEST {
        return None;
    }
    let shortest = times.clone().map(|(time, _)| time).fold(f64::INFINITY, f64::min);
    let ticks = |time: f64| libm::round(time / shortest);
    let within = |time: f64| (time - ticks(time) * shortest).abs() <= clock.exactness * shortest;
    if shortest < 1.0 || !times.clone().all(|(time, _)| within(time)) {
        return None;
    }
    let of_one = || times.clone().filter(|(time, _)| ticks(*time) <= 1.0).map(|(_, packets)| packets);
    let (fewest, most) = (of_one().min()?, of_one().max()?);
    (most / 2 >= fewest).then_some(shortest as u64)
}

/// ACKs of packets that waited longer and longer.
#[derive(Clone, Copy, Debug)]
struct Spaced {
    /// How far apart they came, in ns.
    time: f64,
    /// How many they were.
    count: usize,
    /// Of how many packets each was.
    fewest: u32,
    most: u32,
}

/// The ACKs of the packets behind the knee. `None` if there is none, or they came at different
/// times.
#[must_use]
fn spaced(points: &[Point], rule: ReadingRule, clock: ClockConfig) -> Option<Spaced> {
    let rule = ReadingRule { min_points: 2, contrast: 1, crowded: f64::INFINITY, ..rule };
    let knee = read(points, rule, 0).knee?;
    let times = || points[knee..].windows(2).map(|pair| (interval(pair[0], pair[1]), pair[1].packets));
    let count = times().count();
    let time = times().map(|(time, _)| time).sum::<f64>() / count.max(1) as f64;
    if time < 1.0 || !times().all(|(one, _)| clock.is_exact(one, time)) {
        return None;
    }
    let packets = || times().map(|(_, packets)| packets);
    Some(Spaced { time, count, fewest: packets().min()?, most: packets().max()? })
}

/// What is known of batches of ACKs on a path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Batches {
    clock: ClockConfig,
    /// Those of the last chirps that came equally far apart.
    spaced: Option<Spaced>,
    /// Packets per batch, and time between two in ns, if they were too few in the last chirp.
    few: Option<(f64, f64)>,
    /// Period in ns of the clock by which ACKs come; zero if none is known.
    tick: u64,
}

impl Batches {
    pub(super) fn new(clock: ClockConfig) -> Self {
        Self { clock, spaced: None, few: None, tick: 0 }
    }

    /// Takes in the `points` of a chirp, joined, of which `enough` are to come. Returns true if
    /// they tell more than a clock: `per_tick` packets on average between its ticks, and as many
    /// ticks as are points of `least`.
    pub(super) fn take(
        &mut self,
        chirp: &Measured,
        points: &[Point],
        enough: usize,
        least: usize,
        per_tick: u32,
    ) -> bool {
        let packets = chirp.gaps().len();
        let length = chirp.gaps().iter().skip(1).fold(0_u64, |sum, gap| sum.saturating_add(*gap));
        let batches = points.len().max(1) as f64;
        self.few = (points.len() < enough).then(|| (packets as f64 / batches, length as f64 / batches));
        self.tick = self.tick.max(tick(points, self.clock).unwrap_or(0));
        let (tick, length) = (self.tick as f64, length as f64);
        packets as f64 * tick >= f64::from(per_tick) * length && length >= tick * least as f64 || self.tick == 0
    }

    /// A queue on the way there takes twice as long for twice as many packets. A way back on which
    /// ACKs queue takes as long for each, of however many packets: that is a clock as well.
    pub(super) fn tell_spacing(&mut self, points: &[Point], rule: ReadingRule) {
        let clock = self.clock;
        let Some(mut now) = spaced(points, rule, clock) else { return };
        let alone = now.count;
        if let Some(before) = self.spaced
            && clock.is_exact(now.time, before.time)
        {
            now.count += before.count;
            (now.fewest, now.most) = (now.fewest.min(before.fewest), now.most.max(before.most));
        }
        let enough = alone >= clock.alone as usize && now.count >= clock.together as usize;
        if enough && now.most / 2 >= now.fewest {
            self.tick = self.tick.max(now.time as u64);
        }
        self.spaced = Some(now);
    }

    /// Packets around `gap` ns that the next chirp must have for `enough` points; zero if the usual
    /// ones are enough.
    pub(super) fn packets(&self, gap: u64, enough: usize) -> f64 {
        self.few
            .map_or(0.0, |(packets, time)| enough as f64 * packets.max(time.max(self.tick as f64) / gap.max(1) as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::super::AdaptiveChirpingConfig;
    use super::super::geometry::{Geometry, RATIO_ONE};
    use super::*;
    use proptest::prelude::*;

    /// Points of packets that left `gap` ns apart and whose ACKs arrived at these times in ns.
    fn points(gap: u64, arrivals: &[u64]) -> Vec<Point> {
        (0..)
            .zip(arrivals)
            .map(|(k, arrival)| Point { gaps: if k == 0 { 0 } else { gap }, packets: 1, delay: arrival - gap * k })
            .collect()
    }

    /// A chirp of 16 around 200 µs over a FIFO with this service time in ns.
    fn queued(service: u64) -> Vec<Point> {
        let chirp = Geometry::new(16, 200_000, 2 * RATIO_ONE);
        let mut queue = 0_u64;
        (0..16)
            .map(|k| {
                let gaps = if k == 0 { 0 } else { chirp.gap(k) };
                queue = if k == 0 { 0 } else { (queue + service).saturating_sub(gaps) };
                Point { gaps, packets: 1, delay: 1_000_000 + queue }
            })
            .collect()
    }

    /// Two bunches of four, each a microsecond between its packets, of packets that left 100 us
    /// apart.
    #[test]
    fn acks_that_come_together_are_one_point_at_the_time_of_the_last() {
        let arrivals = [400, 401, 402, 403, 800, 801, 802, 803].map(|micros| micros * 1000);
        assert_eq!(
            together(&points(100_000, &arrivals), 0.5, None),
            [Point { gaps: 300_000, packets: 4, delay: 103_000 }, Point { gaps: 400_000, packets: 4, delay: 103_000 }]
        );
        // An empty path and a full queue bring no packets together.
        for service in [10_000, 210_000, 2_400_000] {
            assert_eq!(together(&queued(service), 0.5, None), queued(service));
        }
    }

    /// The first packet waits behind the chirp before, and the second leaves the queue right behind
    /// it.
    #[test]
    fn what_leaves_a_queue_that_empties_does_not_come_together() {
        let first = Point { gaps: 0, packets: 1, delay: 600_000 };
        let rest =
            [(800_000, 120_000), (750_000, 0), (700_000, 0)].map(|(gaps, delay)| Point { gaps, packets: 1, delay });
        let points: Vec<Point> = core::iter::once(first).chain(rest).collect();
        assert_eq!(together(&points, 0.5, None).len(), 3);
        assert_eq!(together(&points, 0.5, Some(320_000)), points);
        let at_once = [Point { gaps: 0, packets: 1, delay: 799_000 }, rest[1]];
        assert_eq!(together(&at_once, 0.5, Some(320_000)).len(), 1);
    }

    /// The first three of each bunch waited 300, 200 and 100 us longer than its last.
    #[test]
    fn joining_hides_how_much_longer_packets_waited_than_the_last_of_their_bunch() {
        let arrivals = [400, 400, 400, 400, 800, 800, 800, 800].map(|micros| micros * 1000);
        let bunches = points(100_000, &arrivals);
        let squares = 2.0 * (9.0 + 4.0 + 1.0) * 1e10;
        assert_eq!(hidden(&bunches, &together(&bunches, 0.5, None)), squares / 8.0);
        for service in [10_000, 210_000, 2_400_000] {
            assert_eq!(hidden(&queued(service), &together(&queued(service), 0.5, None)), 0.0);
        }
        assert_eq!(hidden(&[], &[]), 0.0);
    }

    /// Delays of packets that left 200 us apart, in us.
    fn delays<const N: usize>(micros: [u64; N]) -> Vec<Point> {
        micros.map(|delay| Point { gaps: 200_000, packets: 1, delay: delay * 1000 }).to_vec()
    }

    #[test]
    fn a_chirp_is_cut_where_the_route_changes_and_the_longer_part_is_read() {
        // 15 ms longer from the second packet on, and shorter again.
        let longer = delays([0, 15_000, 15_000, 15_100, 15_000, 15_200]);
        assert_eq!(without_step(&longer, 0.5, 4.0), &longer[1..]);
        let shorter = delays([15_500, 15_400, 0, 0, 100, 200, 300]);
        assert_eq!(without_step(&shorter, 0.5, 4.0), &shorter[2..]);
        let there_and_back = delays([0, 0, 0, 0, 9000, 9000, 0]);
        assert_eq!(without_step(&there_and_back, 0.4, 4.0), &there_and_back[..4]);
        // Queues, of a path slower and faster than the chirp, and jitter.
        for service in [10_000, 210_000, 2_400_000] {
            assert_eq!(without_step(&queued(service), 0.5, 4.0), queued(service));
        }
        for whole in [delays([0, 0, 0, 0, 0, 0, 29, 89]), delays([900, 10, 1500, 40, 2000, 300, 1200, 0])] {
            assert_eq!(without_step(&whole, 0.5, 4.0), whole);
        }
    }

    #[test]
    fn a_clock_is_told_from_a_queue_by_different_numbers_of_packets_in_the_same_time() {
        // A tick every 2 ms: one, two, four packets with each.
        let ticks = |packets: [u32; 5]| {
            let mut before = 0;
            packets.map(|packets| {
                let gaps = u64::from(packets) * 400_000;
                let delay = before + 2_000_000 - gaps;
                before = delay;
                Point { gaps, packets, delay }
            })
        };
        assert_eq!(tick(&ticks([1, 1, 2, 2, 4]), ClockConfig::default()), Some(2_000_000));
        // As many in each could be the spacing of the path.
        assert_eq!(tick(&ticks([2, 2, 2, 2, 2]), ClockConfig::default()), None);
        for service in [10_000, 210_000, 2_400_000] {
            assert_eq!(tick(&queued(service), ClockConfig::default()), None, "{service}");
        }
    }

    /// Delayed ACKs: the first chirp has one for each packet, the second for every other.
    #[test]
    fn a_way_back_on_which_acks_queue_is_told_from_a_queue_on_the_way_there() {
        let chirp = |average: u64, every: u32, forth: u64, back: u64| -> Vec<Point> {
            let shape = Geometry::new(16, average, 2 * RATIO_ONE);
            let (mut sent, mut received, mut arrived, mut before) = (0_u64, 0_u64, 0_u64, (0, 0));
            let mut points = Vec::new();
            for k in 0..16_u32 {
                sent += if k == 0 { 0 } else { shape.gap(k) };
                received = received.max(sent) + forth;
                if (k + 1) % every == 0 {
                    arrived = arrived.max(received) + back;
                    points.push(Point { gaps: sent - before.0, packets: k + 1 - before.1, delay: arrived - sent });
                    before = (sent, k + 1);
                }
            }
            points
        };
        let tick = |chirps: &[Vec<Point>]| {
            let mut batches = Batches::new(ClockConfig::default());
            let rule = AdaptiveChirpingConfig::default().reading();
            chirps.iter().for_each(|points| batches.tell_spacing(points, rule));
            batches.tick
        };
        let both = |forth, back| tick(&[chirp(250_000, 1, forth, back), chirp(125_000, 2, forth, back)]);
        assert_eq!(both(10_000, 200_000), 200_000);
        assert_eq!(both(200_000, 10_000), 0);
        assert_eq!(both(100_000, 10_000), 0);
        // ACKs as far apart by less than a twentieth, and by more.
        let other = |back| tick(&[chirp(250_000, 1, 10_000, 200_000), chirp(125_000, 2, 10_000, back)]);
        assert_eq!(other(208_000), 208_000);
        assert_eq!(other(212_000), 0);
        // Chirps as fast as the path, in each of which a single ACK waited.
        let lone = |packets: u32| -> Vec<Point> {
            let gaps = [400_000, 300_000, 100_000];
            let delays = [0, 0, 20_000];
            gaps.into_iter().zip(delays).map(|(gaps, delay)| Point { gaps, packets, delay }).collect()
        };
        assert_eq!(tick(&[lone(1), lone(2), lone(2), lone(2)]), 0);
        // Two ACKs of one chirp that are no chance but for their number, and two as far apart as
        // another in the mean.
        let two = |packets: [u32; 2], delay: u64| -> Vec<Point> {
            let ends = [(80_000, delay), (60_000, 100_000)].into_iter().zip(packets);
            let ends = ends.map(|((gaps, delay), packets)| Point { gaps, packets, delay });
            [400_000, 300_000].map(|gaps| Point { gaps, packets: 1, delay: 0 }).into_iter().chain(ends).collect()
        };
        assert_eq!(tick(&[two([1, 2], 40_000)]), 0);
        assert_eq!(tick(&[lone(1), two([2, 2], 40_000)]), 120_000);
        assert_eq!(tick(&[lone(1), two([2, 2], 20_000)]), 0);
    }

    proptest! {
        #[test]
        fn joining_keeps_packets_and_times(
            raw in prop::collection::vec((any::<u32>(), 1_u32..100, any::<u32>()), 0..64),
            share in 0.0_f64..1.0,
        ) {
            let points: Vec<Point> = raw
                .into_iter()
                .map(|(gaps, packets, delay)| Point { gaps: u64::from(gaps), packets, delay: u64::from(delay) })
                .collect();
            let joined = together(&points, share, None);
            let sum = |points: &[Point]| {
                points.iter().fold((0, 0), |(time, n), point| (time + point.gaps, n + u64::from(point.packets)))
            };
            prop_assert_eq!(sum(&points), sum(&joined));
            prop_assert_eq!(points.last().map(|point| point.delay), joined.last().map(|point| point.delay));
            // Whatever they say, they do not panic.
            let _ = tick(&points, ClockConfig::default());
            prop_assert!(hidden(&points, &joined) >= 0.0);
        }
    }
}
