//! Controllers as a transport drives them. One program: several would compile them several times.

mod bbr3;
mod chirping_again;
mod chirping_generations;
mod common;
mod decision;
mod heuristic_exits;
mod matrix;
mod names;
mod outside;
mod paced_chirping;
mod quick_start;
mod rate_controls;
mod rate_starts;
