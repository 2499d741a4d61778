//! The plan on a model of the kernel: the goal is reached in one step, and undoing leads back.

use std::net::IpAddr;

use plait_net::netlink::policy::Family;
use proptest::prelude::*;

use super::change::{Change, Endpoint, Limits, Route, Rule, Which};
use super::found::Found;
use super::plan::{Owned, Plan, plan};
use super::wanted::Wanted;

/// Does to a host what the kernel would; panics where it would refuse.
fn apply(host: &mut Found, changes: &[Change]) {
    for change in changes {
        match change {
            Change::AddEndpoint(endpoint) => add_endpoint(host, endpoint),
            Change::RemoveEndpoint(endpoint) => {
                let before = host.endpoints.len();
                host.endpoints.retain(|there| there.id != endpoint.id);
                assert_eq!(host.endpoints.len() + 1, before, "{change:?}");
            }
            Change::SetBackup { id, backup } => {
                let mut there = host.endpoints.iter_mut();
                there.find(|there| there.id == Some(*id)).expect("it is there").backup = *backup;
            }
            Change::SetLimits(limits) => {
                assert!(limits.subflows <= 8 && limits.add_addr_accepted <= 8);
                host.limits = *limits;
            }
            Change::AddRule(rule) => add(&mut host.rules, rule),
            Change::RemoveRule(rule) => remove(&mut host.rules, rule),
            Change::AddRoute(route) => {
                let taken = |one: &Route| (one.table, one.family) == (route.table, route.family);
                assert!(!host.routes.iter().any(taken), "a table has one default route");
                add(&mut host.routes, route);
            }
            Change::RemoveRoute(route) => remove(&mut host.routes, route),
        }
    }
}

fn add_endpoint(host: &mut Found, endpoint: &Endpoint) {
    host.endpoints.retain(|there| !(there.implicit && there.address == endpoint.address));
    assert!(host.endpoints.iter().all(|there| there.address != endpoint.address), "a twin");
    assert!(host.endpoints.iter().filter(|there| !there.implicit).count() < 8, "no room");
    let is_free = |id: &u8| host.endpoints.iter().all(|there| there.id != Some(*id));
    let id = endpoint.id.or_else(|| (1..=255).find(is_free));
    assert!(is_free(&id.expect("there are more than eight numbers")), "a number twice");
    host.endpoints.push(Endpoint { id, ..endpoint.clone() });
}

fn add<T: Clone + PartialEq>(all: &mut Vec<T>, one: &T) {
    assert!(!all.contains(one));
    all.push(one.clone());
}

fn remove<T: PartialEq>(all: &mut Vec<T>, one: &T) {
    assert!(all.contains(one));
    all.retain(|there| there != one);
}

/// What others see of a host: no order, and nothing that the kernel made itself.
fn of_others(host: &Found) -> (Vec<Endpoint>, Limits) {
    let explicit = host.endpoints.iter().filter(|endpoint| !endpoint.implicit);
    let mut endpoints: Vec<_> = explicit.cloned().collect();
    endpoints.sort_by_key(|endpoint| endpoint.address);
    (endpoints, host.limits)
}

/// Plans, applies, and shows that nothing is left to do.
fn reach(host: &mut Found, wanted: &Wanted, owned: &Owned) -> Plan {
    let plan_made = plan(host, wanted, owned);
    apply(host, &plan_made.changes);
    let again = plan(host, wanted, &plan_made.owned);
    // What has no room is told again, and nothing else happens.
    assert_eq!(again.changes, [], "after {:?}", plan_made.changes);
    assert_eq!(again.owned, plan_made.owned);
    plan_made
}

fn address(number: u8) -> IpAddr {
    [10, number, 0, 2].into()
}

fn endpoints(max: usize) -> impl Strategy<Value = Vec<Endpoint>> {
    let flags = proptest::array::uniform5(any::<bool>());
    proptest::collection::vec((0..12u8, flags), 0..max).prop_map(|all| {
        let mut made: Vec<Endpoint> = Vec::new();
        for (number, [subflow, signal, backup, implicit, has_dev]) in all {
            if made.iter().all(|one| one.address != address(number)) {
                let mut endpoint = Endpoint::new(address(number), "eth0");
                endpoint.dev = endpoint.dev.filter(|_| has_dev);
                let id = u8::try_from(made.len()).ok().map(|len| len * 2 + 1);
                made.push(Endpoint { id, subflow, signal, backup, implicit, ..endpoint });
            }
        }
        made
    })
}

