use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use plait_proto::config::{LossDetection, Order, SocketId};
use plait_proto::congestion;
use plait_proto::resequencer::{LatePolicy, Timer};
use plait_proto::scheduler::{
    AdaptiveWrrConfig, Algorithm, DwdMode, SmallFlows, WeightRounding, WeightUnit, WeightsAdapt,
};

use super::*;

#[path = "../../tests/bad_configs/cases.rs"]
mod cases;

/// A folder of its own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("plait-config-{}-{count}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        cases::write_keys(&path);
        Self(path)
    }

    fn load(&self, text: &str) -> Result<Config, ConfigErrors> {
        let file = self.0.join("gw.toml");
        fs::write(&file, text).unwrap();
        Config::load(&file)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder left in the temporary directory does no harm.
        let _ = fs::remove_dir_all(&self.0);
    }
}

const CUSTOMER: &str = r#"
[gateway]
private_key_file = "gateway.key"
address = ["10.99.0.2/24", "fd99::2/64"]
routes = true

[[path]]
interface = "dsl"

[[path]]
address = "10.1.0.1"
price = 1
weight = 64

[[path]]
address = "2001:db8::1234:5678"

[[peer]]
public_key = "{A}"
endpoint = ["192.0.2.1:7788", "[2001:db8::1]:7788", "gw.example.net:7788"]
allowed_ips = ["0.0.0.0/0", "fd99::1"]
"#;

fn customer() -> String {
    CUSTOMER.replace("{A}", cases::A)
}

#[test]
fn what_is_left_out_has_its_default() {
    let config = Folder::new().load(&customer()).unwrap();
    assert_eq!(config.gateway.public_key.to_string(), cases::OWN);
    assert_eq!(config.gateway.tun, "plait0");
    assert_eq!(config.gateway.control_socket, Path::new("/run/plait/plait0.sock"));
    assert!(config.gateway.listen_port.is_none() && config.gateway.routes);
    let paths: Vec<_> = config.paths.iter().map(|p| (p.name.as_str(), p.price, p.weight)).collect();
    assert_eq!(paths, [("dsl", 0, 1), ("10.1.0.1", 1, 64), ("path3", 0, 1)]);
    let peer = &config.peers[0];
    assert_eq!(peer.keepalive, Duration::from_secs(25));
    let endpoints: Vec<_> = peer.endpoints.iter().map(|e| e.value.to_string()).collect();
    assert_eq!(endpoints, ["192.0.2.1:7788", "[2001:db8::1]:7788", "gw.example.net:7788"]);
    let allowed: Vec<_> = peer.allowed_ips.iter().map(|p| p.value.to_string()).collect();
    assert_eq!(allowed, ["0.0.0.0/0", "fd99::1/128"]);
    assert_eq!(config.tuning.scheduler.algorithm, Algorithm::EarliestDelivery);
    assert_eq!(config.tuning.congestion, Some(congestion::Algorithm::Gauge.into()));
    assert_eq!(config.tuning.order, Order::Flow);
    assert_eq!(config.tuning.resequencer.timer, Timer::ADAPTIVE);
    assert!(config.tuning.resequencer.release_known_lost);
    assert_eq!(config.tuning.report_interval(), Duration::from_millis(50));
    assert_eq!(config.warnings, []);
}

#[test]
fn what_the_host_is_asked_for_is_understood() {
    let folder = Folder::new();
    let config = folder.load(&customer()).unwrap();
    let gateway = &config.gateway;
    assert_eq!(gateway.state_file, Path::new("/var/lib/plait/plait0.json"));
    assert_eq!((&gateway.user, gateway.forward, &gateway.nat), (&None, false, &Nat::Off));
    let plain = &config.paths[0];
    assert_eq!((plain.standby, plain.metered, plain.quota), (false, false, None));
    let text = customer()
        .replace("routes", "state_file = \"s.json\"\nuser = \"plait\"\nnat = \"eth0\"\nroutes")
        .replace("price = 1", "standby = true\nmetered = true\nquota = \"20 GB\"\nquota_day = 15");
    let config = folder.load(&text).unwrap();
    let gateway = &config.gateway;
    assert_eq!(gateway.state_file, folder.0.join("s.json"));
    assert_eq!(gateway.user.as_ref().unwrap().value, "plait");
    assert_eq!(gateway.nat, Nat::Interfaces(vec!["eth0".into()]));
    assert_eq!(config.paths[1].quota, Some(Quota { bytes: 20_000_000_000, first_day: 15 }));
    let links: Vec<_> = config.paths.iter().map(|path| path.link(SocketId(0), "x")).collect();
    assert_eq!([links[0].standby, links[1].standby, links[1].metered], [false, true, true]);
    assert_eq!(config.warnings[0].option, "[gateway] nat", "nothing is forwarded");
    let config = folder.load(&text.replace("nat = \"eth0\"", "nat = true\nforward = true"));
    let config = config.unwrap();
    assert_eq!((&config.gateway.nat, config.warnings), (&Nat::Everywhere, vec![]));
}

