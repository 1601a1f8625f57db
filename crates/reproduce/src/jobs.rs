//! All runs of all variants of figures, in parallel.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use flowstart_measure::claims::ScenarioRun;
use flowstart_measure::{Asked, LinksAndWindows, Recording};
use flowstart_simulator::Simulation;
use flowstart_units::{Rate, Span};

use super::attained::{Attained, is_accepted};
use super::collect::{Done, Job, collect, first_run};
use super::error::ReproduceError;
use super::evidence::Looks;
use super::figure::{Figure, Subject};
use super::first_run::FirstRun;
use super::measure::Measure;
use super::picture::{Curve, PictureSpec};
use super::probing::{Probed, Probing};
use super::replication::By;
use super::verdict::{ClaimResult, FigureResult};
use flowstart_parallel::{Cancel, in_parallel};
use flowstart_scenario::Scenario;

/// How figures are run.
#[derive(Clone, Copy, Default)]
pub struct ReproduceOptions<'a> {
    /// Threads; `None` for as many as there are cores.
    pub threads: Option<usize>,
    /// Make the pictures.
    pub pictures: bool,
    /// Probe with as many samples as the papers did, and spend the whole budget of runs.
    pub full: bool,
    /// So many runs of every variant, whatever they say, instead of as many as it takes.
    pub runs: Option<u64>,
    /// Asks to stop.
    pub cancel: Option<&'a Cancel>,
    /// Told how many seconds of a thread went into a figure (by number), again and again.
    pub spent: Option<&'a (dyn Fn(usize, f64) + Sync)>,
    /// Told how many simulations are done, of how many.
    pub progress: Option<&'a (dyn Fn(usize, usize) + Sync)>,
}

/// Something for a thread to do.
#[derive(Clone, Copy)]
enum Work {
    /// The simulation of a run.
    Simulate(Job),
    /// One rate, by its place, of a course.
    Probe(usize, usize),
}

/// What comes of it.
enum WorkResult {
    Simulated(Box<Result<Done, ReproduceError>>),
    Probed(Box<Result<Option<Probed>, ReproduceError>>),
}

/// The probing of a run of a variant. Variants that are probed in the same way, in other figures
/// too, share it.
struct Course<'a> {
    probing: &'a Probing,
    run: u64,
    /// What has an influence on the result.
    key: String,
    /// The lowest rate refused so far, bit/s: those above it do not count.
    refused: AtomicU64,
    /// Rates that claims and pictures name: they are probed even if a lower one was refused.
    named: Vec<Rate>,
    jobs: Vec<Job>,
}

/// No rate has been refused so far.
const NONE_REFUSED: u64 = u64::MAX;

/// How often the variants of a figure have been run.
struct Progress {
    /// Numbers of runs at which results are looked at.
    looks: Vec<u64>,
    /// Runs made of each variant.
    made: Vec<u64>,
    /// Runs wanted of each variant.
    wanted: Vec<u64>,
}

impl Progress {
    fn new(figure: &Figure, options: &ReproduceOptions<'_>) -> Self {
        let one = figure.replications.by == By::Nothing;
        let looks = match options.runs.filter(|_| !one) {
            Some(runs) => vec![runs],
            None => figure.replications.looks(options.full),
        };
        let count = figure.variants.len();
        Self { made: vec![0; count], wanted: vec![looks[0]; count], looks }
    }

    /// The first run of this variant is all that is wanted.
    fn first_of(figure: &Figure, options: &ReproduceOptions<'_>, variant: usize) -> Self {
        let mut progress = Self::new(figure, options);
        progress.wanted = (0..figure.variants.len()).map(|number| u64::from(number == variant)).collect();
        progress
    }

    /// What intervals depend on.
    fn looks(&self, figure: &Figure) -> Looks {
        Looks { most: self.looks.len(), certain: figure.replications.by == By::Nothing }
    }

    /// The runs that have been asked for are made; those that could decide what is open are wanted.
    fn next(&mut self, figure: &Figure, claims: &[ClaimResult]) {
        self.made.clone_from(&self.wanted);
        for claim in claims {
            let together = claim.claim.spec.over_variants.is_some();
            for case in claim.wanting() {
                // A claim over several variants has one case, which is about all of them.
                let cases = &claim.claim.cases;
                let pairs = if together { cases.as_slice() } else { &cases[case..=case] };
                let variants = || pairs.iter().flat_map(|(own, other)| std::iter::once(*own).chain(*other));
                // The variant that was run least says how far the case has got.
                let made = variants().map(|variant| self.made[variant]).min().unwrap_or(0);
                let Some(next) = self.looks.iter().copied().find(|look| *look > made) else { continue };
                for variant in variants().filter(|variant| *variant < figure.variants.len()) {
                    self.wanted[variant] = self.wanted[variant].max(next);
                }
            }
        }
    }

