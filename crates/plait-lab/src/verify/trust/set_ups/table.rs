//! The set-ups of trust.5.

use super::Level;
use super::Level::{Error, Warning};

/// What is taken already.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Held {
    Nothing,
    UdpPort(u16),
    TcpPort(u16),
    /// Somebody answers at the control socket's path.
    ControlSocket,
    /// A socket's file that nobody listens on.
    StaleSocket,
}

/// A host and a configuration. `FOLDER` stands for the configuration's folder.
#[derive(Clone, Copy, Debug)]
pub(super) struct SetUp {
    pub(super) name: &'static str,
    /// Whether `check` once had no word for it although it mattered.
    pub(super) was_silent: bool,
    /// Whether the lab's own tests try it too.
    pub(super) is_in_short: bool,
    /// Shell lines that change the ordinary network of two links.
    pub(super) prepare: &'static str,
    pub(super) held: Held,
    /// A program that runs `plait` with something taken away.
    pub(super) through: &'static [&'static str],
    /// More lines of `[gateway]`.
    pub(super) gateway: &'static str,
    pub(super) address: &'static str,
    pub(super) control_socket: &'static str,
    pub(super) paths: &'static [&'static str],
    pub(super) endpoint: &'static str,
    pub(super) allowed_ips: &'static str,
    /// All errors and warnings of `check`: a part of each one's text.
    pub(super) says: &'static [(Level, &'static str)],
}

