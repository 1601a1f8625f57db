//! One part of a race: a simulation (or a pair of them), and what is measured of it.

use std::rc::Rc;

use flowstart_units::{Bytes, Span, Time};

use super::build::Purpose;
use super::stage::Runner;
use super::{Contestant, Measure, Race, Series};
use flowstart_measure::measures::{StartRun, TransferRun};
use flowstart_measure::{Asked, Newcomers, Origin, Recording, TransferWaits};

/// What a job brings.
#[derive(Default)]
pub(crate) struct JobResult {
    pub(crate) values: Vec<(Measure, f64)>,
    pub(crate) exits: Vec<Option<flowstart_congestion::ExitReason>>,
    pub(crate) series: Option<Series>,
    pub(crate) data_packets: u64,
    pub(crate) simulated: f64,
}

/// What the others did without the newcomers, from the moment on that they would have come.
#[derive(Debug)]
pub(crate) struct Baseline {
    recording: Recording<Newcomers>,
    data_packets: u64,
    simulated: f64,
}

/// Runs whose series are kept for the pictures: more change neither median nor spread to the eye,
/// and take memory.
const PICTURED_RUNS: u64 = 200;

/// Slices of virtual time between which cancellation is looked for.
const SLICES: u64 = 256;

impl Race {
    /// M7 of one transfer.
    pub(crate) fn transfer<R: Runner>(
        &self,
        contestant: &Contestant,
        run: u64,
        size: Bytes,
        runner: &R,
    ) -> Result<Option<JobResult>, R::Error> {
        let config = self.simulation(contestant, Purpose::Transfer(size), run)?;
        let slice = (self.effective_warm_up() + self.ideal(size) * 4) / SLICES + Span::from_millis(1);
        let first = self.others.tcp_flows();
        let own = [first..first + 1, self.companions(contestant, &config, 1)];
        let watched = Recording::<TransferWaits>::new(Asked::waits(0, own));
        let Some((outcome, waits)) =
            runner.run(self, (contestant, Purpose::Transfer(size), run), &config, watched, slice)?
        else {
            return Ok(None);
        };
        let mut result = JobResult {
            data_packets: outcome.data_packets,
            simulated: outcome.ended.as_secs_f64(),
            ..JobResult::default()
        };
        let flow = outcome.flows.get(first as usize);
        // From when its completion is timed, which a handshake makes later than its coming.
        let first_data = flow.map(|flow| flow.first_data).filter(|first| *first != Time::NEVER);
        let ideal = self.ideal_at(&config, size, first_data.unwrap_or(Time::ZERO + self.newcomers_at(run)));
        let transfer = TransferRun { size, ideal, flow, waits: &waits };
        let values = self.measures().into_iter().map(|measure| (measure, measure.of_transfer(&transfer)));
        result.values = values.filter_map(|(measure, value)| Some((measure, value?))).collect();
        Ok(Some(result))
    }

    /// All other measures, with the queue and the others as they are `without` the newcomers from
    /// the given moment on.
    pub(crate) fn start<R: Runner>(
        &self,
        contestant: &Contestant,
        run: u64,
        runner: &R,
        without: impl FnOnce(Time) -> Result<Option<Rc<Baseline>>, R::Error>,
    ) -> Result<Option<JobResult>, R::Error> {
        let config = self.simulation(contestant, Purpose::Start, run)?;
        let companions = self.companions(contestant, &config, self.flows);
        let recording =
            Recording::<Newcomers>::new(Asked { companions, ..self.asked(&config, run, Origin::FirstData) });
        let Some((outcome, mut recording)) =
            runner.run(self, (contestant, Purpose::Start, run), &config, recording, self.slice())?
        else {
            return Ok(None);
        };
        let mut result = JobResult {
            data_packets: outcome.data_packets,
            simulated: outcome.ended.as_secs_f64(),
            ..JobResult::default()
        };
        let Some(origin) = recording.origin() else {
            let setting = self.setting(&config, run, Time::ZERO + self.newcomers_at(run));
            let values = self.measures().into_iter().map(|measure| (measure, measure.of_nothing(&setting.reference)));
            result.values = values.filter_map(|(measure, value)| Some((measure, value?))).collect();
            result.exits = vec![None; self.flows as usize];
            return Ok(Some(result));
        };
        // Of several newcomers those of whom nothing came count, too.
        recording.complete_flows((self.others.tcp_flows() + self.flows) as usize);
        let without = if self.has_others() {
            let Some(without) = without(origin)? else { return Ok(None) };
            result.data_packets += without.data_packets;
            result.simulated += without.simulated;
            Some(without)
        } else {
            None
        };
        let without = without.as_ref().map(|baseline| &baseline.recording);
        let measured = StartRun::new(self.setting(&config, run, origin), origin, &outcome, &recording, without);
        result.exits =
            measured.newcomers().iter().map(|newcomer| newcomer.flow.start_exit.map(|exit| exit.reason)).collect();
        let values = self.measures().into_iter().map(|measure| (measure, measure.of_start(&measured)));
        result.values = values.filter_map(|(measure, value)| Some((measure, value?))).collect();
        if let Some(first) = recording.flows().get(self.others.tcp_flows() as usize)
            && run < PICTURED_RUNS
        {
            result.series = Some(Series::new(self, &recording, first));
        }
        Ok(Some(result))
    }

    /// The others alone, over the queue that `contestant` meets. `None` after a cancellation.
    pub(crate) fn baseline<R: Runner>(
        &self,
        contestant: &Contestant,
        run: u64,
        origin: Time,
        runner: &R,
    ) -> Result<Option<Baseline>, R::Error> {
        let config = self.simulation(contestant, Purpose::Without, run)?;
        let companions = self.companions(contestant, &config, self.flows);
        let recording =
            Recording::<Newcomers>::new(Asked { companions, ..self.asked(&config, run, Origin::At(origin)) });
        let Some((outcome, recording)) =
            runner.run(self, (contestant, Purpose::Without, run), &config, recording, self.slice())?
        else {
            return Ok(None);
        };
        Ok(Some(Baseline { recording, data_packets: outcome.data_packets, simulated: outcome.ended.as_secs_f64() }))
    }

    fn slice(&self) -> Span {
        (self.effective_warm_up() + self.horizon()) / SLICES + Span::from_millis(1)
    }
}
