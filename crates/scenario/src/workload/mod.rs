//! What users want: sequences of requests drawn from published models.

mod web;

pub use web::{Files, Http, Page, WebModel};
