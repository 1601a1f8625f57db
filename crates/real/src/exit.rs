//! How starts ended, as far as can be seen from outside the kernel.

use flowstart_congestion::ExitReason;
use flowstart_units::Time;

use super::controls::has_hystart;
use super::perform::Performed;
use super::seen::Ran;

/// When the start ended and with which window and threshold, as the samples show it: at the first
/// that has a threshold.
pub(super) struct SeenExit {
    pub(super) at: Time,
    pub(super) cwnd: u32,
    pub(super) ssthresh: u32,
    pub(super) in_flight: u32,
    pub(super) reason: ExitReason,
}

/// How the start of a flow ended, as far as can be seen.
pub(super) fn seen_exit(performed: &Performed, ran: &Ran) -> Option<SeenExit> {
    let flow = &ran.outcome;
    let place = flow.samples.iter().position(|sample| sample.info.ssthresh.is_some())?;
    let (after, before) = (&flow.samples[place], &flow.samples[place.saturating_sub(1)]);
    let packets = flow.key.and_then(|key| performed.recording.flow(&key));
    let before_exit = |first: Option<Time>| first.is_some_and(|first| first <= after.at);
    // The kernel counts what its own HyStart did, per host; else what happened before tells. A
    // start that ends without either has decided so by itself, as those of BBR (Linux
    // bbr_check_full_bw_reached, whatever is lost) and paced chirping do.
    let shared = !ran.sole_cubic && ran.control.as_deref().is_some_and(has_hystart);
    let reason = if let Some(reason) = ran.hystart.filter(|_| ran.sole_cubic) {
        reason
    } else if ran.control.as_deref() == Some("bbr") {
        ExitReason::RatePlateau
    } else if before_exit(packets.map(|packets| packets.first_drop)) {
        ExitReason::Loss
    } else if before_exit(packets.map(|packets| packets.first_mark)) {
        ExitReason::Marks
    } else if shared && ran.control.as_deref() == Some("cubic") {
        ran.hystart.unwrap_or(ExitReason::Unseen)
    } else if shared && ran.hystart.is_some() {
        ExitReason::Unseen
    } else {
        ExitReason::PipeFull
    };
    Some(SeenExit {
        at: after.at,
        cwnd: before.info.cwnd.max(after.info.cwnd),
        ssthresh: after.info.ssthresh?,
        in_flight: before.info.unacked,
        reason,
    })
}
