//! What is loaded, used and removed, in the kernel of this machine: in a mount namespace with a BPF
//! file system of its own, so that whatever a failed test leaves goes with it. Where the machine
//! lacks something for it, it says what and is skipped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use plait_bpf::choose::{self, Whose};
use plait_bpf::pins::{ROOT, State};
use plait_bpf::support::{self, Holder};
use plait_bpf::{Controller, Error, InUse, congestion};

/// The kernel has each controller once, for all namespaces.
static ALONE: Mutex<()> = Mutex::new(());

/// Runs a test of this file that is ignored otherwise.
fn run_inside(name: &str) {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let this = std::env::current_exe().expect("this program has a place");
    let script = "mount -t bpf bpf /sys/fs/bpf && exec \"$@\"";
    let status = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", script, "sh"])
        .arg(this)
        .args([name, "--exact", "--ignored", "--nocapture", "--test-threads", "1"])
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => {
            // Only root of the machine may mount it.
            assert!(!may_mount(), "{name}: {status}");
            eprintln!("SKIPPED {name}: it takes root on the machine itself");
        }
        Err(error) => eprintln!("SKIPPED {name}: unshare does not run: {error}"),
    }
}

fn may_mount() -> bool {
    let mount = "mount -t bpf bpf /sys/fs/bpf";
    let tried = Command::new("unshare").args(["--mount", "sh", "-c", mount]).status();
    tried.is_ok_and(|status| status.success())
}

/// Whether to go on.
fn is_able(name: &str) -> bool {
    let missing = support::check();
    if let Err(error) = &missing {
        eprintln!("SKIPPED {name}: {error}");
    }
    missing.is_ok()
}

fn state_of(controller: Controller) -> Option<State> {
    let all = congestion::list().expect("the BPF file system can be read");
    all.into_iter().find(|each| each.controller == controller).map(|each| each.state)
}

#[test]
fn controllers_come_and_go() {
    run_inside("inside_controllers_come_and_go");
}

#[test]
#[ignore = "runs in a mount namespace of its own"]
fn inside_controllers_come_and_go() {
    if !is_able("controllers_come_and_go") {
        return;
    }
    for controller in Controller::ALL {
        assert!(!congestion::load(controller).expect("it loads"), "{controller}: nothing was left");
        assert_eq!(state_of(controller), Some(State::Loaded));
        let there = congestion::available();
        assert!(there.iter().any(|name| name == controller.kernel_name()), "{there:?}");
        let again = congestion::load(controller);
        assert!(matches!(again, Err(Error::AlreadyLoaded(_))), "{again:?}");
    }
    for controller in Controller::ALL {
        congestion::unload(controller, false).expect("nobody uses it");
        assert_eq!(state_of(controller), None);
        let again = congestion::unload(controller, false);
        assert!(matches!(again, Err(Error::NotLoaded(_))), "{again:?}");
    }
    let ours = |name: &String| name.parse::<Controller>().is_ok();
    assert!(!congestion::available().iter().any(ours), "{:?}", congestion::available());
    assert!(!Path::new(ROOT).exists(), "no folder is left");
}

#[test]
fn without_links_a_registration_holds_them() {
    run_inside("inside_without_links_a_registration_holds_them");
}

#[test]
#[ignore = "runs in a mount namespace of its own"]
fn inside_without_links_a_registration_holds_them() {
    if !is_able("without_links_a_registration_holds_them") {
        return;
    }
    let load = |controller| congestion::load_held_by(controller, Holder::Registration);
    let is_there = |controller: Controller| {
        congestion::available().iter().any(|name| name == controller.kernel_name())
    };
    for controller in Controller::ALL {
        assert!(!load(controller).expect("it loads"), "{controller}: nothing was left");
        assert_eq!(state_of(controller), Some(State::Loaded));
        assert!(is_there(controller), "{controller}");
        let again = load(controller);
        assert!(matches!(again, Err(Error::AlreadyLoaded(_))), "{again:?}");
    }
    for controller in Controller::ALL {
        congestion::unload(controller, false).expect("nobody uses it");
        assert_eq!(state_of(controller), None);
        assert!(!is_there(controller), "{controller}");
    }
    assert!(!Path::new(ROOT).exists(), "no folder is left");
}

