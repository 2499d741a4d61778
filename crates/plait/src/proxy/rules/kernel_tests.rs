//! The rules in the real kernel: a client behind a router that runs the "proxy", which answers with
//! who connected and where to.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use plait_proto::config::Prefix;
use socket2::{Domain, Socket, Type};

use super::{Kind, MARK, Own, RulesConfig, TABLE, apply, text, undo_leftovers};
use crate::proxy::testing;

const PORT: u16 = 8080;
/// A mark of the proxy's own sockets.
const OWN_MARK: u32 = 0x55;

const HOSTS: &str = r#"
MODULE=proxy::rules::kernel_tests
host client; host router
cable client lan 10.3.0.2/24 router lan 10.3.0.1/24
at client ip address add fd03::2/64 dev lan nodad; at router ip address add fd03::1/64 dev lan nodad
at client ip route add default via 10.3.0.1; at client ip -6 route add default via fd03::1
at router ip link add wan type veth peer name far; at router ip link set wan up
at router ip address add 10.4.0.2/24 dev wan; at router ip route add default via 10.4.0.1
ask() { on=$1; shift; role $on $MODULE ask "$@" | said; }
state() { at router nft list tables; at router ip rule show; at router ip -6 rule show
    at router ip route show table 5290 2>/dev/null; }
begin() {
    role router $MODULE listen $1 >/dev/null 2>&1 &
    until_true eval '[ "$(at router ss -ltnH | grep -c :8080)" = 2 ]'
    apply_rules $1
}
apply_rules() {
    # Here and not beside it: what an earlier run said must not count.
    : > router.log
    role router $MODULE apply $1 >>router.log 2>&1 &
    until_true grep -q applied router.log
}
runs() { pgrep -f -- "$MODULE::a_role" | while read pid; do
    grep -qz 'PROXY_ROLE=apply' /proc/$pid/environ && echo $pid; done; }
ends() { kill $1 $(runs); until_true eval '[ -z "$(runs)" ]'; }
"#;

#[test]
fn a_role() {
    let Some(words) = testing::role() else { return };
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["listen", kind] => listen(kind == "tproxy"),
        ["ask", address] => println!("{}", ask(address.parse().unwrap(), None)),
        ["ask", address, "marked"] => println!("{}", ask(address.parse().unwrap(), Some(OWN_MARK))),
        ["apply", kind] => {
            let (mut stop, stopper) = UnixStream::pair().unwrap();
            signal_hook::low_level::pipe::register(signal_hook::consts::SIGTERM, stopper).unwrap();
            let _applied = apply(&config(kind == "tproxy")).unwrap();
            println!("applied");
            stop.read_exact(&mut [0]).unwrap();
        }
        ["text", kind] => print!("{}", text(&config(kind == "tproxy"))),
        ["undo"] => undo_leftovers("router.json".as_ref()).unwrap(),
        _ => panic!("no role {words:?}"),
    }
}

fn config(tproxy: bool) -> RulesConfig {
    RulesConfig {
        name: "test".into(),
        kind: match tproxy {
            true => Kind::Tproxy { mark: MARK, table: TABLE },
            false => Kind::Redirect { own_but: Some(Own::Mark(OWN_MARK)) },
        },
        port: PORT,
        interfaces: vec!["lan".into()],
        ports: vec![80..=90],
        clients: vec![
            Prefix { address: [10, 3, 0, 0].into(), length: 24 },
            Prefix { address: "fd03::".parse().unwrap(), length: 64 },
        ],
        exempt: vec![Prefix { address: [198, 51, 100, 99].into(), length: 32 }],
        state_file: "router.json".into(),
    }
}

