//! Runs the lab's own tests, each as a process in namespaces of its own.
//!
//! A machine that has not what a test needs skips it and says so, unless `PLAIT_REQUIRE_NETNS=1`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

const LAB: &str = env!("CARGO_BIN_EXE_plait-lab");
const RUNS: &str = "the lab was built with this test, so it can be run";

/// Tests with real traffic run one at a time: side by side they would measure each other.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn skip(reason: &str) {
    assert!(
        std::env::var("PLAIT_REQUIRE_NETNS").as_deref() != Ok("1"),
        "PLAIT_REQUIRE_NETNS=1 forbids to skip: {reason}"
    );
    eprintln!("SKIPPED: {reason}");
}

/// Why no namespaces can be had here; nothing when they can.
fn obstacle() -> Option<String> {
    let output = Command::new(LAB).args(["selftest", "list"]).output().expect(RUNS);
    (!output.status.success()).then(|| String::from_utf8_lossy(&output.stderr).trim().to_owned())
}

fn selftest(name: &str) {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(reason) = obstacle() {
        return skip(&reason);
    }
    let output = Command::new(LAB).args(["selftest", name]).output().expect(RUNS);
    let text = String::from_utf8_lossy(&output.stdout);
    print!("{text}");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {}\n{text}{errors}", output.status);
    assert!(text.contains(&format!("{name}: passed")), "{name}: {text}");
}

/// A test that needs the plait program beside the lab's, or in `PLAIT_BIN`.
fn selftest_of_plait(name: &str) {
    let beside = std::path::Path::new(LAB).with_file_name("plait");
    if std::env::var_os("PLAIT_BIN").is_none() && !beside.is_file() {
        return skip("the plait program is not built; cargo build -p plait-cli");
    }
    selftest(name);
}

/// A test that needs a browser, clips, and the page in the lab.
fn selftest_of_page(name: &str) {
    if env!("PLAIT_QOE_APP") != "yes" {
        return skip("the page of plait-lab qoe is not built; run scripts/qoe-app");
    }
    for program in ["chromium", "ffmpeg"] {
        if !std::path::Path::new("/usr/bin").join(program).exists() {
            return skip(&format!("{program} is missing; run scripts/setup --video"));
        }
    }
    selftest(name);
}

/// A test that needs an encoder and servers of live streams.
fn selftest_of_streams(name: &str) {
    let folders = ["/usr/bin", "/usr/sbin", "/usr/lib/nginx/modules"];
    for file in ["ffmpeg", "nginx", "ngx_rtmp_module.so", "srt-live-transmit"] {
        if !folders.iter().any(|folder| std::path::Path::new(folder).join(file).exists()) {
            return skip(&format!("{file} is missing; run scripts/setup --live"));
        }
    }
    selftest_of_plait(name);
}

/// A test that needs Prometheus, which no build and no CI does.
fn selftest_with_prometheus(name: &str) {
    if !std::path::Path::new("/usr/bin/prometheus").exists() {
        eprintln!("SKIPPED: prometheus is missing; run scripts/setup --observe");
        return;
    }
    selftest_of_plait(name);
}

