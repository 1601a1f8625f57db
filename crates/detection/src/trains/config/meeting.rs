//! Whether the two connections meet in one queue at all.

use flowstart_control::{InRange, Ranges, above};

/// What arrivals of both connections tell of whether they meet in one queue, where a lone packet
/// takes its time between two of a train. All constants are this project's own.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields, default)
)]
pub struct MeetingConfig {
    /// "Isolated" is said if they meet with this probability of error at most, and "unknown" at
    /// once if they do not with the same, above 0 and below 0.5; default 0.002.
    pub error: f64,
    /// Share of the time that the link takes for a packet which is enough between two, above 0 up
    /// to 1; default 0.97.
    pub least: f64,
    /// The link may serve so many others between two packets of the train, so that the time that it
    /// seemed to take for one is that of so many and one more, up to 100; default 5.
    pub most_others: u32,
    /// Arrivals are uncertain by so many times the jitter, at least 0; default 2. With more than
    /// half of the time for a packet they tell nothing.
    pub jitters: f64,
    /// Probability that packets that met arrive closer together than they can have been served,
    /// above 0 and below 1; default 0.01.
    pub outlier: f64,
    /// How likely it is held to be that delays differ only because others are served, where they
    /// differ by so much that it would hide the time of a packet if it were noise of arrivals; 0
    /// ..= 1; default 0.5.
    pub quiet: f64,
    /// Part of a packet's time, one more of them, in which a lone packet might have arrived by
    /// chance without having met any other, above 0 up to 1; default 0.05.
    pub doubt: f64,
    /// Where noise hides the time of single packets a train alone is compared with one beside a
    /// train of the other connection. What they differ by is uncertain by so many times the jitter,
    /// at least 0; default 0.6 (of four arrivals, each anywhere within it), ...
    pub bulk_jitters: f64,
    /// ... and by this share of the train's time, as others come and go, above 0; default 0.08.
    pub bulk_width: f64,
    /// Both trains and the pause between them take about so many times as long as one, at least 1;
    /// default 3.5: one alone, twice as long beside the other, and half as much between. They are
    /// sent if so much time is left.
    pub bulk_trains: f64,
    /// No difference is less likely than this, above 0 and below 1; default 0.003: of one
    /// difference alone it is not certain that they meet.
    pub bulk_outlier: f64,
    /// How likely it is held to be, before anything was seen, that the link serves one other in
    /// turn with ours, two, three or four: with so many the second train takes as much longer as
    /// one more turn is. Each 0 ..= 1, together 1; default 0.4, 0.3, 0.2, 0.1.
    pub bulk_others: [f64; 4],
}

impl Default for MeetingConfig {
    fn default() -> Self {
        Self {
            error: 2e-3,
            least: 0.97,
            most_others: 5,
            jitters: 2.0,
            outlier: 0.01,
            quiet: 0.5,
            doubt: 0.05,
            bulk_jitters: 0.6,
            bulk_width: 0.08,
            bulk_trains: 3.5,
            bulk_outlier: 3e-3,
            bulk_others: [0.4, 0.3, 0.2, 0.1],
        }
    }
}

impl InRange for MeetingConfig {
    fn ranges(&mut self, ranges: &mut Ranges) {
        let (share, part) = (above(0.0).below(1.0), above(0.0).up_to(1.0));
        ranges.of("error", &mut self.error, above(0.0).below(0.5), "above 0 and below 0.5");
        ranges.of("least", &mut self.least, part, "above 0 and at most 1");
        ranges.of("most_others", &mut self.most_others, ..=100, "at most 100");
        ranges.of("jitters", &mut self.jitters, 0.0..=1000.0, "between 0 and 1000");
        ranges.of("outlier", &mut self.outlier, share, "above 0 and below 1");
        ranges.of("quiet", &mut self.quiet, 0.0..=1.0, "between 0 and 1");
        ranges.of("doubt", &mut self.doubt, part, "above 0 and at most 1");
        ranges.of("bulk_jitters", &mut self.bulk_jitters, 0.0..=1000.0, "between 0 and 1000");
        ranges.of("bulk_width", &mut self.bulk_width, above(0.0).up_to(1000.0), "above 0 and at most 1000");
        ranges.of("bulk_trains", &mut self.bulk_trains, 1.0..=1000.0, "between 1 and 1000");
        ranges.of("bulk_outlier", &mut self.bulk_outlier, share, "above 0 and below 1");
        let each = self.bulk_others.iter().all(|belief| (0.0..=1.0).contains(belief));
        // Decimal fractions are not exact.
        if !each || (self.bulk_others.iter().sum::<f64>() - 1.0).abs() >= 1e-9 {
            self.bulk_others = Self::default().bulk_others;
            ranges.refuse("bulk_others", "four numbers between 0 and 1 that are 1 together");
        }
    }
}
