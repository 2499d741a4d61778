//! What each access carried: the proxy's status and metrics beside a capture at the client, while a
//! download runs over two links, and while one of them is cut in its middle.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::super::Figure;
use super::links::Site;
use crate::measure::{Wire, WireCapture};
use crate::output::Output;
use crate::process::wait_until;

/// Issue's: within 1 % of what a capture at the client says.
const WITHIN_PERCENT: f64 = 1.0;
const SOURCE: &str = "video.1";
const LIMIT: Duration = Duration::from_secs(10);
/// From the download's start to the cut of the first link, and how long it lasts.
const CUT_AFTER: Duration = Duration::from_secs(1);
const CUT_FOR: Duration = Duration::from_secs(2);
/// Long enough that the link that was cut is used again: the proxy counts what it had in flight
/// once that is acknowledged, the capture at once.
const SELFTEST_BYTES: u64 = 40_000_000;

/// What a download over an access came to, by both.
#[derive(Clone, PartialEq, Debug)]
struct Access {
    name: String,
    /// Received and sent by the proxy.
    status_bytes: u64,
    wire: Wire,
}

/// Both accesses' figures of two downloads of so many bytes.
pub(super) fn figures(bytes: u64) -> Result<Vec<Figure>> {
    let mut figures = Vec::new();
    for (name, cut) in [("download", false), ("one link cut", true)] {
        let (accesses, metrics_differ) = download(bytes, cut).context(name)?;
        // A capture that missed packets says nothing.
        let captured: u64 = accesses.iter().map(|access| access.wire.payload_bytes).sum();
        let whole = captured as f64 / bytes as f64;
        let missed =
            Figure::number(format!("shares, {name}: captured of the file"), whole, "ratio");
        figures.push(missed.at_least(1.0, SOURCE));
        figures.extend(judged(name, &accesses));
        figures.extend(join_time(name, &accesses));
        let name = format!("shares, {name}: metrics that differ from the status");
        figures.push(Figure::none(name, metrics_differ, SOURCE));
    }
    Ok(figures)
}

/// From the connection's first packet until every access carried data: two handshakes, and what
/// RFC 8684 has wait between them.
fn join_time(name: &str, accesses: &[Access]) -> Option<Figure> {
    let opened = accesses.iter().filter_map(|access| access.wire.opened).min()?;
    let carried: Option<Vec<_>> = accesses.iter().map(|access| access.wire.carried).collect();
    let joined = carried?.into_iter().max()?.duration_since(opened);
    let name = format!("shares, {name}: all accesses carry data after");
    Some(Figure::number(name, joined.as_secs_f64() * 1e3, "ms"))
}

fn judged(name: &str, accesses: &[Access]) -> Vec<Figure> {
    let sum = |of: fn(&Access) -> u64| accesses.iter().map(of).sum::<u64>().max(1) as f64;
    let (status, payload) = (sum(|it| it.status_bytes), sum(|it| it.wire.payload_bytes));
    let wire = sum(|it| it.wire.bytes);
    let figures = accesses.iter().flat_map(|access| {
        let Access { name: link, status_bytes, wire: Wire { bytes, payload_bytes, .. } } = access;
        let percent = |part: u64, whole: f64| 100.0 * part as f64 / whole;
        let told = percent(*status_bytes, status);
        let captured = percent(*payload_bytes, payload);
        let apart = (100.0 * (*status_bytes as f64 / (*payload_bytes).max(1) as f64 - 1.0)).abs();
        let on_wire = percent(*bytes, wire);
        let figure = |what: &str, value: f64| {
            Figure::number(format!("shares, {name}: {link}: {what}"), value, "%")
        };
        [
            figure("share by the status", told),
            figure("share by the capture, less by", (told - captured).abs())
                .at_most(WITHIN_PERCENT, SOURCE),
            figure("bytes by the status, apart from the capture's payload", apart)
                .at_most(WITHIN_PERCENT, SOURCE),
            figure("share by the capture, with heads", on_wire),
        ]
    });
    figures.collect()
}

/// Downloads by HTTP CONNECT. Gives what each access carried, and how many metrics differ from the
/// status.
fn download(bytes: u64, cut: bool) -> Result<(Vec<Access>, u64)> {
    let site = Site::build()?;
    let links = &site.topology.customer().links;
    let addresses = links.iter().map(|link| match link.customer_address() {
        IpAddr::V4(address) => (link.spec.name, address),
        IpAddr::V6(_) => unreachable!("the lab's links are numbered in IPv4"),
    });
    let addresses: Vec<(&str, Ipv4Addr)> = addresses.collect();
    let only: Vec<Ipv4Addr> = addresses.iter().map(|(_, address)| *address).collect();
    let [way, ..] = site.ways();
    let capture = WireCapture::start(site.client(&way), &only)?;
    std::thread::scope(|scope| {
        if cut {
            scope.spawn(|| {
                std::thread::sleep(CUT_AFTER);
                links[0].emulator.set_cut(true);
                std::thread::sleep(CUT_FOR);
                links[0].emulator.set_cut(false);
            });
        }
        way.route.fetch_unchecked(site.client(&way), way.by, site.server(&way), bytes)
    })?;
    let status = wait_until("the connection's end", LIMIT, || {
        let status = site.far.status()?;
        Ok((status["open"] == 0).then_some(status))
    })?;
    // A second look at the wires: the last acknowledgements and ends are on their way.
    std::thread::sleep(Duration::from_millis(200));
    let (metrics, wires) = (site.far.metrics()?, capture.stop());
    let (mut accesses, mut differ) = (Vec::new(), 0);
    for (name, address) in addresses {
        let told = status["accesses"].as_array().into_iter().flatten();
        let told = told.clone().find(|access| access["name"] == name).context("an access")?;
        let mut status_bytes = 0;
        for direction in ["received", "sent"] {
            let count = told[format!("{direction}_bytes")].as_u64().context("a count")?;
            status_bytes += count;
            let label = format!("access=\"{name}\",direction=\"{direction}\"");
            let line = format!("plait_proxy_access_bytes_total{{{label}}} {count}");
            differ += u64::from(!metrics.lines().any(|found| found == line));
        }
        let wire = wires.get(&address).copied().unwrap_or_default();
        accesses.push(Access { name: name.into(), status_bytes, wire });
    }
    Ok((accesses, differ))
}

/// The same for the lab's own tests.
pub(crate) fn selftest(output: &Output) -> Result<()> {
    for figure in figures(SELFTEST_BYTES)? {
        output.line(format!("{}: {}", figure.name, figure.value_text()))?;
        ensure!(figure.ok, "{}: {} {}", figure.name, figure.value_text(), figure.band_text());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_that_differ_by_more_than_a_hundredth_fail() {
        let access = |name: &str, status_bytes, payload_bytes| Access {
            name: name.into(),
            status_bytes,
            wire: Wire { bytes: payload_bytes * 104 / 100, payload_bytes, ..Wire::default() },
        };
        let fail = |status: [u64; 2]| {
            let both = [access("a", status[0], 6000), access("b", status[1], 4000)];
            judged("x", &both).iter().filter(|figure| !figure.ok).count()
        };
        assert_eq!(fail([6000, 4000]), 0);
        assert_eq!(fail([6030, 3970]), 0);
        // Shares, and bytes, of both.
        assert_eq!(fail([6200, 3800]), 4);
        assert_eq!(fail([6300, 4200]), 2);
    }
}
