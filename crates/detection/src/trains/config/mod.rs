//! Constants of the detector by trains.

use flowstart_control::{InRange, Ranges, above};
use flowstart_units::Span;

use flowstart_control::HystartConfig;

use crate::names::InvalidConfig;

mod evidence;
mod meeting;
mod policing;
mod watch;

pub use evidence::EvidenceConfig;
pub use meeting::MeetingConfig;
pub use policing::PolicingConfig;
pub use watch::WatchConfig;

/// Constants of the detector. All are this project's own.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields, default)
)]
pub struct TrainProbeConfig {
    /// Packets of the first train, which leave at once, 4 ..= 64; default 8, which with one in
    /// transmission fits a buffer of eight.
    pub train: u32,
    /// If hardly anything of the first train arrives, twice as many packets follow; each gap
    /// between them is this share of the one before, above 0 and below 1; default 0.6, from an
    /// eighth of a round trip down to a 17 000th.
    pub chirp_shrink: f64,
    /// Packets of the other trains at first, 4 ..= 1000; default 8, of which a flow that has sent
    /// eight may still send three on sch_fq's credit.
    pub shortest_train: u32,
    /// These leave at so many times the rate that the first train told, above 1; default 2.2: eight
    /// packets then queue four, and none in a queue before the bottleneck that is more than 2.2
    /// times as fast. Not all at once, so that they do not queue where the path is wider before its
    /// bottleneck.
    pub train_load: f64,
    /// Packets of the trains that follow the first at once, 4 ..= 1000; default 10, of which in a
    /// shared queue six are queued with both lone packets: with one in transmission a buffer of
    /// eight holds them.
    pub train_at_once: u32,
    /// Packets of the longest train, if jitter hides the delay of shorter ones; default 400, of
    /// which 218 queue.
    pub longest_train: u32,
    /// Packets spread in time between the first train and the others, so that a new flow's credit
    /// is used up (sch_fq: ten frames), 1 ..= 1000; default 4.
    pub spread: u32,
    /// After so many gaps of the first train the others follow at once, without spread packets, if
    /// it arrives evenly and nothing of it is missing, 2 ..= 63; default 2.
    pub enough_gaps: u32,
    /// Evenly: no gap differs by more than this share from their mean, 0 ..= 1; default 0.25.
    pub even_gaps: f64,
    /// In the batch that follows at once lone packets leave one by one, behind the last packet of a
    /// train and so many packets before it, at least 1; default 3: each gives a ratio, and where
    /// they pass the train, one of its packets is served between them.
    pub lone_apart: u32,
    /// Trains sent before answers are awaited, at least 1; default 3.
    pub batch: u32,
    /// Trains are this many times the time apart that the bottleneck takes for one, at least 1;
    /// default 2.
    pub apart: f64,
    /// Others keep a queue if the first packet of a train waits for the time of so many packets,
    /// and for so long that it counts (`counted_jitters`), at least 1; default 6. Then slow start
    /// ends with the answer: what it adds to a full buffer is lost. (With 3 datagrams at half of
    /// the capacity look like others that fill it, and the flow is slower by a tenth for a second.)
    pub crowd: f64,
    /// ... but not below this share of what fits the path, as far as the trains told that, between
    /// 0 and 1; default 0.5, the fair share beside one other. (Long or fast paths hold many times
    /// the window that comes with the answer. On 60 drawn paths of 20 to 700 Mbit/s beside one to
    /// two others, after four seconds: with 0.25 a flow carries less than 0.9 of HyStart's on 21,
    /// the worst 0.48, with 0.5 and the two rules below on 11, 0.70; it loses 75 and 99 packets,
    /// HyStart 111.)
    pub crowd_share: f64,
    /// From this share on the window grows by `crowd_growth`, between 0 and 1; default 0.25, the
    /// share of one beside three others.
    pub crowd_unhurried: f64,
    /// Packets by which it grows there for each that is acknowledged, between 0 and 1; default 0.5:
    /// what a buffer that others keep full loses in a round trip is what the window grows by. (With
    /// 1 the same paths lose 124 packets, with 0.25 87, but 18 are below 0.9.)
    pub crowd_growth: f64,
    /// Least delay of the train's last packet in packet times for its ratio to count, at least 1;
    /// default 3.
    pub least_queue: f64,
    /// ... and in times of the jitter, reordering included, at least 0; default 3: where delays of
    /// trains are chosen for being long, less would choose those that jitter made long.
    pub counted_jitters: f64,
    /// A train whose last packet waits for less than so many times the jitter is followed by longer
    /// ones; default 4.
    pub least_jitters: f64,
    /// Probability of error at which "isolated" is said, above 0 and below 0.5; default 0.0001: who
    /// takes a shared queue for his own starves in it.
    pub isolated_error: f64,
    /// Probability of error at which "shared" is said; default 0.01: who takes his own queue for a
    /// shared one only waits longer.
    pub shared_error: f64,
    /// Batches of trains without an answer until it is unknown, at least 1; default 10.
    pub most_batches: u32,
    /// The answer is unknown after so many round trips, at least 1; default 10, ...
    pub give_up_rtts: f64,
    /// ... or after this time, whichever is later; default 1 s. Without any round trip it is the
    /// latter.
    pub give_up: Span,
    /// A packet that was due before it was written, and leaves later than planned by more than so
    /// many of the smallest RTTs, 0 to 1000, default 0.5, ...
    pub starved_rtts: f64,
    /// ... and by more than this time, default 10 ms (own choices): the application writes too
    /// little for trains, and what it writes would wait for them; the answer is unknown. Zero for
    /// never.
    pub starved: Span,
    /// A train was slowed down if it takes so many times as long to arrive as it took to leave,
    /// between 1 and 1000; default 1.25 (own choice: with 1.1 and 1.5 as much is carried, within
    /// 0.003).
    pub slowed: f64,
    /// Trains that are compared with one beside them follow each other sooner by this factor, above
    /// 0 up to 10, as how long they take is known; default 0.75 (own choice: with 0.5 and 1 as much
    /// is carried, within 0.006).
    pub together_apart: f64,
    /// After "unknown" losses and RTTs of packets that left before do not count for so many round
    /// trips at most, 0 to 100; default 2: what left is acknowledged within one, or within two if
    /// some of it is sent again (own choice).
    pub released_rtts: f64,
    /// Window, in times of what it is, once more is lost of what left after "unknown" while the
    /// losses of before are still repaired, above 0 up to 1; default 0.5 (RFC 5681 section 3.1).
    pub late_loss_factor: f64,
    /// Where the bottleneck seems to take less than this for a packet, trains go on until so many
    /// packets (`proof`) have arrived at that rate: it may be that of the sender's own card, or of
    /// a burst that a token bucket lets pass; default 200 us, 60 Mbit/s of full packets. 0 for
    /// never.
    pub proof_service: Span,
    /// Packets that must have arrived at such a rate; default 200, 300 kB.
    pub proof: u32,
    /// These leave at so many times the rate, but for the first of a train, above 0 up to 10;
    /// default 1.05: the queue stays, and a buffer of a few packets is enough.
    pub proof_load: f64,
    /// ... with lone packets behind every so many of them, at least 4; default 16. Where nothing
    /// leaves for longer than they take a pause begins another train.
    pub proof_lone: u32,
    /// The rate has fallen, and what was seen at the old one does not count, if `fall_packets` take
    /// so many times as long as before, above 1; default 1.5.
    pub fall: f64,
    /// So many packets in a row tell a rate, 2 ..= 1000; default 8: the turn of another flow is no
    /// fall.
    pub fall_packets: u32,
    /// The same behind a loss, at least `fall_packets`, at most 1000; default 32: receivers hold
    /// ACKs back for up to 1.5 ms there (Linux's SACK compression), twelve packets at 100 Mbit/s.
    pub fall_packets_behind_loss: u32,
    /// If more than this share of the packets that were to prove a rate is lost, it is a policer's,
    /// and the answer is unknown, 0 ..= 1; default 0.25.
    pub policed: f64,
    /// Share of a batch's packets above which its losses are those of a full buffer, so that trains
    /// grow no further, 0 ..= 1; default 0.1: fewer may be lost at random.
    pub full_loss: f64,
    /// How losses are told apart from those of a policer.
    pub policing: PolicingConfig,
    /// Time to wait for the connection of the lone packets until the answer is unknown; default 3
    /// s, of which a lost SYN takes 1 (RFC 6298).
    pub open_wait: Span,
    /// Of a first train with losses the shortest time between two arrivals tells the rate, but no
    /// less than this share of their mean, 0 ..= 1; default 0.4.
    pub quickest_share: f64,
    /// The distance of bursts differs from that of trains by up to this share, so that nothing
    /// locks in phase, 0 ..= 1; default 0.5.
    pub burst_jitter: f64,
    /// Packets spread in time are so many packet times apart, at least 1; default 2: each finds the
    /// queue of the one before gone.
    pub spread_apart: u32,
    /// Lone packets leave so many at once, 1 or 2; default 2, so that a receiver that acknowledges
    /// every second packet does so at once (RFC 9293 section 3.8.6.3).
    pub lone: u32,
    /// Lone packets that left within this part of a packet's time behind others tell nothing, as
    /// they wait for those, 0 ..= 1; default 0.1: a sender that stood still sends them at once.
    pub at_once: f64,
    /// Packets that follow a batch, or a first train that did not arrive whole, so that the last
    /// losses are found, 1 ..= 100; default 2, of which one may be lost.
    pub followers: u32,
    /// Where the path holds packets or their ACKs back for this share of a round trip or more, a
    /// batch that has arrived whole is over without them, at least 0; default 0.125. (They would
    /// wait for what is late, and the flow with them. Where others' queues make delays vary they
    /// are worth it: without them 20 of 126 answers beside three CUBIC flows are unknown, not 12.)
    pub long_wait: f64,
    /// After this share of a round trip without a second ACK of the first train a packet finds out
    /// whether the others were lost, above 0 up to 10; default 0.5. Those that follow if some of it
    /// is missing, and packets behind a chirp, are as far apart.
    pub follow_rtts: f64,
    /// A packet is lost if one that left later by more than so many times the jitter has arrived,
    /// at least 0; default 2.
    pub patience_jitters: f64,
    /// An ACK that is later than that of the packet before by more than so many packet times and
    /// jitter, and ..., at least 0; default 4.
    pub delayed_ack_packets: f64,
    /// ... by more than this factor, was held back by the receiver and tells nothing, at least 1;
    /// default 1.5.
    pub delayed_ack_growth: f64,
    /// Packets that an ACK is for at most if it is delayed as RFC 9293 section 3.8.6.3 says, or a
    /// little longer, 1 ..= 1000; default 4.
    pub most_in_an_ack: u32,
    /// If an ACK was for more than these, lone packets that come with one ACK and have
    /// waited for this time or longer tell nothing: the receiver may have waited for more packets;
    /// default 25 ms (delayed-ACK timers are 25 to 200 ms).
    pub held_ack: Span,
    /// Packets of a train or around it leave at most so many packet times apart, at least 1;
    /// default 2 (`spread_apart`): after longer ones a queue may have drained, so that their delays
    /// differ without noise.
    pub most_space: u32,
    /// Fewest gaps within trains that arrived whole that tell the rate, at least 1; default 7, one
    /// train. With fewer it is that of the first train.
    pub least_gaps: u32,
    /// ... and the rate is known with fewer if they are no longer than so many times those of the
    /// first train, at least 1; default 1.05: then nobody else is served.
    pub alone_gaps: f64,
    /// What delays and losses mean.
    pub evidence: EvidenceConfig,
    /// Whether both connections meet in one queue.
    pub meeting: MeetingConfig,
    /// Looks at the queue after the answer.
    pub watch: WatchConfig,
    /// Constants of the HyStart that goes on where the detector found nothing to go by.
    pub hystart: HystartConfig,
}

