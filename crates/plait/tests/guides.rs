//! The guides by task, run as they stand: each block of code that names a host is given to that
//! host, in order, and what the guide promises is tried after it.
//!
//! A fence is ` ```sh HOST ` or ` ```toml HOST FILE `; HOST is `customer`, `provider` or `both`.
//! What the package brings is there in a simple form: `systemctl` starts gateways, names are in the
//! hosts' own `/etc/hosts`.

#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

#[path = "hosts/network.rs"]
mod hosts;

/// Folders of its own for each host below /etc; the name of the provider; the commands of a
/// package; nothing of the gateways that the other tests begin with.
const PACKAGE: &str = r#"
rm -f customer/gateway.* provider/gateway.*
for name in customer provider; do
    mkdir $name/etc; cp -a /etc/. $name/etc/ 2>/dev/null; rm -rf $name/etc/plait
    echo '192.0.2.1 gw.example.net' >> $name/etc/hosts
    printf 'hosts: files\n' > $name/etc/nsswitch.conf
    at $name "mount --bind $here/$name/etc /etc; mkdir -p /etc/plait /run/plait"
done
# A unit's start waits until it is ready: who calls, until the bond carries.
cat > bin/start_unit <<'END'
#!/bin/sh
plait up $1 2>>/run/plait/log &
for _ in $(seq 100); do
    plait status $1 >/dev/null 2>&1; said=$?
    [ $said = 0 ] && break
    [ $said = 1 ] && grep -q ^listen_port $1 && break
    sleep 0.1
done
END
cat > bin/systemctl <<'END'
#!/bin/sh
for word; do unit=$word; done
case "$unit" in plait@*) ;; *) exit 0 ;; esac
name=${unit#plait@}; name=${name%.service}
case " $* " in
*' enable '*) start_unit /etc/plait/$name.toml ;;
*' reload '*) plait reload --config /etc/plait/$name.toml ;;
esac
END
cat > bin/sudo <<'END'
#!/bin/sh
exec "$@"
END
cat > bin/systemd-run <<'END'
#!/bin/sh
shift 2; "$@" 2>>/run/plait/steer.log &
END
# There is no user of the package here: the key is root's.
printf '#!/bin/sh\n[ "$1" = plait ] && chmod 600 "$2"\n' > bin/chgrp
chmod +x bin/start_unit bin/systemctl bin/sudo bin/systemd-run bin/chgrp
# Starts what a command left to be started, where no systemd runs the machine.
start_files() {
    at $1 'for file in /etc/plait/*.toml; do
        plait status $file >/dev/null 2>&1; [ $? = 2 ] || continue
        start_unit $file; done' 2>/dev/null
}
# A block of a guide, in the file of this name, at a host; a command that fails ends it.
give() {
    [ -e invitation ] && sed -i "s|plait1\.[^ ]*|$(cat invitation)|" block
    sed -i 's/^plait watch$/timeout 3 plait watch || [ $? = 124 ]/' block
    echo "== at $1: $(head -n 1 block)"
    cp block $1/block
    at $1 'sh -e ./block' > $1/said 2>&1 || {
        echo "a block failed at $1: $(cat block $1/said)"; exit; }
    grep -o 'plait1\.[A-Za-z0-9_-]*' $1/said > found && head -n 1 found > invitation
    # A key that it printed is the one that the other end's file needs.
    grep -xE '[A-Za-z0-9+/]{43}=' $1/said > found && cp found $1/public
    # A reader would copy it.
    [ ! -e provider/phone.sh ] || cp provider/phone.sh customer/
    if grep -q '^plait setup' block; then start_files $1; fi
    true
}
carries() { at customer plait status; }
"#;

/// One block of a guide.
#[derive(Debug, PartialEq)]
struct Block {
    hosts: Vec<String>,
    /// The file that it is, if it is no command.
    file: Option<String>,
    text: String,
}

/// The blocks of a page that name a host.
fn blocks(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(fence) = line.strip_prefix("```").filter(|rest| !rest.is_empty()) else {
            continue;
        };
        let text: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        let mut words = fence.split_whitespace();
        let (language, host, file) = (words.next(), words.next(), words.next());
        let Some(host) = host else { continue };
        assert!(matches!(language, Some("sh" | "toml")), "{fence}");
        let hosts = if host == "both" { vec!["provider", "customer"] } else { vec![host] };
        let hosts = hosts.into_iter().map(str::to_owned).collect();
        blocks.push(Block { hosts, file: file.map(str::to_owned), text: text.join("\n") + "\n" });
    }
    blocks
}

/// The script that gives a page's blocks. Keys stand for the words that a reader replaces.
fn given(page: &str) -> String {
    let blocks = blocks(page);
    assert!(blocks.len() >= 2, "a guide has commands");
    let mut script = String::new();
    for Block { hosts, file, text } in blocks {
        for host in hosts {
            script.push_str(&format!("cat > block <<'END_OF_BLOCK'\n{text}END_OF_BLOCK\n"));
            match &file {
                None => script.push_str(&format!("give {host}\n")),
                Some(file) => script.push_str(&format!(
                    "sed -i \"s|the customer's public key|$(cat customer/public)|;\
                     s|the provider's public key|$(cat provider/public)|;/^user = /d\" block\n\
                     cp block {host}/block; at {host} 'cp block {file}'\n"
                )),
            }
        }
    }
    script
}

/// Runs a guide, with something before and after it; checks that each line was printed.
fn run(page: &str, before: &str, after: &str, expected: &[&str]) {
    let script = format!("{PACKAGE}\n{before}\n{}\n{after}", given(page));
    let Some(text) = hosts::run(&script) else { return };
    for line in expected {
        assert!(text.lines().any(|said| said == *line), "no {line:?} in:\n{text}");
    }
}

