//! Formats figures for people, the same way in every command.

use plait_proto::stats::{PathStatus, PeerStatus};

use crate::daemon::{ContactStatus, attempts_text};

/// Microseconds as milliseconds with one decimal; `-` where there is no figure.
pub(super) fn milliseconds(us: Option<u64>) -> String {
    us.map_or_else(|| "-".into(), |us| format!("{}.{}", us / 1000, us % 1000 / 100))
}

/// Bytes in decimal units, like rates.
pub(super) fn bytes(bytes: u64) -> String {
    const UNITS: [(u64, &str); 4] =
        [(1_000_000_000_000, "TB"), (1_000_000_000, "GB"), (1_000_000, "MB"), (1000, "kB")];
    let unit = UNITS.iter().find(|(size, _)| bytes >= *size);
    unit.map_or_else(
        || format!("{bytes} B"),
        |(size, name)| format!("{}.{} {name}", bytes / size, bytes % size * 10 / size),
    )
}

/// A length of time in its two largest units.
pub(super) fn duration(seconds: u64) -> String {
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, _) => format!("{minutes} min {} s", seconds % 60),
        (0, _, _) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

/// A ratio in percent with one decimal, without the sign.
pub(super) fn percent(ratio: f64) -> String {
    format!("{:.1}", ratio * 100.0)
}

/// Details that have no column in the table, most important first: the remote address, the MTU, the
/// operator's settings, how far it lags, packets rescued from it.
pub(super) fn path_traits(path: &PathStatus) -> Vec<String> {
    let mut traits = vec![format!("to {}", path.remote)];
    traits.extend(path.mtu_bytes.map(|mtu| format!("mtu {mtu}")));
    traits.extend(path.standby.then(|| "standby".into()));
    traits.extend(path.metered.then(|| "metered".into()));
    if let Some(excess_us) = path.delay_excess_us.filter(|us| *us > 0) {
        traits.push(format!("{} ms behind the quickest", milliseconds(Some(excess_us))));
    }
    if path.rescued_packets > 0 {
        traits.push(format!("{} packets rescued", path.rescued_packets));
    }
    traits
}

/// Explains why a peer does not answer and which names do not resolve: a line each.
pub(super) fn contact_lines(peer: &PeerStatus, contact: Option<&ContactStatus>) -> Vec<String> {
    let is_up = peer.state == "up";
    let mut lines = Vec::new();
    lines.extend(peer.attempts.as_ref().filter(|_| !is_up).map(attempts_text));
    let Some(contact) = contact else { return lines };
    lines.extend(contact.trouble.as_ref().map(|trouble| format!("no answer: {trouble}")));
    for name in contact.names.iter().filter(|name| !is_up || name.error.is_some()) {
        let addresses: Vec<_> = name.addresses.iter().map(ToString::to_string).collect();
        let mut line = match addresses.is_empty() {
            true => format!("{} has no known address", name.name),
            false => format!("{} is {}", name.name, addresses.join(", ")),
        };
        line.extend(name.error.iter().map(|error| format!("; {error}")));
        let next = name.next_in_ms.map(|ms| format!("; asked again in {} s", ms.div_ceil(1000)));
        line.extend(next);
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_one_decimal_and_their_unit() {
        assert_eq!(milliseconds(Some(13_270)), "13.2");
        assert_eq!(milliseconds(None), "-");
        let texts = [999, 1000, 1_440_000, 2_500_000_000].map(bytes);
        assert_eq!(texts, ["999 B", "1.0 kB", "1.4 MB", "2.5 GB"]);
        let texts = [59, 75, 3720, 90_000].map(duration);
        assert_eq!(texts, ["59 s", "1 min 15 s", "1 h 2 min", "1 d 1 h"]);
        assert_eq!(percent(0.0123), "1.2");
    }
}