impl Default for TrainProbeConfig {
    fn default() -> Self {
        Self {
            train: 8,
            chirp_shrink: 0.6,
            shortest_train: 8,
            train_at_once: 10,
            train_load: 2.2,
            longest_train: 400,
            spread: 4,
            enough_gaps: 2,
            even_gaps: 0.25,
            lone_apart: 3,
            batch: 3,
            apart: 2.0,
            crowd: 6.0,
            crowd_share: 0.5,
            crowd_unhurried: 0.25,
            crowd_growth: 0.5,
            least_queue: 3.0,
            counted_jitters: 3.0,
            least_jitters: 4.0,
            isolated_error: 1e-4,
            shared_error: 0.01,
            most_batches: 10,
            give_up_rtts: 10.0,
            give_up: Span::from_secs(1),
            starved_rtts: 0.5,
            starved: Span::from_millis(10),
            slowed: 1.25,
            together_apart: 0.75,
            released_rtts: 2.0,
            late_loss_factor: 0.5,
            proof_service: Span::from_micros(200),
            proof: 200,
            proof_load: 1.05,
            proof_lone: 16,
            fall: 1.5,
            fall_packets: 8,
            fall_packets_behind_loss: 32,
            policed: 0.25,
            full_loss: 0.1,
            policing: PolicingConfig::default(),
            open_wait: Span::from_secs(3),
            quickest_share: 0.4,
            burst_jitter: 0.5,
            spread_apart: 2,
            lone: 2,
            at_once: 0.1,
            followers: 2,
            long_wait: 0.125,
            follow_rtts: 0.5,
            patience_jitters: 2.0,
            delayed_ack_packets: 4.0,
            delayed_ack_growth: 1.5,
            most_in_an_ack: 4,
            held_ack: Span::from_millis(25),
            most_space: 2,
            least_gaps: 7,
            alone_gaps: 1.05,
            evidence: EvidenceConfig::default(),
            meeting: MeetingConfig::default(),
            watch: WatchConfig::default(),
            hystart: HystartConfig::default(),
        }
    }
}

