//! Constants of a look, and of what is made of it.

use flowstart_units::Span;

use crate::judging::ReadingConfig;

/// Constants of a look: what is sent, and when. All are this project's own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LookConfig {
    /// Pairs of packets until two of one arrive apart, 1 ..= 10; default 3: ACKs that are merged,
    /// and losses, hide one or two of them.
    pub pairs: u32,
    /// A pair further apart than this is followed by another, for jitter may have parted them;
    /// default 5 ms: full packets of 2.4 Mbit/s.
    pub slow: Span,
    /// Packets of the train that follows a pair, 8 or more; default 16. Whoever lets fewer pass at
    /// a higher rate is found out before longer trains build a long queue.
    pub settling: u32,
    /// A train has so many packets at the least where it is to tell a rate, and there is none after
    /// a pair where fewer fit; default 8: two halves of four gaps.
    pub least_settling: u32,
    /// Queue that a train of the detector may build; default 45 ms: 50 ms are promised.
    pub detection_queue: Span,
    /// ... of which behind a token bucket this share, 0 ..= 1; default 0.7: while it is not quite
    /// empty more passes than was planned.
    pub behind: f64,
    /// Time for detection; default 1.2 s, most of the 2 s that a look may send for.
    pub detection: Span,
    /// Packets of the detector's longest train; default 96. What a look may send is little: there
    /// is none left for long trains, nor for the proof that a fast rate persists, which is not
    /// asked for. A burst of a token bucket is looked for by the trains behind.
    pub detection_train: u32,
    /// Batches of the detector's trains without an answer until it is unknown; default 6: more do
    /// not fit into the time and the bytes.
    pub detection_batches: u32,
    /// Where fewer packets than this may wait the detector sends a single lone packet, for every
    /// packet is acknowledged; default 16.
    pub lone_room: u32,
    /// ... and where fewer than this may, there is no detector; default 3: less queue is jitter.
    pub detection_room: u32,
    /// Packets of a detector's train at the least; default 6.
    pub least_detection_train: u32,
    /// Queue that a train for the capacity may build; default 25 ms, half of what is promised.
    pub queue: Span,
    /// Packets of these trains, 2 or more; default 24.
    pub longest: u32,
    /// ... or as many as a bottleneck takes this time for, up to `most`, if that is more; default
    /// 800 us. Where packets take microseconds hosts read several ACKs at once.
    pub long: Span,
    /// Default 64: 96 kB, of which three fit into what is left.
    pub most: u32,
    /// Most of these trains in one group; default 8.
    pub trains: u32,
    /// Trains in all at the least, before agreement ends a look; default 3: two may agree by
    /// chance, and of three one may be held up.
    pub least_trains: u32,
    /// ... in so many groups; default 2: what holds up a whole group does so once.
    pub least_groups: u32,
    /// Trains go on for so long, the more to empty a token bucket, even if all agree on a rate;
    /// default 200 ms. Two groups there are at least.
    pub time: Span,
    /// ... and so long if they do not agree, if there is data; default 900 ms.
    pub longest_time: Span,
    /// Behind a token bucket a path may be so many times slower than trains say, 1 or more; default
    /// 10. What a bucket was not seen to let pass must not queue for long there.
    pub slowdown: f64,
    /// Queue that it builds if the path is that much slower; default 40 ms. A train has eight
    /// packets all the same.
    pub flight_queue: Span,
    /// Bytes that the detector may send; default 290 kB. What is left is for trains: without them
    /// there is no capacity.
    pub detection_bytes: u64,
    /// ... and this share of all that a look may cost, with what will have to be sent again;
    /// default 0.7.
    pub detection_share: f64,
    /// Everything that both ends send for a look, with all headers, handshakes, ACKs and repairs,
    /// is at most so many times the data that was asked for; default 500/430: for 430 kB each way a
    /// megabyte.
    pub costs: f64,
    /// ... of which so many bytes are kept for what both ends say when all has arrived, and for
    /// what is lost on its way to this one; default 6 kB.
    pub reserve: u64,
    /// ... and of so many bytes the square of the share of packets that is lost; default 800 kB:
    /// where many are, timeouts send the same again and again, and what is said at the beginning
    /// and at the end, too.
    pub lossy: u64,
    /// What will be lost is reckoned as if so many packets had arrived besides: what the first few
    /// say is chance; default 20.
    pub prior: f64,
    /// ... and no more than this share of what is sent again is taken for lost again; default 0.9.
    pub most_lost: f64,
    /// This share of the cost may be spent whatever is lost, for what came in another order counts
    /// as lost, too; default 0.3.
    pub sure: f64,
    /// Trains are so many times the time apart that the bottleneck takes for one; default 2: as
    /// long again as the queue needs to drain.
    pub apart: f64,
    /// A lone packet leaves so much later than what is behind it is gone; default 500 us: where
    /// packets take microseconds, hosts take longer.
    pub aside: Span,
    /// The end of a train confirms a rate that differs by no more than this share; default 0.25:
    /// half of what parts a bucket from what fills it (`slower`).
    pub confirms: f64,
    /// A path is taken for slower from a train's end that arrives so many times slower, above 1;
    /// default 1.5: less may be jitter.
    pub slower: f64,
    /// So many losses at the end of a train are a buffer that was full; default 5: so many by
    /// chance are one in ten million, at 4 %.
    pub full: u32,
    /// ... or so many, twice at the same place; default 2: of buffers of a few packets less than a
    /// train's end is lost.
    pub least_full: u32,
    /// ... if they are this share of what follows the first of them; default 0.6: while a buffer
    /// is full, some packets find the room that one left.
    pub full_share: f64,
    /// A packet of a pair is waited for as long as this at least, for while nothing is known of the
    /// path a first packet may have passed on what a token bucket had saved; default 200 ms: a full
    /// packet of 60 kbit/s.
    pub unheard: Span,
    /// What leads a train of two that count, or of more behind a bucket of a few packets, leaves so
    /// many times ahead as the bottleneck takes for a packet, below 1; default 0.9: it takes what
    /// the bucket has saved, and the others wait for what fills it, for a twentieth at least if
    /// half of what is missing to 1 was left.
    pub leads: f64,
    /// A lone packet leaves behind a small one by this share of what a full packet takes at the
    /// bottleneck, besides `aside`; default 0.1: more than twice what a small one takes there.
    pub light: f64,
    /// Whether a lone packet passes on tokens is asked where packets take so many times as long as
    /// hosts may stand still (`FindingsConfig::hosts`); default 3: what is seen of a bucket is off
    /// by a third of a packet then.
    pub serial: f64,
    /// Packets that lead a train at the most; default 6: a bucket of more shows in the train behind
    /// the first pair.
    pub most_leads: u32,
    /// ... where a packet takes no longer than this; default 250 ms, 47 kbit/s: slower paths have
    /// no time for three packets, twice.
    pub leading: Span,
    /// A train's packets may arrive so many times further apart than expected until those that are
    /// missing are taken for lost; default 32: a pair may have passed so much faster than a path.
    pub later: u64,
    /// What is sent arrives within so many times the longest RTT; default 1.5.
    pub patience: f64,
    /// When nothing new is sent any more what was sent is waited for so long, and sent again;
    /// default 3 s. Then a look says what it knows by then.
    pub grace: Span,
    /// ... or so many times the longest RTT, if that is longer; default 20: an end of a connection
    /// that gets nothing through asks after one, two, four and eight of them.
    pub grace_rtts: f64,
    /// A queue counts if another packet met one at least this share as long; default 0.5.
    pub met: f64,
    /// ... or shorter by so many packets; default 1.5: behind a single packet there is one less.
    pub met_packets: f64,
    /// Distance of repairs where it is not known what the path bears; default 20 ms.
    pub unknown: Span,
    /// Repairs are so many times as far apart as the path bears; default 1.25.
    pub repairs: f64,
    /// Constants of what is made of it.
    pub findings: FindingsConfig,
}