    fn is_done(&self) -> bool {
        self.made == self.wanted
    }

    /// True if every run that is wanted is among those of the figure.
    fn has_all(&self, done: &[&Done]) -> bool {
        let made = |variant: usize| done.iter().filter(|done| done.job.variant == variant).count() as u64;
        self.wanted.iter().enumerate().all(|(variant, wanted)| made(variant) == *wanted)
    }
}

/// Runs figures and checks their claims, with more runs until every claim is decided or the budget
/// is spent. Results do not depend on the number of threads. After a cancellation those figures
/// whose claims had all of their runs, and `None` if there is none: a claim over a part of the runs
/// would be another claim.
///
/// # Errors
/// If the threads cannot be started or a simulation cannot be made.
pub fn reproduce(
    figures: &[Figure],
    options: &ReproduceOptions<'_>,
) -> Result<Option<Vec<FigureResult>>, ReproduceError> {
    let mut progress: Vec<Progress> = figures.iter().map(|figure| Progress::new(figure, options)).collect();
    let mut done: Vec<Done> = Vec::new();
    let mut finished = 0;
    loop {
        let (more, interrupted) = round(figures, options, &progress, &mut finished)?;
        done.extend(more);
        done.sort_by_key(|done| (done.job.figure, done.job.variant, done.job.run));
        let results = figures.iter().zip(&mut progress).enumerate().map(|(number, (figure, progress))| {
            let of_figure: Vec<&Done> = done.iter().filter(|done| done.job.figure == number).collect();
            if interrupted && !progress.has_all(&of_figure) {
                return None;
            }
            let result = collect(figure, progress.looks(figure), &of_figure);
            progress.next(figure, &result.claims);
            (!interrupted || progress.is_done()).then_some(result)
        });
        let results: Vec<FigureResult> = results.collect::<Vec<_>>().into_iter().flatten().collect();
        if interrupted {
            return Ok(Some(results).filter(|results| !results.is_empty()));
        }
        if progress.iter().all(Progress::is_done) {
            return Ok(Some(results));
        }
    }
}

/// Makes the first run of one variant, named, of each figure; `None` after a cancellation.
///
/// # Errors
/// If a figure has no such variant, the threads cannot be started or a simulation cannot be made.
pub fn first_runs(
    wanted: &[(&Figure, &str)],
    options: &ReproduceOptions<'_>,
) -> Result<Option<Vec<FirstRun>>, ReproduceError> {
    let figures: Vec<Figure> = wanted.iter().map(|(figure, _)| (*figure).clone()).collect();
    let progress = wanted.iter().map(|(figure, name)| {
        let variant = figure.variants.iter().position(|variant| variant.name == *name);
        let variant =
            variant.ok_or_else(|| ReproduceError::new(format!("{} has no variant \"{name}\"", figure.name)))?;
        Ok(Progress::first_of(figure, options, variant))
    });
    let progress = progress.collect::<Result<Vec<Progress>, ReproduceError>>()?;
    let (done, interrupted) = round(&figures, options, &progress, &mut 0)?;
    let of_figure = |number: usize| {
        let done: Vec<&Done> = done.iter().filter(|done| done.job.figure == number).collect();
        first_run(&figures[number], &done)
    };
    Ok((!interrupted).then(|| (0..figures.len()).map(of_figure).collect()))
}