#[test]
fn the_mtu_leaves_room_for_the_outer_headers() {
    let folder = Folder::new();
    let config = folder.load(&customer()).unwrap();
    assert_eq!((config.inner_mtu(false), config.inner_mtu(true)), (1440, 1420));
    let config = folder.load(&customer().replace("routes", "mtu = 1408\nroutes")).unwrap();
    assert_eq!((config.inner_mtu(false), config.inner_mtu(true)), (1408, 1408));
}

#[test]
fn the_options_of_002_are_understood() {
    let text = customer()
        + r#"
[scheduler]
algorithm = "adaptive-wrr"
k = 0.5
w_max = 45
t_dwd_ms = 250
t_report_ms = 40
initial_weight = 45
dwd_mode = "per-report"
weight_rounding = "truncate"
weight_unit = "bytes"
weights_adapt = "both"
small_flows = "cheapest"
[resequencer]
order = "bond"
unordered_dscp = [46, 8]
timer = "fixed"
loss_detection = "timer"
late = "deliver"
buffer_bytes_max = 1_000_000
"#;
    let config = Folder::new().load(&text).unwrap();
    let expected = AdaptiveWrrConfig {
        k: 0.5,
        w_fixed: 50,
        w_max: 45,
        w_initial: 45,
        t_dwd_ms: 250,
        t_report_ms: 40,
        dwd_mode: DwdMode::PerReport,
        weight_rounding: WeightRounding::Truncate,
        weight_unit: WeightUnit::Bytes,
        weights_adapt: WeightsAdapt::Both,
        small_flows: SmallFlows::Cheapest,
    };
    let tuning = config.tuning;
    assert_eq!(tuning.scheduler.algorithm, Algorithm::AdaptiveWrr);
    assert_eq!(tuning.scheduler.adaptive_wrr, expected);
    assert_eq!(tuning.report_interval(), Duration::from_millis(40));
    assert_eq!((tuning.order, tuning.loss_detection), (Order::Bond, LossDetection::Timer));
    assert_eq!(tuning.unordered.iter().collect::<Vec<_>>(), [8, 46]);
    let resequencer = tuning.resequencer;
    assert_eq!(resequencer.timer, Timer::Fixed(Duration::from_millis(50)));
    assert_eq!((resequencer.late, resequencer.bytes_max), (LatePolicy::Deliver, 1_000_000));
    assert!(!resequencer.count_known_lost && !resequencer.release_known_lost);
}

#[test]
fn a_limit_below_the_shortest_timeout_moves_that_too() {
    let text = customer() + "[resequencer]\ntimeout_max_ms = 2\n";
    let expected = Duration::from_millis(2);
    let timer = Folder::new().load(&text).unwrap().tuning.resequencer.timer;
    assert_eq!(timer, Timer::Adaptive { min: expected, max: expected });
}

#[test]
fn the_protocol_is_told_what_the_file_says() {
    let text = customer().replace(", \"gw.example.net:7788\"", "");
    let config = Folder::new().load(&text).unwrap();
    let peers = config.peer_configs(|endpoint| resolve(endpoint).unwrap());
    assert_eq!(peers[0].endpoints.len(), 2);
    assert_eq!(peers[0].allowed_ips[0].length, 0);
    let inner_mtu = config.inner_mtu(true);
    assert_eq!(inner_mtu, 1420, "an endpoint is an IPv6 address");
    assert_eq!(config.listening_link(SocketId(0)), None, "the file has paths");
    let socket = |index: usize| SocketId(index as u16 + 10);
    let link = |(index, path): (usize, &PathConfig)| path.link(socket(index), &path.name);
    let links: Vec<_> = config.paths.iter().enumerate().map(link).collect();
    assert_eq!((links[1].socket, links[1].price, links[1].weight), (SocketId(11), 1, 64));
    let endpoint = config.endpoint(links, inner_mtu, Duration::from_secs(9));
    assert_eq!(endpoint.bond.inner_mtu, 1420);
    assert_eq!(endpoint.links.len(), 3);
    assert_eq!(endpoint.private_key.public_key(), config.gateway.public_key);
}

