//! Configurations that must be refused, with the exact words.
//!
//! The file is called `gw.toml`; beside it lie `gateway.key`, `short.key` (3 bytes in base64) and
//! `noise.key` (no base64), and there is no `absent.key`. `{OWN}`, `{A}` and `{B}` stand for the
//! gateway's public key and for two others.

/// The gateway's private key: 32 bytes of value 1.
pub(crate) const PRIVATE: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";
/// The public key that belongs to it.
pub(crate) const OWN: &str = "pOCSkrZRwni5dyxWn1+puxPZBrRqtoyd+dwrRAn4ogk=";
/// Two other public keys.
pub(crate) const A: &str = "zo060cy2M+x7cMF4FKXHbs0CloUFDTRHRboFhw5YfVk=";
pub(crate) const B: &str = "Xf7dO2vUf2+ijuFdlp1bsOpTd01Ii9r53xxuASSz7yI=";

/// A configuration and what is said about it.
pub(crate) struct Case {
    /// What is wrong.
    pub(crate) name: &'static str,
    /// Content of the file.
    pub(crate) toml: &'static str,
    /// Pairs of what is wrong and what to do, by line.
    pub(crate) errors: &'static [(&'static str, &'static str)],
}

impl Case {
    /// The file's content with the keys filled in.
    pub(crate) fn text(&self) -> String {
        self.toml.replace("{OWN}", OWN).replace("{A}", A).replace("{B}", B)
    }
}

