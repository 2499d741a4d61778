//! Two endpoints in memory: the whole protocol without a socket.

mod bond;
mod handshake;
mod harness;
mod hostile;
mod rekey;