impl Default for LookConfig {
    fn default() -> Self {
        Self {
            pairs: 3,
            slow: Span::from_millis(5),
            settling: 16,
            least_settling: 8,
            detection_queue: Span::from_millis(45),
            behind: 0.7,
            detection: Span::from_millis(1200),
            detection_train: 96,
            detection_batches: 6,
            lone_room: 16,
            detection_room: 3,
            least_detection_train: 6,
            queue: Span::from_millis(25),
            longest: 24,
            long: Span::from_micros(800),
            most: 64,
            trains: 8,
            least_trains: 3,
            least_groups: 2,
            time: Span::from_millis(200),
            longest_time: Span::from_millis(900),
            slowdown: 10.0,
            flight_queue: Span::from_millis(40),
            detection_bytes: 290_000,
            detection_share: 0.7,
            costs: 500.0 / 430.0,
            reserve: 6_000,
            lossy: 800_000,
            prior: 20.0,
            most_lost: 0.9,
            sure: 0.3,
            apart: 2.0,
            aside: Span::from_micros(500),
            confirms: 0.25,
            slower: 1.5,
            full: 5,
            least_full: 2,
            full_share: 0.6,
            unheard: Span::from_millis(200),
            leads: 0.9,
            light: 0.1,
            serial: 3.0,
            most_leads: 6,
            leading: Span::from_millis(250),
            later: 32,
            patience: 1.5,
            grace: Span::from_secs(3),
            grace_rtts: 20.0,
            met: 0.5,
            met_packets: 1.5,
            unknown: Span::from_millis(20),
            repairs: 1.25,
            findings: FindingsConfig::default(),
        }
    }
}

