//! All runs of all variants of figures, in parallel.

use flowstart_simulator::Simulation;

use super::evaluate::Run;
use super::file::Figure;
use super::measure::Measure;
use super::picture::{Curve, PictureKind, PictureSpec};
use super::quantity::Measured;
use super::record::Recorder;
use super::verdict::{ClaimResult, FigureResult, case};
use crate::run::{Cancel, in_parallel};

/// How figures are run.
#[derive(Clone, Copy, Default)]
pub struct ReproduceOptions<'a> {
    /// Threads; `None` for as many as there are cores.
    pub threads: Option<usize>,
    /// Make the pictures.
    pub pictures: bool,
    /// Asks to stop.
    pub cancel: Option<&'a Cancel>,
    /// Told how many simulations are done, of how many.
    pub progress: Option<&'a (dyn Fn(usize, usize) + Sync)>,
}

/// One simulation to do.
#[derive(Clone, Copy)]
struct Job {
    figure: usize,
    variant: usize,
    run: u64,
}

/// What one simulation gave.
struct Done {
    job: Job,
    /// By number of the claim; only those that are about the variant.
    values: Vec<(usize, Option<Measured>)>,
    /// By number of the picture.
    curves: Vec<(usize, Vec<Curve>)>,
    data_packets: u64,
    seconds: f64,
}

/// Runs figures and checks their claims. Results do not depend on the number of threads. `None` after a cancellation: a claim over a part of
/// the runs would be another claim.
///
/// # Errors
/// If the threads cannot be started or a simulation cannot be made.
pub fn reproduce(figures: &[Figure], options: &ReproduceOptions<'_>) -> Result<Option<Vec<FigureResult>>, String> {
    let mut jobs = Vec::new();
    for (number, figure) in figures.iter().enumerate() {
        for (variant, of_variant) in figure.variants.iter().enumerate() {
            jobs.extend((0..of_variant.scenario.runs).map(|run| Job { figure: number, variant, run }));
        }
    }
    let never = Cancel::default();
    let tell = |done: usize| options.progress.iter().for_each(|tell| tell(done, jobs.len()));
    let done = in_parallel(jobs.len(), options.threads, options.cancel.unwrap_or(&never), tell, |number| {
        let job = jobs[number];
        simulate(&figures[job.figure], job, options.pictures)
    })?;
    let Some(done) = done.into_iter().collect::<Option<Vec<_>>>() else { return Ok(None) };
    let done = done.into_iter().collect::<Result<Vec<Done>, String>>()?;
    let results = figures.iter().enumerate().map(|(number, figure)| {
        let of_figure: Vec<&Done> = done.iter().filter(|done| done.job.figure == number).collect();
        collect(figure, &of_figure)
    });
    Ok(Some(results.collect()))
}

/// True if the picture wants this run: the first only, or all where every transfer is a point.
fn wants(picture: &PictureSpec, run: u64) -> bool {
    run == 0 || picture.kind == PictureKind::CompletionBySize
}

fn simulate(figure: &Figure, job: Job, pictures: bool) -> Result<Done, String> {
    let variant = &figure.variants[job.variant];
    let scenario = &variant.scenario;
    let impossible = |error: &dyn std::fmt::Display| format!("{}, {}: {error}", figure.name, variant.name);
    let compiled = scenario.simulation(job.run).map_err(|error| impossible(&error))?;
    let measures: Vec<(usize, &Measure)> = figure
        .claims
        .iter()
        .enumerate()
        .filter(|(_, claim)| claim.cases.iter().any(|case| case.0 == job.variant || case.1 == Some(job.variant)))
        .map(|(number, claim)| (number, &claim.spec.measure))
        .collect();
    let number_of =
        |name: Option<&str>| name.map_or(Some(0), |name| compiled.links.iter().position(|known| known == name));
    let mut links: Vec<usize> = measures.iter().filter_map(|(_, measure)| number_of(measure.link())).collect();
    links.push(0);
    // Without a path nothing says which times matter; 10 ms resolve what a person could look at.
    let rtt = scenario.path.as_ref().map_or(flowstart_units::Span::from_millis(10), |path| path.rtt);
    let recorder = Recorder::new(&compiled.simulation, &links, rtt, scenario.duration);
    let simulation = Simulation::new(&compiled.simulation, recorder).map_err(|error| impossible(&error))?;
    let (outcome, record) = simulation.run();
    let run = Run { scenario, compiled: &compiled, outcome: &outcome, record: &record };
    let values = measures.into_iter().map(|(number, measure)| (number, run.evaluate(measure))).collect();
    let drawn = figure.pictures.iter().enumerate().filter(|(_, picture)| {
        pictures && wants(picture, job.run) && picture_variants(figure, picture).contains(&job.variant)
    });
    let curves = drawn.map(|(number, picture)| (number, picture.curves(&run))).collect();
    let seconds = outcome.ended.as_secs_f64();
    Ok(Done { job, values, curves, data_packets: outcome.data_packets, seconds })
}

fn picture_variants(figure: &Figure, picture: &PictureSpec) -> Vec<usize> {
    figure.selected(&figure.find("of", &picture.of).unwrap_or_default())
}

fn collect(figure: &Figure, done: &[&Done]) -> FigureResult {
    let values = |claim: usize, variant: usize| -> Vec<Option<Measured>> {
        let of_variant = done.iter().filter(|done| done.job.variant == variant);
        let value =
            |done: &&&Done| done.values.iter().find(|(number, _)| *number == claim).and_then(|(_, value)| *value);
        of_variant.map(|done| value(&done)).collect()
    };
    let claims = figure.claims.iter().enumerate().map(|(number, claim)| {
        let cases = claim.cases.iter().map(|(variant, other)| {
            let (own, other) = (values(number, *variant), other.map(|other| values(number, other)));
            case(claim, &figure.variants[*variant].name, &own, other.as_deref())
        });
        ClaimResult::new(claim.clone(), cases.collect())
    });
    let pictures = figure.pictures.iter().enumerate().flat_map(|(number, picture)| {
        let mut curves: Vec<(usize, Vec<Curve>)> = Vec::new();
        for one in done {
            let Some((_, of_run)) = one.curves.iter().find(|(known, _)| *known == number) else { continue };
            match curves.iter_mut().find(|(variant, _)| *variant == one.job.variant) {
                // Further runs add their points to the same curves.
                Some((_, known)) => {
                    for (curve, more) in known.iter_mut().zip(of_run) {
                        curve.points.extend(&more.points);
                    }
                }
                None => curves.push((one.job.variant, of_run.clone())),
            }
        }
        picture.assemble(number, figure, &curves)
    });
    FigureResult {
        claims: claims.collect(),
        pictures: pictures.collect(),
        data_packets: done.iter().map(|done| done.data_packets).sum(),
        simulated_seconds: done.iter().map(|done| done.seconds).sum(),
        figure: figure.clone(),
    }
}
