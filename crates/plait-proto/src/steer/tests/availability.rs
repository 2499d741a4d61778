//! Probes, attachments that come and go, and policies that follow round-trip times.

use super::*;
use crate::dida::{DidaConfig, HoldPolicy};

fn probed(policy: Policy) -> NodeConfig {
    let probe = ProbeConfig { interval: Duration::from_millis(100), ..ProbeConfig::default() };
    NodeConfig { policy, probe: Some(probe), first_packets: 0, ..fixed(1, 1) }
}

fn states(world: &World) -> Vec<AttachmentState> {
    world.client().attachments.iter().map(|attachment| attachment.state).collect()
}

use AttachmentState::{Down, Silent, Unproven, Up};

/// Keeps the client busy for so long, with a packet every millisecond.
fn run_busy(world: &mut World, ms: u64) {
    for _ in 0..ms {
        world.segments(9, 1);
        world.run_ms(1);
    }
}

#[test]
fn an_attachment_carries_nothing_before_it_has_answered() {
    let mut world = World::new(probed(Policy::Fixed));
    assert_eq!(states(&world), [Up, Unproven]);
    assert_eq!(world.tally(1, 10), [10, 0]);
    world.run_ms(20);
    assert_eq!(states(&world), [Up, Up]);
    assert_eq!(world.tally(1, 10), [5, 5]);
}

#[test]
fn inverse_rtt_follows_the_probes() {
    let mut world = World::new(probed(Policy::InverseRtt));
    world.run_ms(50);
    // A round of 40 + 10 packets: 10 over LTE at 40 ms, 40 over Wi-Fi at 10 ms.
    assert_eq!(world.tally(1, 50), [10, 40]);
    assert_eq!(world.tally(1, 500), [100, 400]);
    world.rtt_ms = vec![Some(10), Some(30)];
    run_busy(&mut world, 1500);
    let [lte, wifi] = world.tally(1, 4000);
    assert!(lte.abs_diff(3000) <= 30 && wifi.abs_diff(1000) <= 30, "{lte} {wifi}");
    let rtts: Vec<_> = world.client().attachments.iter().map(|it| it.rtt_us).collect();
    assert!(rtts[0].is_some_and(|us| us.abs_diff(10_000) < 10), "{rtts:?}");
    assert!(rtts[1].is_some_and(|us| us.abs_diff(30_000) < 10), "{rtts:?}");
}

#[test]
fn min_rtt_takes_the_quickest_and_leaves_it_when_its_queue_makes_it_slower() {
    let mut world = World::new(probed(Policy::MinRtt));
    world.run_ms(50);
    assert_eq!(world.tally(1, 20), [0, 20]);
    world.rtt_ms = vec![Some(40), Some(90)];
    for _ in 0..1000 {
        for _ in 0..5 {
            world.send(&mut tcp((server(), 80), (v4("10.0.0.1"), 9), ACK, &[0; 1400]));
        }
        world.run_ms(1);
    }
    let over: Vec<u8> = (0..20)
        .map(|_| world.send(&mut tcp((server(), 80), (v4("10.0.0.1"), 9), ACK, &[0; 1400])))
        .collect();
    let lte = over.iter().filter(|&&at| at == 0).count();
    assert!(lte > 0, "the queue of Wi-Fi is longer than the difference");
}

#[test]
fn cheapest_first_keeps_to_the_cheapest_that_answers() {
    let mut config = probed(Policy::CheapestFirst);
    config.clients[0].attachments[0].price = 1;
    let mut world = World::new(config);
    world.run_ms(50);
    assert_eq!(world.tally(1, 20), [0, 20]);
    world.rtt_ms[1] = None;
    run_busy(&mut world, 2000);
    assert_eq!(world.tally(1, 20), [20, 0]);
}

#[test]
fn an_attachment_that_stops_answering_is_left_and_comes_back() {
    let mut world = World::new(probed(Policy::Fixed));
    run_busy(&mut world, 100);
    world.rtt_ms[1] = None;
    run_busy(&mut world, 1100);
    assert_eq!(states(&world), [Up, Up], "two probes are overdue");
    run_busy(&mut world, 300);
    assert_eq!(states(&world), [Up, Silent]);
    assert_eq!(world.tally(1, 100), [100, 0]);
    assert_eq!(world.client().attachments[1].outages, 1);
    assert_eq!(world.client().delay_difference_us, None);
    world.rtt_ms[1] = Some(10);
    run_busy(&mut world, 250);
    assert_eq!(states(&world), [Up, Up]);
    assert_eq!(world.tally(1, 100), [50, 50]);
}

#[test]
fn a_silent_attachment_loses_its_share_before_it_is_left() {
    let mut world = World::new(probed(Policy::InverseRtt));
    run_busy(&mut world, 100);
    let [lte, wifi] = world.tally(1, 50);
    assert!(wifi > 3 * lte, "{lte} {wifi}: 40 and 10 ms");
    world.rtt_ms[1] = None;
    run_busy(&mut world, 600);
    assert_eq!(states(&world), [Up, Up], "nothing is overdue");
    let [lte, wifi] = world.tally(1, 500);
    assert!(lte > 9 * wifi, "{lte} {wifi}: probes have been waiting for half a second");
    assert!(world.client().delay_difference_us.is_some_and(|us| us > 400_000));
}