/// Lays the key files into a folder.
pub(crate) fn write_keys(folder: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt as _;
    for (name, text) in [("gateway.key", PRIVATE), ("short.key", "AAAA"), ("noise.key", "?")] {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
}

macro_rules! case {
    ($name:literal, $toml:literal, $([$problem:literal, $help:literal]),+ $(,)?) => {
        Case { name: $name, toml: $toml, errors: &[$(($problem, $help)),+] }
    };
    ($name:literal, $tail:literal after good, $([$problem:literal, $help:literal]),+ $(,)?) => {
        Case {
            name: $name,
            // Seven lines.
            toml: concat!(
                "[gateway]\nprivate_key_file = \"gateway.key\"\nlisten_port = 7788\n\n",
                "[[peer]]\npublic_key = \"{A}\"\nallowed_ips = [\"10.0.0.0/24\"]\n",
                $tail
            ),
            errors: &[$(($problem, $help)),+],
        }
    };
    ($name:literal, $line:literal in gateway, $([$problem:literal, $help:literal]),+ $(,)?) => {
        Case {
            name: $name,
            // The line in question is the fourth.
            toml: concat!(
                "[gateway]\nprivate_key_file = \"gateway.key\"\nlisten_port = 7788\n",
                $line,
                "\n[[peer]]\npublic_key = \"{A}\"\n"
            ),
            errors: &[$(($problem, $help)),+],
        }
    };
}

pub(crate) const CASES: &[Case] = &[
    // The file and its words.
    case!(
        "not TOML",
        "[gateway]\nlisten_port = \n",
        [
            "gw.toml:2: not TOML: string values must be quoted, expected literal string",
            "text goes in double quotes, lists in square brackets"
        ]
    ),
    case!(
        "an option written twice",
        "[gateway]\nmtu = 1400\nmtu = 1300\n",
        ["gw.toml:3: not TOML: duplicate key", "keep one of the two"]
    ),
    case!(
        "an unknown section", "\n[shceduler]\nalgorithm = \"fixed\"\n" after good,
        ["gw.toml:9: shceduler: unknown section", "did you mean `scheduler`?"]
    ),
    case!(
        "an unknown option with a near one", "listenport = 7789" in gateway,
        ["gw.toml:4: [gateway] listenport: unknown option", "did you mean `listen_port`?"]
    ),
    case!(
        "an unknown option", "colour = \"red\"" in gateway,
        [
            "gw.toml:4: [gateway] colour: unknown option",
            "known here: private_key_file, listen_port, more_ports, tun, address, mtu, routes, \
             control_socket, state_file, user, sandbox, \
             allow_open_key_files, forward, nat, return_by_bond, when_down, \
             block_allows, block_stays, measure, measure_port, metrics, metrics_open"
        ]
    ),
    case!(
        "no address for metrics", "metrics = \"9788\"" in gateway,
        [
            "gw.toml:4: [gateway] metrics: \"9788\" is no IP address with a port",
            "write it as in \"192.168.1.1:3128\" or \"[fd00::1]:3128\"; \"0.0.0.0\" is every \
             address of IPv4, \"[::]\" of both"
        ]
    ),
    case!(
        "a number for a text", "tun = 7" in gateway,
        [
            "gw.toml:4: [gateway] tun: expected a text in double quotes, found the number 7",
            "write a text in double quotes"
        ]
    ),
    case!(
        "a text for a number", "mtu = \"1400\"" in gateway,
        [
            "gw.toml:4: [gateway] mtu: expected a whole number, found the text \"1400\"",
            "write a whole number"
        ]
    ),
    case!(
        "a text for a truth", "routes = \"yes\"" in gateway,
        [
            "gw.toml:4: [gateway] routes: expected true or false, found the text \"yes\"",
            "write true or false"
        ]
    ),
    case!(
        "single brackets", "[path]\ninterface = \"lo\"\n" after good,
        [
            "gw.toml:8: [[path]]: expected a section in double brackets, found a section",
            "write a section in double brackets"
        ]
    ),
    case!(
        "no section at all",
        "",
        [
            "gw.toml:1: [gateway] private_key_file: missing",
            "add `private_key_file = \"gateway.key\"`"
        ]
    ),
    case!(
        "two mistakes",
        "[gateway]\nprivate_key_file = \"gateway.key\"\nmtu = 1\nprot = 7\n",
        ["gw.toml:3: [gateway] mtu: 1 is out of range", "write a number from 516 to 9000 bytes"],
        [
            "gw.toml:4: [gateway] prot: unknown option",
            "known here: private_key_file, listen_port, more_ports, tun, address, mtu, routes, \
             control_socket, state_file, user, sandbox, \
             allow_open_key_files, forward, nat, return_by_bond, when_down, \
             block_allows, block_stays, measure, measure_port, metrics, metrics_open"
        ]
    ),
    // Values.
    case!(
        "a port out of range",
        "[gateway]\nprivate_key_file = \"gateway.key\"\nlisten_port = 70000\n",
        [
            "gw.toml:3: [gateway] listen_port: 70000 is out of range",
            "write a number from 1 to 65535"
        ]
    ),
    case!(
        "more ports than none",
        "[gateway]\nprivate_key_file = \"gateway.key\"\nmore_ports = [443]\n\
         [[path]]\ninterface = \"eth0\"\n\
         [[peer]]\npublic_key = \"{A}\"\nendpoint = \"192.0.2.1:1\"\n",
        [
            "gw.toml:3: [gateway] more_ports: has no effect without listen_port",
            "add `listen_port = 7788`, or remove it"
        ]
    ),
    case!(
        "a port twice", "more_ports = [443, 7788]" in gateway,
        ["gw.toml:4: [gateway] more_ports: port 7788 is there twice", "leave one of them out"]
    ),
    case!(
        "too many ports", "more_ports = [1, 2, 3, 4, 5, 6, 7, 8, 9]" in gateway,
        ["gw.toml:4: [gateway] more_ports: 9 ports are too many", "keep 8 at most"]
    ),
    case!(
        "more ports of a peer that calls", "more_ports = [443]\n" after good,
        [
            "gw.toml:8: [[peer]] more_ports: has no effect without endpoint",
            "add `endpoint = \"gw.example.net:7788\"`, or remove it"
        ]
    ),
    case!(
        "a long name for the device", "tun = \"plait-number-one\"" in gateway,
        [
            "gw.toml:4: [gateway] tun: \"plait-number-one\" is 16 bytes long, the limit is 15",
            "choose a shorter name"
        ]
    ),
    case!(
        "a slash in the device's name", "tun = \"a/b\"" in gateway,
        [
            "gw.toml:4: [gateway] tun: \"a/b\" is not a name for an interface",
            "use letters, digits, `-`, `_` and `.`; no space and no slash"
        ]
    ),
    case!(
        "a label for a device", "tun = \"bond:1\"" in gateway,
        [
            "gw.toml:4: [gateway] tun: \"bond:1\" is not a name for an interface",
            "use letters, digits, `-`, `_` and `.`; no space and no slash"
        ]
    ),
    case!(
        "a device called as the sysctls of all are", "tun = \"all\"" in gateway,
        [
            "gw.toml:4: [gateway] tun: \"all\" is a name that the kernel keeps for itself",
            "choose another name, as in \"plait0\""
        ]
    ),
    case!(
        "an address of a group", "address = \"ff02::1/64\"" in gateway,
        [
            "gw.toml:4: [gateway] address: ff02::1/64 is not an address that a device can have",
            "write an address of a private network, as in \"10.99.0.2/24\" or \"fd99::2/64\""
        ]
    ),
    case!(
        "an address twice", "address = [\"fd99::2/64\", \"fd99::2/48\"]" in gateway,
        ["gw.toml:1: [gateway] address: fd99::2 is there twice", "write each address once"]
    ),
    case!(
        "an address without its length", "address = [\"10.99.0.2\"]" in gateway,
        [
            "gw.toml:4: [gateway] address: \"10.99.0.2\" is not an IP address with a prefix length",
            "write it as in \"10.99.0.2/24\" or \"fd99::2/64\""
        ]
    ),
    case!(
        "a path's name is long",
        "[[path]]\ninterface = \"lo\"\nname = \"a-rather-long-name\"\n" after good,
        [
            "gw.toml:10: [[path]] name: \"a-rather-long-name\" is 18 bytes long, the limit is 15",
            "choose a shorter name"
        ]
    ),
    case!(
        "a path's address", "[[path]]\naddress = \"10.1.0.1/24\"\n" after good,
        [
            "gw.toml:9: [[path]] address: \"10.1.0.1/24\" is not an IP address",
            "write it as in \"10.1.0.1\""
        ]
    ),
    case!(
        "a wildcard in the middle", "[[path]]\ninterface = \"w*n\"\n" after good,
        [
            "gw.toml:9: [[path]] interface: \"w*n\" has a `*` elsewhere than at the end of a name",
            "write the beginning of the names and one `*`, as in \"wwan*\""
        ]
    ),
    case!(
        "a price out of range", "[[path]]\ninterface = \"lo\"\nprice = 256\n" after good,
        ["gw.toml:10: [[path]] price: 256 is out of range", "write a number from 0 to 255"]
    ),
    case!(
        "a weight of zero", "[[path]]\ninterface = \"lo\"\nweight = 0\n" after good,
        ["gw.toml:10: [[path]] weight: 0 is out of range", "write a number from 1 to 65535"]
    ),
    case!(
        "an endpoint without a port", "endpoint = \"192.0.2.1\"\n" after good,
        [
            "gw.toml:8: [[peer]] endpoint: \"192.0.2.1\" is not an endpoint: the port is missing",
            "write \"192.0.2.1:7788\", \"[2001:db8::1]:7788\" or \"gw.example.net:7788\""
        ]
    ),
    case!(
        "the second endpoint of a list",
        "endpoint = [\"192.0.2.1:1\",\n  \"fd00::1:7788\"]\n" after good,
        [
            "gw.toml:9: [[peer]] endpoint: \"fd00::1:7788\" is not an endpoint: \
             an IPv6 address stands in square brackets before its port",
            "write \"192.0.2.1:7788\", \"[2001:db8::1]:7788\" or \"gw.example.net:7788\""
        ]
    ),
    case!(
        "an endpoint's port of zero", "endpoint = \"gw.example.net:0\"\n" after good,
        [
            "gw.toml:8: [[peer]] endpoint: \"gw.example.net:0\" is not an endpoint: \
             the port is not a number from 1 to 65535",
            "write \"192.0.2.1:7788\", \"[2001:db8::1]:7788\" or \"gw.example.net:7788\""
        ]
    ),
    case!(
        "an endpoint's address", "endpoint = \"192.0.2.256:7788\"\n" after good,
        [
            "gw.toml:8: [[peer]] endpoint: \"192.0.2.256:7788\" is not an endpoint: \
             the host is neither an IP address nor a name",
            "write \"192.0.2.1:7788\", \"[2001:db8::1]:7788\" or \"gw.example.net:7788\""
        ]
    ),
    case!(
        "a prefix that is too long",
        "\n[[peer]]\npublic_key = \"{B}\"\nallowed_ips = [\"10.0.0.0/33\"]\n" after good,
        [
            "gw.toml:11: [[peer]] allowed_ips: \"10.0.0.0/33\" is not an IP address with a \
             prefix length",
            "write it as in \"10.99.0.2/24\" or \"fd99::2/64\""
        ]
    ),
    case!(
        "a keepalive of zero", "keepalive_s = 0\n" after good,
        [
            "gw.toml:8: [[peer]] keepalive_s: 0 is out of range",
            "write a number from 1 to 65535 seconds"
        ]
    ),
    case!(
        "an unknown algorithm", "[scheduler]\nalgorithm = \"wrr\"\n" after good,
        [
            "gw.toml:9: [scheduler] algorithm: \"wrr\" is not one of the choices",
            "choose one of: adaptive-wrr, fixed, round-robin, min-rtt, redundant, \
             earliest-delivery, cheapest-first, blest, ecf, inverse-rtt"
        ]
    ),
    case!(
        "a parameter of another algorithm",
        "[scheduler]\nalgorithm = \"fixed\"\nw_max = 45\n" after good,
        [
            "gw.toml:10: [scheduler] w_max: has no effect with algorithm = \"fixed\"",
            "remove it; it belongs to algorithm = \"adaptive-wrr\""
        ]
    ),
    case!(
        "a first weight above the largest",
        "[scheduler]\nalgorithm = \"adaptive-wrr\"\nw_max = 9\ninitial_weight = 10\n" after good,
        [
            "gw.toml:11: [scheduler] initial_weight: 10 is out of range",
            "write a number from 0 to 9 (w_max)"
        ]
    ),
    case!(
        "a gain of zero", "[scheduler]\nalgorithm = \"adaptive-wrr\"\nk = 0.0\n" after good,
        [
            "gw.toml:10: [scheduler] k: 0.0 is out of range",
            "write a number from 0 to 100 (a fraction will do, zero will not)"
        ]
    ),
    case!(
        "a window without the fixed controller", "[congestion]\nwindow_bytes = 65536\n" after good,
        [
            "gw.toml:9: [congestion] window_bytes: has no effect with algorithm = \"gauge\"",
            "remove it; it belongs to algorithm = \"fixed\""
        ]
    ),
    case!(
        "a slow start without a controller that has one",
        "[congestion]\nslow_start = \"hystart\"\n" after good,
        [
            "gw.toml:9: [congestion] slow_start: has no effect with algorithm = \"gauge\"",
            "remove it; it belongs to algorithm = \"cubic\", \"cubic-linux\", \"new-reno\", \
             \"lia\", \"olia\", \"balia\", \"illinois\", \"whitehaul\" or \"edinburgh\""
        ]
    ),
    case!(
        "a slow start in an open loop",
        "[scheduler]\nalgorithm = \"min-rtt\"\n[congestion]\nslow_start = \"hystart\"\n" after good,
        [
            "gw.toml:11: [congestion] slow_start: has no effect with no congestion control",
            "remove it; it belongs to algorithm = \"cubic\", \"cubic-linux\", \"new-reno\", \
             \"lia\", \"olia\", \"balia\", \"illinois\", \"whitehaul\" or \"edinburgh\""
        ]
    ),
    case!(
        "repairs without their controller", "[congestion]\nrepairs = [\"latch\"]\n" after good,
        [
            "gw.toml:9: [congestion] repairs: has no effect with algorithm = \"gauge\"",
            "remove it; it belongs to algorithm = \"whitehaul\""
        ]
    ),
    case!(
        "a repair of nothing",
        "[congestion]\nalgorithm = \"whitehaul\"\nrepairs = [\"latch\", \"ssthres\"]\n" after good,
        [
            "gw.toml:10: [congestion] repairs: \"ssthres\" is not one of the choices",
            "did you mean \"ssthresh\"?"
        ]
    ),
    case!(
        "a delay that the published code does not take",
        "[congestion]\nalgorithm = \"whitehaul\"\ndelay_ms = 20\n" after good,
        [
            "gw.toml:10: [congestion] delay_ms: has no effect with repairs without \"delay\"",
            "remove it; it belongs to algorithm = \"edinburgh\", or \"whitehaul\" with repairs = \
             [\"delay\"]"
        ]
    ),
    case!(
        "a window that is never enough",
        "[congestion]\nalgorithm = \"edinburgh\"\nadv = 1\n" after good,
        [
            "gw.toml:10: [congestion] adv: 1 is out of range",
            "write a number from 2 to 100000 packets"
        ]
    ),
    case!(
        "a share without a constant back-off",
        "[congestion]\nalgorithm = \"edinburgh\"\nbackoff = \"delay\"\nbeta_64ths = 6\n" after good,
        [
            "gw.toml:11: [congestion] beta_64ths: has no effect with backoff = \"delay\"",
            "remove it; it belongs to algorithm = \"edinburgh\" with backoff = \"constant\""
        ]
    ),
    case!(
        "a timeout without the fixed timer", "[resequencer]\ntimeout_ms = 50\n" after good,
        [
            "gw.toml:9: [resequencer] timeout_ms: has no effect with timer = \"adaptive\"",
            "remove it; it belongs to timer = \"fixed\""
        ]
    ),
    case!(
        "a limit with the fixed timer",
        "[resequencer]\ntimer = \"fixed\"\ntimeout_max_ms = 50\n" after good,
        [
            "gw.toml:10: [resequencer] timeout_max_ms: has no effect with timer = \"fixed\"",
            "remove it; it belongs to timer = \"adaptive\""
        ]
    ),
    case!(
        "a timeout out of range", "[resequencer]\ntimer = \"fixed\"\ntimeout_ms = 0\n" after good,
        [
            "gw.toml:10: [resequencer] timeout_ms: 0 is out of range",
            "write a number from 1 to 10000 milliseconds"
        ]
    ),
    // Keys.
    case!(
        "a missing key file",
        "[gateway]\nprivate_key_file = \"absent.key\"\n",
        [
            "gw.toml:2: [gateway] private_key_file: cannot read the key file absent.key: \
             No such file or directory (os error 2)",
            "make one: (umask 077; plait keygen > absent.key)"
        ]
    ),
    case!(
        "a folder for a key file",
        "[gateway]\nprivate_key_file = \"/dev\"\n",
        [
            "gw.toml:2: [gateway] private_key_file: cannot read the key file /dev: \
             Is a directory (os error 21)",
            "run plait as the file's owner, or as root"
        ]
    ),
    case!(
        "a key file that holds no base64",
        "[gateway]\nprivate_key_file = \"noise.key\"\n",
        [
            "gw.toml:2: [gateway] private_key_file: the key file noise.key does not hold a key: \
             not base64",
            "the file holds one line from `plait keygen`; look at noise.key"
        ]
    ),
    case!(
        "a preshared key file that is too short", "preshared_key_file = \"short.key\"\n" after good,
        [
            "gw.toml:8: [[peer]] preshared_key_file: the key file short.key does not hold a key: \
             3 bytes instead of 32",
            "the file holds one line from `plait keygen`; look at short.key"
        ]
    ),
    case!(
        "a peer without a key", "\n[[peer]]\nkeepalive_s = 5\n" after good,
        ["gw.toml:9: [[peer]] public_key: missing", "add `public_key = \"…\"`"]
    ),
    case!(
        "a peer's key that is no base64", "\n[[peer]]\npublic_key = \"{A}x\"\n" after good,
        [
            "gw.toml:10: [[peer]] public_key: not a key: not base64",
            "a key is 32 bytes in base64: 44 characters ending in `=`, as `plait pubkey` prints"
        ]
    ),
    case!(
        "a peer's key that is too short", "\n[[peer]]\npublic_key = \"AAAA\"\n" after good,
        [
            "gw.toml:10: [[peer]] public_key: not a key: 3 bytes instead of 32",
            "a key is 32 bytes in base64: 44 characters ending in `=`, as `plait pubkey` prints"
        ]
    ),
    // What does not go together.
    case!(
        "the gateway's own key as a peer", "\n[[peer]]\npublic_key = \"{OWN}\"\n" after good,
        [
            "gw.toml:10: [[peer]] public_key: this is the gateway's own key",
            "put the other gateway's public key here"
        ]
    ),
    case!(
        "a peer given twice", "\n[[peer]]\npublic_key = \"{A}\"\n" after good,
        [
            "gw.toml:10: [[peer]] public_key: the peer of line 5 has the same key",
            "merge the two [[peer]] sections; a peer may have several endpoints"
        ]
    ),
    case!(
        "a prefix in two peers",
        "\n[[peer]]\npublic_key = \"{B}\"\nallowed_ips = [\"10.0.0.9/24\"]\n" after good,
        [
            "gw.toml:11: [[peer]] allowed_ips: 10.0.0.0/24 belongs to the peer of line 5 too",
            "give the prefix to one peer, or split it into longer prefixes"
        ]
    ),
    case!(
        "two paths of one name",
        "[[path]]\ninterface = \"lo\"\n[[path]]\naddress = \"127.0.0.1\"\nname = \"lo\"\n\
         " after good,
        [
            "gw.toml:10: [[path]] name: the path of line 8 is called \"lo\" too",
            "give each path its own `name`"
        ]
    ),
    case!(
        "a path without a link", "[[path]]\nname = \"dsl\"\n" after good,
        [
            "gw.toml:8: [[path]]: the path names neither an interface nor an address",
            "add `interface = \"eth0\"` or `address = \"10.1.0.1\"`"
        ]
    ),
    case!(
        "no socket",
        "[gateway]\nprivate_key_file = \"gateway.key\"\n[[peer]]\npublic_key = \"{A}\"\n\
         endpoint = \"192.0.2.1:1\"\n",
        [
            "gw.toml:1: [gateway]: no way to send: neither listen_port nor a [[path]]",
            "add a [[path]] per link to call a peer, or `listen_port = 7788` to be called"
        ]
    ),
    case!(
        "nobody calls",
        "[gateway]\nprivate_key_file = \"gateway.key\"\n[[path]]\ninterface = \"lo\"\n\
         [[peer]]\npublic_key = \"{A}\"\n",
        [
            "gw.toml:5: [[peer]]: the peer has no endpoint and the gateway does not listen",
            "add `endpoint = \"192.0.2.1:7788\"` to the peer, or `listen_port = 7788` to [gateway]"
        ]
    ),
    case!(
        "no peer",
        "[gateway]\nprivate_key_file = \"gateway.key\"\nlisten_port = 7788\n",
        [
            "gw.toml:1: [[peer]]: no peer to bond with",
            "add a [[peer]] with the other gateway's `public_key`"
        ]
    ),
    case!(
        "IPv6 in small packets", "mtu = 1200\naddress = [\"fd99::2/64\"]" in gateway,
        [
            "gw.toml:1: [gateway] mtu: 1200 bytes are too few for IPv6 inside the bond",
            "set mtu to 1280 or more, or remove the IPv6 addresses and prefixes"
        ]
    ),
    // What the host is asked for.
    case!(
        "an amount without a unit", "[[path]]\ninterface = \"lo\"\nquota = \"20\"\n" after good,
        [
            "gw.toml:10: [[path]] quota: \"20\" is not an amount of data",
            "write it as in \"20 GB\"; units: B, kB, MB, GB, TB, MiB, GiB, TiB"
        ]
    ),
    case!(
        "too small a quota", "[[path]]\ninterface = \"lo\"\nquota = 20\n" after good,
        [
            "gw.toml:10: [[path]] quota: 20 is out of range",
            "write an amount from 1 MB to 1000 TB"
        ]
    ),
    case!(
        "a quota that is no amount", "[[path]]\ninterface = \"lo\"\nquota = true\n" after good,
        [
            "gw.toml:10: [[path]] quota: expected a text with a unit, or a whole number of bytes, \
             found true",
            "write a text with a unit, or a whole number of bytes"
        ]
    ),
    case!(
        "a day that some months lack",
        "[[path]]\ninterface = \"lo\"\nquota = \"1 GB\"\nquota_day = 29\n" after good,
        ["gw.toml:11: [[path]] quota_day: 29 is out of range", "write a number from 1 to 28"]
    ),
    case!(
        "a day without a quota", "[[path]]\ninterface = \"lo\"\nquota_day = 3\n" after good,
        [
            "gw.toml:10: [[path]] quota_day: has no effect without quota",
            "add `quota = \"20 GB\"`, or remove it"
        ]
    ),
    case!(
        "a number for standby", "[[path]]\ninterface = \"lo\"\nstandby = 1\n" after good,
        [
            "gw.toml:10: [[path]] standby: expected true or false, found the number 1",
            "write true or false"
        ]
    ),
    case!(
        "nobody's name", "user = \"a b\"" in gateway,
        [
            "gw.toml:4: [gateway] user: \"a b\" is not a user's name",
            "write the name of a user of this machine, as in \"plait\""
        ]
    ),
    case!(
        "a forward to nobody", "[[forward]]\nports = \"443\"\nto = \"192.0.2.7\"\n" after good,
        [
            "gw.toml:8: [[forward]]: 192.0.2.7 is not behind the bond: no peer has it in \
             `allowed_ips`",
            "add it, or its network, to the peer's: `allowed_ips = [\"192.0.2.7\"]`"
        ]
    ),
    case!(
        "a forward of plait's own port",
        "[[forward]]\nports = \"7000-8000\"\nto = \"10.0.0.7\"\n" after good,
        [
            "gw.toml:8: [[forward]]: UDP port 7788 is plait's own: peers call there",
            "leave it out of `ports`, or choose another `listen_port`"
        ]
    ),
    case!(
        "a port forwarded twice",
        "[[forward]]\nprotocol = \"tcp\"\nports = \"80-90\"\nto = \"10.0.0.7\"\n\
         [[forward]]\nports = \"85\"\nto = \"10.0.0.8\"\n" after good,
        [
            "gw.toml:12: [[forward]]: the forward of line 8 takes some of it already",
            "keep one of them, or give each its own `ports`, `protocol` or `address`"
        ]
    ),
    case!(
        "a forward of nothing", "[[forward]]\nto = \"10.0.0.7\"\n" after good,
        [
            "gw.toml:8: [[forward]]: neither ports nor an address",
            "add `ports = \"443\"`, or the `address` of which all is led there"
        ]
    ),
    case!(
        "a range forwarded to a port",
        "[[forward]]\nports = \"80-90\"\nto = \"10.0.0.7:80\"\n" after good,
        ["gw.toml:10: [[forward]] to: a range keeps its ports", "write `to` without a port"]
    ),
    case!(
        "a LAN that is a link",
        "[[path]]\ninterface = \"eth*\"\n[[lan]]\ninterface = \"eth1\"\n\
         prefixes = \"192.168.7.1/24\"\n" after good,
        [
            "gw.toml:10: [[lan]] interface: the path of line 8 takes the same interface",
            "name the interface to the LAN here, and in [[path]] only those to providers"
        ]
    ),
    case!(
        "two LANs in each other's way",
        "[[lan]]\ninterface = \"eth1\"\nprefixes = \"192.168.7.1/24\"\n\
         [[lan]]\ninterface = \"eth2\"\nprefixes = \"192.168.0.1/16\"\n" after good,
        [
            "gw.toml:11: [[lan]] prefixes: 192.168.0.1/16 overlaps with 192.168.7.1/24",
            "give each network, and the bond's inner addresses, a prefix of their own"
        ]
    ),
    case!(
        "a LAN by its network's address",
        "[[lan]]\ninterface = \"eth1\"\nprefixes = [\"192.168.7.0/24\"]\n" after good,
        [
            "gw.toml:10: [[lan]] prefixes: 192.168.7.0/24 is a network, not an address in one",
            "write this gateway's own address in it, as in \"192.168.7.1/24\" or \
             \"fd99:7::1/64\""
        ]
    ),
    case!(
        "a LAN without prefixes, and one with an IPv4 name server",
        "[[lan]]\ninterface = \"eth1\"\n[[lan]]\ninterface = \"eth2\"\n\
         prefixes = \"fd99:7::1/64\"\ndns = \"1.1.1.1\"\n" after good,
        [
            "gw.toml:8: [[lan]] prefixes: missing",
            "add `prefixes = [\"192.168.7.1/24\", \"fd99:7::1/64\"]`"
        ],
        [
            "gw.toml:13: [[lan]] dns: \"1.1.1.1\" is not an IPv6 address of a name server",
            "write it as in \"2606:4700:4700::1111\"; hosts learn IPv4 servers by DHCP \
             (docs/guide/lan.md)"
        ]
    ),
    case!(
        "name servers that are none",
        "[dns]\nservers = [\"dns.example\"]\ndomains = [\"a b\"]\n" after good,
        [
            "gw.toml:9: [dns] servers: \"dns.example\" is not the address of a name server",
            "write it as in \"1.1.1.1\" or \"2606:4700:4700::1111\""
        ],
        [
            "gw.toml:10: [dns] domains: \"a b\" is no domain",
            "write it as in \"example.net\", or \".\" for all names"
        ]
    ),
    case!(
        "all names and some more",
        "[dns]\nservers = \"10.0.0.53\"\ndomains = [\".\", \"lan\"]\n" after good,
        ["gw.toml:10: [dns] domains: \".\" stands for all names already", "write it alone"]
    ),
    case!(
        "nothing beside the bond", "[[beside]]\nover = \"dsl\"\n" after good,
        [
            "gw.toml:8: [[beside]]: the rule is for nothing",
            "say what goes beside the bond, as in `destinations = [\"203.0.113.0/24\"]`"
        ]
    ),
    case!(
        "an empty list beside the bond",
        "[[beside]]\nprotocol = \"tcp\"\nsources = []\n" after good,
        [
            "gw.toml:10: [[beside]] sources: the list is empty",
            "remove it, or write what is meant: without it the rule is for all"
        ]
    ),
    case!(
        "the bond beside itself",
        "endpoint = \"192.0.2.1:7788\"\n[[beside]]\ndestinations = \"192.0.2.0/24\"\n" after good,
        [
            "gw.toml:9: [[beside]]: it takes the bond's own datagrams to 192.0.2.1:7788",
            "leave 192.0.2.1 out of `destinations`, or add `protocol = \"tcp\"` or other `ports`"
        ]
    ),
    case!(
        "a pattern of names", "[[beside]]\ndomains = \"*.bank.example\"\n" after good,
        [
            "gw.toml:9: [[beside]] domains: \"*.bank.example\" is not a name that the resolver \
             can be asked for",
            "write each name: the resolver cannot be asked for all"
        ]
    ),
    case!(
        "an unknown codepoint", "[[beside]]\ndscp = [\"af44\"]\n" after good,
        [
            "gw.toml:9: [[beside]] dscp: the text \"af44\" is no DSCP codepoint",
            "write a number from 0 to 63, or a name as in \"ef\", \"af41\" or \"cs5\""
        ]
    ),
    case!(
        "a hardware address that none has",
        "[[path]]\nlink = \"mac:03:00:00:00:00:01\"\n" after good,
        [
            "gw.toml:9: [[path]] link: \"03:00:00:00:00:01\" is not the hardware address of an \
             interface",
            "write it as in \"mac:02:00:00:00:00:01\"; `ip link` shows it"
        ]
    ),
    case!(
        "an interface named twice",
        "[[path]]\ninterface = \"lo\"\nlink = \"bus:1-1\"\n" after good,
        [
            "gw.toml:10: [[path]] link: there is an `interface` already",
            "keep one of them: `link` names the interface, too"
        ]
    ),
    case!(
        "a bypass without routes", "when_down = \"bypass\"" in gateway,
        [
            "gw.toml:1: [gateway] when_down: without `routes` nothing of the host's traffic is led \
             into the bond by plait",
            "add `routes = true`, or remove `when_down = \"bypass\"`"
        ]
    ),
    case!(
        "a bypass of nothing", "when_down = \"bypass\"\nroutes = true" in gateway,
        [
            "gw.toml:1: [gateway] when_down: no peer has 0.0.0.0/0 or ::/0: there is nothing to \
             lead past the bond",
            "add `0.0.0.0/0` to the `allowed_ips` of a peer, or remove `when_down = \"bypass\"`"
        ]
    ),
    case!(
        "what a block allows without a block", "block_allows = \"10.0.0.0/8\"" in gateway,
        [
            "gw.toml:4: [gateway] block_allows: has no effect without when_down = \"block\"",
            "add `when_down = \"block\"`, or remove it"
        ]
    ),
    case!(
        "nat nowhere", "nat = []" in gateway,
        [
            "gw.toml:4: [gateway] nat: an empty list",
            "name an interface, as in `nat = [\"eth0\"]`, or write `nat = false`"
        ]
    ),
    case!(
        "a number for nat", "nat = 7" in gateway,
        [
            "gw.toml:4: [gateway] nat: expected true, false or a list of interfaces, found the \
             number 7",
            "write true, false or a list of interfaces"
        ]
    ),
    case!(
        "nat by no interface", "nat = [\"eth 0\"]" in gateway,
        [
            "gw.toml:4: [gateway] nat: \"eth 0\" is not a name for an interface",
            "use letters, digits, `-`, `_` and `.`; no space and no slash"
        ]
    ),
];
