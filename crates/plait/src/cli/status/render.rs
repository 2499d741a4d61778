//! The gateway's answer as a table for people.

use plait_proto::drop_reason::DropReason;
use plait_proto::resequencer::ResequencerStats;
use plait_proto::stats::{PathStatus, PeerStatus};
use plait_proto::units::Rate;

use super::StatusAnswer;
use crate::cli::format::{bytes, contact_lines, duration, milliseconds, path_traits, percent};
use crate::daemon::{
    BesideStatus, ContactStatus, DnsStatus, HookStatus, LanStatus, LinkState, LinkStatus,
    MeasurementStatus, Role, SocketStatus, TunStatus,
};
use crate::output::Style;

/// Headings of the paths' table; the first two columns are aligned left, the others right.
const PATH_HEADINGS: [&str; 13] = [
    "path", "state", "use", "price", "weight", "rtt ms", "jitter", "min ms", "loss %", "rate",
    "sent", "received", "lost",
];
/// The column that only some schedulers fill; it is left out when empty.
const WEIGHT: usize = 4;

/// The whole answer.
pub(super) fn text(answer: &StatusAnswer, style: Style) -> String {
    let endpoint = &answer.endpoint;
    let mut text = format!(
        "{}  up for {}  public key {}\n",
        style.bold(&answer.tun),
        duration(answer.uptime_s),
        endpoint.public_key
    );
    if let Some(file) = &answer.key_log {
        let warning = format!("who reads {file} can read this gateway's traffic (PLAIT_KEYLOG)");
        text.push_str(&format!("{}\n", style.yellow(&warning)));
    }
    text.push_str(&outage_text(answer, style));
    answer.dns.iter().for_each(|dns| text.push_str(&dns_line(dns, style)));
    answer.lans.iter().for_each(|lan| text.push_str(&lan_line(lan, style)));
    text.push_str(&beside_text(&answer.beside, style));
    text.push_str(&links_text(answer, style));
    for peer in &endpoint.peers {
        text.push('\n');
        text.push_str(&peer_text(peer, answer.contact(peer), style));
        for one in answer.measurements.iter().filter(|one| one.peer == peer.public_key) {
            text.push_str(&measurement_text(one));
        }
    }
    text.push_str(&hooks_text(&answer.hooks, style));
    if let Some(device) = &answer.device {
        text.push_str(&format!("\n{}", device_text(device)));
    }
    if !endpoint.drops.is_empty() {
        text.push_str(&format!("\n{}\n", style.bold("drops")));
        let width = endpoint.drops.keys().map(String::len).max().unwrap_or(0);
        for (reason, count) in &endpoint.drops {
            let meaning = DropReason::named(reason).map_or("", DropReason::meaning);
            let line = format!("  {reason:width$}  {count:>12}  {meaning}");
            text.push_str(&format!("{}\n", line.trim_end()));
        }
    }
    text
}

/// What becomes of the host's traffic; nothing to tell of while it waits for no bond.
fn outage_text(answer: &StatusAnswer, style: Style) -> String {
    let Some(outage) = &answer.outage else { return String::new() };
    if outage.when_down == "hold" && answer.all_up() {
        return String::new();
    }
    let text = match outage.down_for_s {
        Some(seconds) => style.red(&format!("{}, for {}", outage.text, duration(seconds))),
        None => outage.text.clone(),
    };
    format!("when down: {}; {text}\n", outage.when_down)
}

/// Which servers the host's resolver asks.
fn dns_line(dns: &DnsStatus, style: Style) -> String {
    let mut text = match dns.in_use {
        true => format!("the host asks {}", dns.servers.join(", ")),
        false => "the host asks whom it asked without the bond".to_owned(),
    };
    if dns.in_use && dns.domains != ["."] {
        text.push_str(&format!(" for {}", dns.domains.join(", ")));
    }
    let trouble = dns.trouble.as_ref().map(|trouble| format!("; {}", style.red(trouble)));
    format!("dns: {text}, by {}{}\n", dns.way, trouble.unwrap_or_default())
}

/// A network whose hosts use this gateway as their router.
fn lan_line(lan: &LanStatus, style: Style) -> String {
    let mut parts = vec![lan.addresses.join(", ")];
    if lan.advertises {
        let lifetime = if lan.is_default_router { "the default router" } else { "no router now" };
        parts.push(format!(
            "advertised as {lifetime}: {} sent, {} solicitations",
            lan.advertisements, lan.solicitations
        ));
    }
    parts.extend(lan.trouble.as_deref().map(|trouble| style.yellow(trouble)));
    format!("lan {}: {}\n", lan.interface, parts.join("; "))
}