fn host() -> impl Strategy<Value = Found> {
    (endpoints(9), 0..9u8, 0..9u8).prop_map(|(endpoints, subflows, add_addr_accepted)| Found {
        endpoints,
        limits: Limits { subflows, add_addr_accepted },
        ..Found::default()
    })
}

fn goal() -> impl Strategy<Value = Wanted> {
    let gateways = proptest::collection::vec(any::<bool>(), 12);
    (endpoints(12), 1..9u8, 0..9u8, gateways).prop_map(
        |(endpoints, subflows, add_addr_accepted, gateways)| {
            let mut wanted = Wanted { subflows, add_addr_accepted, ..Wanted::default() };
            for endpoint in endpoints {
                let IpAddr::V4(address) = endpoint.address else { continue };
                let number = address.octets()[1];
                let (table, family) = (5301 + u32::from(number), Family::V4);
                let which = Which::From(endpoint.address, table);
                wanted.rules.push(Rule { family, priority: 5301, which });
                let gateway = gateways[usize::from(number)].then_some([10, number, 0, 1].into());
                wanted.routes.push(Route { family, table, gateway, dev: "eth0".into() });
                let dev = Some("eth0".to_owned());
                let plain = Endpoint { id: None, implicit: false, dev, ..endpoint };
                wanted.endpoints.push(plain);
            }
            wanted
        },
    )
}

proptest! {
    #[test]
    fn the_goal_is_reached_in_one_step_and_undone_in_another(before in host(), wanted in goal()) {
        let mut now = before.clone();
        let made = reach(&mut now, &wanted, &Owned::default());
        for endpoint in &wanted.endpoints {
            let has_no_room = made.notes.iter().any(|note| note.contains("gets no endpoint"));
            let there = now.endpoints.iter().find(|there| there.address == endpoint.address);
            let fits = there.is_some_and(|there| {
                !there.implicit && there.backup == endpoint.backup
                    && there.subflow >= endpoint.subflow && there.signal >= endpoint.signal
            });
            prop_assert!(fits || has_no_room, "{endpoint:?} is {there:?}");
        }
        prop_assert!(now.limits.subflows >= wanted.subflows);
        prop_assert_eq!(now.rules.len(), wanted.rules.len());
        prop_assert_eq!(now.routes.len(), wanted.routes.len());
        reach(&mut now, &Wanted::default(), &made.owned);
        prop_assert_eq!(of_others(&now), of_others(&before));
        prop_assert!(now.rules.is_empty() && now.routes.is_empty());
    }

    #[test]
    fn links_that_come_and_go_and_a_crash_leave_nothing_behind(
        before in host(),
        goals in proptest::collection::vec((goal(), any::<bool>()), 1..5),
    ) {
        let (mut now, mut owned) = (before.clone(), Owned::default());
        for (wanted, crashes) in goals {
            owned = reach(&mut now, &wanted, &owned).owned;
            if crashes {
                let text = serde_json::to_string(&owned).unwrap();
                owned = serde_json::from_str(&text).unwrap();
                owned.begin(&now);
            }
        }
        reach(&mut now, &Wanted::default(), &owned);
        prop_assert_eq!(of_others(&now), of_others(&before));
    }

    #[test]
    fn what_another_program_changes_meanwhile_is_left_to_it(
        before in host(),
        wanted in goal(),
        number in 0..12u8,
        removes: bool,
    ) {
        let mut now = before;
        let made = reach(&mut now, &wanted, &Owned::default());
        let ours = made.owned.addresses().any(|one| one == address(number));
        if removes {
            now.endpoints.retain(|there| there.address != address(number));
        } else {
            let there = now.endpoints.iter_mut().find(|there| there.address == address(number));
            there.into_iter().for_each(|there| there.fullmesh = true);
        }
        now.limits.subflows = (now.limits.subflows + 1) % 9;
        let theirs = now.limits;
        let there = |host: &Found| -> Option<Endpoint> {
            host.endpoints.iter().find(|there| there.address == address(number)).cloned()
        };
        let changed = there(&now);
        let owned = reach(&mut now, &wanted, &made.owned).owned;
        if ours {
            prop_assert_eq!(there(&now), changed.clone());
        }
        reach(&mut now, &Wanted::default(), &owned);
        if ours {
            prop_assert_eq!(there(&now), changed);
        }
        prop_assert_eq!(now.limits, theirs);
    }
}

