//! Follows the peer to another address: when a path's newest datagram comes from elsewhere, the
//! peer is asked there, and the path's route changes once it has answered from there. RFC 9000 §9.3
//! is the model; unlike there, data keeps to the old route until then.

use super::Route;
use crate::time::{Duration, Instant};
use crate::wire::control::Token;

/// A candidate is asked again, and may be displaced, no sooner than this.
const PATIENCE_MIN: Duration = Duration::from_millis(20);
const PATIENCE_MAX: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug)]
struct Candidate {
    route: Route,
    token: Token,
    asked_at: Instant,
}

/// Where a path's peer may have gone: at most one candidate.
///
/// A challenge goes out for no more than one datagram that arrived, and takes 39 bytes where the
/// shortest authentic datagram takes 30: less than the three times as much that RFC 9000 §8 allows
/// toward an address that was not validated.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RouteCheck {
    candidate: Option<Candidate>,
}

impl RouteCheck {
    /// Where a path would lead if the peer were followed to where a datagram came from; `None`
    /// when that is where it leads, or when it must not be followed there. A path of this side
    /// stays on its link, whatever the peer sends where.
    pub(crate) fn other_route(known: &Route, seen: &Route, is_own: bool) -> Option<Route> {
        // A path that leaves the source address to the host does so on any route.
        let local = known.local.and(seen.local);
        let route = Route { local, ..*seen };
        (route != *known && !(is_own && route.socket != known.socket)).then_some(route)
    }

    /// The path's newest datagram came over `route`: gives the token with which to ask there,
    /// unless it is too soon.
    pub(crate) fn note(
        &mut self,
        now: Instant,
        route: Route,
        rtt: Option<Duration>,
        fresh_token: impl FnOnce() -> Token,
    ) -> Option<Token> {
        let patience = rtt.map_or(PATIENCE_MAX, |rtt| rtt.clamp(PATIENCE_MIN, PATIENCE_MAX));
        if self.candidate.is_some_and(|known| now < known.asked_at + patience) {
            return None;
        }
        // An answer to the first question must count after the second was sent.
        let again = self.candidate.filter(|known| known.route == route).map(|known| known.token);
        let token = again.unwrap_or_else(fresh_token);
        self.candidate = Some(Candidate { route, token, asked_at: now });
        Some(token)
    }

    /// An answer arrived over `seen`: gives the path's new route when it is the candidate's.
    pub(crate) fn confirm(&mut self, token: Token, seen: &Route) -> Option<Route> {
        let route = self.candidate.filter(|known| known.token == token)?.route;
        if route.remote != seen.remote || route.socket != seen.socket {
            return None;
        }
        self.candidate = None;
        Some(route)
    }
}

#[cfg(test)]
mod tests {
    use core::net::SocketAddr;

    use super::*;
    use crate::config::SocketId;

    fn route(last: u8) -> Route {
        Route { socket: SocketId(0), remote: SocketAddr::from(([10, 0, 0, last], 1)), local: None }
    }

    /// Spec P-9: for a round trip, at least 20 ms.
    #[test]
    fn one_candidate_is_asked_at_a_time() {
        let mut check = RouteCheck::default();
        let rtt = Some(Duration::from_millis(50));
        let at = Instant::from_millis;
        assert_eq!(check.note(at(0), route(2), rtt, || 7), Some(7));
        assert_eq!(check.note(at(49), route(2), rtt, || 8), None);
        assert_eq!(check.note(at(49), route(3), rtt, || 8), None, "the first has its time");
        assert_eq!(check.note(at(50), route(2), rtt, || 8), Some(7));
        assert_eq!(check.note(at(100), route(3), rtt, || 9), Some(9));
        assert_eq!(check.confirm(7, &route(2)), None, "it was displaced");
        assert_eq!(check.confirm(9, &route(2)), None, "it answers from elsewhere");
        assert_eq!(check.confirm(9, &route(3)), Some(route(3)));
        assert_eq!(check.confirm(9, &route(3)), None, "once is enough");
    }

    /// Spec P-9: a path stays on the link of the side that opened it.
    #[test]
    fn what_counts_as_another_route() {
        let to = |last: u8| Some([10, 0, 1, last].into());
        let known = Route { local: to(1), ..route(2) };
        let other = |seen, own| RouteCheck::other_route(&known, &seen, own);
        assert_eq!(other(known, false), None);
        assert_eq!(
            other(Route { local: to(2), ..known }, false),
            Some(Route { local: to(2), ..known })
        );
        let elsewhere = Route { socket: SocketId(1), ..known };
        assert_eq!(other(elsewhere, false), Some(elsewhere));
        assert_eq!(other(elsewhere, true), None, "an own path stays on its link");
        let open = route(2);
        assert_eq!(RouteCheck::other_route(&open, &known, true), None, "the host chooses");
    }
}
