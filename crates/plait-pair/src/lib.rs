//! Two gateways in memory: a customer with several links and a provider with one address.
//!
//! [`Pair`] holds all of it: both endpoints, the links between them, and time. For other links or
//! another order of events take the parts: [`Gateway`] makes an endpoint, [`Flying`] holds what is
//! on its way, [`packet()`] writes inner packets that can be told apart.
//!
//! It uses the protocol as every gateway does. A null cipher, as in the simulator, comes from
//! outside: [`Gateway::build`] takes the constructor as an argument.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod flying;
mod gateway;
mod link;
mod packet;
mod pair;
mod setup;

pub use flying::Flying;
pub use gateway::{
    CUSTOMER, CUSTOMER_IP, Gateway, INNER_IPS, KEEPALIVE, PROVIDER, PROVIDER_IP,
    WALL_CLOCK_AT_ZERO, datagrams, link_config, private_key, provider_address, public_key, route,
};
pub use link::{Datagram, Fault, Link};
pub use packet::{PACKET_BYTES_MIN, number, packet, packet_of, packet_with};
pub use pair::Pair;
pub use setup::{Input, Setup, Watch, bond_config};
