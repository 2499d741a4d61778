//! Both sides begin at once, and two bonds come of it.

use plait_proto::time::Duration;

use crate::harness::{CUSTOMER, PROVIDER, Setup, World, packet};

/// Both answer what the processes of before have sent, and give up the bonds that this makes for
/// those that the next attempts, again at once, ask for.
#[test]
fn regression_both_restart_at_once_and_one_bond_stays() {
    let mut world = World::new(Setup { links: 1, both_seek: true, ..Setup::default() });
    world.restart(CUSTOMER);
    world.restart(PROVIDER);
    for number in 0..100 {
        for side in [CUSTOMER, PROVIDER] {
            world.send(side, &[packet(side, 1, number)]);
        }
        world.run_for(Duration::from_millis(20));
    }
    assert_eq!([world.paths_up(CUSTOMER), world.paths_up(PROVIDER)], [1, 1]);
    for side in [CUSTOMER, PROVIDER] {
        world.delivered[1 - side].clear();
        world.send(side, &[packet(side, 1, 500)]);
        world.run_for(Duration::from_millis(100));
        assert_eq!(world.delivered[1 - side].len(), 1, "from side {side}");
    }
}
