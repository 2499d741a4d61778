//! Hosts in network namespaces: `lan` behind `customer`, which has two links to `provider`, behind
//! which is `internet`; and what they run in place of others' programs.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../operations/setup.rs"]
mod setup;

/// Makes the hosts, each with folders of its own below /run and /var/lib, and the gateways' files:
/// the customer's default route is in the bond. Needs SELF, this test's program.
const HOSTS: &str = r#"
mkdir bin; ln -s "$PLAIT" bin/plait; PATH=$PWD/bin:$PATH; here=$PWD
host() {
    mkdir $1
    unshare --net --mount sh -c 'for folder in /run /var/lib; do mount -t tmpfs none $folder; done
        ip link set lo up; echo 0 > /proc/sys/net/ipv6/conf/default/accept_dad
        : > "$0/made"; exec sleep 100' $here/$1 & eval "$1=$!"
    until_true test -e $here/$1/made
}
at() { eval "pid=\$$1"; folder=$here/$1; shift; nsenter -t $pid -n -m sh -c "cd $folder; $*"; }
# Cables between two hosts: host, device, addresses, twice.
cable() {
    eval "a=\$$1; b=\$$5"
    ip link add $2 netns $a type veth peer name $6 netns $b
    at $1 "ip address add $3 dev $2; ip address add $4 dev $2 nodad; ip link set $2 up"
    at $5 "ip address add $7 dev $6; ip address add $8 dev $6 nodad; ip link set $6 up"
}
for name in lan customer provider internet; do host $name; done
cable lan eth0 192.168.7.2/24 fd99:7::2/64 customer lan 192.168.7.1/24 fd99:7::1/64
cable customer dsl 10.1.0.2/24 fd01::2/64 provider dsl 10.1.0.1/24 fd01::1/64
cable customer lte 10.2.0.2/24 fd02::2/64 provider lte 10.2.0.1/24 fd02::1/64
cable provider eth0 203.0.113.2/24 2001:db8::2/64 internet eth0 203.0.113.1/24 2001:db8::1/64
at lan 'ip route add default via 192.168.7.1; ip route add default via fd99:7::1'
at customer 'ip route add default via 10.1.0.1 metric 10
    ip route add default via 10.2.0.1 metric 20
    ip route add default via fd01::1 metric 10; ip route add default via fd02::1 metric 20'
at provider 'ip address add 192.0.2.1/32 dev lo
    echo 1 > /proc/sys/net/ipv4/ip_forward; echo 1 > /proc/sys/net/ipv6/conf/all/forwarding'
at internet 'ip route add default via 203.0.113.2; ip route add default via 2001:db8::2'
for name in customer provider; do
    (umask 077; plait keygen > $name/gateway.key)
    plait pubkey < $name/gateway.key > $name/public
done
cat > provider/gateway.toml <<FILE
[gateway]
private_key_file = "gateway.key"
listen_port = 7788
address = ["10.99.0.1/24", "fd99::1/64"]
routes = true
forward = true
[[peer]]
public_key = "$(cat customer/public)"
allowed_ips = ["10.99.0.2", "fd99::2", "192.168.7.0/24", "fd99:7::/64"]
FILE
cat > customer/gateway.toml <<FILE
[gateway]
private_key_file = "gateway.key"
address = ["10.99.0.2/24", "fd99::2/64"]
routes = true
forward = true
[[path]]
interface = "dsl"
[[path]]
interface = "lte"
[[peer]]
public_key = "$(cat provider/public)"
endpoint = "192.0.2.1:7788"
allowed_ips = ["0.0.0.0/0", "::/0"]
FILE
# Adds a line to [gateway].
option() { sed -i "s|^routes = true|&\n$2|" $1/gateway.toml; }
# Starts a gateway; its process is up_NAME.
up() {
    eval "pid=\$$1"
    nsenter -t $pid -n -m --wd=$here/$1 plait up gateway.toml 2>>$1/up.log & eval "up_$1=$!"
}
# How many paths of the customer are up, beside both links.
paths() { [ "$(at customer plait status --json | grep -o '"state":"up","reason"' | wc -l)" = \
    $((${1:-2} + 2)) ]; }
# The program of this test in a role, on a host.
role() { name=$1; shift; at $name "ROLE='$*' exec $SELF --exact a_role --nocapture"; }
# The addresses under which a server sees a host, by UDP, for some milliseconds.
seen() { grep ^seen | cut -d ' ' -f 2 | tr '\n' ' '; }
udp() { echo "$1 $2: $(role $1 ask $2 ${3:-400} | seen)"; }
"#;

/// Time between two questions.
const PAUSE: Duration = Duration::from_millis(20);

/// Runs a script with the hosts; nothing when there are no namespaces or no nft here.
pub(crate) fn run(script: &str) -> Option<String> {
    let own = std::env::current_exe().unwrap();
    let text = setup::run(&format!(
        "command -v nft >/dev/null || {{ echo 'no nft'; exit; }}\nSELF={}\n{HOSTS}\n{script}",
        own.display()
    ))?;
    if text.starts_with("no nft") {
        let required = std::env::var_os("PLAIT_REQUIRE_NETNS").is_some_and(|value| value == "1");
        assert!(!required, "no nft here");
        eprintln!("skipped: no nft here");
        return None;
    }
    Some(text)
}

