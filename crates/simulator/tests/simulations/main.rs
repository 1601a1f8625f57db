//! Whole simulations. One program: several would compile the simulator several times.

mod adaptive_window;
mod bbr;
mod bbr3;
mod chirping_again;
mod closed_forms;
mod common;
mod emptied;
mod invariants;
mod isolation;
mod media;
mod quick_start;
mod rcp;
mod recoveries;
mod robustness;
mod sessions;
mod silent_link;
mod two_connections;
mod ways;
