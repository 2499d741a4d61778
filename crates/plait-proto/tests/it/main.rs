//! Two endpoints in memory: the whole protocol without a socket.

mod bond;
mod handshake;
mod harness;
mod health;
mod hostile;
mod rekey;
