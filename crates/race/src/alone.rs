//! One contestant measured once, for those who have many races to make and share what they can.

use std::rc::Rc;

use flowstart_congestion::ExitReason;
use flowstart_parallel::Cancel;
use flowstart_units::Time;

use super::part::Baseline;
use super::stage::Simulator;
use super::{Measure, Race, RaceError};

/// Runs without newcomers of races that differ in their contestant only, by the queue and the
/// moment on from which they are watched. Not shared between threads.
#[derive(Debug, Default)]
pub struct Baselines(Vec<((String, Time), Rc<Baseline>)>);

/// Why the start of the first newcomer ended, and what was measured.
pub type Measured = (Option<ExitReason>, Vec<(Measure, f64)>);

impl Race {
    /// Runs the first contestant once, with transfers of all sizes. What it needs of the path
    /// without newcomers is taken from `baselines`, and left there. `None` after a cancellation, or
    /// if nobody races.
    ///
    /// # Errors
    /// If the race cannot be simulated.
    pub fn measure_first(&self, baselines: &mut Baselines, cancel: &Cancel) -> Result<Option<Measured>, RaceError> {
        let Some(contestant) = self.contestants.first() else { return Ok(None) };
        let simulator = &Simulator { cancel, most_events: None };
        let without = |origin| {
            let place = (self.queue_name(contestant), origin);
            if let Some((_, known)) = baselines.0.iter().find(|(known, _)| *known == place) {
                return Ok(Some(known.clone()));
            }
            let Some(baseline) = self.baseline(contestant, 0, origin, simulator)? else { return Ok(None) };
            let baseline = Rc::new(baseline);
            baselines.0.push((place, baseline.clone()));
            Ok(Some(baseline))
        };
        let Some(start) = self.start(contestant, 0, simulator, without)? else { return Ok(None) };
        let mut values = start.values;
        for size in &self.sizes {
            let Some(mut transfer) = self.transfer(contestant, 0, *size, simulator)? else { return Ok(None) };
            values.append(&mut transfer.values);
        }
        Ok(Some((start.exits.first().copied().flatten(), values)))
    }
}