#[test]
fn what_a_dead_loader_left_is_told_and_replaced() {
    run_inside("inside_what_a_dead_loader_left_is_told_and_replaced");
}

#[test]
#[ignore = "runs in a mount namespace of its own"]
fn inside_what_a_dead_loader_left_is_told_and_replaced() {
    if !is_able("what_a_dead_loader_left_is_told_and_replaced") {
        return;
    }
    let left = Path::new(ROOT).join("cc/olia");
    fs::create_dir_all(&left).expect("a folder");
    assert_eq!(state_of(Controller::Olia), Some(State::Incomplete));
    assert!(congestion::load(Controller::Olia).expect("it loads"), "it was replaced");
    assert_eq!(state_of(Controller::Olia), Some(State::Loaded));
    congestion::unload(Controller::Olia, false).expect("nobody uses it");
    fs::create_dir_all(&left).expect("a folder");
    congestion::unload(Controller::Olia, false).expect("what is left can be removed");
    assert_eq!(state_of(Controller::Olia), None);
}

/// A cgroup, removed at the end.
struct Cgroup(PathBuf);

impl Cgroup {
    fn make(name: &str) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let root = mounts.lines().find(|line| line.contains(" - cgroup2 "))?.split(' ').nth(4)?;
        let path = Path::new(root).join(format!("plait-test-{}-{name}", std::process::id()));
        fs::create_dir(&path).ok()?;
        Some(Self(path))
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn rules_of_a_cgroup_come_and_go() {
    run_inside("inside_rules_of_a_cgroup_come_and_go");
}

#[test]
#[ignore = "runs in a mount namespace of its own"]
fn inside_rules_of_a_cgroup_come_and_go() {
    if !is_able("rules_of_a_cgroup_come_and_go") {
        return;
    }
    let Some(cgroup) = Cgroup::make("rules") else {
        eprintln!("SKIPPED rules_of_a_cgroup_come_and_go: no cgroup of version 2 can be made");
        return;
    };
    congestion::load(Controller::Lia).expect("it loads");
    let address = Whose::Address("192.0.2.7".parse().expect("an address"));
    let set = |whose: &[Whose], name: &str| choose::set(&cgroup.0, whose, name).expect("a rule");
    let found = set(&[address], "bpf_lia");
    assert!(!found.leftovers && found.others == 0, "{found:?}");
    set(&[Whose::Any], "reno");
    let all = choose::list().expect("the BPF file system can be read");
    assert_eq!((all.len(), all[0].state), (1, State::Loaded));
    assert_eq!(Path::new(&all[0].cgroup), cgroup.0);
    let rules: Vec<_> = all[0].rules.iter().map(|rule| (rule.whose, rule.name.as_str())).collect();
    assert_eq!(rules, [(address, "bpf_lia"), (Whose::Any, "reno")]);
    let refused = congestion::unload(Controller::Lia, false);
    let is_told = matches!(&refused, Err(Error::InUse { use_: InUse::Rule(_), .. }));
    assert!(is_told, "{refused:?}");
    choose::clear(&cgroup.0, Some(&[address])).expect("there is such a rule");
    let again = choose::clear(&cgroup.0, Some(&[address]));
    assert!(matches!(again, Err(Error::NoRule(_))), "{again:?}");
    congestion::unload(Controller::Lia, false).expect("nobody uses it");
    choose::clear(&cgroup.0, None).expect("there is a rule");
    assert_eq!(choose::list().expect("it can be read"), []);
    assert!(!Path::new(ROOT).exists(), "no folder is left");
    // The rules of a cgroup that is gone are told, and removed.
    set(&[Whose::Any], "reno");
    drop(cgroup);
    let state = || choose::list().expect("it can be read").first().map(|each| each.state);
    // The kernel detaches them a moment later.
    let deadline = Instant::now() + Duration::from_secs(10);
    while state() != Some(State::Detached) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(state(), Some(State::Detached));
    assert_eq!(choose::clear_all().expect("it is removed"), 1);
}
