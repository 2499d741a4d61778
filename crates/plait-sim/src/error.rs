//! Why a world cannot be made.

/// Something in a scenario that the simulator does not support.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WorldError {
    /// A list of outages that the link model refuses.
    #[error("links.{link}: {cause}")]
    Link {
        /// The link.
        link: String,
        /// What is wrong, and what would be right.
        cause: String,
    },
    /// Settings of a TCP sender.
    #[error("app.{app}: {cause}")]
    Tcp {
        /// The application.
        app: String,
        /// What is wrong, and what would be right.
        cause: String,
    },
    /// QUIC over a connection of several TCP subflows.
    #[error(
        "app.{app}: QUIC does not run over MPTCP, which carries TCP; choose another `via`, or a \
         recovery of TCP"
    )]
    QuicOverMptcp {
        /// The application.
        app: String,
    },
    /// Too many applications.
    #[error("{count} applications: the simulator takes {max} at most, make two scenarios of it")]
    Apps {
        /// How many there are.
        count: usize,
        /// How many there may be.
        max: usize,
    },
    /// The gateways did not find each other.
    #[error(
        "the bond was not up with all its paths after {waited_s} s: look at the links' rates, \
         losses and outages at the start"
    )]
    NoBond {
        /// How long the gateways tried.
        waited_s: u64,
    },
}
