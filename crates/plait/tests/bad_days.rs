//! Bad days of an installed gateway: a full or read-only disk, a kernel that lacks something, a
//! second gateway where there is one. Real processes in namespaces of their own.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

#[path = "bad_days/disk.rs"]
mod disk;
#[path = "bad_days/kernel.rs"]
mod kernel;
#[path = "bad_days/lacking.rs"]
mod lacking;
#[path = "operations/setup.rs"]
mod setup;
#[path = "bad_days/twice.rs"]
mod twice;

use setup::run;

/// The script says `ok WHAT` for each effect that it saw.
fn assert_seen(text: &str, effects: &[&str]) {
    for effect in effects {
        assert!(text.contains(&format!("ok {effect}\n")), "{effect}: {text}");
    }
    assert!(!text.contains("never:"), "{text}");
}

/// Not a test of its own: the scripts run it to start a program on a kernel that lacks something.
#[test]
fn a_role() {
    lacking::play();
}
