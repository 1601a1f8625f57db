//! How fast is a flow control, over which time? Service curves estimated from the delays of
//! constant-rate probes.
//!
//! A flow control whose window rises and falls has no single rate: over a minute it may carry 9
//! Mbit/s, over any tenth of a second hardly anything. This crate measures the rate that is
//! *attained* over intervals of every length, with a stated probability, from nothing but time
//! stamps: Luebben and Fidler, "A benchmark for the performance of time-varying closed-loop flow
//! control with application to TCP" (arXiv 1609.00653). The delays may come from anywhere: a
//! simulation, a file, a socket.
//!
//! Delays of a real system are read by [`read_csv`] (Parquet by the crate `parquet`), and analysed
//! by [`estimate_records`].
//!
//! 1. [`probe_rate`] takes the delays of one constant-rate flow, thins them until they are
//!    independent, checks that they are stationary, and keeps a quantile, or says that the rate is
//!    too high or that it cannot tell.
//! 2. [`Estimate`] joins such probes of increasing rates into a [`ServiceCurve`]: the attainable
//!    rate, its inverse, its breakpoints.
//! 3. [`ServiceCurve::delay_bounds`] and [`ServiceCurve::backlog_bounds`] say what arbitrary
//!    [`Arrivals`], a video for example, will meet.
//!
//! 4. Beyond the paper: [`Estimate::band`] says how certain a curve is, [`calibrate_jointly`]
//!    replaces the union bound over the rates, [`StartupCurve`] is what a *new* flow is guaranteed
//!    in its first t, and [`BurstCurve`] a curve that need not be convex, from bursts after idle
//!    time.
//!
//! ```
//! use flowstart_service_curve::{
//!     AdaptiveLoop, AdaptiveLoopConfig, ConstantRate, Estimate, ProbeConfig, probe_rate,
//! };
//! use flowstart_units::{Rate, Span};
//!
//! // A window that grows by one packet per round trip and is halved by one mark in a thousand
//! // packets; 1000 and 2000 packets per second.
//! let config =
//!     ProbeConfig { samples: 100, warm_up: Span::from_secs(10), ..ProbeConfig::default() };
//! let probes = [12_000_000, 24_000_000].map(|bps| {
//!     let rate = Rate::from_bps(bps);
//!     let packets = ConstantRate::new(rate, config.packet);
//!     let flow = AdaptiveLoop::new(AdaptiveLoopConfig::default(), packets, 1).unwrap();
//!     probe_rate(rate, flow.delays(), &config).unwrap()
//! });
//! let estimate = Estimate::new(probes.into(), &config);
//! // Nothing arrives sooner than the propagation delay.
//! assert!(estimate.curve.origin() >= Some(Span::from_millis(5)));
//! let second = estimate.curve.attainable_rate(Span::from_secs(1));
//! assert!(second > 12e6 && second < 24e6);
//! ```

mod band;
mod bounds;
mod burst;
mod curve;
mod error;
mod estimate;
mod joint;
mod probability;
mod probe;
mod records;
mod served;
mod source;
mod startup;
mod static_window;
pub mod stats;
mod video;

pub use band::{BandConfig, BandPoint};
pub use bounds::Arrivals;
pub use burst::BurstCurve;
pub use curve::{Line, ServiceCurve};
pub use error::Error;
pub use estimate::{End, Estimate, LongRun, last_wanted};
pub use joint::{Joint, calibrate_jointly};
pub use probability::Probability;
pub use probe::{
    Accepted, GiveUp, OnUnitRoot, PAPER_SAMPLES, ProbeConfig, ProbeVerdict, RateProbe, Undecided, probe_rate,
};
pub use records::{Columns, MessageTrain, Passed, Record, RecordError, estimate_records, read_csv, write_csv};
pub use served::Served;
pub use source::{AdaptiveLoop, AdaptiveLoopConfig, ConstantRate, Growth, Marking, Sent, WindowedLink};
pub use startup::StartupCurve;
pub use static_window::StaticWindow;
pub use video::{Video, VideoConfig};
