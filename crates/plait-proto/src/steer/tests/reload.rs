//! Going on under another configuration.

use super::*;
use crate::dida::{DidaConfig, DidaStats};

fn other_client() -> ClientConfig {
    ClientConfig {
        name: "van".into(),
        address: v4("10.0.0.2").into(),
        attachments: vec![
            AttachmentConfig::primary("lte"),
            AttachmentConfig::at("wifi", v4("10.1.0.2")),
        ],
    }
}

#[test]
fn flows_and_counters_stay() {
    let mut world = World::new(fixed(1, 1));
    world.tally(1, 20);
    let mut config = fixed(0, 1);
    config.clients.insert(0, other_client());
    world.node.reconfigure(world.now, config);
    let over = world.node.handle_downstream(world.now, &mut segment(1, ACK));
    let wifi = AttachmentId { client: 1, attachment: 1 };
    assert_eq!(over, Downstream::Forward(wifi), "the first packets are through");
    let status = world.node.status(world.now);
    assert_eq!(status.clients[1].attachments[0].packets, 15);
    assert_eq!(status.clients[1].attachments[1].packets, 6);
    assert_eq!((status.clients[0].flows, status.clients[1].flows), (0, 1));
}

#[test]
fn a_client_that_goes_takes_its_flows_along() {
    let mut config = fixed(1, 1);
    config.clients.insert(0, other_client());
    let mut world = World::new(config);
    let mut to_van = tcp((server(), 80), (v4("10.0.0.2"), 1), ACK, b"x");
    world.send(&mut to_van.clone());
    world.segments(1, 1);
    world.node.reconfigure(world.now, fixed(1, 1));
    let down = world.node.handle_downstream(world.now, &mut to_van);
    assert_eq!(down, Downstream::Unknown);
    assert_eq!(world.client().flows, 1);
}

#[test]
fn attachments_keep_what_their_probes_have_told() {
    let probe = Some(ProbeConfig::default());
    let mut config = NodeConfig { policy: Policy::InverseRtt, probe, ..fixed(1, 1) };
    let mut world = World::new(config.clone());
    world.run_ms(50);
    config.clients[0].attachments.push(AttachmentConfig::at("wifi5", v4("10.5.0.1")));
    config.clients[0].attachments.swap(1, 2);
    world.rtt_ms.push(Some(10));
    world.rtt_ms[1] = Some(20);
    world.node.reconfigure(world.now, config.clone());
    let status = world.client();
    assert_eq!(status.attachments[2].rtt_us, Some(10_000));
    assert_eq!(status.attachments[1].state, AttachmentState::Unproven);
    world.run_ms(100);
    assert_eq!(world.client().attachments[1].rtt_us, Some(20_000), "it is probed at once");
    config.clients[0].attachments[2].address = v4("10.1.0.9").into();
    world.node.reconfigure(world.now, config);
    assert_eq!(world.client().attachments[2].rtt_us, None, "another address is another one");
}

#[test]
fn a_flow_whose_attachment_moves_moves_along() {
    let mut config = NodeConfig { granularity: Granularity::Flow, first_packets: 0, ..fixed(0, 1) };
    let mut world = World::new(config.clone());
    assert_eq!(world.segments(1, 1), [1]);
    config.clients[0].attachments.insert(1, AttachmentConfig::at("wifi5", v4("10.5.0.1")));
    config.clients[0].attachments[1].weight = 100;
    world.node.reconfigure(world.now, config.clone());
    assert_eq!(world.segments(1, 5), [2; 5]);
    config.clients[0].attachments.pop();
    world.node.reconfigure(world.now, config);
    assert_eq!(world.segments(1, 5), [1; 5], "its attachment is gone: the policy picks anew");
}

#[test]
fn dida_goes_on_or_off() {
    let mut world = World::new(NodeConfig { dida: Some(DidaConfig::default()), ..fixed(1, 1) });
    world.segments(1, 30);
    assert!(world.node.status(world.now).dida.is_some());
    world.node.reconfigure(world.now, fixed(1, 1));
    assert_eq!(world.node.status(world.now).dida, None);
    let on = NodeConfig { dida: Some(DidaConfig::default()), ..fixed(1, 1) };
    world.node.reconfigure(world.now, on);
    assert_eq!(world.node.status(world.now).dida, Some(DidaStats::default()));
}

#[test]
fn probes_can_be_switched_on_and_off() {
    let mut world = World::new(fixed(1, 1));
    world.run_ms(10);
    assert_eq!(world.probes.len(), 0);
    let probe = Some(ProbeConfig::default());
    world.node.reconfigure(world.now, NodeConfig { probe, ..fixed(1, 1) });
    world.run_ms(100);
    assert_eq!(world.probes.len(), 2);
    assert_eq!(world.client().attachments[0].rtt_us, Some(40_000));
    world.node.reconfigure(world.now, fixed(1, 1));
    world.run_ms(10_000);
    assert_eq!(world.probes.len(), 2);
    assert_eq!(world.client().attachments[1].state, AttachmentState::Up);
}

#[test]
#[should_panic(expected = "at least one client")]
fn a_configuration_that_was_not_checked_is_refused() {
    let mut node = Node::new(fixed(1, 1), 7);
    node.reconfigure(Instant::ZERO, NodeConfig::default());
}