macro_rules! tests {
    ($run:ident: $($function:ident => $name:literal,)+) => {
        $(#[test] fn $function() { $run($name); })+
    };
}

tests! { selftest:
    isolation => "isolation",
    emulator => "emulator",
    topology => "topology",
    measurements => "measurements",
    reconfiguration => "reconfiguration",
    mptcp => "mptcp",
    files_come_with_their_senders_view => "fetch",
    a_tcp_scenario_runs => "scenario-tcp",
    a_transfer_tells_its_time => "scenario-transfer",
}

tests! { selftest_with_prometheus:
    every_panel_of_the_board_has_series => "metrics-board",
}

tests! { selftest_of_plait:
    bond_carries_ping_and_tcp => "bond",
    bond_carries_ipv6 => "ipv6",
    bond_fills_links_of_ordinary_mtu => "ordinary-mtu",
    one_gateway_serves_several_peers => "several-peers",
    spoofed_source_is_dropped => "spoofed-source",
    either_path_starts_the_bond => "either-path-starts",
    bond_survives_a_dead_link => "dead-link",
    bond_comes_back_after_a_kill => "restart-after-kill",
    a_udp_scenario_runs => "scenario-udp",
    a_scenario_with_a_steering_node_runs => "scenario-steer",
    a_scenario_on_shared_air_runs => "scenario-air",
    a_download_survives_a_silent_cut => "silent-cut",
    plait_measure_measures_each_path_and_the_bond => "measure",
    plait_measure_says_why_it_cannot => "measure-refused",
    a_download_survives_a_restart_of_either_gateway => "restart",
    a_download_survives_an_interface_that_goes_and_comes => "interface",
    a_download_survives_new_addresses_and_ports => "address",
    a_download_survives_a_reload => "reload",
    a_download_survives_hostile_datagrams => "hostile",
    sigterm_leaves_nothing => "sigterm-leaves-nothing",
    bad_config_leaves_nothing => "bad-config-leaves-nothing",
    regression_check_finds_what_up_fails_at_and_what_makes_a_bond_useless => "set-ups",
    regression_forwarding_keeps_router_advertisements => "router-advertisements",
    a_client_downloads_over_both_attachments => "steer-colocated",
    a_client_downloads_over_a_routed_attachment => "steer-beside",
    a_client_downloads_over_ipv6 => "steer-ipv6",
    a_client_downloads_by_the_recipe_of_iptables => "steer-iptables",
    a_phone_downloads_by_its_recipe => "steer-android",
    a_client_without_its_rule_is_served_over_the_primary => "steer-without-rule",
    a_download_survives_a_restart_of_the_steering_node => "steer-restart",
    a_download_survives_a_reload_of_the_steering_node => "steer-reload",
    a_download_survives_a_dead_attachment => "steer-dead-attachment",
    dida_holds_and_keeps_nothing => "steer-dida",
    a_steering_node_leaves_nothing => "steer-leaves-nothing",
    a_proxy_tells_the_shares_that_a_capture_tells => "proxy-shares",
    a_bad_steering_node_leaves_nothing => "steer-bad-config-leaves-nothing",
}

tests! { selftest_of_page:
    the_measuring_application_works_by_keys_at_each_width => "qoe-page",
    a_clip_stalls_on_a_slow_link => "qoe-link",
    a_scenario_with_a_video_runs => "scenario-video",
}

tests! { selftest_of_streams:
    a_live_stream_survives_the_cut_of_a_link => "live",
}

/// Processes outside that run in one of these network namespaces.
fn processes_in(namespaces: &[String]) -> Vec<String> {
    let entries = fs::read_dir("/proc").expect("/proc can be read").flatten();
    let is_in = |path: &std::path::Path| {
        fs::read_link(path.join("ns/net"))
            .is_ok_and(|link| namespaces.contains(&link.display().to_string()))
    };
    entries
        .filter(|entry| is_in(&entry.path()))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

#[test]
fn everything_vanishes_when_the_lab_is_killed() {
    if let Some(reason) = obstacle() {
        return skip(&reason);
    }
    let mut lab =
        Command::new(LAB).args(["selftest", "hang"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(lab.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let namespaces: Vec<String> = line.split_whitespace().skip(1).map(str::to_owned).collect();
    assert_eq!(namespaces.len(), 2, "{line}");
    // The lab outside and inside, and a child in each namespace.
    let running = processes_in(&namespaces);
    assert!(running.len() >= 4, "{running:?}");
    lab.kill().unwrap();
    lab.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while !processes_in(&namespaces).is_empty() {
        assert!(Instant::now() < deadline, "left: {:?}", processes_in(&namespaces));
        std::thread::sleep(Duration::from_millis(20));
    }
}