/// What goes beside the bond, and whether it does.
fn beside_text(rules: &[BesideStatus], style: Style) -> String {
    if rules.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{}\n", style.bold("beside the bond"));
    for rule in rules {
        let over = rule.over.as_deref().unwrap_or("the best link");
        text.push_str(&format!(
            "  {}: over {over}; now IPv4 {}, IPv6 {}; {} packets ({})\n",
            rule.rule,
            rule.ipv4,
            rule.ipv6,
            rule.packets,
            bytes(rule.bytes)
        ));
        for domain in &rule.domains {
            let list: Vec<_> = domain.addresses.iter().map(ToString::to_string).collect();
            let known = if list.is_empty() { "no address".to_owned() } else { list.join(", ") };
            let error = domain.error.as_ref().map(|error| style.red(&format!("; {error}")));
            text.push_str(&format!("    {}: {known}{}\n", domain.name, error.unwrap_or_default()));
        }
    }
    text
}

/// Links that are missing, that may have another name today, or over which sends fail; all of them
/// while a peer is not reached.
fn links_text(answer: &StatusAnswer, style: Style) -> String {
    let all = !answer.all_up();
    let failing = |socket: &SocketStatus| socket.failed_sends > 0;
    let is_shown = |link: &&LinkStatus| {
        let fails = link.socket.as_ref().is_some_and(failing);
        all || link.state != LinkState::Up || link.identity.is_some() || fails
    };
    let mut lines: Vec<String> = answer.links.iter().filter(is_shown).map(link_line).collect();
    if let Some(socket) = answer.listening.as_ref().filter(|socket| all || failing(socket)) {
        lines.push(format!("  the listening socket: {}\n", socket_text(socket)));
    }
    if lines.is_empty() {
        return String::new();
    }
    format!("\n{}\n{}", style.bold("links"), lines.concat())
}

fn link_line(link: &LinkStatus) -> String {
    let state = link.state.name();
    let socket = link.socket.as_ref().map(|socket| format!("; {}", socket_text(socket)));
    let socket = socket.unwrap_or_default();
    let place = match (&link.identity, link.interface.as_str()) {
        (Some(identity), "") => identity.clone(),
        (Some(identity), interface) => format!("{identity} = {interface}"),
        (None, interface) => interface.to_owned(),
    };
    format!("  {}  {place}: {state}, {}{socket}\n", link.name, link.reason)
}

fn socket_text(socket: &SocketStatus) -> String {
    let mut text =
        format!("datagrams sent {}, received {}", socket.sent_datagrams, socket.received_datagrams);
    if socket.full_sends > 0 {
        text.push_str(&format!(", no room for {} sends", socket.full_sends));
    }
    if let Some(error) = socket.last_error.as_ref().filter(|_| socket.failed_sends > 0) {
        let ago = socket.last_error_ms_ago.unwrap_or_default() / 1000;
        text.push_str(&format!(
            ", {} sends failed, the last {} ago {error}",
            socket.failed_sends,
            duration(ago)
        ));
    }
    text
}

fn device_text(device: &TunStatus) -> String {
    format!(
        "device: packets from the host {}, to the host {}; dropped: no room {}, malformed {}, \
         refused {}\n",
        device.read_packets,
        device.written_packets,
        device.dropped_full,
        device.dropped_malformed,
        device.dropped_invalid
    )
}

fn peer_text(peer: &PeerStatus, contact: Option<&ContactStatus>, style: Style) -> String {
    let state = match peer.state.as_str() {
        "up" => style.green("up"),
        "connecting" => style.yellow("connecting"),
        other => style.red(other),
    };
    let mut text = format!("{} {}  {state}\n", style.bold("peer"), peer.public_key);
    if let Some(trouble) = &peer.trouble {
        text.push_str(&format!("  {}\n", style.red(trouble)));
    }
    let session = match (peer.session_age_s, &peer.cipher) {
        (Some(age), Some(cipher)) => format!("session of {}, {cipher}", duration(age)),
        _ => "no session".into(),
    };
    text.push_str(&format!("  {session}; handshakes {}", peer.handshakes));
    if !peer.scheduler.is_empty() {
        text.push_str(&format!("; scheduler {}", peer.scheduler));
    }
    if let Some(bytes) = peer.inner_mtu_bytes {
        text.push_str(&format!("; carries packets of up to {bytes} bytes"));
    }
    if let (Some(wire), Some(release)) = (&peer.wire, &peer.release) {
        text.push_str(&format!("; runs plait {release}, wire {wire}"));
    }
    text.push('\n');
    text.push_str(&format!(
        "  inner packets: sent {} ({}), delivered {} ({})\n",
        peer.inner_sent_packets,
        bytes(peer.inner_sent_bytes),
        peer.inner_delivered_packets,
        bytes(peer.inner_delivered_bytes)
    ));
    if let Some(line) = overhead_line(peer) {
        text.push_str(&format!("  {line}\n"));
    }
    for line in contact_lines(peer, contact) {
        text.push_str(&format!("  {line}\n"));
    }
    if peer.paths.is_empty() {
        text.push_str("  no paths\n");
    } else {
        text.push_str(&paths_table(&peer.paths, style));
    }
    text.push_str(&resequencer_text(&peer.resequencer));
    text
}