#[test]
fn a_flow_leaves_an_attachment_that_is_gone() {
    let config = NodeConfig { granularity: Granularity::Flow, ..probed(Policy::Fixed) };
    let mut world = World::new(config);
    world.run_ms(50);
    let on_wifi = (0..).find(|port| world.segments(*port, 1) == [1]).expect("one of two");
    let wifi = AttachmentId { client: 0, attachment: 1 };
    world.node.set_attachment_up(world.now, wifi, false);
    assert_eq!(states(&world), [Up, Down]);
    assert_eq!(world.tally(on_wifi, 10), [10, 0]);
    world.node.set_attachment_up(world.now, wifi, true);
    assert_eq!(states(&world), [Up, Unproven]);
    run_busy(&mut world, 50);
    assert_eq!(states(&world), [Up, Up]);
    assert_eq!(world.tally(on_wifi, 10), [10, 0], "it stays where it is now");
}

#[test]
fn the_primary_is_the_last_resort() {
    let mut world = World::new(probed(Policy::Fixed));
    run_busy(&mut world, 100);
    world.rtt_ms[0] = None;
    run_busy(&mut world, 1500);
    assert_eq!(states(&world), [Silent, Up]);
    assert_eq!(world.tally(1, 10), [0, 10]);
    assert_eq!(world.send(&mut segment(1, SYN)), 1, "what belongs on the primary, too");
    let mut fragment = segment(1, ACK);
    fragment[6] = 0x20;
    assert_eq!(world.send(&mut fragment), 0, "but nothing that cannot be rewritten");
    world.rtt_ms[1] = None;
    run_busy(&mut world, 1500);
    assert_eq!(states(&world), [Silent, Silent]);
    assert_eq!(world.tally(1, 10), [10, 0], "never nothing");
    assert_eq!(world.send(&mut segment(1, SYN)), 0);
    assert!(world.client().counters.last_resort >= 10);
}

#[test]
fn probes_are_rare_while_nothing_is_sent() {
    let mut world = World::new(probed(Policy::Fixed));
    world.run_ms(10_000);
    let first: Vec<Instant> = world.probes.iter().map(|(at, _)| *at).collect();
    let seconds = |s: u64| Instant::from_millis(s * 1000);
    assert_eq!(first, [0, 0, 5, 5, 10, 10].map(seconds), "two attachments, every five seconds");
    world.probes.clear();
    world.run_ms(1000);
    run_busy(&mut world, 1000);
    let busy = world.probes.len();
    assert!((20..=24).contains(&busy), "ten a second on each: {busy}");
    let (at, probe) = world.probes[0];
    assert_eq!(at, seconds(11), "the first packet asks at once");
    assert_eq!(probe.address, v4("10.0.0.1"));
    world.run_ms(3000);
    world.probes.clear();
    world.run_ms(10_000);
    assert!(world.probes.len() <= 6, "{}", world.probes.len());
}

#[test]
fn answers_to_no_probe_are_counted() {
    let mut world = World::new(probed(Policy::Fixed));
    world.step();
    let wifi = AttachmentId { client: 0, attachment: 1 };
    world.node.handle_probe_reply(world.now, wifi, 12_345);
    for id in [AttachmentId { client: 9, attachment: 0 }, AttachmentId { client: 0, attachment: 9 }]
    {
        world.node.handle_probe_reply(world.now, id, 0);
        world.node.set_attachment_up(world.now, id, false);
    }
    assert_eq!(states(&world), [Up, Unproven]);
    assert_eq!(world.client().attachments[1].probes.unexpected, 1);
}

#[test]
fn the_delay_difference_is_that_of_the_attachments_in_use() {
    let mut world = World::new(probed(Policy::Fixed));
    world.run_ms(5);
    assert_eq!(world.client().delay_difference_us, None);
    world.run_ms(60);
    assert_eq!(world.client().delay_difference_us, Some(30_000));
    world.rtt_ms[0] = Some(60);
    run_busy(&mut world, 60);
    world.run_ms(100);
    // 52 and 10 ms after one sample of 60, and 0.6 of 20 ms as deviation, and so on.
    let difference = world.client().delay_difference_us.expect("both are measured");
    assert!(difference > 42_000, "{difference}");
}

#[test]
fn duplicate_acks_are_held_only_while_there_is_disorder() {
    let dida =
        DidaConfig { hold: HoldPolicy::Fixed(Duration::from_millis(50)), ..Default::default() };
    let mut world = World::new(NodeConfig { dida: Some(dida), ..probed(Policy::Fixed) });
    let ack = || tcp((v4("10.0.0.1"), 9), (server(), 80), ACK, b"");
    let seen = |world: &World| {
        let forwarded = world.node.status(world.now).dida.expect("DIDA is on").forwarded;
        forwarded.unknown_flow + forwarded.advancing + forwarded.nothing_outstanding
    };
    assert_eq!(world.node.handle_upstream(world.now, &mut ack()), Upstream::Forward);
    assert_eq!(seen(&world), 0, "one attachment: no disorder");
    world.run_ms(50);
    assert_eq!(world.node.handle_upstream(world.now, &mut ack()), Upstream::Forward);
    assert_eq!(seen(&world), 1);
    let wifi = AttachmentId { client: 0, attachment: 1 };
    world.node.set_attachment_up(world.now, wifi, false);
    assert_eq!(world.node.handle_upstream(world.now, &mut ack()), Upstream::Forward);
    assert_eq!(seen(&world), 2, "what was sent before is still under way");
    world.run_ms(2000);
    assert_eq!(world.node.handle_upstream(world.now, &mut ack()), Upstream::Forward);
    assert_eq!(seen(&world), 2);
    assert_eq!(world.client().counters.upstream_packets, 4);
}
