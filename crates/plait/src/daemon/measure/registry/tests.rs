use std::sync::atomic::AtomicU32;

use super::*;

fn peer(key: &str, network: &str, serves: bool) -> Known {
    let (address, length) = network.split_once('/').unwrap();
    let prefix = Prefix { address: address.parse().unwrap(), length: length.parse().unwrap() };
    let addresses = vec![prefix.address];
    Known { key: key.into(), prefixes: vec![prefix], serves, addresses }
}

pub(in super::super) fn registry() -> Registry {
    let peers = vec![
        peer("customer", "127.0.0.0/8", true),
        peer("other", "127.9.0.0/16", true),
        peer("forbidden", "10.99.0.7/32", false),
    ];
    Registry(Arc::new(Mutex::new(State { peers, ..State::default() })))
}

fn address(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn why<T: std::fmt::Debug>(result: Result<T, Refused>) -> Refusal {
    result.unwrap_err().why
}

#[test]
fn one_measurement_at_a_time_with_each_peer_and_none_with_strangers() {
    let registry = registry();
    let first = registry.open(address("127.0.0.1"), 60, [1; 16]).unwrap();
    assert_eq!(why(registry.open(address("127.0.0.2"), 60, [2; 16])), Refusal::Busy);
    let other = registry.open(address("127.9.0.1"), 60, [3; 16]).unwrap();
    assert_eq!(other.session.peer, "other", "the longest prefix counts");
    assert_eq!(why(registry.open(address("10.99.0.7"), 60, [4; 16])), Refusal::NotAllowed);
    assert_eq!(why(registry.open(address("192.0.2.1"), 60, [4; 16])), Refusal::NotAllowed);
    drop(first);
    assert_eq!(why(registry.open(address("127.0.0.1"), 1801, [5; 16])), Refusal::TooMuch);
    registry.open(address("127.0.0.1"), 1800, [5; 16]).unwrap();
}

#[test]
fn connections_and_bytes_of_a_measurement_are_bounded() {
    let registry = registry();
    let source = address("127.0.0.1");
    let holding = registry.open(source, 60, [1; 16]).unwrap();
    assert_eq!(why(registry.join(source, &[2; 16], 0)), Refusal::UnknownToken);
    let elsewhere = address("127.9.0.1");
    assert_eq!(why(registry.join(elsewhere, &[1; 16], 0)), Refusal::UnknownToken, "another peer");
    let mut places: Vec<Place> =
        (0..SESSION_CONNECTIONS_MAX).map(|_| registry.join(source, &[1; 16], 1).unwrap()).collect();
    assert_eq!(why(registry.join(source, &[1; 16], 1)), Refusal::TooMuch);
    places.pop();
    let left = SESSION_BYTES_MAX - SESSION_CONNECTIONS_MAX as u64;
    assert_eq!(why(registry.join(source, &[1; 16], left + 1)), Refusal::TooMuch);
    assert_eq!(why(registry.join(source, &[1; 16], u64::MAX)), Refusal::TooMuch);
    places.push(registry.join(source, &[1; 16], left).unwrap());
    assert!(places[0].0.is_alive());
    drop(holding);
    assert!(!places[0].0.is_alive());
    assert_eq!(why(registry.join(source, &[1; 16], 0)), Refusal::UnknownToken);
}

#[test]
fn running_measurements_are_told() {
    let registry = registry();
    let holding = registry.open(address("127.0.0.1"), 60, [1; 16]).unwrap();
    assert_eq!(registry.begin("nobody", 60), None);
    assert_eq!(registry.begin("other", 30), Some(vec![address("127.9.0.0")]));
    let told: Vec<_> = registry.status().into_iter().map(|one| (one.peer, one.role)).collect();
    assert_eq!(told, [("other".into(), Role::Asks), ("customer".into(), Role::Serves)]);
    registry.end("other");
    drop(holding);
    assert_eq!(registry.status(), []);
    registry.begin("other", 0);
    assert_eq!(registry.status(), [], "its time is over");
}

/// A configuration whose one peer has these allowed_ips.
fn config(allowed_ips: &str, more: &str) -> Config {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("plait-registry-{}-{count}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).unwrap();
    // RFC 7748 section 6.1.
    let key = "XasIfmJKikt54X+Lg4AO5m87sSkmGLb9HC+LJ/+I4Os=";
    std::fs::write(folder.join("a.key"), key).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(folder.join("a.key"), mode).unwrap();
    let text = format!(
        "[gateway]\nprivate_key_file = \"a.key\"\nlisten_port = 7788\n\
         address = [\"10.99.0.2/24\", \"fd99::2/64\"]\n{more}\n\
         [[peer]]\npublic_key = \"hSDwCYkwp1R0i33ctD73Wg2/Og0mOBr066SpjqqbTmo=\"\n\
         allowed_ips = {allowed_ips}\n"
    );
    let file = folder.join("a.toml");
    std::fs::write(&file, text).unwrap();
    let config = Config::load(&file).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    config
}

#[test]
fn a_peer_is_sought_at_its_own_address_or_at_the_first_of_the_common_network() {
    let addresses = |allowed_ips: &str| {
        let config = config(allowed_ips, "measure = true");
        known(&config, &config.peers[0]).addresses
    };
    assert_eq!(addresses(r#"["10.1.0.0/16", "10.99.0.9/32"]"#), [address("10.99.0.9")]);
    assert_eq!(addresses(r#"["0.0.0.0/0"]"#), [address("10.99.0.1")]);
    assert_eq!(addresses(r#"["0.0.0.0/0", "::/0"]"#), [address("10.99.0.1"), address("fd99::1")]);
    assert_eq!(addresses(r#"["10.1.0.0/16"]"#), Vec::<IpAddr>::new());
}

#[test]
fn a_peer_may_measure_as_its_section_or_the_gateways_says() {
    let source = address("10.99.0.1");
    let may = |config: &Config, registry: &Registry| {
        registry.follow(config);
        registry.open(source, 60, [1; 16]).is_ok()
    };
    let registry = Registry::default();
    let forbidden = config(r#"["10.99.0.1/32"]"#, "");
    let mut allowed = config(r#"["10.99.0.1/32"]"#, "measure = true");
    assert!(!may(&forbidden, &registry) && !forbidden.serves_measurements());
    assert!(may(&allowed, &registry) && allowed.serves_measurements());
    let running = registry.open(source, 60, [1; 16]).unwrap();
    allowed.peers[0].measure = Some(false);
    assert!(!may(&allowed, &registry) && !allowed.serves_measurements());
    assert!(!running.session.is_alive(), "what runs ends");
}
