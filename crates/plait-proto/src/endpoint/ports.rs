//! Where a network lets nothing through to one of a peer's ports, its others are tried, on each
//! link for itself.
//!
//! Endpoints with one IP address are ports of one host. A handshake goes round all endpoints
//! anyway; but a path that joins leads where the handshake was answered, and another link may block
//! that port, or begin to. What is sent and what it means is the same on every port: the peer
//! follows the path to another as to any other address (spec P-9).

use core::net::SocketAddr;
use std::collections::BTreeMap;

use super::{Endpoint, endpoint_for};
use crate::bond::{Answers, Bond};
use crate::path::Route;
use crate::time::{Duration, Instant, earlier};

/// A port is tried for so long in the first round: that is four challenges (spec P-2).
const TRY_FIRST: Duration = Duration::from_secs(2);
/// It doubles with each round, up to this.
const TRY_MAX: Duration = Duration::from_secs(32);
/// Links of which something is kept. Interfaces of a wildcard come and go under new names.
const LINKS_MAX: usize = 64;

/// What is known of a peer's ports, by the names of the links.
#[derive(Debug, Default)]
pub(super) struct Ports {
    links: BTreeMap<String, OfLink>,
}

#[derive(Debug, Default)]
struct OfLink {
    /// Where the peer last answered.
    answered: Option<SocketAddr>,
    /// What did not answer when it was last asked, each once, in order.
    tried: Vec<SocketAddr>,
    /// How often another was taken since one answered.
    changes: usize,
    /// When the next one is taken; `None` while there is no reason to.
    next_at: Option<Instant>,
}

/// Whether any host among the endpoints has several ports.
fn any_choice(endpoints: &[SocketAddr]) -> bool {
    let again = |(at, one): (usize, &SocketAddr)| {
        endpoints[..at].iter().any(|other| other.ip() == one.ip())
    };
    endpoints.iter().enumerate().any(again)
}

/// All ports of the host at `remote`.
fn ports_of(endpoints: &[SocketAddr], remote: SocketAddr) -> Vec<SocketAddr> {
    endpoints.iter().copied().filter(|endpoint| endpoint.ip() == remote.ip()).collect()
}

fn time_of(changes: usize, ports: usize) -> Duration {
    let round = u32::try_from(changes / ports.max(1)).unwrap_or(u32::MAX);
    (TRY_FIRST * 2_u32.pow(round.min(8))).min(TRY_MAX)
}

impl Ports {
    /// A path over a link leads to `remote`, where the peer answers or not. Gives where it should
    /// lead from now on, when it is time for another port.
    fn note(
        &mut self,
        now: Instant,
        link: &str,
        (remote, answers): (SocketAddr, Answers),
        endpoints: &[SocketAddr],
    ) -> Option<SocketAddr> {
        if self.links.len() >= LINKS_MAX && !self.links.contains_key(link) {
            return None;
        }
        let of_link = self.links.entry(link.to_owned()).or_default();
        match answers {
            Answers::Yes => {
                of_link.tried.retain(|tried| *tried != remote);
                (of_link.answered, of_link.changes, of_link.next_at) = (Some(remote), 0, None);
                return None;
            }
            Answers::Unsure => {
                of_link.next_at = None;
                return None;
            }
            Answers::No => {}
        }
        let ports = ports_of(endpoints, remote);
        if ports.iter().all(|port| *port == remote) {
            of_link.next_at = None;
            return None;
        }
        let time = |changes| time_of(changes, ports.len());
        if now < *of_link.next_at.get_or_insert(now + time(of_link.changes)) {
            return None;
        }
        if !of_link.tried.contains(&remote) {
            of_link.tried.push(remote);
        }
        of_link.tried.retain(|tried| ports.contains(tried));
        of_link.changes = of_link.changes.saturating_add(1);
        of_link.next_at = Some(now + time(of_link.changes));
        let at = ports.iter().position(|port| *port == remote);
        ports.get(at.map_or(0, |at| (at + 1) % ports.len())).copied()
    }

    /// Nothing is asked over links without a path.
    fn keep_waiting(&mut self, has_path: impl Fn(&str) -> bool) {
        for (link, of_link) in &mut self.links {
            of_link.next_at = of_link.next_at.filter(|_| has_path(link));
        }
    }

    /// When [`Endpoint::mind_ports`] has something to do.
    pub(super) fn due(&self) -> Option<Instant> {
        self.links.values().fold(None, |due, of_link| earlier(due, of_link.next_at))
    }

    /// Where an attempt to reach the peer goes over a link: round the endpoints, beginning with the
    /// one that answered last.
    pub(super) fn endpoint_over(
        &self,
        link: &str,
        endpoints: &[SocketAddr],
        attempt: usize,
    ) -> Option<SocketAddr> {
        let known = self.links.get(link).and_then(|of_link| of_link.answered);
        let first = known.and_then(|known| endpoints.iter().position(|one| *one == known));
        endpoint_for(endpoints, first.unwrap_or(0) + attempt)
    }