/// Constants of what is made of a look's trains. All are this project's own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FindingsConfig {
    /// Of a train one packet in so many, the first ones, does not count: they find processors on
    /// the way asleep, and are late by a tenth of a millisecond or two. Default 4.
    pub waking: usize,
    /// A train's gaps are so many times as long at first as at its end, or shorter, if a token
    /// bucket lets a burst pass; above 0, below 1; default 0.6: a wire that is no faster than that
    /// hides in jitter.
    pub burst: f64,
    /// ... or so many times as long, if that is only to say how low a range may begin; default 0.8.
    pub suspected: f64,
    /// Least time by which the burst is ahead; default 0.3 ms, for which hosts stand still: less
    /// may be a processor that was busy. (Of 1588 drawn directions none says another thing with 1
    /// ms, behind small buckets 14 % fewer figures are right.)
    pub ahead: Span,
    /// Whole trains at the least that show a burst; default 2: one alone was held up.
    pub whole: usize,
    /// Packets at the least on either side of such a change; default 4.
    pub side: usize,
    /// The halves of a train differ by no more than this share where all of it waited for tokens;
    /// default 0.15.
    pub even: f64,
    /// Rates that differ by no more than this share agree; default 0.05, what is asked of a
    /// capacity.
    pub agree: f64,
    /// For each train that is slower than those that agree there must be so many that do; default
    /// 3.
    pub held_up: usize,
    /// Trains that agree at the least until theirs is the rate behind a token bucket; default 3.
    pub agreeing: usize,
    /// Rates of trains that something else held up, or pushed together, are off by more than this
    /// share; default 0.1, twice `agree`.
    pub near: f64,
    /// Of all trains this share keeps to a rate, or shows a burst, where the others do not count;
    /// default 0.75.
    pub most: f64,
    /// A packet that finds a bucket empty waits for this share at least of what one takes that
    /// waits for all its tokens; default 0.04, a little less than those behind what leads a train.
    pub waits: f64,
    /// What a bucket let pass was this many times faster at least; default 1.25.
    pub peak: f64,
    /// A bucket is said to be so many times too small at the most; default 1.5.
    pub larger: f64,
    /// A bucket is empty with less than this share of it left; default 0.15.
    pub empty: f64,
    /// A bucket filled at this share of the capacity is one that would have been seen; default 0.5.
    pub filled: f64,
    /// Losses of trains at the least until the buffer is the reason; default 3.
    pub overflow: usize,
    /// ... if in the middle they met this share of the longest queue; default 0.6.
    pub overflow_queue: f64,
    /// A path was away if nothing that was due arrived for so long; default 100 ms, twice the
    /// longest queue that a look may build.
    pub away: Span,
    /// ... and for as long as the bottleneck takes for so many packets, or if so many in a row were
    /// lost, for so long; default 4: fewer may be chance.
    pub away_packets: f64,
    /// ... and what waited does so by this many times more than it left behind a packet that did
    /// not; default 2: others would have sent at three times the capacity meanwhile.
    pub sudden: f64,
    /// RTTs that differ by more than this, of packets that met no queue of the look, are those of a
    /// queue of others, or of a link that holds packets up; default 3 ms, ten times what hosts do.
    pub standing: Span,
    /// Hosts stand still, or merge ACKs, for so long; what is unevener has another cause. Default
    /// 0.3 ms, as measured of hosts over the emulator.
    pub hosts: Span,
    /// Packets may be late, or early, for this share of the time that a train's rate is read from;
    /// default 0.04: more may make a rate wrong by 5 %.
    pub uneven: f64,
    /// ... or for more than that, of which hosts may be the reason, if rates of trains differ by
    /// more than this factor, too; default 1.04.
    pub apart: f64,
    /// Of what parts early packets from late ones this share at least is taken for what parts a
    /// train's first from its last, where hosts may be the reason; default 0.5. (Of noise alike for
    /// all packets it is 0.55: 1.41 standard deviations of 2.56.)
    pub ends: f64,
    /// Of a group's packets one in so many may be later than what is taken for the latest, and as
    /// many earlier, and so many of the trains slower and faster; default 10: one that hosts held
    /// up is no reason.
    pub outside: usize,
    /// Constants of what is said in the end.
    pub reading: ReadingConfig,
}

impl Default for FindingsConfig {
    fn default() -> Self {
        Self {
            waking: 4,
            burst: 0.6,
            suspected: 0.8,
            ahead: Span::from_micros(300),
            whole: 2,
            side: 4,
            even: 0.15,
            agree: 0.05,
            held_up: 3,
            agreeing: 3,
            near: 0.1,
            most: 0.75,
            waits: 0.04,
            peak: 1.25,
            larger: 1.5,
            empty: 0.15,
            filled: 0.5,
            overflow: 3,
            overflow_queue: 0.6,
            away: Span::from_millis(100),
            away_packets: 4.0,
            sudden: 2.0,
            standing: Span::from_millis(3),
            hosts: Span::from_micros(300),
            uneven: 0.04,
            apart: 1.04,
            ends: 0.5,
            outside: 10,
            reading: ReadingConfig::default(),
        }
    }
}