/// The role that the environment names, if any.
pub(crate) fn play() {
    let Ok(role) = std::env::var("ROLE") else { return };
    let words: Vec<&str> = role.split_whitespace().collect();
    match words[..] {
        ["serve", port] => serve(port.parse().unwrap()),
        ["ask", server, millis] => ask(server, Duration::from_millis(millis.parse().unwrap())),
        ["connect", server] => println!("\ntcp {}", connect(server)),
        ["send", port] => send(port.parse().unwrap()),
        ["receive", server, millis] => {
            println!("\n{}", receive(server, Duration::from_millis(millis.parse().unwrap())));
        }
        _ => panic!("no such role: {role}"),
    }
}

/// Answers everybody, by UDP and TCP, with the address that the question came from.
fn serve(port: u16) {
    let socket = UdpSocket::bind(("::", port)).unwrap();
    std::thread::spawn(move || {
        let mut buffer = [0; 64];
        loop {
            let (_, from) = socket.recv_from(&mut buffer).unwrap();
            // Nobody may be there any more.
            let _ = socket.send_to(from.ip().to_canonical().to_string().as_bytes(), from);
        }
    });
    for stream in TcpListener::bind(("::", port)).unwrap().incoming() {
        let mut stream = stream.unwrap();
        let from = stream.peer_addr().unwrap().ip().to_canonical().to_string();
        let _ = stream.write_all(from.as_bytes());
    }
}

/// Asks by UDP from one socket, and prints, for each address under which the server sees it, when
/// it did first and last, and how often, in milliseconds.
fn ask(server: &str, time: Duration) {
    let any = if server.starts_with('[') { "[::]:0" } else { "0.0.0.0:0" };
    let socket = UdpSocket::bind(any).unwrap();
    socket.connect(server).unwrap();
    socket.set_read_timeout(Some(PAUSE)).unwrap();
    let begun = Instant::now();
    let mut seen: Vec<(String, u128, u128, u32)> = Vec::new();
    let mut buffer = [0; 64];
    while begun.elapsed() < time {
        let _ = socket.send(b"?");
        let asked = Instant::now();
        if let Ok(length) = socket.recv(&mut buffer) {
            let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
            let now = begun.elapsed().as_millis();
            match seen.last_mut().filter(|(last, ..)| *last == text) {
                Some((_, _, last, count)) => (*last, *count) = (now, *count + 1),
                None => seen.push((text, now, now, 1)),
            }
        }
        std::thread::sleep(PAUSE.saturating_sub(asked.elapsed()));
    }
    println!();
    for (address, first, last, count) in seen {
        println!("seen {address} {first} {last} {count}");
    }
    println!("asked");
}

/// What a TCP server answers.
fn connect(server: &str) -> String {
    let time = Duration::from_secs(2);
    let address = server.parse().unwrap();
    let answer = TcpStream::connect_timeout(&address, time).and_then(|mut stream| {
        stream.set_read_timeout(Some(time))?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
        Ok(text)
    });
    answer.unwrap_or_else(|error| format!("no answer: {}", error.kind()))
}

/// The bytes of a download at a place in it: none is like its neighbours.
fn pattern(place: u64) -> u8 {
    (place.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8
}

/// Sends to everybody who connects by TCP, for as long as he listens.
fn send(port: u16) {
    for stream in TcpListener::bind(("::", port)).unwrap().incoming() {
        let mut stream = stream.unwrap();
        std::thread::spawn(move || {
            let mut place = 0;
            loop {
                let chunk: Vec<u8> = (place..place + 16_384).map(pattern).collect();
                place += 16_384;
                if stream.write_all(&chunk).is_err() {
                    return;
                }
            }
        });
    }
}

/// Downloads for a time; says how many bytes came, of those in the second half of the time, the
/// longest pause, and whether all was as it was sent.
fn receive(server: &str, time: Duration) -> String {
    let mut stream =
        match TcpStream::connect_timeout(&server.parse().unwrap(), Duration::from_secs(3)) {
            Ok(stream) => stream,
            Err(error) => return format!("no download: {}", error.kind()),
        };
    stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let begun = Instant::now();
    let (mut place, mut half, mut last, mut pause) = (0, 0, begun, Duration::ZERO);
    let (mut sound, mut buffer) = (true, vec![0; 65_536]);
    while begun.elapsed() < time {
        let Ok(length @ 1..) = stream.read(&mut buffer) else { continue };
        (pause, last) = (pause.max(last.elapsed()), Instant::now());
        sound &= buffer[..length].iter().zip(place..).all(|(byte, at)| *byte == pattern(at));
        place += length as u64;
        if begun.elapsed() < time / 2 {
            half = place;
        }
    }
    let pause = pause.max(last.elapsed()).as_millis();
    format!("received {place} late {} pause_ms {pause} sound {sound}", place - half)
}
