//! Keys of the path that every cell has.

use flowstart_race::Race;
use flowstart_scenario::{PathPart, PathSpec, SpecError};

use super::{FrontierError, Grid, PathKind, rough};

/// The path with these keys; [`Grid::check`] says if they are wrong, and then nothing is run.
pub(crate) fn laid_over(path: &PathSpec, with: &[PathPart]) -> PathSpec {
    path.with(with).unwrap_or_else(|_| path.clone())
}

/// What cells have of their own, and how else it is chosen.
const OF_CELLS: [(&str, &str); 3] = [("capacity", "--capacity"), ("rtt", "--rtt"), ("buffer", "--buffer")];

impl Grid {
    /// Checks the keys that every cell has.
    ///
    /// # Errors
    /// One sentence about the first that is wrong, or that cells have of their own.
    pub(crate) fn check(&self) -> Result<(), FrontierError> {
        let own = |part: &&PathPart| OF_CELLS.iter().find(|(key, _)| part.name() == *key);
        if let Some((key, option)) = self.with.iter().find_map(|part| own(&part)).filter(|_| !self.as_is) {
            return Err(FrontierError::new(format!(
                "every cell has a {key} of its own: choose it with {option}, and not with --with {key}"
            )));
        }
        if self.sampled.is_some() && self.with.iter().any(|part| part.name() == "queue") {
            let why = "the queues of this grid's cells are drawn";
            return Err(FrontierError::new(format!(
                "{why}, so --with queue would have none of them; it is for --grid smooth and --as-is"
            )));
        }
        let wrong = |error: SpecError| FrontierError::new(format!("--with {error}"));
        PathPart::each_once(self.with).map_err(wrong)?;
        // On the paths of all cells, as some keys are wrong only on some.
        let path = |path: &PathKind| {
            rough::named(path.name()).map_or_else(|| Race::default().path, |rough| rough.as_is().clone())
        };
        for spec in self.paths.iter().map(path) {
            spec.with(self.with).map_err(wrong)?;
        }
        Ok(())
    }
}
