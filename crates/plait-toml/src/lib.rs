//! Options out of TOML, with every mistake named at its place: file and line, option, what is
//! wrong, what was expected. Gateways' configurations and scenarios are both read through it. It is
//! given texts; reading files is its caller's business.
//!
//! - [`tree`]: a text as values that know where they come from.
//! - [`section`]: takes options out of a table, typed and within [`bounds`], and tells which ones
//!   nobody asked for.
//! - [`problem`]: what can be wrong with an option; [`error`]: that, at a [`place`], and all of it.
//! - [`tuning`]: the two sections that both kinds of file have.
//! - [`dida`]: the section that steering nodes' files and scenarios both have.
//! - `nearest`: the known word that a misspelt one resembles.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod bounds;
pub mod dida;
pub mod error;
mod nearest;
pub mod place;
pub mod problem;
pub mod section;
pub mod tree;
pub mod tuning;

pub use bounds::Bounds;
pub use error::{Error, Errors, Problems};
pub use place::Place;
pub use problem::Problem;
pub use section::Section;
pub use tree::{Entry, Node, Table, Value};
