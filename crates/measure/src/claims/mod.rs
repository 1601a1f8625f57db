//! The measures of claims about runs of scenarios. Each is one type with its parameters, its words
//! and its function, in the file of its subject, and one line of `scenario_measures!`.

mod isolation;
mod item;
mod losses;
mod queue;
mod quick_start;
mod run;
mod speed;
mod transfers;
mod window;

pub use isolation::*;
pub use item::{Asks, ScenarioMeasure};
pub use losses::*;
pub use queue::*;
pub use quick_start::*;
pub use run::ScenarioRun;
pub use speed::*;
pub use transfers::*;
pub use window::*;

/// Gives all measures of claims about runs of scenarios to the macro `$then`, in the order of the
/// reference page, with more behind them.
#[macro_export]
macro_rules! scenario_measures {
    ($then:ident! { $($more:tt)* }) => {
        $then! {
            scenarios {
                CompletionTime,
                CompletionToModel,
                PageTime,
                GrantedRate,
                Completed,
                QueueDelay,
                Throughput,
                TimeToRate,
                ExitTime,
                ExitWindow,
                Window,
                Drops,
                Marks,
                DropInterval,
                RoundTrip,
                SmoothedRtt,
                Isolation,
                IsolationChange,
                IsolationTime,
                IsolationRatio,
                IsolationRate,
                DropsInStart,
                Retransmissions,
                Timeouts,
            }
            $($more)*
        }
    };
}
