//! What a service manager is told (sd_notify(3)).

use std::os::unix::net::UnixDatagram;
use std::thread;
use std::time::Duration;

use super::run;

/// Runs a script in which `$MANAGER` is a manager's socket; gives what the manager was told, unless
/// there are no namespaces here.
fn told(name: &str, script: &str) -> Option<String> {
    let path = std::env::temp_dir().join(format!("plait-manager-{}-{name}", std::process::id()));
    let socket = UnixDatagram::bind(&path).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    let shown = path.display().to_string();
    let script = format!("MANAGER={shown}; export NOTIFY_SOCKET=$MANAGER\n{script}");
    let runs = thread::spawn(move || run(&script));
    let mut told = String::new();
    let mut message = [0; 4096];
    // What was sent before the script's end has arrived by then.
    loop {
        let is_over = runs.is_finished();
        while let Ok(length) = socket.recv(&mut message) {
            told += &String::from_utf8_lossy(&message[..length]);
        }
        if is_over {
            break;
        }
    }
    std::fs::remove_file(path).unwrap();
    runs.join().unwrap().map(|_| told)
}

#[test]
fn a_gateway_that_reaches_nobody_is_alive_but_not_ready() {
    let script = "export WATCHDOG_USEC=400000; start b; sleep 1.5; kill $!; wait $!";
    let Some(told) = told("alone", script) else { return };
    assert!(told.contains("STATUS=bonds that carry data: 0 of 1"), "{told}");
    assert!(told.matches("WATCHDOG=1").count() >= 5, "{told}");
    assert!(!told.contains("READY=1"), "{told}");
}

#[test]
fn a_gateway_is_ready_once_its_bond_can_carry() {
    let script = "unset NOTIFY_SOCKET; start a; export NOTIFY_SOCKET=$MANAGER
        start b; b=$!; until_true paths_up; sleep 0.5; kill $b; wait $b";
    let Some(told) = told("both", script) else { return };
    let ready = told.find("READY=1").unwrap_or_else(|| panic!("never ready: {told}"));
    assert!(told[ready..].contains("STATUS=bonds that carry data: 1 of 1"), "{told}");
    assert!(told[ready..].contains("STOPPING=1"), "{told}");
    assert!(!told.contains("WATCHDOG"), "{told}");
}

#[test]
fn a_gateway_that_calls_nobody_is_ready_at_once() {
    let Some(told) = told("listens", "start a; kill $!; wait $!") else { return };
    assert!(told.contains("READY=1") && told.contains("STOPPING=1"), "{told}");
}
