//! Sessions: identities, the handshake, path keys and the replay window.

mod handshake;
mod keys;
#[cfg(feature = "simulation")]
mod null_cipher;
mod replay;

pub use handshake::{Established, Hello, Identity, InitiatorState, ResponderState, Timestamp};
pub use keys::{
    Cipher, DirectionSecret, KeyError, PathKey, PresharedKey, PrivateKey, PublicKey, TAG_BYTES,
    Unauthentic,
};
pub use replay::{Replay, ReplayWindow};
