//! What Quick-Start gains by its analytic model: a table and a picture.

use flowstart_quick_start::model::{Link, Start, Transfer};
use flowstart_report::{Axis, Cell, Color, Column, Figure, Legend, Series, Table};
use flowstart_units::{Bytes, Rate, Span};

/// Sizes between two that are asked for, so that lines are curves.
const STEPS: u32 = 24;

/// Transfers whose response times the model gives, with and without a grant.
#[derive(Clone, Debug, PartialEq)]
pub struct Gain {
    /// Rate of the bottleneck; more than zero.
    pub capacity: Rate,
    /// Rate that the routers grant; more than zero.
    pub grant: Rate,
    /// Round-trip times without queue and transmission.
    pub rtts: Vec<Span>,
    /// Sizes of the transfers.
    pub sizes: Vec<Bytes>,
    /// How the window begins and grows without a grant.
    pub start: Start,
    /// Bytes of a full packet.
    pub packet: u32,
    /// Bytes of headers in it, fewer than its own.
    pub headers: u32,
}

impl Gain {
    /// Times in seconds with slow start and with Quick-Start.
    fn times(&self, rtt: Span, size: Bytes) -> (f64, f64) {
        let link = Link { rate: self.capacity, rtt, packet: self.packet, headers: self.headers };
        let transfer = Transfer::new(link, self.start);
        // The model is of full packets, and the last one is as long as what is left.
        let full = u64::from(self.packet - self.headers);
        let missing = Bytes::new(size.get().div_ceil(full) * full - size.get());
        let missing = missing.get() as f64 * 8.0 / self.capacity.as_bps() as f64;
        (transfer.slow_start(size) - missing, transfer.quick_start(size, self.grant) - missing)
    }

    /// A row for every size and round-trip time.
    #[must_use]
    pub fn table(&self) -> Table {
        let seconds = |heading: &str| Column::number(heading, "s");
        let columns = vec![
            Column::key("size"),
            Column::key("RTT"),
            seconds("slow start").help("From the request to the last byte."),
            seconds("Quick-Start").help("The same with the grant."),
            Column::number("gain", "").help("How many times longer slow start takes."),
        ];
        let title = format!(
            "{} over {}, initial window {}: response times of the model",
            self.grant, self.capacity, self.start.initial_window
        );
        let mut table = Table::new(title, columns);
        for (size, rtt) in self.sizes.iter().flat_map(|size| self.rtts.iter().map(move |rtt| (*size, *rtt))) {
            let (slow, quick) = self.times(rtt, size);
            table.push(vec![
                Cell::text(size.to_string()),
                Cell::text(rtt.to_string()),
                Cell::number(slow, 3),
                Cell::number(quick, 3),
                Cell::number(slow / quick, 2),
            ]);
        }
        table.notes.push("One link without loss, from the request to the last byte, without the handshake.".to_owned());
        table
    }

    /// A line for every round-trip time; `command` is what drew it.
    #[must_use]
    pub fn picture(&self, command: &str) -> Figure {
        let mut figure = Figure::new(
            "Gain of Quick-Start by size",
            Axis::new("Size of the transfer", "kB").log(),
            Axis::new("Time with slow start over time with Quick-Start", ""),
        );
        figure.legend = Legend::Above;
        figure.command = command.to_owned();
        figure.caption = format!(
            "Analytic model: {} granted of {}, initial window of {} packets, no loss.",
            self.grant, self.capacity, self.start.initial_window
        );
        let bytes = |size: &Bytes| size.get() as f64;
        let least = self.sizes.iter().map(bytes).fold(f64::INFINITY, f64::min);
        let most = self.sizes.iter().map(bytes).fold(0.0, f64::max);
        let steps = STEPS * self.sizes.len() as u32;
        for (number, rtt) in self.rtts.iter().enumerate() {
            let points = (0..=steps).map(|step| {
                let size = least * (most / least).powf(f64::from(step) / f64::from(steps.max(1)));
                let (slow, quick) = self.times(*rtt, Bytes::new(size.round() as u64));
                [size / 1e3, slow / quick]
            });
            figure.series.push(Series::line(format!("RTT {rtt}"), Color::new(number), points.collect()));
        }
        figure.mark_y(1.0, "no gain");
        figure
    }

    /// As a document.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        let rows = self.sizes.iter().flat_map(|size| self.rtts.iter().map(move |rtt| (*size, *rtt))).map(|(size, rtt)| {
            let (slow, quick) = self.times(rtt, size);
            serde_json::json!({
                "size_bytes": size.get(), "rtt_s": rtt.as_secs_f64(), "slow_start_s": slow, "quick_start_s": quick, "gain": slow / quick,
            })
        });
        serde_json::json!({
            "capacity_bps": self.capacity.as_bps(), "grant_bps": self.grant.as_bps(), "initial_window": self.start.initial_window,
            "threshold": self.start.threshold, "rows": rows.collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A byte took as long as a full packet.
    #[test]
    fn the_last_packet_is_as_long_as_what_is_left() {
        let gain = Gain {
            capacity: Rate::from_bps(100_000),
            grant: Rate::from_bps(80_000),
            rtts: Vec::new(),
            sizes: Vec::new(),
            start: Start { initial_window: 10, growth: 2.0, threshold: None },
            packet: 1500,
            headers: 40,
        };
        for (size, ms) in [(1, 23.28), (1_000, 103.2), (1_460, 140.0), (1_461, 143.28)] {
            let (slow, quick) = gain.times(Span::from_millis(20), Bytes::new(size));
            assert!((slow * 1e3 - ms).abs() < 1e-6, "{size}: {slow}");
            assert!((quick * 1e3 - ms).abs() < 1e-6, "{size}: {quick}");
        }
    }
}
