//! Values that texts of options are parsed into: names, addresses, amounts.

pub mod amount;
mod cidr;
mod dscp;
mod endpoint;
mod link;
pub mod names;
mod nat;
mod when_down;

pub use cidr::Cidr;
pub use dscp::DscpList;
pub use endpoint::Endpoint;
pub use link::{Identity, LinkName};
pub use nat::{Nat, NatForm};
pub use when_down::WhenDown;