#[test]
fn a_gateway_without_paths_uses_its_listening_socket() {
    let text = format!(
        "[gateway]\nprivate_key_file = \"gateway.key\"\nlisten_port = 7788\n\
         [[peer]]\npublic_key = \"{}\"\n",
        cases::A
    );
    let link = Folder::new().load(&text).unwrap().listening_link(SocketId(7));
    assert_eq!(link.map(|link| link.socket), Some(SocketId(7)));
}

/// Tables in braces may share a line; which peer is meant does not hang on lines.
#[test]
fn regression_two_peers_of_one_line_have_keys_and_prefixes_of_their_own() {
    let peer = format!("{{ public_key = \"{}\", allowed_ips = [\"10.0.0.0/24\"] }}", cases::A);
    let text = format!(
        "peer = [{peer}, {peer}]\n[gateway]\nprivate_key_file = \"gateway.key\"\n\
         listen_port = 7788\n"
    );
    let errors = Folder::new().load(&text).expect_err("the same peer twice");
    let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.iter().any(|it| it.contains("has the same key")), "{found:?}");
    assert!(found.iter().any(|it| it.contains("belongs to the peer of line 1")), "{found:?}");
}

#[test]
fn an_endpoint_that_cannot_be_resolved_is_named_with_its_cause() {
    // RFC 6761: a name below `invalid` never resolves.
    let text = customer().replace("gw.example.net", "gw.invalid");
    let config = Folder::new().load(&text).unwrap();
    let mut endpoints = config.peers.iter().flat_map(|peer| &peer.endpoints);
    let name = endpoints.find(|endpoint| endpoint.value.name().is_some()).unwrap();
    assert_eq!((name.line, name.value.name()), (20, Some(("gw.invalid", 7788))));
    let text = resolve(&name.value).unwrap_err().to_string();
    assert!(text.starts_with("cannot resolve \"gw.invalid\": "), "{text}");
}

#[test]
fn what_looks_unintended_is_a_warning() {
    let folder = Folder::new();
    let text = format!(
        "[gateway]\nprivate_key_file = \"gateway.key\"\n[[path]]\ninterface = \"lo\"\n\
         [[peer]]\npublic_key = \"{}\"\nendpoint = \"192.0.2.1:1\"\nallowed_ips = \"10.0.0.7/8\"\n",
        cases::A
    );
    let config = folder.load(&text).unwrap();
    let found: Vec<_> = config.warnings.iter().map(|w| (w.line, w.text.as_str())).collect();
    assert_eq!(
        found,
        [
            (1, "plait0 will have no address"),
            (3, "with a single path there is nothing to bond"),
            (8, "10.0.0.7/8 is taken as 10.0.0.0/8"),
        ]
    );
}

#[test]
fn regression_a_key_file_that_others_can_read_is_refused_unless_allowed() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    let key = folder.0.join("gateway.key");
    for mode in [0o644, 0o640, 0o602] {
        fs::set_permissions(&key, fs::Permissions::from_mode(mode)).unwrap();
        let errors = folder.load(&customer()).unwrap_err();
        let text = errors.to_string();
        let expected = format!(
            "gw.toml:3: key file: others than its owner may read or write the key file {} (mode \
             {mode:o})",
            key.display()
        );
        assert!(text.contains(&expected), "{text}");
        let help = errors.iter().next().unwrap().help();
        assert!(help.starts_with(&format!("chmod 600 {};", key.display())), "{help}");
        let allowed = customer().replacen("routes", "allow_open_key_files = true\nroutes", 1);
        folder.load(&allowed).unwrap();
    }
}