/// Makes the runs that are wanted; `finished` is how many were made before. And whether it was
/// cancelled: then those runs that were over by then.
fn round(
    figures: &[Figure],
    options: &ReproduceOptions<'_>,
    progress: &[Progress],
    finished: &mut usize,
) -> Result<(Vec<Done>, bool), ReproduceError> {
    let (courses, mut work) = plan(figures, progress);
    // Probing takes longest: it comes first, so that short work fills the gaps at the end.
    let most = courses.iter().map(|course| course.probing.rates().len()).max().unwrap_or(0);
    let probes = (0..most).flat_map(|place| {
        let wanted = courses.iter().enumerate().filter(move |(_, course)| place < course.probing.rates().len());
        wanted.map(move |(number, _)| Work::Probe(number, place))
    });
    work.splice(0..0, probes.collect::<Vec<_>>());
    let never = Cancel::default();
    let cancel = options.cancel.unwrap_or(&never);
    let before = *finished;
    let tell = |done: usize| options.progress.iter().for_each(|tell| tell(before + done, before + work.len()));
    let results = in_parallel(work.len(), options.threads, cancel, tell, |number| {
        let began = Instant::now();
        let (figure, result) = match work[number] {
            Work::Simulate(job) => {
                let done = simulate(&figures[job.figure], job, options.pictures, cancel);
                (job.figure, WorkResult::Simulated(Box::new(done)))
            }
            Work::Probe(course, place) => {
                let (course, full) = (&courses[course], options.full);
                (course.jobs[0].figure, WorkResult::Probed(Box::new(course.probe(place, full, cancel))))
            }
        };
        options.spent.iter().for_each(|spent| spent(figure, began.elapsed().as_secs_f64()));
        // Nobody can tell whether it was given up midway.
        (!cancel.is_cancelled()).then_some(result)
    })?;
    let interrupted = cancel.is_cancelled();
    *finished += work.len();
    let mut done: Vec<Done> = Vec::new();
    // `None` once a probe of the course is missing.
    let mut probed: Vec<Option<Vec<Probed>>> = courses.iter().map(|_| Some(Vec::new())).collect();
    for (work, result) in work.iter().zip(results) {
        match (work, result.flatten()) {
            (Work::Probe(course, _), Some(WorkResult::Probed(one))) => {
                let one = (*one)?;
                if let Some(probed) = &mut probed[*course] {
                    probed.extend(one);
                }
            }
            (Work::Probe(course, _), _) => probed[*course] = None,
            (Work::Simulate(_), Some(WorkResult::Simulated(one))) => done.push((*one)?),
            (Work::Simulate(_), _) => {}
        }
    }
    for (course, probed) in courses.iter().zip(probed) {
        if let Some(probed) = probed {
            done.extend(course.finish(figures, probed, options)?);
        }
    }
    Ok((done, interrupted))
}

/// What is to be probed, each only once, and what is to be simulated.
fn plan<'a>(figures: &'a [Figure], progress: &[Progress]) -> (Vec<Course<'a>>, Vec<Work>) {
    let (mut courses, mut work): (Vec<Course<'_>>, Vec<Work>) = (Vec::new(), Vec::new());
    for (number, (figure, progress)) in figures.iter().zip(progress).enumerate() {
        for (variant, of_variant) in figure.variants.iter().enumerate() {
            for run in progress.made[variant]..progress.wanted[variant] {
                let job = Job { figure: number, variant, run };
                let Subject::Probing(probing) = &of_variant.subject else {
                    work.push(Work::Simulate(job));
                    continue;
                };
                let key = probing.effective();
                let known = courses.iter().position(|course| course.run == run && course.key == key);
                let place = known.unwrap_or_else(|| {
                    let refused = AtomicU64::new(NONE_REFUSED);
                    courses.push(Course { probing, run, key, refused, named: Vec::new(), jobs: Vec::new() });
                    courses.len() - 1
                });
                courses[place].jobs.push(job);
                courses[place].named.extend(named(figure, variant));
            }
        }
    }
    (courses, work)
}

impl Course<'_> {
    /// Probes the rate at a place, unless a lower one was refused.
    fn probe(&self, place: usize, full: bool, cancel: &Cancel) -> Result<Option<Probed>, ReproduceError> {
        let Some(rate) = self.probing.rates().get(place).copied() else { return Ok(None) };
        // A refusal only ever comes nearer: whoever is skipped is above the lowest one in the end,
        // too.
        let named = self.named.contains(&rate);
        let unwanted = || cancel.is_cancelled() || (!named && self.refused.load(Ordering::Relaxed) < rate.as_bps());
        if unwanted() {
            return Ok(None);
        }
        let probed = self.probing.probe(rate, self.run, full, &unwanted)?;
        if probed.as_ref().is_some_and(|probed| !is_accepted(probed)) {
            self.refused.fetch_min(rate.as_bps(), Ordering::Relaxed);
        }
        Ok(probed)
    }

    /// What the probes say about the claims and pictures of all who share them.
    fn finish(
        &self,
        figures: &[Figure],
        probed: Vec<Probed>,
        options: &ReproduceOptions<'_>,
    ) -> Result<Vec<Done>, ReproduceError> {
        let mut attained = Attained::new(self.probing, probed, &self.named, options.full)?;
        let replays = |job: &Job| {
            let figure = &figures[job.figure];
            measures(figure, job.variant).iter().any(|(_, measure)| measure.replays())
                || drawn(figure, job, options.pictures).iter().any(|(_, picture)| picture.kind.replays())
        };
        if self.jobs.iter().any(replays) {
            attained.replay(options.full, self.run)?;
        }
        let one = |(number, job): (usize, &Job)| {
            let figure = &figures[job.figure];
            let values = measures(figure, job.variant);
            let values = values.into_iter().map(|(number, measure)| (number, measure.of_probes(&attained))).collect();
            let drawn = drawn(figure, job, options.pictures);
            let curves = drawn.into_iter().map(|(number, picture)| (number, attained.curves(picture))).collect();
            // What several share was done once.
            let (data_packets, seconds) =
                if number == 0 { (attained.data_packets, attained.seconds) } else { (0, 0.0) };
            Done { job: *job, values, curves, data_packets, seconds }
        };
        Ok(self.jobs.iter().enumerate().map(one).collect())
    }
}

