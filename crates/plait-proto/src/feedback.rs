//! What the egress tells the ingress of the same gateway: plain values, so that the two halves may
//! run on threads of their own.

use crate::wire::control::{Ack, LossReport};

/// Something the peer's egress said about what this side's ingress sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Feedback {
    /// What arrived on a path.
    Ack(Ack),
    /// The loss reports of one control datagram.
    LossReports(Vec<LossReport>),
}