impl SetUp {
    /// Two links to a provider, nothing wrong.
    pub(super) const SOUND: Self = Self {
        name: "two links",
        was_silent: false,
        is_in_short: false,
        prepare: "",
        held: Held::Nothing,
        through: &[],
        gateway: "",
        address: r#""10.99.0.2/24""#,
        control_socket: "FOLDER/control.sock",
        paths: &[r#"interface = "eth0""#, r#"interface = "eth1""#],
        endpoint: r#"endpoint = "192.0.2.1:7788""#,
        allowed_ips: r#""10.99.0.1/32""#,
        says: &[],
    };
    /// A gateway that peers call.
    const LISTENS: Self =
        Self { gateway: "listen_port = 7788", paths: &[], endpoint: "", ..Self::SOUND };

    /// The configuration.
    pub(super) fn toml(&self, folder: &str, peer_key: &str) -> String {
        let Self { gateway, address, control_socket, endpoint, allowed_ips, .. } = self;
        let paths: String = self.paths.iter().map(|path| format!("[[path]]\n{path}\n")).collect();
        let key_file = if gateway.contains("private_key_file") {
            ""
        } else {
            "private_key_file = \"../gateway.key\""
        };
        let state_file =
            if gateway.contains("state_file") { "" } else { "state_file = \"FOLDER/state.json\"" };
        let text = format!(
            "[gateway]\n{key_file}\naddress = {address}\n\
             control_socket = \"{control_socket}\"\n{state_file}\n{gateway}\n\n{paths}\n\
             [[peer]]\npublic_key = \"{peer_key}\"\n{endpoint}\nallowed_ips = {allowed_ips}\n"
        );
        text.replace("FOLDER", folder)
    }
}

const SOUND: SetUp = SetUp::SOUND;
const LISTENS: SetUp = SetUp::LISTENS;
/// IPv6 on both links beside IPv4.
const IPV6_LINKS: &str = "
ip -6 address add 2001:db8:1::1/64 dev eth0 nodad
ip -6 address add 2001:db8:2::1/64 dev eth1 nodad
ip -6 route add default via 2001:db8:1::fe dev eth0 metric 10
ip -6 route add default via 2001:db8:2::fe dev eth1 metric 20
";
const ENDPOINT_V6: &str = r#"endpoint = "[2001:db8:9::1]:7788""#;
const ROUTES: &str = "routes = true";
const DEFAULT_V4: &str = r#""0.0.0.0/0""#;
const NO_NET_ADMIN: &[&str] =
    &["setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin", "--"];
const OWN_USER_NAMESPACE: &[&str] = &["unshare", "--user", "--map-root-user", "--"];

macro_rules! mounts {
    ($script:literal) => {
        &["unshare", "--mount", "sh", "-c", concat!($script, " && exec \"$0\" \"$@\"")]
    };
}

const READ_ONLY_MNT: &[&str] = mounts!("mount -t tmpfs -o ro none /mnt");

/// All of them.
pub(super) const ALL: &[SetUp] = &[
    // Sound ones.
    SetUp { is_in_short: true, ..SOUND },
    SetUp {
        name: "all IPv4 into the bond",
        is_in_short: true,
        gateway: ROUTES,
        allowed_ips: DEFAULT_V4,
        ..SOUND
    },
    SetUp {
        name: "a prefix that is the network of the inner address",
        is_in_short: true,
        gateway: ROUTES,
        allowed_ips: r#""10.99.0.0/24""#,
        ..SOUND
    },
    SetUp {
        name: "a half beside the whole",
        gateway: ROUTES,
        allowed_ips: r#"["0.0.0.0/0", "128.0.0.0/1"]"#,
        ..SOUND
    },
    SetUp { name: "IPv6 outside", prepare: IPV6_LINKS, endpoint: ENDPOINT_V6, ..SOUND },
    SetUp {
        name: "both families inside and native IPv6",
        prepare: IPV6_LINKS,
        gateway: ROUTES,
        address: r#"["10.99.0.2/24", "fd99::2/64"]"#,
        allowed_ips: r#"["0.0.0.0/0", "::/0"]"#,
        ..SOUND
    },
    SetUp {
        name: "an endpoint of each family over IPv4 links",
        endpoint: r#"endpoint = ["192.0.2.1:7788", "[2001:db8:9::1]:7788"]"#,
        ..SOUND
    },
    SetUp { name: "a gateway that listens", is_in_short: true, ..LISTENS },
    SetUp { name: "listens and has links", paths: SOUND.paths, ..LISTENS },
    SetUp { name: "a wildcard", paths: &[r#"interface = "eth*""#], ..SOUND },
    SetUp {
        name: "links by address",
        paths: &[r#"address = "10.1.0.1""#, r#"address = "10.2.0.1""#],
        ..SOUND
    },
    SetUp { name: "forwards", gateway: "forward = true", ..SOUND },
    SetUp { name: "forwards and hides", gateway: "forward = true\nnat = [\"eth0\"]", ..SOUND },
    SetUp { name: "lets its peer measure", gateway: "measure = true", ..SOUND },
    SetUp { name: "a control socket left by a crash", held: Held::StaleSocket, ..SOUND },
    SetUp {
        name: "a dearer route to the same half",
        prepare: "ip route add 0.0.0.0/1 via 10.1.0.254 metric 100",
        gateway: ROUTES,
        allowed_ips: DEFAULT_V4,
        ..SOUND
    },
    // Those that check was silent about.
    SetUp {
        name: "another VPN's route",
        was_silent: true,
        prepare: "ip route add 0.0.0.0/1 via 10.1.0.254",
        gateway: ROUTES,
        allowed_ips: DEFAULT_V4,
        says: &[(Error, "there is a route to 0.0.0.0/1 over eth0 already")],
        ..SOUND
    },
    SetUp {
        name: "the control socket is in use",
        was_silent: true,
        held: Held::ControlSocket,
        says: &[(Error, "belongs to another running plait")],
        ..SOUND
    },
    SetUp {
        name: "a link without a route",
        was_silent: true,
        prepare: "ip route del default dev eth1",
        says: &[(Warning, "no route to 192.0.2.1:7788 over eth1")],
        ..SOUND
    },
    SetUp {
        name: "an IPv6 endpoint over IPv4 links",
        was_silent: true,
        endpoint: ENDPOINT_V6,
        says: &[
            (Warning, "eth0: the interface has no IPv6 address"),
            (Warning, "eth1: the interface has no IPv6 address"),
        ],
        ..SOUND
    },
    SetUp {
        name: "the inner address is a link's neighbour",
        was_silent: true,
        address: r#""10.2.0.77/24""#,
        says: &[(Warning, "10.2.0.77/24 lies in the network of eth1, 10.2.0.0/24")],
        ..SOUND
    },
    SetUp {
        name: "a link that is switched off",
        was_silent: true,
        prepare: "ip link set eth1 down",
        says: &[(Warning, "eth1 is switched off")],
        ..SOUND
    },
    SetUp {
        name: "all IPv6 without an inner address",
        was_silent: true,
        gateway: ROUTES,
        allowed_ips: r#"["10.99.0.1/32", "::/0"]"#,
        says: &[(Warning, "::/0 without an inner IPv6 address")],
        ..SOUND
    },
    // Links.
    SetUp {
        name: "no carrier",
        prepare: "ip link set far1 down",
        says: &[(Warning, "eth1 has no carrier")],
        ..SOUND
    },
    SetUp {
        name: "no such interface",
        paths: &[r#"interface = "eth0""#, r#"interface = "wwan0""#],
        says: &[(Warning, "no interface called wwan0 now")],
        ..SOUND
    },
    SetUp {
        name: "nobody's address",
        paths: &[r#"interface = "eth0""#, r#"address = "10.7.0.1""#],
        says: &[(Warning, "10.7.0.1 is not an address of this machine now")],
        ..SOUND
    },
    SetUp {
        name: "a strict reverse-path filter",
        prepare: "echo 1 > /proc/sys/net/ipv4/conf/eth1/rp_filter",
        says: &[(Warning, "the reverse-path filter of eth1 is strict")],
        ..SOUND
    },
    SetUp {
        name: "a strict reverse-path filter and sources that choose the link",
        prepare: "
            echo 1 > /proc/sys/net/ipv4/conf/eth1/rp_filter
            ip route add default via 10.2.0.254 table 7
            ip rule add from 10.2.0.1 lookup 7
        ",
        ..SOUND
    },
    SetUp {
        name: "a link of short packets",
        prepare: "ip link set eth1 mtu 1300",
        says: &[(Warning, "eth1 carries packets of 1300 bytes")],
        ..SOUND
    },
    SetUp {
        name: "answers that go into the bond",
        gateway: "listen_port = 7788\nroutes = true",
        allowed_ips: DEFAULT_V4,
        says: &[(Warning, "peers that call get no answer")],
        ..LISTENS
    },
    SetUp {
        name: "the bond's own datagrams go into the bond",
        gateway: "listen_port = 7788\nroutes = true",
        allowed_ips: r#""192.0.0.0/16""#,
        endpoint: SOUND.endpoint,
        says: &[(Warning, "own datagrams to 192.0.2.1:7788 would go into the bond")],
        ..LISTENS
    },
    SetUp {
        name: "a peer's name that is none",
        endpoint: r#"endpoint = "gateway.invalid:7788""#,
        says: &[(Warning, "cannot resolve \"gateway.invalid\"")],
        ..SOUND
    },
    // Addresses and routes of the device.
    SetUp {
        name: "the inner address is a link's own",
        address: r#""10.1.0.1/32""#,
        says: &[(Warning, "10.1.0.1 is the address of eth0 too")],
        ..SOUND
    },
    SetUp {
        name: "an inner address twice",
        address: r#"["10.99.0.2/24", "10.99.0.2/24"]"#,
        says: &[(Error, "10.99.0.2 is there twice")],
        ..SOUND
    },
    SetUp {
        name: "an inner address that no device can have",
        address: r#""ff02::1/64""#,
        says: &[(Error, "ff02::1/64 is not an address that a device can have")],
        ..SOUND
    },
    SetUp {
        name: "the network's own address",
        address: r#""10.99.0.0/24""#,
        says: &[(Warning, "is the address of the whole network")],
        ..SOUND
    },
    SetUp {
        name: "the peer's inner address is this gateway's",
        allowed_ips: r#""10.99.0.2/32""#,
        says: &[(Warning, "10.99.0.2 is this gateway's own inner address too")],
        ..SOUND
    },
    SetUp {
        name: "a prefix that is a link's network",
        gateway: ROUTES,
        allowed_ips: r#""10.1.0.0/24""#,
        says: &[(Error, "there is a route to 10.1.0.0/24 over eth0 already")],
        ..SOUND
    },
    SetUp {
        name: "a prefix that is made unreachable",
        prepare: "ip route add unreachable 10.50.0.0/16",
        gateway: ROUTES,
        allowed_ips: r#""10.50.0.0/16""#,
        says: &[(Error, "there is a route to 10.50.0.0/16 already")],
        ..SOUND
    },
    SetUp {
        name: "an IPv6 prefix with a route",
        prepare: "ip -6 route add fd50::/16 dev eth0",
        gateway: ROUTES,
        address: r#""fd99::2/64""#,
        allowed_ips: r#""fd50::/16""#,
        says: &[(Error, "there is a route to fd50::/16 over eth0 already")],
        ..SOUND
    },
    SetUp {
        name: "an IPv6 prefix with a preferred route",
        prepare: "ip -6 route add fd50::/16 dev eth0 metric 7",
        gateway: ROUTES,
        address: r#""fd99::2/64""#,
        allowed_ips: r#""fd50::/16""#,
        says: &[(Warning, "fd50::/16 does not go into the bond")],
        ..SOUND
    },
    SetUp {
        name: "IPv6 inside, switched off",
        prepare: "echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6",
        address: r#"["10.99.0.2/24", "fd99::2/64"]"#,
        says: &[(Error, "IPv6 is switched off for new devices, which the IPv6 addresses need")],
        ..SOUND
    },
    SetUp {
        name: "IPv6 routes, switched off",
        prepare: "echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6",
        gateway: ROUTES,
        allowed_ips: r#""fd50::/16""#,
        says: &[(Error, "IPv6 is switched off for new devices, which the IPv6 routes need")],
        ..SOUND
    },
    SetUp {
        name: "IPv6 goes past the bond",
        prepare: IPV6_LINKS,
        gateway: ROUTES,
        allowed_ips: DEFAULT_V4,
        says: &[(Warning, "IPv6 goes past it")],
        ..SOUND
    },
    // What is opened.
    SetUp {
        name: "the UDP port is in use",
        held: Held::UdpPort(7788),
        says: &[(Error, "UDP port 7788 is in use")],
        ..LISTENS
    },
    SetUp {
        name: "the measuring port is in use",
        is_in_short: true,
        held: Held::TcpPort(7789),
        gateway: "measure = true",
        says: &[(Error, "TCP port 7789 is in use")],
        ..SOUND
    },
    SetUp {
        name: "the device is there",
        prepare: "ip tuntap add plait0 mode tun",
        says: &[(Error, "an interface called plait0 exists already")],
        ..SOUND
    },
    SetUp {
        name: "the device's name is another's second one",
        prepare: "ip link property add dev eth0 altname plait0",
        says: &[(Error, "an interface called plait0 exists already")],
        ..SOUND
    },
    SetUp {
        name: "a name that no device can have",
        gateway: r#"tun = "all""#,
        says: &[(Error, "\"all\" is a name that the kernel keeps for itself")],
        ..SOUND
    },
    SetUp {
        name: "a label for a name",
        gateway: r#"tun = "bond:1""#,
        says: &[(Error, "\"bond:1\" is not a name for an interface")],
        ..SOUND
    },
    SetUp {
        name: "a file where the control socket should be",
        prepare: "echo kept > FOLDER/control.sock",
        says: &[(Error, "exists and is no socket")],
        ..SOUND
    },
    SetUp {
        name: "a folder where the control socket should be",
        prepare: "mkdir FOLDER/control.sock",
        says: &[(Error, "exists and is no socket")],
        ..SOUND
    },
    SetUp {
        name: "a control socket where nothing can be made",
        through: READ_ONLY_MNT,
        control_socket: "/mnt/plait/control.sock",
        says: &[(Error, "plait may not write in /mnt")],
        ..SOUND
    },
    SetUp {
        name: "a control socket below a file",
        control_socket: "FOLDER/gateway.toml/control.sock",
        says: &[(Error, "is not a folder")],
        ..SOUND
    },
    SetUp {
        name: "a control socket with too long a path",
        control_socket: "FOLDER/a-name-that-is-so-long-that-no-socket-can-have-it/\
                         a-name-that-is-so-long-that-no-socket-can-have-it",
        says: &[(Error, "a socket's path 107 at most")],
        ..SOUND
    },
    SetUp {
        name: "a state file where nothing can be made",
        through: READ_ONLY_MNT,
        gateway: "state_file = \"/mnt/plait/state.json\"",
        says: &[(Warning, "cannot be written: plait may not write in /mnt")],
        ..SOUND
    },
    SetUp {
        name: "a damaged state file",
        prepare: "echo damaged > FOLDER/state.json",
        says: &[(Warning, "cannot be read: damaged")],
        ..SOUND
    },
    SetUp {
        name: "a key that others may read",
        prepare: "cp FOLDER/../gateway.key FOLDER/open.key; chmod 644 FOLDER/open.key",
        gateway: "private_key_file = \"open.key\"",
        says: &[(Error, "others than its owner may read or write the key file")],
        ..SOUND
    },
    SetUp {
        name: "an option that is none",
        gateway: "colour = \"red\"",
        says: &[(Error, "unknown option")],
        ..SOUND
    },
    // Rights, forwarding, NAT.
    SetUp {
        name: "no right to set up devices",
        is_in_short: true,
        through: NO_NET_ADMIN,
        says: &[(Error, "CAP_NET_ADMIN is missing")],
        ..SOUND
    },
    SetUp {
        name: "rights over another network",
        through: OWN_USER_NAMESPACE,
        says: &[(Error, "a user namespace that this network does not belong to")],
        ..SOUND
    },
    SetUp {
        name: "no TUN device",
        through: mounts!("mount -t tmpfs none /dev/net"),
        says: &[(Error, "no TUN device on this machine")],
        ..SOUND
    },
    SetUp {
        name: "a user that is none",
        gateway: "user = \"no-such-user\"",
        says: &[(Error, "no user called \"no-such-user\"")],
        ..SOUND
    },
    SetUp {
        name: "forwarding that cannot be switched on",
        through: mounts!("mount --bind /proc/sys /proc/sys && mount -o remount,ro,bind /proc/sys"),
        gateway: "forward = true",
        says: &[(Error, "cannot set /proc/sys/net/ipv4/ip_forward")],
        ..SOUND
    },
    SetUp {
        name: "forwarding that is on and cannot be switched",
        prepare: "echo 1 > /proc/sys/net/ipv4/ip_forward",
        through: mounts!("mount --bind /proc/sys /proc/sys && mount -o remount,ro,bind /proc/sys"),
        gateway: "forward = true",
        ..SOUND
    },
    SetUp {
        name: "NAT without nft",
        through: mounts!(
            "mount -t tmpfs none /usr/sbin && mount -t tmpfs none /sbin && PATH=/nowhere"
        ),
        gateway: "forward = true\nnat = true",
        says: &[(Error, "the program nft is missing")],
        ..SOUND
    },
    SetUp {
        name: "NAT on an interface that is none",
        gateway: "forward = true\nnat = [\"wan7\"]",
        says: &[(Warning, "no interface called wan7 now")],
        ..SOUND
    },
    SetUp {
        name: "NAT without forwarding",
        gateway: "nat = [\"eth0\"]",
        says: &[(Warning, "nat without forward")],
        ..SOUND
    },
];
