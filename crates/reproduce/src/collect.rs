//! What all runs of a figure say about its claims.

use flowstart_measure::Measured;

use super::evidence::{Evidence, Looks, together};
use super::figure::Figure;
use super::first_run::FirstRun;
use super::picture::{Curve, Picture};
use super::record::ShareTable;
use super::verdict::{ClaimResult, FigureResult};

/// A run of a variant.
#[derive(Clone, Copy)]
pub(super) struct Job {
    pub(super) figure: usize,
    pub(super) variant: usize,
    pub(super) run: u64,
}

/// What one run of a variant gave.
pub(super) struct Done {
    pub(super) job: Job,
    /// By number of the claim; only those that are about the variant.
    pub(super) values: Vec<(usize, Option<Measured>)>,
    /// By number of the picture.
    pub(super) curves: Vec<(usize, Vec<Curve>)>,
    pub(super) data_packets: u64,
    pub(super) seconds: f64,
}

/// What the first run measured of the variant in which most is measured, the first of them if there
/// are several.
pub(super) fn first_run(figure: &Figure, done: &[&Done]) -> FirstRun {
    let measured = |done: &Done| done.values.iter().filter(|(_, value)| value.is_some()).count();
    let mut first: Option<&Done> = None;
    for one in done.iter().filter(|done| done.job.run == 0) {
        if first.is_none_or(|first| measured(one) > measured(first)) {
            first = Some(one);
        }
    }
    let Some(first) = first else { return FirstRun::default() };
    let value = |(claim, value): &(usize, Option<Measured>)| {
        (figure.claims[*claim].spec.id.clone(), value.map(|measured| measured.value))
    };
    FirstRun {
        variant: figure.variants[first.job.variant].name.clone(),
        values: first.values.iter().map(value).collect(),
    }
}

/// The verdicts, pictures and tables.
pub(super) fn collect(figure: &Figure, looks: Looks, done: &[&Done]) -> FigureResult {
    let values = |claim: usize, variant: usize| -> Vec<Option<Measured>> {
        let of_variant = done.iter().filter(|done| done.job.variant == variant);
        let value =
            |done: &&&Done| done.values.iter().find(|(number, _)| *number == claim).and_then(|(_, value)| *value);
        of_variant.map(|done| value(&done).or(figure.claims[claim].missing)).collect()
    };
    let claims = figure.claims.iter().enumerate().map(|(number, claim)| {
        let named = |evidence: Vec<Evidence>| figure.names_of_cases(claim).into_iter().zip(evidence).collect();
        if let Some(statistic) = claim.spec.over_variants {
            let own: Vec<_> = claim.cases.iter().map(|(variant, _)| values(number, *variant)).collect();
            let others: Vec<_> = claim.cases.iter().filter_map(|(_, other)| Some(values(number, (*other)?))).collect();
            let ((own, missing), (others, missing_too)) = (together(statistic, &own), together(statistic, &others));
            let compared = claim.spec.ratio_to.is_some() || claim.spec.minus.is_some();
            let mut evidence = Evidence::of(claim, &own, compared.then_some(others.as_slice()));
            evidence.without = missing + missing_too;
            return ClaimResult::new(claim.clone(), looks, named(vec![evidence]));
        }
        let cases = claim.cases.iter().map(|(variant, other)| {
            let (own, other) = (values(number, *variant), other.map(|other| values(number, other)));
            Evidence::of(claim, &own, other.as_deref())
        });
        ClaimResult::new(claim.clone(), looks, named(cases.collect()))
    });
    let pictures = figure.pictures.iter().enumerate().flat_map(|(number, picture)| {
        let mut curves: Vec<(usize, Vec<Curve>)> = Vec::new();
        for one in done {
            let Some((_, of_run)) = one.curves.iter().find(|(known, _)| *known == number) else { continue };
            match curves.iter_mut().find(|(variant, _)| *variant == one.job.variant) {
                // Further runs add their points to the same curves.
                Some((_, known)) => {
                    for more in of_run {
                        match known.iter_mut().find(|curve| curve.name == more.name) {
                            Some(curve) => curve.points.extend(&more.points),
                            // A rate, for instance, that no earlier run has got to.
                            None => known.push(more.clone()),
                        }
                    }
                }
                None => curves.push((one.job.variant, of_run.clone())),
            }
        }
        picture.assemble(number, figure, &curves)
    });
    let pictures: Vec<Picture> = pictures.collect();
    FigureResult {
        claims: claims.collect(),
        tables: pictures.iter().filter_map(ShareTable::of).collect(),
        first: first_run(figure, done),
        looks,
        simulations: done.len(),
        pictures,
        data_packets: done.iter().map(|done| done.data_packets).sum(),
        simulated_seconds: done.iter().map(|done| done.seconds).sum(),
        figure: figure.clone(),
    }
}
