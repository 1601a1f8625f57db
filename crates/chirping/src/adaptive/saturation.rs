//! Constants of what is watched beside HyStart's rules once chirps have been given up.

use flowstart_control::InvalidConfig;

/// When a path that chirps could not read is taken for full. Within a round trip the RTTs of
/// packets that leave faster than the path carries them rise, by what their ACKs come slower than
/// they left: the last is later than the first by the difference. Constants without another source
/// are from this project's own measurements.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(
    feature = "serde",
    derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema),
    serde(deny_unknown_fields, default)
)]
pub struct SaturationConfig {
    /// Packets come as fast as the path carries them if they come this many times slower than they
    /// left, above 1; default 1.2. They fill it if RTTs are as late, too, as ends HyStart, or if
    /// they come for so long as ends it, at a rate that differs by less from that of the round trip
    /// before.
    pub behind: f64,
    /// Moments at which ACKs came that tell, at least 4; default 8 (HyStart's samples).
    pub moments: u32,
    /// Packets that tell, at least 1; default 16 (a chirp).
    pub packets: u32,
    /// Time for which their ACKs came, as a share of the smallest RTT, 0 ..= 1; default 0.15: half
    /// of what a queue lasts that ends HyStart.
    pub lasting: f64,
    /// A stretch of ACKs ends with a pause of more than this share of the smallest RTT, above 0;
    /// default 1/8: what leaves after a pause is another burst.
    pub pause: f64,
    /// And of more than this many of the mean times between two moments of it, at least 1; default
    /// 16. (With 4 and 8 recorded LTE links, where ACKs come with pauses, had longer queues.)
    pub pause_moments: f64,
    /// From the window on that fills the path at the rate at which those came, it grows by one for
    /// as many packets, at least 1; default 4 (`CSS_GROWTH_DIVISOR`, RFC 9406 section 4.3).
    pub divisor: u32,
    /// The start ends where the window is this many times that one, and the round trip before said
    /// the same, at least 1; default 1.25.
    pub full: f64,
}

impl Default for SaturationConfig {
    fn default() -> Self {
        Self {
            behind: 1.2,
            moments: 8,
            packets: 16,
            lasting: 0.15,
            pause: 0.125,
            pause_moments: 16.0,
            divisor: 4,
            full: 1.25,
        }
    }
}

impl SaturationConfig {
    pub(super) fn validate(&self) -> Result<(), InvalidConfig> {
        let check = InvalidConfig::unless;
        check(self.behind > 1.0 && self.behind.is_finite(), "behind", "more than 1")?;
        check(self.moments >= 4, "moments", "at least 4")?;
        check(self.packets >= 1, "packets", "at least 1")?;
        check((0.0..=1.0).contains(&self.lasting), "lasting", "between 0 and 1")?;
        check(self.pause > 0.0, "pause", "more than 0")?;
        check(self.pause_moments >= 1.0, "pause_moments", "at least 1")?;
        check(self.divisor >= 1, "divisor", "at least 1")?;
        check(self.full >= 1.0, "full", "at least 1")
    }
}
