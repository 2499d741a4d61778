//! Shell lines that a client needs: its owner runs them there as root, once per start of the
//! client. No part of plait runs on the client.
//!
//! A client needs three things: its packets leave over the primary, wherever packets came in; the
//! kernel accepts packets over an interface that is not their return path; and one rule restores
//! the primary address in packets that come over another attachment.

use std::fmt::Write as _;
use std::net::IpAddr;

use super::config::{Attachment, Client, SteerConfig};

/// Routing table, first priority of rules and conntrack zone on the client.
const NUMBER: u32 = 5210;
/// Priorities of rules on the client.
const PRIORITIES: u32 = 4;

/// Marks rules of the recipe.
const MARK: &str = "-m comment --comment plait";
const UNTRACKED: &str = "-j CT --notrack";

/// What a client's rule is written in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum Kind {
    /// Linux with nftables: rewrites without connection tracking
    Nftables,
    /// Linux with iptables: rewrites by NAT
    Iptables,
    /// A rooted Android phone
    Android,
}

impl Kind {
    /// All, the best first.
    pub(crate) const ALL: [Self; 3] = [Self::Nftables, Self::Iptables, Self::Android];

    fn title(self) -> &'static str {
        match self {
            Self::Nftables => "Linux with nftables (the better choice)",
            Self::Iptables => "Linux with iptables",
            Self::Android => "a rooted Android phone",
        }
    }
}

/// The recipes of these clients.
pub(crate) fn text(config: &SteerConfig, clients: &[&Client], kinds: &[Kind]) -> String {
    let mut text = String::new();
    let file = config.file.display();
    let _ = writeln!(text, "# What the clients of the steering node in {file} need.");
    text.push_str(
        "# Run a section on its client as root, with sh. It lasts until the client restarts, and \
         may\n# be run again at any time: do so when the client's addresses or routers change.\n",
    );
    if kinds.len() > 1 {
        text.push_str(
            "# Each client needs ONE of its sections; `--for` and `--client` print one alone.\n",
        );
    }
    for client in clients {
        for kind in kinds {
            let _ = write!(text, "\n# ==== {}: {} ====\n", client.name, kind.title());
            Script { client, kind: *kind, text: &mut text }.write();
        }
    }
    text
}

/// One address family of a client.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Version {
    V4,
    V6,
}

impl Version {
    const ALL: [Self; 2] = [Self::V4, Self::V6];

    fn of(self, addresses: plait_proto::steer::Addresses) -> Option<IpAddr> {
        match self {
            Self::V4 => addresses.v4.map(IpAddr::V4),
            Self::V6 => addresses.v6.map(IpAddr::V6),
        }
    }

    /// The option of ip(8).
    fn option(self) -> &'static str {
        if self == Self::V4 { "-4" } else { "-6" }
    }

    fn iptables(self) -> &'static str {
        if self == Self::V4 { "iptables" } else { "ip6tables" }
    }

    fn nft(self) -> &'static str {
        if self == Self::V4 { "ip" } else { "ip6" }
    }
}

/// What is rewritten in one family.
struct Rewritten {
    version: Version,
    primary: IpAddr,
    /// The addresses on the other attachments, each with the shell variable of its interface.
    others: Vec<(String, IpAddr)>,
}

struct Script<'a> {
    client: &'a Client,
    kind: Kind,
    text: &'a mut String,
}

impl<'a> Script<'a> {
    fn write(mut self) {
        if self.others().all(|(_, one)| one.address.is_empty()) {
            self.line("# Nothing: it has one attachment only.");
            return;
        }
        if self.kind == Kind::Android {
            self.keep_radios_up();
        }
        self.find_interfaces();
        self.loosen_reverse_path_check();
        match self.kind {
            Kind::Nftables => self.rewrite_by_nftables(),
            Kind::Iptables | Kind::Android => self.rewrite_by_iptables(),
        }
        self.lead_up_over_primary();
        self.tell_undo();
    }

    fn line(&mut self, line: impl AsRef<str>) {
        self.text.push_str(line.as_ref());
        self.text.push('\n');
    }

