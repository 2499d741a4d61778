//! Clauses of the specification, shown by an endpoint and a peer made by hand in front of it.

mod frames;
mod handshakes;
mod order;
mod paths;
mod versions;
