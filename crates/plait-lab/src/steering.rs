//! A steering node and its client: real `plait steer` processes, clients that only run the lines of
//! the printed recipe, and a small network for both.

mod client;
mod file;
mod node;
mod placed;
mod site;

pub(crate) use client::{RecipeKind, print_recipe, run_lines};
pub(crate) use file::node_with;
pub(crate) use node::{SteerNode, SteerStatus};
pub(crate) use placed::PlacedNode;
pub(crate) use site::{Layout, SteerSite};