/// A listener for each family.
fn listen(transparent: bool) {
    let serve = move |v4: bool| {
        let domain = if v4 { Domain::IPV4 } else { Domain::IPV6 };
        let socket = Socket::new(domain, Type::STREAM, None).unwrap();
        let any: SocketAddr = match v4 {
            true => ([0, 0, 0, 0], PORT).into(),
            false => ([0u16; 8], PORT).into(),
        };
        match (v4, transparent) {
            (true, true) => socket.set_ip_transparent_v4(true).unwrap(),
            (false, true) => socket.set_ip_transparent_v6(true).unwrap(),
            _ => {}
        }
        if !v4 {
            socket.set_only_v6(true).unwrap();
        }
        socket.bind(&any.into()).unwrap();
        socket.listen(9).unwrap();
        loop {
            let (mut stream, peer) = socket.accept().unwrap();
            let to = match (v4, transparent) {
                (_, true) => stream.local_addr().unwrap(),
                (true, false) => stream.original_dst_v4().unwrap(),
                (false, false) => stream.original_dst_v6().unwrap(),
            };
            let peer = peer.as_socket().unwrap().ip();
            write!(stream, "{peer} to {}", to.as_socket().unwrap()).unwrap();
        }
    };
    std::thread::spawn(move || serve(false));
    serve(true);
}

/// What the proxy says; how the connection failed otherwise.
fn ask(address: SocketAddr, mark: Option<u32>) -> String {
    let domain = Domain::for_address(address);
    let socket = Socket::new(domain, Type::STREAM, None).unwrap();
    if let Some(mark) = mark {
        socket.set_mark(mark).unwrap();
    }
    if let Err(error) = socket.connect_timeout(&address.into(), Duration::from_millis(700)) {
        return match error.kind() {
            std::io::ErrorKind::ConnectionRefused => "refused".into(),
            _ => "nobody".into(),
        };
    }
    let mut said = String::new();
    TcpStream::from(socket).read_to_string(&mut said).unwrap();
    said
}

fn told(script: &str) -> Option<String> {
    testing::run(&format!("{HOSTS}\n{script}"), "nft")
}

/// What is led in by both kinds, and what is not: another port, an exempt server, the router.
const ASK: &str = r#"
    ask client 198.51.100.9:80
    ask client [2001:db8::9]:90
    echo "other: $(ask client 198.51.100.9:91) $(ask client 198.51.100.99:80)"
    echo "router: $(ask client 10.3.0.1:80)"
"#;
const ASKED: &str = "10.3.0.2 to 198.51.100.9:80\nfd03::2 to [2001:db8::9]:90\n\
                     other: nobody nobody\nrouter: refused\n";

#[test]
fn a_redirect_brings_clients_and_own_programs_with_their_destination() {
    let script = format!(
        r#"
        state > before.txt
        begin redirect
        {ASK}
        echo "own: $(ask router 198.51.100.9:85) $(ask router 198.51.100.9:85 marked)"
        ends -TERM; state | diff before.txt - && echo "stopped: as before"
        apply_rules redirect; ends -KILL
        role router $MODULE undo >/dev/null
        state | diff before.txt - && echo "undone: as before"
        "#
    );
    let Some(text) = told(&script) else { return };
    let rest = "own: 10.4.0.2 to 198.51.100.9:85 nobody\nstopped: as before\nundone: as before\n";
    assert_eq!(text, format!("{ASKED}{rest}"));
}

#[test]
fn a_tproxy_brings_clients_and_leaves_nothing_behind() {
    let script = format!(
        r#"
        state > before.txt
        begin tproxy
        {ASK}
        ends -KILL; echo "crashed: $(at router ip rule show | grep -c 5290)"
        apply_rules tproxy; ask client 198.51.100.9:80
        ends -TERM; state | diff before.txt - && echo "stopped: as before"
        role router $MODULE text tproxy | said > rules.sh
        at router sh rules.sh; at router sh rules.sh
        ask client 198.51.100.9:80; ask client [2001:db8::9]:90
        sed -n '/^# To undo/,$s/^#   //p' rules.sh > undo.sh; at router sh undo.sh
        state | diff before.txt - && echo "by hand: as before"
        at router ip route add local default dev lo table 5290
        role router $MODULE apply tproxy 2>&1 | grep -o 'the routing table.*program'
        at router nft list tables; at router ip route show table 5290
        "#
    );
    let Some(text) = told(&script) else { return };
    let rest = "crashed: 1\n10.3.0.2 to 198.51.100.9:80\nstopped: as before\n\
                10.3.0.2 to 198.51.100.9:80\nfd03::2 to [2001:db8::9]:90\nby hand: as before\n\
                the routing table 5290 belongs to another program\n\
                local default dev lo scope host \n";
    assert_eq!(text, format!("{ASKED}{rest}"));
}