    /// Where a path over a link leads at first, when the peer answers at `endpoint`.
    pub(super) fn port_over(
        &self,
        link: &str,
        endpoints: &[SocketAddr],
        endpoint: SocketAddr,
    ) -> SocketAddr {
        let known = self.links.get(link).and_then(|of_link| of_link.answered);
        let there = known.map(|known| SocketAddr::new(endpoint.ip(), known.port()));
        there.filter(|there| endpoints.contains(there)).unwrap_or(endpoint)
    }

    /// The ports that did not answer when they were last asked over a link.
    pub(super) fn tried_over(&self, link: &str) -> Vec<u16> {
        let of_link = self.links.get(link).into_iter();
        of_link.flat_map(|of_link| of_link.tried.iter().map(SocketAddr::port)).collect()
    }
}

impl Endpoint {
    /// Leads paths that nobody answers to other ports of the peer.
    pub(super) fn mind_ports(&mut self, now: Instant, at: usize) {
        if !any_choice(&self.peers[at].config.endpoints) {
            if self.peers[at].ports.due().is_some() {
                // The choice is gone.
                self.peers[at].ports = Ports::default();
            }
            return;
        }
        let Self { peers, config, .. } = self;
        let name_of = |route: &Route| {
            let link = config.links.iter().find(|link| link.socket == route.socket);
            link.map(|link| link.name.as_str())
        };
        let peer = &mut peers[at];
        let bond = peer.bond.as_mut().map(|named| &mut named.bond);
        let paths = bond.as_ref().map(|bond| bond.own_paths()).unwrap_or_default();
        for (route, _) in &paths {
            // Kept links make room for those that are there.
            peer.ports.make_room(name_of(route), |link| {
                config.links.iter().any(|known| known.name == link)
            });
        }
        peer.ports.keep_waiting(|link| paths.iter().any(|(route, _)| name_of(route) == Some(link)));
        let Some(bond) = bond else { return };
        for (route, answers) in paths {
            let Some(link) = name_of(&route) else { continue };
            let place = (route.remote, answers);
            if let Some(remote) = peer.ports.note(now, link, place, &peer.config.endpoints) {
                bond.lead_own_path(now, route.socket, remote);
            }
        }
    }

    /// A handshake was answered from there.
    pub(super) fn note_answering_port(&mut self, at: usize, remote: SocketAddr) {
        let endpoints = &self.peers[at].config.endpoints;
        let place = endpoints.iter().position(|endpoint| *endpoint == remote);
        if let Some(place) = place.filter(|_| any_choice(endpoints)) {
            self.peers[at].answered_attempt = place;
        }
    }

    /// A handshake was answered by `route`: a path over that link that nobody answers leads there
    /// at once.
    pub(super) fn follow_answering_port(&mut self, now: Instant, at: usize, route: Route) {
        let peer = &self.peers[at];
        let endpoints = &peer.config.endpoints;
        if !any_choice(endpoints) || !endpoints.contains(&route.remote) {
            return;
        }
        let is_lost = |(known, answers): &(Route, Answers)| {
            let is_elsewhere = known.socket == route.socket && known.remote != route.remote;
            is_elsewhere && *answers == Answers::No
        };
        let is_lost = |bond: &Bond| bond.own_paths().iter().any(is_lost);
        if peer.used_bond().is_some_and(is_lost)
            && let Some(bond) = self.peers[at].used_bond_mut()
        {
            bond.lead_own_path(now, route.socket, route.remote);
        }
    }
}

