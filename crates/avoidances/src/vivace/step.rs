//! How far Vivace changes its rate: gradient times confidence amplifier, within a dynamic boundary.

use super::VivaceConfig;

/// State of the step size, in Mibit/s.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Step {
    /// The confidence amplifier's count of steps in one direction.
    amplifier: f64,
    /// The swing buffer: steps after a change of direction that count as uncertain.
    swing: u32,
    /// Steps in a row that the boundary cut.
    boundary: u32,
    /// The change before.
    previous: f64,
}

impl Step {
    /// The change of `rate` that this gradient of the utility calls for.
    pub(super) fn change(&mut self, gradient: f64, rate: f64, config: &VivaceConfig) -> f64 {
        let mut change = gradient * config.gradient_step;
        let flips = (change > 0.0) != (self.previous > 0.0);
        if flips {
            self.amplifier = 0.0;
            self.boundary = 0;
            self.swing = (self.swing + 1).min(config.max_swing);
        }
        change *= amplification(self.amplifier);
        if !flips {
            self.amplifier += if self.swing == 0 && self.amplifier < AMPLIFIER_SLOW_BELOW { 0.5 } else { 1.0 };
            self.swing = self.swing.saturating_sub(1);
        }
        let omega = config.boundary + config.boundary_increment * f64::from(self.boundary);
        let bound = omega * rate;
        if change.abs() > bound {
            change = bound.copysign(change);
            self.boundary = self.boundary.saturating_add(1);
        } else {
            self.boundary = self.boundary.saturating_sub(1);
        }
        if flips {
            self.amplifier = 0.0;
            self.boundary = 0;
        }
        if change.abs() < config.min_step {
            change = config.min_step.copysign(change);
        }
        change = change.max(config.min_rate - rate);
        self.previous = change;
        change
    }

    /// True if this change goes in the direction of the one before.
    pub(super) fn agrees(&self, change: f64) -> bool {
        (change > 0.0) == (self.previous > 0.0)
    }
}

/// Below this count the amplifier grows by halves while there is no uncertainty.
const AMPLIFIER_SLOW_BELOW: f64 = 3.0;

/// Factor for a count of steps in one direction.
fn amplification(count: f64) -> f64 {
    if count < 3.0 {
        count + 1.0
    } else if count < 6.0 {
        2.0 * count - 2.0
    } else if count < 9.0 {
        4.0 * count - 14.0
    } else {
        9.0 * count - 50.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> VivaceConfig {
        // Wide enough that the boundary does not cut.
        VivaceConfig { boundary: 1e6, ..VivaceConfig::default() }
    }

    #[test]
    fn the_amplifier_grows_by_halves_then_by_ones() {
        assert_eq!(
            [0.0, 1.0, 2.5, 3.0, 5.0, 6.0, 8.0, 9.0, 10.0].map(amplification),
            [1.0, 2.0, 3.5, 4.0, 8.0, 10.0, 18.0, 31.0, 40.0]
        );
        let mut step = Step { previous: 1.0, ..Step::default() };
        let factors: Vec<f64> = (0..9).map(|_| step.change(1.0, 100.0, &config())).collect();
        assert_eq!(factors, [1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 6.0, 8.0]);
    }

    #[test]
    fn a_change_of_direction_begins_anew_and_the_swing_buffer_makes_the_next_steps_count_whole() {
        let mut step = Step { previous: 1.0, amplifier: 5.0, ..Step::default() };
        assert_eq!(step.change(-1.0, 100.0, &config()), -1.0);
        assert_eq!((step.amplifier, step.swing), (0.0, 1));
        assert_eq!(step.change(-1.0, 100.0, &config()), -1.0);
        assert_eq!((step.amplifier, step.swing), (1.0, 0), "a whole step while the buffer is not empty");
        assert_eq!(step.change(-1.0, 100.0, &config()), -2.0);
        assert_eq!(step.amplifier, 1.5);
    }

    #[test]
    fn the_swing_buffer_has_an_end() {
        let mut step = Step::default();
        for i in 0..10 {
            step.change(if i % 2 == 0 { 1.0 } else { -1.0 }, 100.0, &config());
        }
        assert_eq!(step.swing, 2);
    }

    #[test]
    fn the_boundary_widens_while_it_cuts() {
        let config = VivaceConfig::default();
        let mut step = Step { previous: 1.0, ..Step::default() };
        let changes: Vec<f64> = (0..4).map(|_| step.change(1000.0, 100.0, &config)).collect();
        for (change, expected) in changes.iter().zip([5.0, 11.0, 17.0, 23.0]) {
            assert!((change - expected).abs() < 1e-9, "{changes:?}");
        }
        step.change(0.6, 1000.0, &config);
        assert_eq!(step.boundary, 3, "a step within the boundary narrows it");
    }

    #[test]
    fn a_step_is_at_least_half_a_mebibit_and_never_leads_below_the_smallest_rate() {
        let config = VivaceConfig::default();
        let mut step = Step { previous: 1.0, ..Step::default() };
        assert_eq!(step.change(0.01, 100.0, &config), 0.5);
        assert_eq!(step.change(-0.01, 100.0, &config), -0.5);
        assert!((step.change(-100.0, 2.1, &config) + 0.1).abs() < 1e-9);
    }
}
