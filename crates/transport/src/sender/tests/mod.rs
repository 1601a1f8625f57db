//! The sender against a receiver over paths that behave and misbehave.

mod pipe;
mod properties;
mod rules;
