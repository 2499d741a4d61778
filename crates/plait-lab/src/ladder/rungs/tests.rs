use std::collections::BTreeSet;

use super::all;
use crate::ladder::rung::{Course, Inner, Link, Losses, Rung};

fn some(what: &str, is_it: impl Fn(&Rung) -> bool) {
    assert!(all().iter().any(is_it), "no rung has {what}");
}

fn some_link(what: &str, is_it: impl Fn(&Link) -> bool) {
    some(what, |rung| rung.links.iter().any(&is_it));
}

fn span(rung: &Rung, of: fn(&Link) -> u32) -> (u32, u32) {
    let values = || rung.links.iter().map(of);
    (values().min().unwrap(), values().max().unwrap())
}

#[test]
fn there_are_a_hundred_and_each_has_a_name_and_a_case() {
    let rungs = all();
    assert!(rungs.len() >= 100, "{}", rungs.len());
    let names: BTreeSet<&str> = rungs.iter().map(|rung| rung.name).collect();
    assert_eq!(names.len(), rungs.len());
    for rung in &rungs {
        assert!(rung.name.split('/').all(|part| !part.is_empty()), "{}", rung.name);
        assert!(rung.name.matches('/').count() == 1 && !rung.stands_for.is_empty());
        assert!((2..=4).contains(&rung.links.len()), "{}", rung.name);
    }
}

#[test]
fn no_rung_is_another_under_a_second_name() {
    let rungs = all();
    for (at, rung) in rungs.iter().enumerate() {
        let same = |other: &&Rung| other.links == rung.links && other.load == rung.load;
        let twin = rungs[at + 1..].iter().find(same).map(|other| other.name);
        assert_eq!(twin, None, "{} has a twin", rung.name);
    }
}

#[test]
fn rates_and_round_trips_reach_their_ends_and_no_further() {
    some("rates of 1:20", |rung| {
        let (low, high) = span(rung, |link| link.down_kbit);
        high == 20 * low
    });
    some("equal rates", |rung| span(rung, |link| link.down_kbit).0 == rung.links[0].down_kbit);
    some("round trips of 1:10", |rung| {
        let (low, high) = span(rung, |link| link.rtt_ms);
        high == 10 * low
    });
    some_link("5 ms", |link| link.rtt_ms == 5);
    some_link("300 ms", |link| link.rtt_ms == 300);
    for rung in all() {
        let (slow, fast) = span(&rung, |link| link.down_kbit);
        assert!(fast <= 20 * slow, "{}", rung.name);
        let (near, far) = span(&rung, |link| link.rtt_ms);
        assert!(near >= 5 && far <= 300 && far <= 10 * near, "{}", rung.name);
    }
}

#[test]
fn losses_jitter_and_buffers_are_there() {
    some_link("losses of 5 %", |link| link.losses == Losses::Random { permille: 50 });
    some_link("losses of 2 %", |link| link.losses == Losses::Random { permille: 20 });
    some_link("losses in bursts", |link| matches!(link.losses, Losses::Bursts { .. }));
    some_link("5 % in bursts", |link| matches!(link.losses, Losses::Bursts { permille: 50, .. }));
    some_link("a second of buffer", |link| link.queue_ms == 1000);
    some_link("jitter", |link| link.jitter_ms >= 60);
    some("four links", |rung| rung.links.len() == 4);
    some("three links", |rung| rung.links.len() == 3);
}

#[test]
fn links_change_fall_and_die() {
    some_link("a mobile course", |link| matches!(link.course, Course::Mobile(_)));
    some_link("a satellite's course", |link| matches!(link.course, Course::Satellite(_)));
    some_link("a shared course", |link| matches!(link.course, Course::Shared(_)));
    some_link("a fall to a tenth", |link| {
        matches!(link.course, Course::Falls { to_permille: 100, .. })
    });
    some_link("a death", |link| matches!(link.course, Course::Dies { .. }));
}

#[test]
fn every_kind_of_load_is_sent() {
    for inner in [Inner::Reno, Inner::Cubic, Inner::Bbr] {
        some(&format!("{inner}"), |rung| rung.load.inner == Some(inner));
    }
    some("many flows", |rung| rung.load.flows >= 16);
    some("QUIC-like senders", |rung| rung.load.like_quic);
    some("both ways", |rung| rung.load.both_ways);
    some("UDP above every link's rate", |rung| {
        rung.load.inner.is_none() && rung.load.kbit > span(rung, |link| link.down_kbit).1
    });
}

#[test]
fn those_on_netns_are_a_dozen_of_many_kinds_and_a_small_machine_keeps_up() {
    let rungs: Vec<Rung> = all().into_iter().filter(|rung| rung.on_netns).collect();
    assert!((12..=14).contains(&rungs.len()), "{}", rungs.len());
    let kinds: BTreeSet<&str> = rungs.iter().map(Rung::kind).collect();
    assert_eq!(kinds.len(), rungs.len(), "one of a kind");
    for kind in [
        "rates",
        "delays",
        "buffers",
        "loss",
        "bursts",
        "jitter",
        "falls",
        "dies",
        "flows",
        "udp",
        "both-ways",
    ] {
        assert!(kinds.contains(kind), "{kind}");
    }
    assert!(rungs.iter().any(|rung| matches!(rung.load.inner, Some(Inner::Bbr | Inner::Reno))));
    for rung in rungs {
        let kbit: u32 = rung.links.iter().map(|link| link.down_kbit).sum();
        assert!(kbit <= 100_000 && !rung.load.like_quic, "{}", rung.name);
    }
}

#[test]
fn steady_rungs_are_those_that_the_promise_names() {
    let rungs = all();
    let steady = |name: &str| rungs.iter().find(|rung| rung.name == name).unwrap().is_steady();
    for name in ["rates/village", "rates/fttc-beside-lte-10", "bbr/office", "buffers/both-bloated"]
    {
        assert!(steady(name), "{name}");
    }
    for name in [
        "rates/edge-of-cell",
        "reno/village",
        "delays/ship",
        "delays/one-to-ten",
        "loss/clean-enough",
        "jitter/five-g",
        "traces/van",
        "dies/short",
        "udp/village",
    ] {
        assert!(!steady(name), "{name}");
    }
    assert!(rungs.iter().filter(|rung| rung.is_steady()).count() >= 30);
}
