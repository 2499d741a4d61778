//! The options of plait's files: each declared once, read, written and told in the guide; every
//! mistake named at its place: file and line, option, what is wrong, what was expected. Gateways'
//! and steering nodes' configurations and scenarios are all read through it. It is given texts;
//! reading files is its caller's business.
//!
//! - [`tree`]: a text as values that know where they come from.
//! - [`section`]: takes options out of a table, typed and within [`bounds`], and tells which ones
//!   nobody asked for.
//! - [`problem`]: what can be wrong with an option; [`error`]: that, at a [`place`], and all of it.
//! - [`option`]: the declaration of an option, with its [`form`]; [`value`]: what texts stand for.
//! - [`gateway`], [`node`]: the options of these files; [`tuning`], [`dida`]: sections that several
//!   kinds of file have; [`common`]: options that several sections have.
//! - `nearest`: the known word that a misspelt one resembles.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod bounds;
pub mod common;
pub mod dida;
pub mod error;
pub mod form;
pub mod gateway;
mod nearest;
pub mod node;
pub mod option;
pub mod place;
pub mod problem;
pub mod section;
#[cfg(test)]
pub mod testing;
pub mod tree;
pub mod tuning;
pub mod value;

pub use bounds::Bounds;
pub use error::{Error, Errors, Problems};
pub use place::Place;
pub use problem::Problem;
pub use section::Section;
pub use tree::{Entry, Node, Table, Value};
