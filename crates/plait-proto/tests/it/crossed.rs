//! Both sides begin at once, and two bonds come of it.

use plait_pair::{CUSTOMER, PROVIDER, Pair, Setup, packet};
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
