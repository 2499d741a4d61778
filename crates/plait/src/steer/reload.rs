//! Another configuration for a running node: which options take effect at once, and which do not.

use super::config::SteerConfig;

/// Options that changed but take effect only at a start.
pub(super) fn needs_restart(old: &SteerConfig, new: &SteerConfig) -> Vec<String> {
    let (before, now) = (&old.node, &new.node);
    let user = |config: &SteerConfig| config.node.user.as_ref().map(|user| user.value.clone());
    let changes = [
        ("tun", before.tun != now.tun),
        ("table", before.table != now.table),
        ("control_socket", before.control_socket != now.control_socket),
        ("state_file", before.state_file != now.state_file),
        ("user", user(old) != user(new)),
        ("sandbox", before.sandbox != now.sandbox),
        ("forward", before.forward != now.forward),
    ];
    let changed = changes.into_iter().filter(|(_, changed)| *changed);
    changed.map(|(name, _)| format!("[node] {name}")).collect()
}

/// The new configuration, but with the old values of options that need a restart.
pub(super) fn keep_what_stays(old: &SteerConfig, mut new: SteerConfig) -> SteerConfig {
    let (before, now) = (&old.node, &mut new.node);
    now.tun.clone_from(&before.tun);
    now.control_socket.clone_from(&before.control_socket);
    now.state_file.clone_from(&before.state_file);
    now.user.clone_from(&before.user);
    (now.table, now.forward) = (before.table, before.forward);
    now.sandbox = before.sandbox;
    new
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steer::config::testing::parse;

    #[test]
    fn what_stays_until_a_restart_is_named_and_kept() {
        let client = "[[client]]\nname = \"p\"\naddress = \"10.1.0.1\"\n\
                      [[client.attachment]]\nname = \"a\"\n";
        let old = parse(&format!("[node]\n{client}")).unwrap();
        let node = "tun = \"s1\"\ntable = 6000\nuser = \"x\"\nsandbox = false\nforward = true\n\
                    per = \"flow\"\n";
        let new = parse(&format!("[node]\n{node}{client}")).unwrap();
        assert_eq!(
            needs_restart(&old, &new),
            ["tun", "table", "control_socket", "state_file", "user", "sandbox", "forward"]
                .map(|name| format!("[node] {name}"))
        );
        let kept = keep_what_stays(&old, new.clone());
        assert!(needs_restart(&old, &kept).is_empty());
        assert_eq!(kept.node.granularity, new.node.granularity);
    }
}
