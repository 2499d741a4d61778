//! Values that texts of options are parsed into: names, addresses, amounts.

pub mod amount;
mod cidr;
mod endpoint;
pub mod names;
mod nat;
mod when_down;

pub use cidr::Cidr;
pub use endpoint::Endpoint;
pub use nat::{Nat, NatForm};
pub use when_down::WhenDown;