    /// Attachments other than the primary, each with the shell variable of its interface.
    fn others(&self) -> impl Iterator<Item = (String, &'a Attachment)> + use<'a> {
        let attachments = self.client.attachments.iter().enumerate().skip(1);
        attachments.map(|(at, one)| (format!("if{at}"), one))
    }

    /// The families in which anything is rewritten.
    fn families(&self) -> Vec<Rewritten> {
        let family = |version: Version| {
            let primary = version.of(self.client.address)?;
            let others = self.others();
            let others: Vec<_> =
                others.filter_map(|(at, one)| Some((at, version.of(one.address)?))).collect();
            (!others.is_empty()).then_some(Rewritten { version, primary, others })
        };
        Version::ALL.into_iter().filter_map(family).collect()
    }

    fn keep_radios_up(&mut self) {
        self.line("# Both radios stay up: mobile data also while Wi-Fi is connected.");
        self.line("svc data enable");
        self.line("svc wifi enable");
        self.line("settings put global mobile_data_always_on 1");
        self.line("settings put global wifi_sleep_policy 2");
    }

    fn find_interfaces(&mut self) {
        self.line("# The interfaces, by their addresses.");
        let mut wanted: Vec<(String, IpAddr)> = Vec::new();
        let primary = Version::ALL.into_iter().find_map(|version| version.of(self.client.address));
        wanted.extend(primary.map(|address| ("if0".to_owned(), address)));
        for (variable, one) in self.others() {
            let address = Version::ALL.into_iter().find_map(|version| version.of(one.address));
            wanted.extend(address.map(|address| (variable, address)));
        }
        for (variable, address) in wanted {
            let option = if address.is_ipv4() { "-4" } else { "-6" };
            self.line(format!(
                "{variable}=$(ip -o {option} addr show to {address} | head -n 1 | cut -d ' ' -f 2)"
            ));
            let problem = format!("echo 'no interface has {address}' >&2; exit 1");
            self.line(format!("[ -n \"${variable}\" ] || {{ {problem}; }}"));
        }
    }

    fn loosen_reverse_path_check(&mut self) {
        if self.client.address.v4.is_none() {
            return;
        }
        self.line("# Packets come in over interfaces that are not their way back.");
        for (variable, one) in self.others() {
            if one.address.v4.is_some() {
                self.line(format!("echo 2 > \"/proc/sys/net/ipv4/conf/${variable}/rp_filter\""));
            }
        }
    }

    fn rewrite_by_nftables(&mut self) {
        self.line(
            "# The rule: before connection tracking, which so sees one connection over all \
             interfaces.",
        );
        self.line("# DHCP and neighbour discovery of the attachment itself are left alone.");
        self.line("nft -f - <<'END'");
        self.line("table inet plait_client {}");
        self.line("delete table inet plait_client");
        self.line("table inet plait_client {");
        self.line("  chain back {");
        self.line("    type filter hook prerouting priority raw; policy accept;");
        for Rewritten { version, primary, others } in self.families() {
            let ip = version.nft();
            for (_, address) in others {
                let own = match version {
                    Version::V4 => "udp dport 68",
                    Version::V6 => {
                        "icmpv6 type { nd-router-advert, nd-neighbor-solicit, nd-neighbor-advert }"
                    }
                };
                self.line(format!("    {ip} daddr {address} {own} accept"));
                self.line(format!("    {ip} daddr {address} {ip} daddr set {primary}"));
            }
        }
        self.line("  }");
        self.line("}");
        self.line("END");
    }

    fn rewrite_by_iptables(&mut self) {
        self.text.push_str(
            "# The rule. iptables rewrites by NAT, which only does what connection tracking knows. \
             What comes\n\
             # over another attachment than the primary is tracked in a zone of its own: else it \
             would clash\n\
             # with the same connection over the primary, and be dropped. Where the kernel has no \
             zones,\n\
             # nothing of the primary address is tracked; then a phone cannot share its \
             connection.\n\
             # Either way tracking sees a part of each connection only. So it must not judge \
             sequence\n\
             # numbers, and a firewall that lets in ESTABLISHED connections alone would drop what \
             comes over\n\
             # another attachment. nftables has none of these troubles.\n",
        );
        for Rewritten { version, primary, others } in self.families() {
            let iptables = format!("{} -w", version.iptables());
            for line in forget_rules(version) {
                self.line(line);
            }
            for (variable, address) in others {
                let raw = format!("{iptables} -t raw -A");
                let arrives = format!("PREROUTING -i \"${variable}\" -d {address} {MARK}");
                self.line(format!("{raw} {arrives} -j CT --zone {NUMBER} || {{"));
                self.line(format!(
                    "  {raw} PREROUTING -i \"$if0\" -d {primary} {MARK} {UNTRACKED}"
                ));
                self.line(format!("  {raw} OUTPUT -s {primary} {MARK} {UNTRACKED}"));
                self.line("}");
                let nat = format!("{iptables} -t nat -A {arrives}");
                if version == Version::V4 {
                    self.line(format!("{nat} -p udp --dport 68 -j ACCEPT"));
                }
                self.line(format!("{nat} -j DNAT --to-destination {primary}"));
            }
        }
        for name in ["nf_conntrack_tcp_be_liberal", "nf_conntrack_tcp_loose"] {
            self.line(format!("echo 1 > /proc/sys/net/netfilter/{name}"));
        }
    }

    fn lead_up_over_primary(&mut self) {
        self.text.push_str(
            "# What the client sends leaves over the primary. The other attachments' own networks \
             are reached\n# as before, unless from the primary address.\n",
        );
        for Rewritten { version, primary, others } in self.families() {
            let option = version.option();
            for priority in NUMBER..NUMBER + PRIORITIES {
                self.line(format!(
                    "while ip {option} rule del pref {priority} 2>/dev/null; do :; done"
                ));
            }
            if self.kind == Kind::Android {
                self.lead_up_on_android(option, primary, &others);
                continue;
            }
            let via = r"sed -n 's/.* via \([^ ]*\).*/\1/p;q'";
            self.line(format!("via=$(ip {option} route show default dev \"$if0\" | {via})"));
            self.line(format!(
                "ip {option} route replace default ${{via:+via \"$via\"}} dev \"$if0\" src \
                 {primary} table {NUMBER}"
            ));
            self.line(format!(
                "ip {option} route show dev \"$if0\" proto kernel | while read -r network rest; do"
            ));
            self.line(format!(
                "  ip {option} route replace \"$network\" dev \"$if0\" src {primary} table {NUMBER}"
            ));
            self.line("done");
            let rule =
                |at: u32, text: String| format!("ip {option} rule add pref {} {text}", NUMBER + at);
            for (_, address) in others {
                self.line(rule(0, format!("from {address} lookup main")));
            }
            self.line(rule(1, format!("from {primary} lookup {NUMBER}")));
            self.line(rule(2, "lookup main suppress_prefixlength 0".into()));
            self.line(rule(3, format!("lookup {NUMBER}")));
        }
    }

    /// Android has a table per interface, with the interface's number and 1000, and marks sockets
    /// that chose their network themselves with 0x10000.
    fn lead_up_on_android(&mut self, option: &str, primary: IpAddr, others: &[(String, IpAddr)]) {
        let table = |variable: &str| {
            format!("$((1000 + $(ip -o link show dev \"${variable}\" | cut -d : -f 1)))")
        };
        let rule =
            |at: u32, text: String| format!("ip {option} rule add pref {} {text}", NUMBER + at);
        let mobile = table("if0");
        self.line(rule(1, format!("from {primary} iif lo lookup {mobile}")));
        for (variable, _) in others {
            let networks = format!("iif lo lookup {} suppress_prefixlength 0", table(variable));
            self.line(rule(2, networks));
        }
        self.line(rule(3, format!("fwmark 0x0/0x10000 iif lo lookup {mobile}")));
    }

    fn tell_undo(&mut self) {
        self.line("# To undo it all, restart the client, or:");
        for Rewritten { version, .. } in self.families() {
            let option = version.option();
            for priority in NUMBER..NUMBER + PRIORITIES {
                self.line(format!(
                    "#   while ip {option} rule del pref {priority} 2>/dev/null; do :; done"
                ));
            }
        }
        if self.kind == Kind::Nftables {
            self.line("#   nft delete table inet plait_client");
        } else {
            for Rewritten { version, .. } in self.families() {
                for line in forget_rules(version) {
                    self.line(format!("#   {line}"));
                }
            }
        }
        if self.kind == Kind::Android {
            self.line("#   settings put global mobile_data_always_on 0");
        }
    }
}

/// Lines that remove the rules that a run of the recipe left.
fn forget_rules(version: Version) -> [String; 3] {
    let iptables = format!("{} -w", version.iptables());
    [("raw", "PREROUTING"), ("raw", "OUTPUT"), ("nat", "PREROUTING")].map(|(table, chain)| {
        format!(
            "{iptables} -t {table} -S {chain} | sed -n '/--comment plait/s/^-A/-D/p' | \
             while read -r rule; do {iptables} -t {table} $rule; done"
        )
    })
}

#[cfg(test)]
mod tests;
