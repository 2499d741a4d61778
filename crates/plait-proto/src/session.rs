//! Sessions: identities, the handshake and its cookies, path keys and the replay window.

mod cookie;
mod handshake;
mod key_log;
mod keys;
mod noise;
#[cfg(feature = "simulation")]
mod null_cipher;
mod replay;
#[cfg(test)]
mod tests;
#[cfg(feature = "simulation")]
mod toy_handshake;

pub use cookie::{Cookie, CookieSecrets};
pub use handshake::{
    Established, Finished, Hello, Identity, InitiatorState, ResponderState, Timestamp,
};
pub use key_log::LoggedSecret;
pub use keys::{
    Cipher, DirectionSecret, KeyError, PathKey, PresharedKey, PrivateKey, PublicKey, Unauthentic,
};
pub use replay::{Replay, ReplayWindow};