#[test]
fn an_endpoint_of_anothers_gets_the_flag_it_lacks_and_loses_it_again() {
    let theirs = Endpoint { id: Some(7), signal: true, ..Endpoint::new(address(1), "eth0") };
    let mut host = Found { endpoints: vec![theirs.clone()], ..Found::default() };
    let wanted = Endpoint { subflow: true, ..Endpoint::new(address(1), "eth0") };
    let wanted = Wanted { endpoints: vec![wanted], ..Wanted::default() };
    let made = reach(&mut host, &wanted, &Owned::default());
    let commands: Vec<_> = made.changes.iter().map(|one| one.arguments().join(" ")).collect();
    assert_eq!(
        commands,
        ["mptcp endpoint delete id 7", "mptcp endpoint add 10.1.0.2 dev eth0 id 7 subflow signal"]
    );
    reach(&mut host, &Wanted::default(), &made.owned);
    assert_eq!(host.endpoints, [theirs]);
}

#[test]
fn a_backup_flag_changes_without_losing_subflows() {
    let ours = Endpoint { subflow: true, ..Endpoint::new(address(1), "eth0") };
    let wanted = |backup| Wanted {
        endpoints: vec![Endpoint { backup, ..ours.clone() }],
        ..Wanted::default()
    };
    let mut host = Found::default();
    let made = reach(&mut host, &wanted(false), &Owned::default());
    let made = reach(&mut host, &wanted(true), &made.owned);
    assert_eq!(made.changes, [Change::SetBackup { id: 1, backup: true }]);
    assert!(host.endpoints[0].backup);
}

#[test]
fn ways_come_before_endpoints_and_go_after_them() {
    let endpoint = Endpoint { subflow: true, backup: true, ..Endpoint::new(address(2), "lte") };
    let (family, which) = (Family::V4, Which::From(address(2), 5301));
    let gateway = Some([10, 2, 0, 1].into());
    let wanted = Wanted {
        endpoints: vec![endpoint],
        subflows: 3,
        rules: vec![
            Rule { family, priority: 5300, which: Which::KnownToMain },
            Rule { family, priority: 5301, which },
        ],
        routes: vec![Route { family, table: 5301, gateway, dev: "lte".into() }],
        ..Wanted::default()
    };
    let mut host = Found::default();
    let made = reach(&mut host, &wanted, &Owned::default());
    let commands = |plan: &Plan| -> Vec<String> {
        plan.changes.iter().map(|one| one.arguments().join(" ")).collect()
    };
    assert_eq!(
        commands(&made),
        [
            "-4 route add default via 10.2.0.1 dev lte onlink table 5301 protocol 112",
            "-4 rule add priority 5300 from all lookup main suppress_prefixlength 0 protocol 112",
            "-4 rule add priority 5301 from 10.2.0.2 lookup 5301 protocol 112",
            "mptcp limits set subflows 3 add_addr_accepted 0",
            "mptcp endpoint add 10.2.0.2 dev lte subflow backup",
        ]
    );
    let undone = reach(&mut host, &Wanted::default(), &made.owned);
    assert_eq!(
        commands(&undone),
        [
            "mptcp endpoint delete id 1",
            "-4 rule delete priority 5300 from all lookup main suppress_prefixlength 0 protocol \
             112",
            "-4 rule delete priority 5301 from 10.2.0.2 lookup 5301 protocol 112",
            "-4 route delete default via 10.2.0.1 dev lte onlink table 5301 protocol 112",
            "mptcp limits set subflows 0 add_addr_accepted 0",
        ]
    );
}
