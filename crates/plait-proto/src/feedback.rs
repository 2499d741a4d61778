//! What the peer's egress says about this side's packets, as the bond hands it to the ingress:
//! plain values, so that neither half knows the other.

use crate::wire::control::{Ack, LossReport};

/// Something the peer's egress said about what this side's ingress sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Feedback {
    /// What arrived on a path.
    Ack(Ack),
    /// The loss reports of one control datagram.
    LossReports(Vec<LossReport>),
}
