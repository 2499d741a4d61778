//! The README's quick start, line by line, in network namespaces: two gateways as it has them, a
//! LAN behind the customer's, and an internet that knows no address of the customer.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "operations/setup.rs"]
mod setup;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

const README: &str = include_str!("../../../README.md");
/// Lines of the quick start that made the program which the test has.
const BUILD: [&str; 2] = [
    "cargo build --locked --release -p plait-cli",
    "sudo install target/release/plait /usr/local/bin/",
];
/// A page of some seconds: bytes of a piece, pieces, time between them.
const PIECE: usize = 20_000;
const PIECES: usize = 150;
const PAUSE: Duration = Duration::from_millis(20);

/// Makes the hosts: `lan` behind `customer`, which has two links to `provider`, behind which is
/// `internet`. Each has folders of its own below /run and /var/lib, and one for its files.
const HOSTS: &str = r#"
mkdir bin; ln -s "$PLAIT" bin/plait; PATH=$PWD/bin:$PATH; here=$PWD
sudo() { "$@"; }
host() {
    mkdir $1
    unshare --net --mount sh -c 'for folder in /run /var/lib; do mount -t tmpfs none $folder; done
        ip link set lo up; : > "$0/made"; exec sleep 100' $here/$1 & eval "$1=$!"
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
    ip route add default via 10.2.0.1 metric 20'
at provider 'ip address add 192.0.2.1/32 dev lo
    ip route add default via 203.0.113.1; ip route add default via 2001:db8::1'
at internet "QUICK_START=serve $SELF --exact a_role --nocapture" & server=$!
fetch() { at lan "QUICK_START=$1 $SELF --exact a_role --nocapture" | grep -o 'page.*'; }
"#;

/// The blocks of code in the section, of this language.
fn blocks(language: &str) -> Vec<&'static str> {
    let (_, section) = README.split_once("\n## Quick start").expect("the README has a quick start");
    let section = section.split("\n## ").next().unwrap_or(section);
    let begin = format!("```{language}\n");
    section.split(&begin).skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

/// What a host of the test does in place of others' programs: serves a page or fetches it.
#[test]
fn a_role() {
    match std::env::var("QUICK_START").as_deref() {
        Err(_) => {}
        Ok("serve") => serve(),
        Ok(server) => println!("{}", fetch(server)),
    }
}

fn serve() {
    let listener = TcpListener::bind("[::]:80").unwrap();
    for stream in listener.incoming().take(20) {
        std::thread::spawn(move || {
            let mut stream = stream.unwrap();
            let mut asked = String::new();
            BufReader::new(&stream).read_line(&mut asked).unwrap();
            let length = PIECE * PIECES;
            let head = format!("HTTP/1.0 200 OK\r\nContent-Length: {length}\r\n\r\n");
            stream.write_all(head.as_bytes()).unwrap();
            for _ in 0..PIECES {
                stream.write_all(&[b'x'; PIECE]).unwrap();
                std::thread::sleep(PAUSE);
            }
        });
    }
}

fn fetch(server: &str) -> String {
    let mut stream = TcpStream::connect(server).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    let (head, body) = page.split_once("\r\n\r\n").unwrap();
    format!("page {} {}", head.lines().next().unwrap(), body.len())
}

#[test]
fn the_readmes_quick_start_brings_a_lan_to_the_internet() {
    let (shell, files) = (blocks("sh"), blocks("toml"));
    let [keys, start, look] = shell[..] else { panic!("three blocks of commands, not {shell:?}") };
    let [provider, customer] = files[..] else { panic!("two files, not {}", files.len()) };
    let keys: Vec<&str> = keys.lines().filter(|line| !BUILD.contains(line)).collect();
    let [keygen, pubkey] = keys[..] else { panic!("two lines about keys, not {keys:?}") };
    let command = |line: &'static str| line.split(" #").next().unwrap_or(line).trim();
    let start: Vec<&str> = start.lines().map(command).collect();
    let [check, up] = start[..] else { panic!("check and up, not {start:?}") };
    let look: Vec<&str> = look.lines().map(command).collect();
    assert_eq!(look, ["sudo plait status", "sudo plait watch", "sudo plait measure"]);
    let script = format!(
        r#"
        command -v nft >/dev/null || {{ echo "no nft"; exit; }}
        SELF={own}
        {HOSTS}
        for name in provider customer; do at $name '{keygen}'; done
        cat > provider/gateway.toml <<'END'
{provider}
END
        cat > customer/gateway.toml <<'END'
{customer}
END
        sed -i "s|the customer's public key|$(at customer '{pubkey}')|" provider/gateway.toml
        sed -i "s|the provider's public key|$(at provider '{pubkey}')|" customer/gateway.toml
        for name in provider customer; do
            at $name '{check}' > $name/check.log 2>&1
            echo "check $name: $?, $(tail -n 1 $name/check.log)"
            at $name 'sudo() {{ "$@"; }}; {up}' 2> $name/up.log &
            sleep 1
        done
        until_true at customer 'sudo() {{ "$@"; }}; {status}'
        echo "v4 $(fetch 203.0.113.1:80)"
        echo "v6 $(fetch '[2001:db8::1]:80')"
        (sleep 1; at customer ip link set dsl down) &
        echo "cut $(fetch 203.0.113.1:80)"
        at customer 'sudo() {{ "$@"; }}; timeout 3 {watch}' > watch.log 2>&1
        echo "watch: $(grep -c . watch.log | sed 's/[1-9][0-9]*/some/')"
        at customer 'ip link set dsl up; ip route add default via 10.1.0.1 metric 10'
        at customer 'sudo() {{ "$@"; }}; {measure} --seconds 1' > measure.log 2>&1
        echo "measure: $?"
        "#,
        own = std::env::current_exe().unwrap().display(),
        status = look[0],
        watch = look[1].trim_start_matches("sudo "),
        measure = look[2],
    );
    let Some(text) = setup::run_in(&["--user", "--map-root-user", "--mount"], &script) else {
        return;
    };
    if text.starts_with("no nft") {
        let required = std::env::var_os("PLAIT_REQUIRE_NETNS").is_some_and(|value| value == "1");
        assert!(!required, "no nft here");
        eprintln!("skipped: no nft here");
        return;
    }
    let whole = PIECE * PIECES;
    let expected = [
        "check provider: 0, 0 errors, 0 warnings".to_owned(),
        "check customer: 0, 0 errors, 0 warnings".to_owned(),
        format!("v4 page HTTP/1.0 200 OK {whole}"),
        format!("v6 page HTTP/1.0 200 OK {whole}"),
        format!("cut page HTTP/1.0 200 OK {whole}"),
        "watch: some".to_owned(),
        "measure: 0".to_owned(),
    ];
    for line in expected {
        assert!(text.lines().any(|said| said == line), "no {line:?} in:\n{text}");
    }
}
