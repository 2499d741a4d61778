//! A gateway's metrics, as Prometheus gets them.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use plait_net::netns::NetNs;

const LIMIT: Duration = Duration::from_secs(10);

/// Samples by their series: a name with its labels as they stand in the text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scrape {
    pub(crate) samples: BTreeMap<String, f64>,
    /// Length of the text.
    pub(crate) bytes: usize,
}

impl Scrape {
    /// Asks the gateway that serves metrics at `address` of a namespace.
    pub(crate) fn take(netns: &NetNs, address: SocketAddr) -> Result<Self> {
        Self::parse(&get(netns, address, "/metrics")?)
    }

    fn parse(text: &str) -> Result<Self> {
        ensure!(text.ends_with("# EOF\n"), "the metrics have no end");
        let mut samples = BTreeMap::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (series, value) = line.rsplit_once(' ').with_context(|| format!("odd: {line}"))?;
            let series = series.strip_suffix("{}").unwrap_or(series);
            let value = value.parse().with_context(|| format!("odd: {line}"))?;
            ensure!(samples.insert(series.to_owned(), value).is_none(), "twice: {series}");
        }
        Ok(Self { samples, bytes: text.len() })
    }
}

/// The body of a page that a namespace's server of HTTP has.
pub(crate) fn get(netns: &NetNs, address: SocketAddr, page: &str) -> Result<String> {
    let mut stream = netns.run_in(|| TcpStream::connect(address))??;
    stream.set_read_timeout(Some(LIMIT))?;
    // With this version nobody answers in chunks.
    let request = format!("GET {page} HTTP/1.0\r\nHost: plait\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let answer = String::from_utf8(answer).context("metrics are text")?;
    let (head, body) = answer.split_once("\r\n\r\n").context("no HTTP")?;
    ensure!(head.split(' ').nth(1) == Some("200"), "{head}");
    Ok(body.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_read_by_series() {
        let text = "# TYPE plait_a gauge\nplait_a{peer=\"x\"} 1.5\nplait_b_total{} 2\n# EOF\n";
        let scrape = Scrape::parse(text).unwrap();
        assert_eq!(scrape.samples["plait_a{peer=\"x\"}"], 1.5);
        assert_eq!(scrape.samples["plait_b_total"], 2.0);
        assert!(Scrape::parse("plait_a 1\nplait_a 2\n# EOF\n").is_err());
        assert!(Scrape::parse("plait_a 1\n").is_err());
    }
}
