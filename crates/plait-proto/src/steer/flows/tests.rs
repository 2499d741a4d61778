use std::collections::VecDeque;

use core::net::IpAddr;

use proptest::prelude::*;

use super::*;

fn key(n: u32) -> Inner {
    Inner {
        source: IpAddr::from([192, 0, 2, 1]),
        destination: IpAddr::from([10, 0, 0, 1]),
        protocol: 6,
        ports: n,
    }
}

fn at(ms: u64) -> Instant {
    Instant::from_millis(ms)
}

const NOW: Instant = Instant::ZERO;

#[test]
fn a_flow_is_found_again() {
    let mut flows = Flows::new(1, 1);
    for n in 0..100 {
        assert_eq!(flows.find(NOW, &key(n)), None);
        let (slot, evicted) = flows.insert(NOW, &key(n), 0, 1000);
        assert!(!evicted);
        flows.get(slot).packets = n;
    }
    for n in (0..100).rev() {
        let slot = flows.find(NOW, &key(n)).expect("known");
        assert_eq!(flows.get(slot).packets, n);
    }
    assert_eq!(flows.count(0), 100);
}

#[test]
fn the_flow_idle_longest_makes_room() {
    let mut flows = Flows::new(1, 1);
    for n in 0..3 {
        flows.insert(at(n.into()), &key(n), 0, 3);
    }
    flows.find(at(3), &key(0));
    assert!(flows.insert(at(4), &key(3), 0, 3).1);
    assert_eq!(flows.find(at(4), &key(1)), None, "1 was idle longest");
    assert!(flows.find(at(4), &key(0)).is_some());
}

#[test]
fn a_flood_of_one_client_leaves_the_others_alone() {
    let mut flows = Flows::new(1, 2);
    flows.insert(NOW, &key(u32::MAX), 1, 8);
    for n in 0..100_000 {
        flows.insert(NOW, &key(n), 0, 8);
    }
    assert_eq!((flows.count(0), flows.count(1)), (8, 1));
    assert!(flows.find(NOW, &key(u32::MAX)).is_some());
    assert!(flows.slots.len() <= 10, "memory is bounded: {}", flows.slots.len());
}

#[test]
fn idle_flows_are_forgotten() {
    let mut flows = Flows::new(1, 1);
    for n in 0..10 {
        flows.insert(at(u64::from(n) * 100), &key(n), 0, 100);
    }
    assert_eq!(flows.expire(at(1000), 0, Duration::from_millis(600)), 5);
    assert_eq!(flows.count(0), 5);
    assert_eq!(flows.find(at(1000), &key(4)), None);
    assert!(flows.find(at(1000), &key(5)).is_some());
}

#[test]
fn clients_move_with_their_flows() {
    let mut flows = Flows::new(1, 3);
    for n in 0..6 {
        let (slot, _) = flows.insert(NOW, &key(n), (n % 3) as u16, 10);
        flows.get(slot).attachment = Some(1);
    }
    // 0 goes, 1 becomes 1, 2 becomes 0; attachment 1 of the last has become 2.
    flows.move_clients(
        2,
        |old| [None, Some(1), Some(0)][usize::from(old)],
        |old, _| (old == 2).then_some(2),
    );
    assert_eq!((flows.count(0), flows.count(1)), (2, 2));
    assert_eq!(flows.find(NOW, &key(0)), None);
    let slot = flows.find(NOW, &key(4)).expect("kept");
    assert_eq!((flows.get(slot).client, flows.get(slot).attachment), (1, None));
    let slot = flows.find(NOW, &key(5)).expect("kept");
    assert_eq!((flows.get(slot).client, flows.get(slot).attachment), (0, Some(2)));
}

#[derive(Clone, Debug)]
enum Op {
    Packet { flow: u32, client: u16 },
    Expire { client: u16, idle_ms: u64 },
    Pass { ms: u64 },
    Swap,
}

fn any_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (0_u32..60, 0_u16..2).prop_map(|(flow, client)| Op::Packet { flow, client }),
        1 => (0_u16..2, 0_u64..50).prop_map(|(client, idle_ms)| Op::Expire { client, idle_ms }),
        2 => (1_u64..20).prop_map(|ms| Op::Pass { ms }),
        1 => Just(Op::Swap),
    ]
}

/// What the table must be: each client's flows with the time of their last packet, oldest first.
type Model = [VecDeque<(u32, Instant)>; 2];

fn packet(flows: &mut Flows, model: &mut Model, now: Instant, flow: u32, client: u16) {
    // Flows of the two clients differ in their number.
    let flow = flow * 2 + u32::from(client);
    let key = key(flow);
    let list = &mut model[usize::from(client)];
    let known = list.iter().position(|(n, _)| *n == flow);
    let slot = match flows.find(now, &key) {
        Some(slot) => {
            assert!(list.remove(known.expect("what is found was added")).is_some());
            slot
        }
        None => {
            assert_eq!(known, None, "what was added is found");
            let (slot, evicted) = flows.insert(now, &key, client, 20);
            assert_eq!(evicted, list.len() == 20);
            if evicted {
                list.pop_front();
            }
            flows.get(slot).packets = flow;
            slot
        }
    };
    assert_eq!((flows.get(slot).packets, flows.get(slot).client), (flow, client));
    list.push_back((flow, now));
}

proptest! {
    #[test]
    fn the_table_is_what_a_simple_one_would_be(ops in prop::collection::vec(any_op(), 0..400)) {
        let mut flows = Flows::new(7, 2);
        let mut model = Model::default();
        let mut now = NOW;
        // Which list of the model each client's flows are in: swapping clients renames them.
        let mut swapped = false;
        for op in ops {
            match op {
                Op::Packet { flow, client } if !swapped => {
                    packet(&mut flows, &mut model, now, flow, client);
                }
                Op::Packet { .. } => {}
                Op::Expire { client, idle_ms } => {
                    let idle = Duration::from_millis(idle_ms);
                    let place = usize::from(client) ^ usize::from(swapped);
                    let list = &mut model[place];
                    let before = list.len();
                    list.retain(|(_, last)| now.since(*last) < idle);
                    let expired = (before - list.len()) as u64;
                    prop_assert_eq!(flows.expire(now, client, idle), expired);
                }
                Op::Pass { ms } => now += Duration::from_millis(ms),
                Op::Swap => {
                    flows.move_clients(2, |old| Some(1 - old), |_, at| Some(at));
                    swapped = !swapped;
                }
            }
            for client in 0..2 {
                let list = &model[usize::from(client) ^ usize::from(swapped)];
                prop_assert_eq!(flows.count(client) as usize, list.len());
            }
            prop_assert!(flows.slots.len() <= 40);
        }
    }
}
