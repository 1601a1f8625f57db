//! What can be run in reasonable time and memory.

use flowstart_units::{Bytes, Rate, Span};

use super::{Contestant, MAX_BDP_PACKETS, MAX_FLOWS, MAX_PACKETS, MAX_RTT, MAX_RUNS, MSS, Purpose, Race, RaceError};

impl Race {
    /// Checks that the race can be run in reasonable time and memory.
    ///
    /// # Errors
    /// One sentence about the first value that is out of range, and what would be right.
    pub fn validate(&self) -> Result<(), RaceError> {
        let fail = |message: String| Err(RaceError(message));
        let capacity = self.capacity();
        if capacity == Rate::ZERO {
            return fail("a capacity of 0 carries nothing; the default is \"100 Mbit/s\"".to_owned());
        }
        if capacity.is_unlimited() {
            return fail(
                "an unlimited capacity has no bottleneck to race for; the default is \"100 Mbit/s\"".to_owned(),
            );
        }
        if self.path.rtt.is_zero() {
            return fail("an RTT of 0 leaves no path to race over; the default is \"20 ms\"".to_owned());
        }
        if self.path.rtt > MAX_RTT {
            return fail(format!("an RTT of {} is longer than {MAX_RTT}", self.path.rtt));
        }
        if self.flows == 0 || self.flows > MAX_FLOWS || self.others.tcp_flows() > MAX_FLOWS {
            return fail(format!("the number of flows must be between 1 and {MAX_FLOWS}, newcomers and others each"));
        }
        if self.phases.is_some_and(Span::is_zero) {
            return fail("phases of 0 move no start; give a time above 0, such as the base RTT".to_owned());
        }
        if self.phases.is_some() && self.flows < 2 {
            return fail(
                "phases move the starts of all newcomers but the first, and there is one; give --flows 2 or more, or \
                 leave them out"
                    .to_owned(),
            );
        }
        if let Some(phases) = self.phases.filter(|phases| *phases > self.horizon()) {
            return fail(format!(
                "phases of {phases} are longer than newcomers are watched, {}; give shorter ones or a longer horizon",
                self.horizon()
            ));
        }
        if self.phases.is_some() && self.world.is_real() {
            return fail("phases are for simulated races; real ones differ from run to run anyway".to_owned());
        }
        if self.runs.is_some_and(|runs| runs == 0 || runs > MAX_RUNS) {
            return fail(format!("the number of runs must be between 1 and {MAX_RUNS}"));
        }
        if self.fair_share() == Rate::ZERO {
            return fail(format!(
                "the datagrams that are there leave nothing of {}; newcomers need a share of it",
                self.path.medium.policer.map_or(capacity, |policer| capacity.min(policer.rate))
            ));
        }
        if self.contestants.is_empty() {
            return fail("nobody races; name at least one contestant".to_owned());
        }
        if self.horizon() < self.base_rtt() {
            return fail(format!(
                "a horizon of {} is shorter than one round trip of {}",
                self.horizon(),
                self.base_rtt()
            ));
        }
        self.validate_cost()?;
        for contestant in &self.contestants {
            let part = |error: String| RaceError(format!("{contestant}: {error}"));
            contestant.start.validate().map_err(|error| part(error.to_string()))?;
            contestant.avoidance.validate().map_err(|error| part(error.to_string()))?;
            self.simulation(contestant, Purpose::Start, 0)?;
            self.validate_memory(contestant)?;
        }
        Ok(())
    }

    /// Refuses a simulation that needs more memory than is free here; real races have none.
    pub(super) fn validate_memory(&self, contestant: &Contestant) -> Result<(), RaceError> {
        if self.world.is_real() {
            return Ok(());
        }
        let mut scenario = self.scenario(contestant, Purpose::Start, 0);
        // A race has no table of them.
        scenario.output.sample = Span::ZERO;
        scenario.fits_memory().map_err(|error| {
            let said = error.to_string();
            RaceError(format!("{contestant}: {}", said.strip_prefix("scenario: ").unwrap_or(&said)))
        })
    }

    pub(super) fn validate_cost(&self) -> Result<(), RaceError> {
        let packet_bits = f64::from(self.packet()) * 8.0;
        let packets_in = |span: Span| self.capacity().as_bps() as f64 * span.as_secs_f64() / packet_bits;
        let bdp = packets_in(self.base_rtt());
        if bdp > MAX_BDP_PACKETS {
            return Err(RaceError(format!(
                "{} and {} make a bandwidth-delay product of {bdp:.0} packets; at most {MAX_BDP_PACKETS:.0} can be simulated",
                self.capacity(),
                self.path.rtt
            )));
        }
        let lasting = self.effective_warm_up() + self.effective_phase() + self.run_length();
        let packets = packets_in(lasting);
        if packets > MAX_PACKETS {
            return Err(RaceError(format!(
                "one run of {:.0} s at {} would carry {packets:.0} packets; at most {MAX_PACKETS:.0} can be simulated: \
                 choose a lower capacity or a shorter horizon",
                lasting.as_secs_f64(),
                self.capacity()
            )));
        }
        for (place, size) in self.sizes.iter().enumerate() {
            if *size == Bytes::ZERO {
                return Err(RaceError("a transfer of 0 bytes never begins; the smallest is \"1 B\"".to_owned()));
            }
            // Two columns would have one name, and documents only one of them.
            if self.sizes[..place].contains(size) {
                return Err(RaceError(format!("{size} is among the sizes twice; name each once")));
            }
            let packets = size.get() as f64 / f64::from(MSS);
            if packets > MAX_PACKETS {
                return Err(RaceError(format!(
                    "a transfer of {size} is {packets:.0} packets; at most {MAX_PACKETS:.0} ({}) can be simulated",
                    Bytes::new(MAX_PACKETS as u64 * u64::from(MSS))
                )));
            }
        }
        Ok(())
    }
}