/// What the claims measure in a variant, by number of the claim.
fn measures(figure: &Figure, variant: usize) -> Vec<(usize, &Measure)> {
    figure
        .claims
        .iter()
        .enumerate()
        .filter(|(_, claim)| claim.cases.iter().any(|case| case.0 == variant || case.1 == Some(variant)))
        .map(|(number, claim)| (number, &claim.spec.measure))
        .collect()
}

/// The probing rates that claims and pictures of a variant name.
fn named(figure: &Figure, variant: usize) -> Vec<Rate> {
    let pictures = figure.pictures.iter().filter(|picture| picture_variants(figure, picture).contains(&variant));
    let drawn = pictures.flat_map(|picture| picture.rates.iter().copied());
    measures(figure, variant).into_iter().filter_map(|(_, measure)| measure.probing_rate()).chain(drawn).collect()
}

/// The pictures that a run is drawn in, by number.
fn drawn<'a>(figure: &'a Figure, job: &Job, pictures: bool) -> Vec<(usize, &'a PictureSpec)> {
    let wanted = |picture: &PictureSpec| {
        (pictures || picture.kind.is_table())
            && wants(picture, job.run)
            && picture_variants(figure, picture).contains(&job.variant)
    };
    figure.pictures.iter().enumerate().filter(|(_, picture)| wanted(picture)).collect()
}

/// True if the picture wants this run.
fn wants(picture: &PictureSpec, run: u64) -> bool {
    run == 0 || picture.kind.takes_all_runs()
}

fn simulate(figure: &Figure, job: Job, pictures: bool, cancel: &Cancel) -> Result<Done, ReproduceError> {
    let variant = &figure.variants[job.variant];
    let impossible =
        |error: &dyn std::fmt::Display| ReproduceError::new(format!("{}, {}: {error}", figure.name, variant.name));
    let Subject::Scenario(scenario) = &variant.subject else { return Err(impossible(&"nothing to simulate")) };
    let scenario: &Scenario = scenario;
    let mut compiled = scenario.simulation(job.run).map_err(|error| impossible(&error))?;
    figure.replications.disturb(&mut compiled.simulation, scenario.path.as_ref().map(|path| path.rtt));
    let measures = measures(figure, job.variant);
    let number_of =
        |name: Option<&str>| name.map_or(Some(0), |name| compiled.links.iter().position(|known| known == name));
    let mut links: Vec<usize> = measures.iter().filter_map(|(_, measure)| number_of(measure.asks().link)).collect();
    links.push(0);
    // Without a path nothing says which times matter; 10 ms resolve what a person could look at.
    let rtt = scenario.path.as_ref().map_or(Span::from_millis(10), |path| path.rtt);
    let recorder =
        Recording::<LinksAndWindows>::new(Asked::scenario(&compiled.simulation, &links, rtt, scenario.duration));
    let simulation = Simulation::new(&compiled.simulation, recorder).map_err(|error| impossible(&error))?;
    // Nobody looks at what is not there when all of it was given up.
    let done = simulation.run_unless(|| cancel.is_cancelled());
    let Some((outcome, record)) = done else { return Err(impossible(&"given up")) };
    let run = ScenarioRun {
        rtt: scenario.path.as_ref().map_or(Span::ZERO, |path| path.rtt),
        simulation: &compiled.simulation,
        groups: compiled.groups.iter().map(|group| group.name.as_str()).collect(),
        links: &compiled.links,
        outcome: &outcome,
        record: &record,
    };
    let values = measures.into_iter().map(|(number, measure)| (number, measure.of_run(&run))).collect();
    let drawn = drawn(figure, &job, pictures);
    let curves = drawn.into_iter().map(|(number, picture)| (number, picture.curves(&run))).collect();
    let seconds = outcome.ended.as_secs_f64();
    Ok(Done { job, values, curves, data_packets: outcome.data_packets, seconds })
}

impl Figure {
    /// The titles of the pictures that it will have, before anything is run.
    #[must_use]
    pub fn picture_titles(&self) -> Vec<String> {
        let titles = |(number, picture): (usize, &PictureSpec)| -> Vec<String> {
            let nothing: Vec<(usize, Vec<Curve>)> =
                picture_variants(self, picture).into_iter().map(|variant| (variant, Vec::new())).collect();
            picture.assemble(number, self, &nothing).into_iter().map(|picture| picture.title).collect()
        };
        self.pictures.iter().enumerate().flat_map(titles).collect()
    }
}

fn picture_variants(figure: &Figure, picture: &PictureSpec) -> Vec<usize> {
    figure.selected(&figure.find("of", &picture.of).unwrap_or_default())
}
