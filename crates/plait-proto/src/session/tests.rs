//! Tests of sessions as a whole.

mod vectors;