/// The peer's overhead for what arrives here. The peer's status shows this side's overhead.
fn overhead_line(peer: &PeerStatus) -> Option<String> {
    let of_paths = peer
        .paths
        .iter()
        .filter_map(|path| path.overhead().map(|overhead| format!("{} {overhead:.3}", path.name)));
    let of_paths: Vec<String> = of_paths.collect();
    let paths = of_paths.join(", ");
    let overhead = peer.overhead()?;
    Some(format!("received {overhead:.3} bytes for each inner byte delivered ({paths})"))
}

/// Hooks that did not do all that they should.
fn hooks_text(hooks: &[HookStatus], style: Style) -> String {
    let is_well = |hook: &&HookStatus| hook.failed + hook.timed_out + hook.left_out == 0;
    let lines = hooks.iter().filter(|hook| !is_well(hook)).map(|hook| {
        let error = hook.last_error.as_ref().map(|error| format!(": {error}"));
        format!(
            "  on {}: done {}, failed {}, timed out {}, left out {}{}\n",
            hook.on.join(", "),
            hook.done,
            hook.failed,
            hook.timed_out,
            hook.left_out,
            error.unwrap_or_default()
        )
    });
    let lines: String = lines.collect();
    if lines.is_empty() { lines } else { format!("\n{}\n{lines}", style.bold("hooks")) }
}

fn measurement_text(measurement: &MeasurementStatus) -> String {
    let who = match measurement.role {
        Role::Asks => "this side measures",
        Role::Serves => "the peer measures",
    };
    format!("  {who}, for {} more at most\n", duration(measurement.remaining_s))
}

fn paths_table(paths: &[PathStatus], style: Style) -> String {
    let mut rows = vec![PATH_HEADINGS.map(str::to_owned)];
    rows.extend(paths.iter().map(path_row));
    let weighted = paths.iter().any(|path| path.weight.is_some());
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<_> = (0..PATH_HEADINGS.len()).map(|c| width(c).unwrap_or(0)).collect();
    let mut text = String::new();
    for (index, row) in rows.iter().enumerate() {
        let mut line = format!("  {:<w$}  {:<v$}", row[0], row[1], w = widths[0], v = widths[1]);
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate().skip(2) {
            if column != WEIGHT || weighted {
                line.push_str(&format!("  {cell:>width$}"));
            }
        }
        text.push_str(&if index == 0 { style.bold(&line) } else { line });
        text.push('\n');
        if let Some(path) = index.checked_sub(1).map(|index| &paths[index]) {
            text.push_str(&format!("    {}: {}\n", path_traits(path).join(", "), path.reason));
        }
    }
    text
}

fn path_row(path: &PathStatus) -> [String; PATH_HEADINGS.len()] {
    [
        path.name.clone(),
        path.state.name().into(),
        if path.in_use { "yes" } else { "no" }.into(),
        path.price.to_string(),
        path.weight.map_or_else(|| "-".into(), |weight| weight.to_string()),
        milliseconds(path.srtt_us),
        milliseconds(path.jitter_us),
        milliseconds(path.min_rtt_us),
        percent(path.loss_ratio),
        Rate::from_bits_per_second(path.delivery_rate_bps).to_string(),
        bytes(path.sent_bytes),
        bytes(path.received_bytes),
        format!("{}", path.reported_lost_packets),
    ]
}

fn resequencer_text(stats: &ResequencerStats) -> String {
    let released = stats.waited - stats.waiting_now_packets.min(stats.waited);
    let mean_us = stats.waiting_total_us.checked_div(released);
    format!(
        "  resequencer: delivered at once {}, waited {} (mean {} ms, longest {} ms, now {})\n    \
         released: in order {}, known lost {}, timer {}, overflow {}\n    \
         given up {}; late: dropped {}, delivered {}; duplicates {}\n",
        stats.at_once,
        stats.waited,
        milliseconds(mean_us),
        milliseconds(Some(stats.waiting_max_us)),
        stats.waiting_now_packets,
        stats.released.in_order,
        stats.released.known_lost,
        stats.released.timer,
        stats.released.overflow,
        stats.given_up,
        stats.late_dropped,
        stats.late_delivered,
        stats.duplicates
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guide_explains_every_drop_as_the_status_does() {
        let guide = include_str!("../../../../../docs/guide/drops.md");
        for reason in DropReason::ALL {
            let row = format!("| `{}` | {} |", reason.name(), reason.meaning());
            assert!(guide.contains(&row), "docs/guide/drops.md lacks: {row}");
        }
        assert_eq!(guide.matches("\n| `").count(), DropReason::ALL.len());
    }
}
