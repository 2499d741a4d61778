//! Two endpoints in memory: the whole protocol without a socket.

mod attack;
mod bond;
mod by_hand;
mod clauses;
mod clock;
mod clones;
mod closed_loop;
mod crossed;
mod ecn;
mod handshake;
mod health;
mod hostile;
mod links;
mod mtu;
mod neighbours;
mod operations;
mod pins;
mod ports;
mod rekey;
mod reload;
mod restart;
mod sleep;
mod status;