impl TrainProbeConfig {
    /// Checks that every constant is in its range.
    ///
    /// # Errors
    /// Names the first field that is not, and what it must be.
    pub fn validate(&self) -> Result<(), InvalidConfig> {
        self.check()?;
        self.hystart.validate()
    }
}

impl InRange for TrainProbeConfig {
    fn ranges(&mut self, ranges: &mut Ranges) {
        let share = || 0.0..=1.0;
        let error = above(0.0).below(0.5);
        ranges.of("train", &mut self.train, 4..=64, "between 4 and 64 packets");
        ranges.of("shortest_train", &mut self.shortest_train, 4..=1000, "between 4 and 1000 packets");
        ranges.of("train_at_once", &mut self.train_at_once, 4..=1000, "between 4 and 1000 packets");
        ranges.of("train_load", &mut self.train_load, above(1.0).up_to(100.0), "above 1 and at most 100");
        let longest = self.shortest_train..=1000;
        ranges.of("longest_train", &mut self.longest_train, longest, "at least shortest_train, at most 1000");
        ranges.of("spread", &mut self.spread, 1..=1000, "between 1 and 1000");
        ranges.of("enough_gaps", &mut self.enough_gaps, 2..=63, "between 2 and 63");
        ranges.of("even_gaps", &mut self.even_gaps, share(), "between 0 and 1");
        ranges.of("lone_apart", &mut self.lone_apart, 1..=1000, "between 1 and 1000");
        ranges.of("batch", &mut self.batch, 1..=100, "between 1 and 100");
        ranges.of("apart", &mut self.apart, 1.0..=100.0, "between 1 and 100");
        ranges.of("crowd", &mut self.crowd, 1.0.., "at least 1");
        ranges.of("crowd_share", &mut self.crowd_share, share(), "between 0 and 1");
        ranges.of("crowd_unhurried", &mut self.crowd_unhurried, share(), "between 0 and 1");
        ranges.of("crowd_growth", &mut self.crowd_growth, share(), "between 0 and 1");
        ranges.of("least_queue", &mut self.least_queue, 1.0.., "at least 1");
        ranges.of("least_jitters", &mut self.least_jitters, 0.0.., "at least 0");
        ranges.of("counted_jitters", &mut self.counted_jitters, 0.0.., "at least 0");
        ranges.of("isolated_error", &mut self.isolated_error, error, "above 0 and below 0.5");
        ranges.of("shared_error", &mut self.shared_error, error, "above 0 and below 0.5");
        ranges.of("most_batches", &mut self.most_batches, 1..=1000, "between 1 and 1000");
        ranges.of("chirp_shrink", &mut self.chirp_shrink, above(0.0).below(1.0), "above 0 and below 1");
        ranges.of("quickest_share", &mut self.quickest_share, share(), "between 0 and 1");
        ranges.of("burst_jitter", &mut self.burst_jitter, share(), "between 0 and 1");
        ranges.of("spread_apart", &mut self.spread_apart, 1..=100, "between 1 and 100");
        ranges.of("lone", &mut self.lone, 1..=2, "1 or 2");
        ranges.of("at_once", &mut self.at_once, share(), "between 0 and 1");
        ranges.of("followers", &mut self.followers, 1..=100, "between 1 and 100");
        ranges.of("long_wait", &mut self.long_wait, 0.0..=f64::INFINITY, "at least 0");
        ranges.of("follow_rtts", &mut self.follow_rtts, above(0.0).up_to(10.0), "above 0 and at most 10");
        let (from_0, from_1) = (|| 0.0..=1000.0, || 1.0..=1000.0);
        ranges.of("patience_jitters", &mut self.patience_jitters, from_0(), "between 0 and 1000");
        ranges.of("delayed_ack_packets", &mut self.delayed_ack_packets, from_0(), "between 0 and 1000");
        ranges.of("delayed_ack_growth", &mut self.delayed_ack_growth, from_1(), "between 1 and 1000");
        ranges.of("most_in_an_ack", &mut self.most_in_an_ack, 1..=1000, "between 1 and 1000");
        ranges.of("most_space", &mut self.most_space, 1..=1000, "between 1 and 1000");
        ranges.of("least_gaps", &mut self.least_gaps, 1.., "at least 1");
        ranges.of("alone_gaps", &mut self.alone_gaps, from_1(), "between 1 and 1000");
        ranges.of("give_up_rtts", &mut self.give_up_rtts, from_1(), "between 1 and 1000");
        ranges.of("give_up", &mut self.give_up, above(Span::ZERO), "above 0");
        ranges.of("starved_rtts", &mut self.starved_rtts, from_0(), "between 0 and 1000");
        ranges.of("slowed", &mut self.slowed, from_1(), "between 1 and 1000");
        ranges.of("together_apart", &mut self.together_apart, above(0.0).up_to(10.0), "above 0 and at most 10");
        ranges.of("released_rtts", &mut self.released_rtts, 0.0..=100.0, "between 0 and 100");
        ranges.of("late_loss_factor", &mut self.late_loss_factor, above(0.0).up_to(1.0), "above 0 and at most 1");
        ranges.of("proof", &mut self.proof, 1..=100_000, "between 1 and 100 000");
        ranges.of("proof_load", &mut self.proof_load, above(0.0).up_to(10.0), "above 0 and at most 10");
        ranges.of("proof_lone", &mut self.proof_lone, 4..=1000, "between 4 and 1000");
        ranges.of("fall", &mut self.fall, above(1.0).up_to(1000.0), "above 1 and at most 1000");
        ranges.of("fall_packets", &mut self.fall_packets, 2..=1000, "between 2 and 1000");
        let (behind_loss, must) = (self.fall_packets..=1000, "at least fall_packets, at most 1000");
        ranges.of("fall_packets_behind_loss", &mut self.fall_packets_behind_loss, behind_loss, must);
        ranges.of("policed", &mut self.policed, share(), "between 0 and 1");
        ranges.of("full_loss", &mut self.full_loss, share(), "between 0 and 1");
        self.policing.ranges(ranges);
        self.evidence.ranges(ranges);
        self.meeting.ranges(ranges);
        self.watch.ranges(ranges);
    }
}

#[cfg(test)]
mod tests;
