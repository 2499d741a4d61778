//! The options of plait's files: each declared once, for reading, writing and the guide; every
//! mistake reported with its place: file and line, option, what is wrong, what was expected.
//! Configurations of gateways and steering nodes, and scenarios, are all read through it. It takes
//! texts; its callers read the files.
//!
//! - [`tree`]: a text as a tree of values, each with its place.
//! - [`section`]: takes options out of a table, typed and within [`bounds`], and reports unknown
//!   ones.
//! - [`problem`]: what can be wrong with an option; [`error`]: a problem at a [`place`], and all
//!   errors of a file.
//! - [`option`]: the declaration of an option, with its [`form`]; [`value`]: parsed texts.
//! - [`gateway`] with [`forward`], [`beside`], [`hook`], [`lan`] and [`dns`], [`node`],
//!   [`proxy`]: the options of these files; [`tuning`], [`dida`]: sections shared by several kinds
//!   of file; [`common`]: options shared by several sections.
//! - `nearest`: the known word that a misspelt one resembles.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod beside;
pub mod bounds;
pub mod common;
pub mod dida;
pub mod dns;
pub mod error;
pub mod form;
pub mod forward;
pub mod gateway;
pub mod hook;
pub mod lan;
mod nearest;
pub mod node;
pub mod option;
pub mod place;
pub mod problem;
pub mod proxy;
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
