//! Stages 1 and 2, parse and open: which session a datagram belongs to, its number, the replay
//! window, and its seal. Nothing before this has effect.

use super::Egress;
use crate::drop_reason::DropReason;
use crate::path::map::PathMap;
use crate::path::received::ReceivedRanges;
use crate::seq::{PacketNumber, PathId};
use crate::session::{Cipher, DirectionSecret, PathKey, Replay, ReplayWindow};
use crate::time::{Duration, Instant};
use crate::wire::Kind;
use crate::wire::handshake::SessionIndex;
use crate::wire::sealed::{HEADER_BYTES, Header};

/// When a path's datagrams of one session have been silent for this long, those of another that
/// are new are no stragglers.
const STRAGGLER_TIME: Duration = Duration::from_secs(1);
/// Sessions under which datagrams are still accepted. Both sides may renew at the same time, which
/// makes two sessions: room for three such renewals.
const SESSIONS_MAX: usize = 6;

/// The session under which the egress opens.
#[derive(Debug)]
pub struct ReceiveSession {
    pub(super) local: SessionIndex,
    cipher: Cipher,
    secret: DirectionSecret,
    made_at: Instant,
    pub(super) paths: PathMap<EpochPath>,
}

impl ReceiveSession {
    /// A session in which nothing has arrived.
    pub fn new(now: Instant, local: SessionIndex, cipher: Cipher, secret: DirectionSecret) -> Self {
        Self { local, cipher, secret, made_at: now, paths: PathMap::default() }
    }
}

/// A path within one epoch.
#[derive(Debug)]
pub(super) struct EpochPath {
    key: PathKey,
    replay: ReplayWindow,
    pub(super) ranges: ReceivedRanges,
    pub(super) largest_at: Instant,
    /// Of the same datagram, as `SendTimestamp::transit` gives it.
    pub(super) largest_transit: u16,
    /// Where this epoch's packet number zero lies among all the path's numbers, once that is known.
    pub(super) base: Option<u64>,
}

/// A datagram that opened.
pub(super) struct Plain<'a> {
    /// Its session's place among those in use.
    pub(super) session: usize,
    /// Its packet number.
    pub(super) number: PacketNumber,
    /// What was sealed.
    pub(super) text: &'a mut [u8],
}

impl Egress {
    /// Finds a datagram's session and opens it.
    pub(super) fn open<'a>(
        &mut self,
        now: Instant,
        header: Header,
        datagram: &'a mut [u8],
    ) -> Result<Plain<'a>, DropReason> {
        let known = self.sessions.iter().position(|session| session.local == header.session);
        let at = known.ok_or(DropReason::UnknownIndex)?;
        let session = &mut self.sessions[at];
        if now >= session.made_at + self.reject_after {
            return Err(DropReason::ExpiredSession);
        }
        if header.kind == Kind::Data && !self.paths.contains(header.path) {
            return Err(DropReason::UnknownPath);
        }
        let (number, text) = open(now, session, header, datagram)?;
        Ok(Plain { session: at, number, text })
    }

    /// Accepts datagrams under one more session; the oldest beyond six is forgotten.
    pub fn add_session(&mut self, session: ReceiveSession) -> Option<SessionIndex> {
        self.sessions.push(session);
        (self.sessions.len() > SESSIONS_MAX).then(|| self.sessions.remove(0).local)
    }

    /// Accepts nothing under this session any more.
    pub fn remove_session(&mut self, index: SessionIndex) {
        self.sessions.retain(|session| session.local != index);
    }

    /// When the oldest session is too old.
    pub fn sessions_expire_at(&self) -> Option<Instant> {
        self.sessions.iter().map(|session| session.made_at + self.reject_after).min()
    }

    /// Wipes the sessions that are too old, and names them.
    pub fn forget_expired(&mut self, now: Instant) -> Vec<SessionIndex> {
        let is_old = |session: &ReceiveSession| now >= session.made_at + self.reject_after;
        let expired = self.sessions.iter().filter(|session| is_old(session));
        let expired: Vec<_> = expired.map(|session| session.local).collect();
        self.sessions.retain(|session| !expired.contains(&session.local));
        expired
    }

    /// Whether datagrams with this index belong here.
    pub fn has_session(&self, index: SessionIndex) -> bool {
        self.sessions.iter().any(|session| session.local == index)
    }

    /// Sessions in use, for the owner's table of indices.
    pub fn session_indices(&self) -> impl Iterator<Item = SessionIndex> + '_ {
        self.sessions.iter().map(|session| session.local)
    }

    /// Whether the peer sends on the path under this session, as far as can be seen. Two sessions
    /// that both sides make at the same time need not be used in the order in which they were made.
    pub(super) fn is_current(&self, now: Instant, session: usize, path: PathId) -> bool {
        self.sessions[session + 1..]
            .iter()
            .filter_map(|later| later.paths.get(path))
            .all(|epoch| epoch.largest_at + STRAGGLER_TIME < now)
    }

    /// Whether the datagram that was just taken has the highest number of its path: none that was
    /// sent later has arrived, in this epoch or a later one.
    pub fn is_newest(&self, now: Instant, header: &Header) -> bool {
        let known = self.sessions.iter().position(|session| session.local == header.session);
        let Some(at) = known else { return false };
        let epoch = self.sessions[at].paths.get(header.path);
        let largest = epoch.and_then(|path| path.ranges.largest());
        largest.is_some_and(|largest| largest.truncate() == header.number)
            && self.is_current(now, at, header.path)
    }
}

/// Checks and decrypts a datagram. Only an authentic one leaves a trace: a path seen for the first
/// time gets its state after its first datagram has opened.
fn open<'a>(
    now: Instant,
    session: &mut ReceiveSession,
    header: Header,
    datagram: &'a mut [u8],
) -> Result<(PacketNumber, &'a mut [u8]), DropReason> {
    let (aad, sealed) = datagram.split_at_mut(HEADER_BYTES);
    if let Some(path) = session.paths.get_mut(header.path) {
        let expected = path.replay.highest().map_or(0, |highest| highest + 1);
        let number = header.number.expand(PacketNumber(expected));
        path.replay.check(number.0).map_err(|replay| match replay {
            Replay::Duplicate => DropReason::Replayed,
            Replay::TooOld => DropReason::TooOld,
        })?;
        let text = path.key.open(number, aad, sealed).map_err(|_| DropReason::BadTag)?;
        path.replay.accept(now, number.0).map_err(|_| DropReason::Replayed)?;
        return Ok((number, text));
    }
    let key = session.secret.path_key(session.cipher, header.path);
    let number = header.number.expand(PacketNumber(0));
    let text = key.open(number, aad, sealed).map_err(|_| DropReason::BadTag)?;
    let mut replay = ReplayWindow::new();
    replay.accept(now, number.0).map_err(|_| DropReason::TooOld)?;
    let path = EpochPath {
        key,
        replay,
        ranges: ReceivedRanges::default(),
        largest_at: now,
        largest_transit: 0,
        base: None,
    };
    session.paths.insert(header.path, path);
    Ok((number, text))
}
