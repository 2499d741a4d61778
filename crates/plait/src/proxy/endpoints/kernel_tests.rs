//! Endpoints in the real kernel: a client with two links, a server behind a router for each.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use plait_toml::proxy::ENDPOINTS_TABLE;
use socket2::{Domain, Protocol, Socket, Type};

use super::{EndpointLink, EndpointsConfig, Role, dry_run, run, undo_leftovers};
use crate::proxy::testing;

/// The hosts, and what is done there again and again.
const HOSTS: &str = r#"
MODULE=proxy::endpoints::kernel_tests
host client; host server
cable client wifi 10.1.0.2/24 server wifi 10.1.0.1/24
cable client lte 10.2.0.2/24 server lte 10.2.0.1/24
at client ip address add fd01::2/64 dev wifi nodad
at server ip address add fd01::1/64 dev wifi nodad
at client ip route add default via 10.1.0.1 dev wifi metric 10
at client ip route add default via 10.2.0.1 dev lte metric 20
at client ip -6 route add default via fd01::1 dev wifi metric 20
at server ip address add 192.0.2.1/32 dev lo
at server ip mptcp limits set subflows 8 add_addr_accepted 8
role server $MODULE serve 192.0.2.1:80 >/dev/null 2>&1 &
until_true at server sh -c "ss -ltnH | grep -q :80"
everything() {
    at client ip mptcp endpoint show; at client ip mptcp limits show
    at client ip rule show; at client ip -6 rule show
    # Without what duplicate address detection brings in its time.
    at client ip route show table all | grep -v fe80
}
ours() { at client ip -j mptcp endpoint show | tr '{' '\n' | grep -c "\"subflow\":true"; }
endpoints() { [ "$(ours)" = $1 ]; }
start() {
    # Here and not beside it: what an earlier run said must not count.
    : > client.log
    role client $MODULE run wifi lte >>client.log 2>&1 &
    until_true grep -q 'follows' client.log; endpoints 3 || cat client.log
}
# Ends the role, not the shell that waits for it.
runs() { at client pgrep -f -- "$MODULE::a_role" | while read pid; do
    grep -qz 'PROXY_ROLE=run' /proc/$pid/environ && echo $pid; done; }
subflows() { at client ss -tnH state established | grep -o '10\.[12]\.0\.2' | sort | uniq -c |
    tr -s ' \n' ' '; }
both() { [ "$(subflows)" = " 1 10.1.0.2 1 10.2.0.2 " ]; }
"#;

#[test]
fn a_role() {
    let Some(words) = testing::role() else { return };
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["serve", address] => serve(address.parse().unwrap()),
        ["talk", address, seconds] => talk(address.parse().unwrap(), seconds.parse().unwrap()),
        ["run", ..] => {
            let (stop, stopper) = UnixStream::pair().unwrap();
            signal_hook::low_level::pipe::register(signal_hook::consts::SIGTERM, stopper).unwrap();
            let _ = env_logger::builder().filter_level(log::LevelFilter::Info).try_init();
            run(config(&words[1..]), &stop).unwrap();
        }
        ["run-server"] => {
            let (stop, stopper) = UnixStream::pair().unwrap();
            signal_hook::low_level::pipe::register(signal_hook::consts::SIGTERM, stopper).unwrap();
            let role = Role::Server { signal: true };
            run(EndpointsConfig { role, ..config(&["wifi", "lte"]) }, &stop).unwrap();
        }
        ["dry", ..] => print!("{}", dry_run(&config(&words[1..])).unwrap()),
        ["undo"] => undo_leftovers("client.json".as_ref()).unwrap(),
        _ => panic!("no role {words:?}"),
    }
}

/// The first link is the primary, the others are backups.
fn config(links: &[&str]) -> EndpointsConfig {
    let links = links.iter().enumerate().map(|(at, name)| EndpointLink {
        name: (*name).to_owned(),
        interface: Some((*name).to_owned()),
        address: None,
        backup: at > 0,
    });
    EndpointsConfig {
        links: links.collect(),
        role: Role::Client,
        table: ENDPOINTS_TABLE,
        state_file: "client.json".into(),
    }
}

fn mptcp() -> Socket {
    Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::MPTCP)).unwrap()
}

fn serve(address: SocketAddr) {
    let socket = mptcp();
    socket.set_reuse_address(true).unwrap();
    socket.bind(&address.into()).unwrap();
    socket.listen(9).unwrap();
    for stream in TcpListener::from(socket).incoming() {
        let mut stream = stream.unwrap();
        std::thread::spawn(move || {
            let mut block = [0; 100];
            while stream.read_exact(&mut block).is_ok() && stream.write_all(&block).is_ok() {}
        });
    }
}

/// Sends and waits for the answer, again and again on one connection.
fn talk(address: SocketAddr, seconds: usize) {
    let socket = mptcp();
    socket.connect(&address.into()).unwrap();
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut block = [7; 100];
    for _ in 0..seconds * 20 {
        stream.write_all(&block).unwrap();
        stream.read_exact(&mut block).unwrap();
        std::thread::sleep(Duration::from_millis(50));
    }
    println!("talked");
}

fn told(script: &str) -> Option<String> {
    testing::run(&format!("{HOSTS}\n{script}"), "ss")
}

