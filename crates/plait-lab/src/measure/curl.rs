//! A real file from a real web server: busybox's httpd, fetched with curl, compared by its digest.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use plait_net::netns::NetNs;
use plait_sim::prng::Prng;

use super::iperf::wait_until_listening;
use super::{DownloadFigures, Target};
use crate::process::{self, Service};
use crate::scratch::Scratch;

const PORT: u16 = 8080;
const FILE: &str = "file.bin";
const DOWNLOAD_LIMIT: Duration = Duration::from_secs(120);
const DIGEST_LIMIT: Duration = Duration::from_secs(30);

/// A web server with one file of incompressible bytes.
#[derive(Debug)]
pub(crate) struct WebServer {
    _service: Service,
    scratch: Scratch,
    bytes: u64,
    digest: String,
    congestion: String,
}

impl WebServer {
    pub(crate) fn start(netns: &NetNs, file_bytes: u64) -> Result<Self> {
        let scratch = Scratch::in_memory("web")?;
        let file = scratch.path().join(FILE);
        write_random(&file, file_bytes)?;
        let mut command = netns.command("busybox");
        command.args(["httpd", "-f", "-p", &PORT.to_string(), "-h"]).arg(scratch.path());
        let service = Service::start(&mut command, &scratch.path().join("log"))?;
        wait_until_listening(netns, PORT)?;
        let congestion =
            netns.run_in(|| fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control"))??;
        Ok(Self {
            _service: service,
            bytes: file_bytes,
            digest: sha256(&file)?,
            congestion: congestion.trim().to_owned(),
            scratch,
        })
    }
}

/// Fetches the server's file once; checks that it arrives unchanged.
pub(crate) fn download(target: Target<'_>, server: &WebServer) -> Result<DownloadFigures> {
    let copy = server.scratch.path().join("copy.bin");
    let url = match target.server {
        std::net::IpAddr::V4(address) => format!("http://{address}:{PORT}/{FILE}"),
        std::net::IpAddr::V6(address) => format!("http://[{address}]:{PORT}/{FILE}"),
    };
    let mut command = target.client.command("curl");
    command.args(["--disable", "--noproxy", "*", "--silent", "--show-error", "--fail"]);
    command.args(["--connect-timeout", "10", "--write-out", "%{speed_download}", "--output"]);
    command.arg(&copy).arg(url);
    if let Some(address) = target.bind {
        command.args(["--interface", &address.to_string()]);
    }
    let speed = process::run(&mut command, "", DOWNLOAD_LIMIT)?;
    let digest = sha256(&copy)?;
    fs::remove_file(&copy)?;
    ensure!(digest == server.digest, "the file arrived changed: {digest}, not {}", server.digest);
    Ok(DownloadFigures {
        throughput_bps: parse_speed(&speed)?,
        bytes: server.bytes,
        congestion: server.congestion.clone(),
    })
}

/// Converts curl's bytes per second, which some versions print with decimals, to bits per second.
fn parse_speed(text: &str) -> Result<u64> {
    let whole = text.trim().split('.').next().unwrap_or_default();
    let bytes: u64 = whole.parse().with_context(|| format!("curl printed {text:?} as speed"))?;
    Ok(bytes * 8)
}

fn sha256(file: &Path) -> Result<String> {
    let line = process::run(Command::new("sha256sum").arg(file), "", DIGEST_LIMIT)?;
    let digest = line.split_whitespace().next().context("sha256sum printed nothing")?;
    Ok(digest.to_owned())
}

fn write_random(path: &Path, bytes: u64) -> Result<()> {
    let mut prng = Prng::new(bytes);
    let mut file = std::io::BufWriter::new(fs::File::create(path)?);
    for _ in 0..bytes / 8 {
        file.write_all(&prng.next_u64().to_le_bytes())?;
    }
    Ok(file.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speed_is_read_in_both_forms() {
        assert_eq!(parse_speed("7500000").unwrap(), 60_000_000);
        assert_eq!(parse_speed("7500000.512\n").unwrap(), 60_000_000);
        assert!(parse_speed("").is_err());
    }
}
