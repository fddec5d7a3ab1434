//! Tests of the whole crate through its public interface.

// A test that cannot go on fails, in its helpers as in its own body.
#![allow(clippy::unwrap_used)]

mod batches;
mod cases;
mod differential;
mod generator;
mod properties;
mod running;
mod stopping;
mod support;
