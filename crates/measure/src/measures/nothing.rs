//! What measures are of newcomers of whom nothing came.

use flowstart_units::Span;

use super::item::{Measure, Parameter};
use super::speed::{DEFICIT, DELIVERED, TIME_TO};
use crate::egress::{Egress, Reference};
use crate::speed::deficit;

impl Measure {
    /// Its value for newcomers of whom no data reached the bottleneck while they were watched: they
    /// did not get to speed (M2: the horizon), missed all of their share (M3), and delivered
    /// nothing. `None` for all other measures, which say nothing then.
    #[must_use]
    pub fn of_nothing(&self, reference: &Reference) -> Option<f64> {
        match self.parameter {
            Parameter::Number(_) if self.is(&TIME_TO) => Some(reference.horizon_rtts()),
            Parameter::None if self.is(&DEFICIT) => {
                let nothing = Egress::new(reference.base_rtt, Span::ZERO, 0).cumulative();
                Some(deficit(&nothing, reference))
            }
            Parameter::Number(rtts) if self.is(&DELIVERED) => {
                (reference.base_rtt * u64::from(rtts) <= reference.horizon).then_some(0.0)
            }
            _ => None,
        }
    }
}