#[test]
fn bad_configurations_are_refused_in_clear_words() {
    let mut differing = Vec::new();
    for case in cases::CASES {
        let folder = Folder::new();
        let errors = folder.load(&case.text()).expect_err(case.name);
        let prefix = format!("{}/", folder.0.display());
        let found: Vec<_> = errors
            .iter()
            .map(|e| (e.to_string().replace(&prefix, ""), e.help().replace(&prefix, "")))
            .collect();
        let found: Vec<_> =
            found.iter().map(|(text, help)| (text.as_str(), help.as_str())).collect();
        if found != case.errors {
            differing.push(format!("{}:\n  {found:?}\n  {:?}", case.name, case.errors));
        }
    }
    assert!(differing.is_empty(), "found, then expected:\n{}", differing.join("\n"));
}

#[test]
fn a_file_that_cannot_be_read_is_an_error_without_a_line() {
    let errors = Config::load(Path::new("/nonexistent/gw.toml")).unwrap_err();
    let error = errors.iter().next().unwrap();
    assert_eq!(
        error.to_string(),
        "/nonexistent/gw.toml: cannot read the configuration: \
         No such file or directory (os error 2)"
    );
}

#[test]
fn the_control_socket_is_found_without_any_key() {
    let folder = Folder::new();
    let file = folder.0.join("gw.toml");
    for (text, socket) in [
        ("[gateway]\nprivate_key_file = \"absent.key\"\ntun = \"p7\"", "/run/plait/p7.sock"),
        ("[gateway]\ncontrol_socket = \"/tmp/x\"", "/tmp/x"),
    ] {
        fs::write(&file, text).unwrap();
        assert_eq!(Config::control_socket_of(&file).unwrap(), Path::new(socket));
    }
    // It was made where the program was started, and looked for there.
    fs::write(&file, "[gateway]\ncontrol_socket = \"x.sock\"").unwrap();
    assert_eq!(Config::control_socket_of(&file).unwrap(), folder.0.join("x.sock"));
}

#[test]
fn the_guide_describes_every_option() {
    let guide = include_str!("../../../../docs/guide/configuration.md");
    let sections = [
        "[gateway]",
        "[[path]]",
        "[[peer]]",
        "[[hook]]",
        "[[beside]]",
        "[scheduler]",
        "[resequencer]",
    ];
    let text: String = sections.iter().map(|section| format!("{section}\nzzzzzz = 1\n")).collect();
    let errors = Folder::new().load(&text).unwrap_err();
    let known: Vec<_> = errors
        .iter()
        .filter(|error| error.option.ends_with("zzzzzz"))
        .map(|error| (error.option.replace(" zzzzzz", ""), error.help()))
        .collect();
    assert_eq!(known.len(), sections.len());
    for (section, help) in known {
        let (_, chapter) = guide.split_once(&format!("## `{section}`")).expect(&section);
        let chapter = chapter.split("\n## ").next().unwrap_or(chapter);
        for option in help.trim_start_matches("known here: ").split(", ") {
            assert!(chapter.contains(&format!("| `{option}` |")), "{section} {option}");
        }
    }
}

#[test]
fn a_wildcard_takes_names_that_begin_alike() {
    let wildcard = testing::path("wwan*", Some("wwan*"), None);
    let names = ["wwan0", "wwan", "wlan0", "xwwan0"];
    assert_eq!(names.map(|name| wildcard.takes_interface(name)), [true, true, false, false]);
    assert!(wildcard.is_wildcard() && !testing::path("a", Some("wwan"), None).is_wildcard());
}

/// With the lines that stand there as comments, too.
#[test]
fn the_packages_examples_are_sound() {
    let examples = [
        include_str!("../../../../packaging/examples/customer.toml"),
        include_str!("../../../../packaging/examples/provider.toml"),
    ];
    for example in examples {
        let text = example
            .replace("customer.key", "gateway.key")
            .replace("provider.key", "gateway.key")
            .replace("the provider's public key", cases::A)
            .replace("the customer's public key", cases::A);
        let whole: Vec<_> = text
            .lines()
            .map(|line| {
                line.strip_prefix('#').filter(|rest| !rest.starts_with(' ')).unwrap_or(line)
            })
            .collect();
        for text in [text.clone(), whole.join("\n")] {
            let config = Folder::new().load(&text).unwrap_or_else(|errors| panic!("{errors:?}"));
            assert!(config.warnings.is_empty(), "{:?}", config.warnings);
        }
    }
}
