//! Cookies on their way: asked of strangers under load, and shown when this side was asked (spec
//! H-10).

use core::ops::Range;

use super::Endpoint;
use super::handshakes::exact;
use crate::drop_reason::DropReason;
use crate::path::Route;
use crate::session::Cookie;
use crate::time::Instant;
use crate::wire::handshake::{COOKIE_REPLY_BYTES, CookieReply, Initiation, Response, SessionIndex};

/// Cookies of one peer that are kept: one per path.
const COOKIES_MAX: usize = 32;

/// A cookie, and where it was given.
#[derive(Clone, Copy, Debug)]
struct StoredCookie {
    route: Route,
    cookie: Cookie,
    given_at: Instant,
}

/// The cookies that a peer gave: one for each of this side's addresses.
#[derive(Debug, Default)]
pub(super) struct CookieJar(Vec<StoredCookie>);

impl CookieJar {
    fn store(&mut self, now: Instant, route: Route, cookie: Cookie) {
        self.0.retain(|stored| !is_same(&stored.route, &route));
        if self.0.len() >= COOKIES_MAX {
            self.0.remove(0);
        }
        self.0.push(StoredCookie { route, cookie, given_at: now });
    }

    pub(super) fn get(&self, now: Instant, route: &Route) -> Option<&Cookie> {
        let stored = self.0.iter().find(|stored| is_same(&stored.route, route))?;
        (now.since(stored.given_at) < Cookie::USE_TIME).then_some(&stored.cookie)
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Where a message went, for the one cookie reply that may come back from each place: without that
/// bound, a reply sent again and again would make this side send as often.
#[derive(Debug, Default)]
pub(super) struct AskedRoutes(Vec<Route>);

impl AskedRoutes {
    pub(super) fn add(&mut self, route: Route) {
        if self.0.len() < COOKIES_MAX && !self.0.iter().any(|known| is_same(known, &route)) {
            self.0.push(route);
        }
    }

    fn take(&mut self, route: &Route) -> Option<Route> {
        let at = self.0.iter().position(|known| is_same(known, route))?;
        Some(self.0.swap_remove(at))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Route> {
        self.0.iter()
    }

    fn contains(&self, route: &Route) -> bool {
        self.0.iter().any(|known| is_same(known, route))
    }
}

fn is_same(a: &Route, b: &Route) -> bool {
    a.socket == b.socket && a.remote == b.remote
}

impl Endpoint {
    /// Lets a handshake message on to the costly part, or says why not. Under load its sender gets
    /// a cookie, which it must show.
    pub(super) fn admit(
        &mut self,
        now: Instant,
        route: Route,
        message: &[u8],
        mac1: Range<usize>,
        sender: Option<SessionIndex>,
    ) -> Result<(), DropReason> {
        self.identity.check_mac1(message, mac1.clone())?;
        let (before_mac2, mac2) = message.split_at(mac1.end);
        let shows_cookie = mac2.iter().any(|byte| *byte != 0);
        if shows_cookie && !self.guard.cookies.accept(now, route.remote, before_mac2, mac2) {
            return Err(DropReason::BadMac);
        }
        if self.guard.has_room(now) {
            return Ok(());
        }
        if shows_cookie {
            return self.guard.source_has_room(now, route.remote.ip());
        }
        let sender = sender.ok_or(DropReason::CookieAsked)?;
        let cookie = self.guard.cookies.cookie(now, &mut self.rng, route.remote);
        let reply = cookie.seal(&mut self.rng, &self.identity.public, sender, &message[mac1]);
        self.handshakes.push_single(route, &reply);
        Err(DropReason::CookieAsked)
    }

    /// The peer is under load: what it had been sent goes out once more, with the cookie shown.
    pub(super) fn handle_cookie_reply(
        &mut self,
        now: Instant,
        route: Route,
        datagram: &[u8],
    ) -> Result<(), DropReason> {
        let reply = exact::<COOKIE_REPLY_BYTES>(datagram)?;
        let local = CookieReply::receiver(reply).ok_or(DropReason::UnexpectedCookie)?;
        let at = *self.sessions.get(&local).ok_or(DropReason::UnexpectedCookie)?;
        let peer = &mut self.peers[at];
        let key = peer.config.public_key;
        if let Some(state) = peer.attempts.state.as_ref().filter(|state| state.local == local) {
            let mut message = state.message;
            let asked = &mut peer.attempts.asked;
            let (route, cookie) = open(reply, &key, asked, &route, &message[Initiation::MAC1])?;
            peer.cookies.store(now, route, cookie);
            cookie.write_mac2(&mut message);
            self.handshakes.push_single(route, &message);
        } else if let Some(answer) = peer.answer.as_mut().filter(|answer| answer.local == local) {
            let mut message = answer.response;
            let (route, cookie) =
                open(reply, &key, &mut answer.asked, &route, &message[Response::MAC1])?;
            cookie.write_mac2(&mut message);
            self.handshakes.push_single(route, &message);
        } else {
            return Err(DropReason::UnexpectedCookie);
        }
        Ok(())
    }
}

/// The cookie of a reply, if the message that it answers went over the route it came by.
fn open(
    reply: &[u8; COOKIE_REPLY_BYTES],
    peer: &crate::session::PublicKey,
    asked: &mut AskedRoutes,
    route: &Route,
    mac1: &[u8],
) -> Result<(Route, Cookie), DropReason> {
    if !asked.contains(route) {
        return Err(DropReason::UnexpectedCookie);
    }
    let cookie = Cookie::open(reply, peer, mac1)?;
    let route = asked.take(route).ok_or(DropReason::UnexpectedCookie)?;
    Ok((route, cookie))
}