#[test]
fn a_connection_uses_both_links_and_a_link_that_returns() {
    let script = r#"
        start
        role client $MODULE talk 192.0.2.1:80 6 | said > talk.txt & talk=$!
        until_true both; echo "both"
        at client ss -tniH state established | grep -A1 10.2.0.2 |
            grep -o 'flags:[A-Za-z]*' | grep -c '[Bb]'
        at client ip link set lte down; at server ip link set lte down
        until_true endpoints 2; echo "one:$(subflows)"
        at client ip rule show | grep -c 10.2.0.2
        at server ip link set lte up; at client ip link set lte up
        at client ip route add default via 10.2.0.1 dev lte metric 20
        until_true endpoints 3; until_true both; echo "both again"
        until_true eval 'at client ip route show table all | grep -q "10.2.0.1 dev lte table 53"'
        at client ip -N route get 192.0.2.1 from 10.2.0.2 | grep -o 'dev [a-z]*'
        wait $talk; cat talk.txt
    "#;
    let Some(text) = told(script) else { return };
    assert_eq!(text, "both\n1\none: 1 10.1.0.2 \n0\nboth again\ndev lte\ntalked\n");
}

#[test]
fn what_was_there_is_there_again_after_a_stop_and_after_a_crash() {
    let script = r#"
        at client ip mptcp endpoint add 10.1.0.2 dev wifi id 9 signal
        at client ip mptcp limits set subflows 1 add_addr_accepted 3
        everything > before.txt
        at client unshare --user env PROXY_ROLE="run wifi lte" $SELF --exact $MODULE::a_role 2>&1 |
            grep -o 'run it as root'; rm client.json*
        role client $MODULE dry wifi lte | said
        everything | diff before.txt - && echo "dry: nothing changed"
        start; at client ip mptcp limits show
        kill $(runs); until_true endpoints 0; until_true eval '[ -z "$(runs)" ]'
        everything | diff before.txt - && echo "stopped: as before"
        start; kill -9 $(runs); until_true eval '[ -z "$(runs)" ]'; echo "crashed: $(ours)"
        role client $MODULE undo >/dev/null
        everything | diff before.txt - && echo "undone: as before"
        start; kill -9 $(runs); until_true eval '[ -z "$(runs)" ]'
        at client ip mptcp endpoint show > crashed.txt
        start; at client ip mptcp endpoint show | diff crashed.txt - && echo "taken over"
        at client ip mptcp endpoint delete id $(at client ip mptcp endpoint show |
            sed -n 's/^10.2.0.2 id \([0-9]*\).*/\1/p')
        at client ip mptcp limits set subflows 2 add_addr_accepted 5
        kill $(runs); until_true eval '[ -z "$(runs)" ]'
        everything | diff before.txt -
    "#;
    let Some(text) = told(script) else { return };
    let dry = "\
-4 route add default via 10.1.0.1 dev wifi onlink table 5301 protocol 112
-6 route add default via fd01::1 dev wifi table 5302 protocol 112
-4 route add default via 10.2.0.1 dev lte onlink table 5303 protocol 112
-4 rule add priority 5300 from all lookup main suppress_prefixlength 0 protocol 112
-4 rule add priority 5301 from 10.1.0.2 lookup 5301 protocol 112
-6 rule add priority 5300 from all lookup main suppress_prefixlength 0 protocol 112
-6 rule add priority 5301 from fd01::2 lookup 5302 protocol 112
-4 rule add priority 5301 from 10.2.0.2 lookup 5303 protocol 112
mptcp limits set subflows 2 add_addr_accepted 3
mptcp endpoint add 10.1.0.2 dev wifi id 9 subflow signal
mptcp endpoint add fd01::2 dev wifi subflow
mptcp endpoint add 10.2.0.2 dev lte subflow backup
";
    let dry: String = dry.lines().map(|line| format!("ip {line}\n")).collect();
    let expected = format!(
        "run it as root\nip mptcp endpoint delete id 9\n{dry}dry: nothing changed\n\
         add_addr_accepted 3 subflows 2 \nstopped: as before\ncrashed: 3\nundone: as before\n\
         taken over\n2c2\n< add_addr_accepted 3 subflows 1 \n---\n\
         > add_addr_accepted 5 subflows 2 \n"
    );
    assert_eq!(text, expected);
}

#[test]
fn a_server_tells_its_addresses_and_a_client_uses_them() {
    let script = r#"
        at client ip mptcp limits set subflows 2 add_addr_accepted 2
        at server ip mptcp limits set subflows 2 add_addr_accepted 0
        role server $MODULE run-server >server.log 2>&1 &
        until_true eval '[ "$(at server ip mptcp endpoint show | grep -c signal)" = 3 ]'
        at server ip mptcp limits show
        # On all addresses: the kernel opens no socket for those it tells.
        role server $MODULE serve 0.0.0.0:81 >/dev/null 2>&1 &
        until_true at server sh -c "ss -ltnH | grep -q :81"
        role client $MODULE talk 192.0.2.1:81 3 | said > talk.txt & talk=$!
        # The first, and one to each address that was told, of those by a single default route.
        until_true eval 'at client ss -tnH state established | grep -q 10.2.0.1:81'
        at client ss -tnH state established | grep -o '10.2.0.1:81'
        wait $talk; cat talk.txt
    "#;
    let Some(text) = told(script) else { return };
    assert_eq!(text, "add_addr_accepted 8 subflows 8 \n10.2.0.1:81\ntalked\n");
}