/// What the program of this test does in place of others' programs.
#[test]
fn a_role() {
    hosts::play();
}

/// The internet answers, and a host of the LAN asks it over both families.
const INTERNET: &str = r#"
role internet serve 80 & until_true at internet 'ss -ltn | grep -q :80'
asks() { for server in 203.0.113.1:80 '[2001:db8::1]:80'; do
    echo "$1 $(role lan connect $server | grep -o 'tcp .*')"; done; }
"#;

#[test]
fn at_home() {
    run(
        include_str!("../../../docs/guide/home.md"),
        INTERNET,
        r#"
        until_true carries
        asks lan
        at customer ip link set dsl down
        asks cut
        at customer plait path list --json | grep -o '"price":1' | head -n 1
        at customer grep -c quota /etc/plait/plait0.toml
        "#,
        &[
            "lan tcp 203.0.113.2",
            "lan tcp 2001:db8::2",
            "cut tcp 203.0.113.2",
            "cut tcp 2001:db8::2",
            "\"price\":1",
            "1",
        ],
    );
}

/// A host that knows nothing of the network sets itself up by what it is told.
#[test]
fn an_office() {
    run(
        include_str!("../../../docs/guide/office.md"),
        &format!(
            "{INTERNET}
            at customer 'ip address flush dev lan scope global'
            at lan 'ip address flush dev eth0; ip -6 route flush default; ip link set eth0 down
                for what in accept_ra autoconf; do
                    echo 1 > /proc/sys/net/ipv6/conf/eth0/$what; done
                ip link set eth0 up'"
        ),
        r#"
        until_true carries
        until_true at lan 'ip -6 route show default | grep -q "via fe80"'
        until_true at lan 'ip -6 address show dev eth0 scope global | grep -q fd99:7'
        echo "told $(role lan connect '[2001:db8::1]:80' | grep -o 'tcp .*')"
        "#,
        &["told tcp 2001:db8::2"],
    );
}

/// The dish is there from the start; a modem comes later, under a name that the wildcard holds.
#[test]
fn in_a_van() {
    run(
        include_str!("../../../docs/guide/van.md"),
        &format!(
            "{INTERNET}
            at customer 'ip link set dsl down; ip link set dsl name eth0; ip link set eth0 up
                ip route add default via 10.1.0.1 metric 10
                ip link set lte down; ip link set lte name wwan3; ip link set wwan3 up
                ip route add default via 10.2.0.1 metric 20'"
        ),
        r#"
        until_true carries
        asks lan
        at customer ip link set eth0 down
        asks modem
        at customer ip link set wwan3 down
        at customer 'ip link set wwan3 name wwan9; ip link set wwan9 up
            ip route add default via 10.2.0.1 metric 20'
        # Until the bond carries what comes next, that takes the bare link.
        until_true eval 'asks bypassed | grep -q "tcp 203.0.113.2"'
        asks another
        "#,
        &[
            "lan tcp 203.0.113.2",
            "lan tcp 2001:db8::2",
            "modem tcp 203.0.113.2",
            "another tcp 203.0.113.2",
            "another tcp 2001:db8::2",
        ],
    );
}

#[test]
fn a_provider_with_many_customers() {
    run(
        include_str!("../../../docs/guide/provider.md"),
        "",
        r#"
        at provider 'plait peer list --json | grep -o "\"public_key\"" | wc -l'
        at provider 'curl --silent http://127.0.0.1:9478/metrics | grep -c ^plait_peers'
        at provider 'grep -c "^.\[peer" /etc/plait/hub.toml'
        "#,
        &["248", "1"],
    );
}

#[test]
fn from_openmptcprouter() {
    run(
        include_str!("../../../docs/guide/openmptcprouter.md"),
        INTERNET,
        "until_true carries; asks lan",
        &["lan tcp 203.0.113.2", "lan tcp 2001:db8::2"],
    );
}

#[test]
fn when_it_is_slow() {
    let home = given(include_str!("../../../docs/guide/home.md"));
    run(
        include_str!("../../../docs/guide/slow.md"),
        &format!(
            "{home}\n until_true carries\n
            at provider 'sed -i \"s|^routes = true|&\\nmeasure = true|\" /etc/plait/plait0.toml
                plait reload'"
        ),
        "echo done",
        &["done"],
    );
}

#[test]
fn a_phone_behind_a_steering_node() {
    run(
        include_str!("../../../docs/guide/phone.md"),
        "at provider 'ip link set lte down; ip link set lte name wlan0; ip link set wlan0 up'",
        r#"
        wifi() { at provider plait status --json /etc/plait/node.toml |
            grep -o '"name":"wifi","[^}]*'; }
        until_true eval 'wifi | grep -q "\"state\":\"up\""'
        echo wifi is used
        "#,
        &["wifi is used"],
    );
}

#[test]
fn blocks_are_read_with_their_hosts() {
    let page =
        "a\n```sh both\nx\n```\n```toml customer /etc/f\ny\n```\n```text\nz\n```\n```sh\nw\n```\n";
    let block = |hosts: &[&str], file: Option<&str>, text: &str| Block {
        hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
        file: file.map(str::to_owned),
        text: text.to_owned(),
    };
    let expected = [
        block(&["provider", "customer"], None, "x\n"),
        block(&["customer"], Some("/etc/f"), "y\n"),
    ];
    assert_eq!(blocks(page), expected);
}