impl Ports {
    /// Forgets a link that is gone, when there are too many for one more.
    fn make_room(&mut self, link: Option<&str>, is_there: impl Fn(&str) -> bool) {
        let is_new = link.is_some_and(|link| !self.links.contains_key(link));
        if is_new && self.links.len() >= LINKS_MAX {
            let gone = self.links.keys().find(|known| !is_there(known)).cloned();
            gone.and_then(|gone| self.links.remove(&gone));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::from_millis(seconds * 1000)
    }

    fn port(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], port))
    }

    const DSL: &str = "dsl";

    /// Where the path leads each second, when only `answering` answers.
    fn course(ports: &mut Ports, endpoints: &[SocketAddr], answering: &[u16]) -> Vec<u16> {
        let mut remote = endpoints[0];
        let seconds = (0..40).map(|second| {
            let answers =
                if answering.contains(&remote.port()) { Answers::Yes } else { Answers::No };
            let next = ports.note(at(second), DSL, (remote, answers), endpoints);
            remote = next.unwrap_or(remote);
            remote.port()
        });
        seconds.collect()
    }

    #[test]
    fn each_port_has_its_time_and_a_round_takes_longer_than_the_one_before() {
        let endpoints = [port(7788), port(443), SocketAddr::from(([192, 0, 2, 2], 7788))];
        let mut ports = Ports::default();
        let course = course(&mut ports, &endpoints, &[]);
        assert_eq!(course[..4], [7788, 7788, 443, 443]);
        let changes: Vec<usize> =
            (1..course.len()).filter(|second| course[*second] != course[second - 1]).collect();
        assert_eq!(changes, [2, 4, 8, 12, 20, 28], "two seconds, four, eight, and round again");
        assert_eq!(ports.tried_over(DSL), [7788, 443]);
        assert_eq!(ports.due(), Some(at(44)));
    }

    #[test]
    fn what_answers_is_kept_and_asked_first() {
        let endpoints = [port(7788), port(443), port(53)];
        let mut ports = Ports::default();
        let course = course(&mut ports, &endpoints, &[53]);
        assert_eq!(course[39], 53);
        assert_eq!(course.iter().filter(|port| **port == 443).count(), 2);
        assert_eq!((ports.due(), ports.tried_over(DSL)), (None, vec![7788, 443]));
        ports.note(at(40), DSL, (port(443), Answers::Yes), &endpoints);
        assert_eq!(ports.tried_over(DSL), [7788], "it answers now");
        ports.note(at(40), DSL, (port(53), Answers::Yes), &endpoints);
        let attempts = [0, 1, 2].map(|n| ports.endpoint_over(DSL, &endpoints, n).unwrap().port());
        assert_eq!(attempts, [53, 7788, 443]);
        assert_eq!(ports.endpoint_over("lte", &endpoints, 0), Some(port(7788)));
        assert_eq!(ports.port_over(DSL, &endpoints, port(7788)), port(53));
        assert_eq!(ports.port_over("lte", &endpoints, port(443)), port(443));
        let elsewhere = SocketAddr::from(([192, 0, 2, 2], 7788));
        assert_eq!(ports.port_over(DSL, &endpoints, elsewhere), elsewhere, "it has no port 53");
    }

    #[test]
    fn a_path_that_is_not_asked_and_a_host_with_one_port_stay() {
        let endpoints = [port(7788), SocketAddr::from(([192, 0, 2, 2], 443))];
        let mut ports = Ports::default();
        assert_eq!(course(&mut ports, &endpoints, &[]), [7788; 40]);
        assert_eq!(ports.due(), None);
        let endpoints = [port(7788), port(443)];
        for second in 0..40 {
            let place = (port(7788), Answers::Unsure);
            assert_eq!(ports.note(at(second), DSL, place, &endpoints), None);
        }
        ports.note(at(40), DSL, (port(7788), Answers::No), &endpoints);
        assert_eq!(ports.due(), Some(at(42)));
        ports.keep_waiting(|link| link != DSL);
        assert_eq!(ports.due(), None, "its path is gone");
    }

    #[test]
    fn links_that_come_and_go_are_forgotten() {
        let mut ports = Ports::default();
        let endpoints = [port(1), port(2)];
        for n in 0..500 {
            let link = format!("ppp{n}");
            ports.make_room(Some(&link), |known| known == link);
            ports.note(at(n), &link, (port(1), Answers::Yes), &endpoints);
            assert_eq!(ports.endpoint_over(&link, &endpoints, 0), Some(port(1)));
        }
        assert!(ports.links.len() <= LINKS_MAX);
    }

    proptest! {
        /// Whichever port answers, it is found before each was tried twice.
        #[test]
        fn a_port_that_answers_is_found(
            numbers in proptest::collection::btree_set(1_u16..100, 2..8),
            pick: proptest::sample::Index,
        ) {
            let endpoints: Vec<_> = numbers.iter().map(|number| port(*number)).collect();
            let open = *pick.get(&endpoints);
            let (mut ports, mut remote, mut tries) = (Ports::default(), endpoints[0], 0);
            for second in 0..200 {
                let answers = if remote == open { Answers::Yes } else { Answers::No };
                if let Some(next) = ports.note(at(second), DSL, (remote, answers), &endpoints) {
                    prop_assert!(next != remote);
                    (remote, tries) = (next, tries + 1);
                }
            }
            prop_assert_eq!(remote, open);
            prop_assert!(tries < endpoints.len());
        }

        /// Whatever is noted when, a port has its two seconds, and one that was led to is an
        /// endpoint.
        #[test]
        fn no_port_is_left_before_its_time(
            steps in vec((0_u64..5000, 0_u8..3), 1..200),
        ) {
            let endpoints = [port(1), port(2), port(3)];
            let (mut ports, mut remote) = (Ports::default(), port(1));
            let (mut now, mut since) = (at(0), at(0));
            for (millis, answers) in steps {
                now += Duration::from_millis(millis);
                let answers = [Answers::Yes, Answers::No, Answers::Unsure][usize::from(answers)];
                if answers != Answers::No {
                    since = now;
                }
                if let Some(next) = ports.note(now, DSL, (remote, answers), &endpoints) {
                    prop_assert!(endpoints.contains(&next) && next != remote);
                    prop_assert!(now.since(since) >= TRY_FIRST);
                    (remote, since) = (next, now);
                }
            }
        }
    }
}
