//! "Did you mean": the nearest of the names that would have been right.

/// The name nearest to `wrong`, if it is near enough to be meant (Jaro-Winkler similarity of 0.75
/// and more).
#[must_use]
pub fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    /// Below this similarity a suggestion confuses more than it helps.
    const NEAR: f64 = 0.75;
    let wrong = wrong.to_lowercase();
    known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(&wrong, &name.to_lowercase()), name))
        .filter(|(similarity, _)| *similarity >= NEAR)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested_and_nothing_when_none_is_near() {
        let known = ["capacity", "rtt", "buffer"];
        assert_eq!(nearest("capcity", known), Some("capacity"));
        assert_eq!(nearest("Bufer", known), Some("buffer"));
        assert_eq!(nearest("zzz", known), None);
    }
}
