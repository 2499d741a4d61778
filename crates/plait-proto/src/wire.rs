//! The wire: layouts and their checked readers. `docs/spec/wire.md` has the numbered clauses.
//!
//! Readers never panic. They work in place, but for the list of a control datagram's frames, which
//! the datagram's length bounds. What they refuse the caller counts under a
//! [`DropReason`](crate::drop_reason::DropReason).

pub mod control;
pub mod dscp;
pub mod ecn;
pub mod fragment;
pub mod handshake;
pub mod icmp;
pub mod ip;
pub mod mss;
pub mod sealed;
pub mod tcp;

/// The protocol version, in the high four bits of the first byte (spec W-1).
pub const VERSION: u8 = 1;

/// The newest revision of the version that this code speaks; it speaks all before it, too
/// (spec V-2).
pub const REVISION: u8 = 1;

/// Most revisions that a version can have: a hello has six bits for them (spec H-4).
pub const REVISION_MAX: u8 = 63;

/// What a datagram is, in the low four bits of the first byte (spec W-1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// First message of a handshake.
    Initiation,
    /// Second message of a handshake.
    Response,
    /// Asks the sender of a handshake message to prove its address.
    CookieReply,
    /// An inner packet.
    Data,
    /// Frames between the gateways.
    Control,
}

/// The first byte of a datagram of this kind.
pub const fn first_byte(kind: Kind) -> u8 {
    let number = match kind {
        Kind::Initiation => 1,
        Kind::Response => 2,
        Kind::CookieReply => 3,
        Kind::Data => 4,
        Kind::Control => 5,
    };
    VERSION << 4 | number
}

impl Kind {
    /// The kind that a first byte names; `None` for another version or an unknown kind.
    pub const fn of(first: u8) -> Option<Self> {
        match first {
            0x11 => Some(Self::Initiation),
            0x12 => Some(Self::Response),
            0x13 => Some(Self::CookieReply),
            0x14 => Some(Self::Data),
            0x15 => Some(Self::Control),
            _ => None,
        }
    }
}

/// Whether a first byte names another version than this code's (spec V-1).
pub const fn is_other_version(first: u8) -> bool {
    first >> 4 != VERSION
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spec W-1.
    #[test]
    fn kinds_survive_their_first_byte() {
        let sealed = [Kind::Data, Kind::Control];
        for kind in [Kind::Initiation, Kind::Response, Kind::CookieReply].into_iter().chain(sealed)
        {
            assert_eq!(Kind::of(first_byte(kind)), Some(kind));
        }
        assert_eq!(Kind::of(0x24), None, "another version");
    }
}
