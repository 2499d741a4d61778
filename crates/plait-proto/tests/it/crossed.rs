//! Both sides begin at once, and two bonds come of it.

use plait_pair::{CUSTOMER, PROVIDER, Pair, Setup, packet};
use plait_proto::endpoint::Event;
use plait_proto::time::Duration;

/// Both answer what the processes of before have sent, and give up the bonds that this makes for
/// those that the next attempts, again at once, ask for.
#[test]
fn regression_both_restart_at_once_and_one_bond_stays() {
    let mut pair = Pair::new(Setup { links: 1, both_seek: true, ..Setup::default() });
    pair.restart(CUSTOMER);
    pair.restart(PROVIDER);
    for number in 0..100 {
        for side in [CUSTOMER, PROVIDER] {
            pair.send(side, &[packet(side, 1, number)]);
        }
        pair.run_for(Duration::from_millis(20));
    }
    assert_eq!([pair.paths_up(CUSTOMER), pair.paths_up(PROVIDER)], [1, 1]);
    for side in [CUSTOMER, PROVIDER] {
        pair.delivered[1 - side].clear();
        pair.send(side, &[packet(side, 1, 500)]);
        pair.run_for(Duration::from_millis(100));
        assert_eq!(pair.delivered[1 - side].len(), 1, "from side {side}");
    }
}

/// One side starts again while nothing passes, the other renews the bond that it still has: under
/// another name than the one it answers with. What was sent first over a slow link under the bond
/// that goes comes after the one that stays is in use.
#[test]
fn regression_one_restarts_while_the_other_renews_and_one_bond_stays() {
    for side in [CUSTOMER, PROVIDER] {
        for wait_ms in (1600..1660).chain(1860..1920) {
            let mut pair = Pair::connected(Setup { links: 2, both_seek: true, ..Setup::default() });
            pair.links[0].delay = Duration::from_millis(120);
            pair.run_for(Duration::from_secs(1));
            set_links(&mut pair, false);
            send_for(&mut pair, Duration::from_millis(wait_ms / 20 * 20));
            pair.run_for(Duration::from_millis(wait_ms % 20));
            set_links(&mut pair, true);
            pair.restart(side);
            send_for(&mut pair, Duration::from_secs(2));
            let ups = pair.events.each_ref().map(|events| {
                events.iter().filter(|event| matches!(event, Event::BondUp(_))).count()
            });
            // The first bond, and the one that stays; at one side perhaps its own in between.
            let total = ups.into_iter().sum::<usize>();
            assert!(total <= 5, "side {side} restarts, {wait_ms} ms: {ups:?} bonds");
        }
    }
}

fn set_links(pair: &mut Pair, up: bool) {
    pair.links.iter_mut().for_each(|link| link.up = up);
}

/// Both sides send 50 packets a second.
fn send_for(pair: &mut Pair, time: Duration) {
    let until = pair.now + time;
    while pair.now < until {
        for side in [CUSTOMER, PROVIDER] {
            pair.send(side, &[packet(side, 1, 0)]);
        }
        pair.run_for(Duration::from_millis(20));
    }
}
