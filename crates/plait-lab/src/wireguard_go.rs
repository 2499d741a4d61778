//! wireguard-go between two namespaces: the tunnel that most people would run in user space, to be
//! measured beside plait. It is set up by its configuration protocol, so that no other tool is
//! needed (<https://www.wireguard.com/xplatform/#configuration-protocol>).

use std::env;
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plait_net::netns::NetNs;

use crate::gateway::make_key;
use crate::process::{self, Service, wait_until};
use crate::scratch::Scratch;
use crate::topology::{PROVIDER_V4, inner_v4, ip_batch};

const LISTEN_PORT: u16 = 51_820;
/// 1500 less the outer headers, and what `wg-quick` sets.
const MTU: u16 = 1420;
const SOCKETS: &str = "/var/run/wireguard";
const LIMIT: Duration = Duration::from_secs(10);

/// The program: `WIREGUARD_GO`, or the one that `scripts/wireguard-go` builds.
///
/// # Errors
/// It is not there; says how to get it.
pub(crate) fn program() -> Result<PathBuf> {
    let built = || -> Result<PathBuf> {
        let this = env::current_exe().context("cannot find this program's own place")?;
        let target = this.parent().and_then(Path::parent).unwrap_or(Path::new("."));
        Ok(target.join("tools/wireguard"))
    };
    let path = env::var_os("WIREGUARD_GO").map_or_else(built, |path| Ok(path.into()))?;
    ensure!(
        path.is_file(),
        "there is no wireguard-go at {}; build it with scripts/wireguard-go, which needs Go, or \
         name it in WIREGUARD_GO",
        path.display()
    );
    Ok(path)
}

/// Two ends that know each other, with the inner addresses that plait's would have.
#[derive(Debug)]
pub(crate) struct WireGuardGo {
    ends: [Service; 2],
    _scratch: Scratch,
}

/// One end's keys and addresses.
struct End<'a> {
    netns: &'a NetNs,
    device: &'static str,
    /// Host number of its inner address.
    host: u8,
    private: String,
    public: String,
}

impl WireGuardGo {
    /// Starts both ends; the customer calls the provider.
    pub(crate) fn start(customer: &NetNs, provider: &NetNs) -> Result<Self> {
        let scratch = Scratch::in_memory("wireguard-go")?;
        let end = |netns, device, host| -> Result<End<'_>> {
            let file = scratch.path().join(device);
            let public = hex(&make_key(&file)?)?;
            Ok(End { netns, device, host, private: hex(&fs::read_to_string(&file)?)?, public })
        };
        let provider = end(provider, "wg-provider", 1)?;
        let customer = end(customer, "wg-customer", 2)?;
        let endpoint = format!("endpoint={PROVIDER_V4}:{LISTEN_PORT}\n");
        let ends = [
            provider.start(&scratch, &customer, &format!("listen_port={LISTEN_PORT}\n"), "")?,
            customer.start(&scratch, &provider, "", &endpoint)?,
        ];
        Ok(Self { ends, _scratch: scratch })
    }

    /// Processor time that both ends have taken.
    pub(crate) fn cpu_time(&self) -> Result<Duration> {
        self.ends.iter().map(|end| process::cpu_time(&end.pid().to_string())).sum()
    }
}

impl End<'_> {
    /// Starts this end, and tells it who `peer` is.
    fn start(&self, scratch: &Scratch, peer: &Self, own: &str, of_peer: &str) -> Result<Service> {
        let mut command = self.netns.command(program()?);
        // It would go to the background by itself.
        command.args(["-f", self.device]);
        let log = scratch.path().join(format!("{}.log", self.device));
        let service = Service::start(&mut command, &log)?;
        let socket = Path::new(SOCKETS).join(format!("{}.sock", self.device));
        let mut socket =
            wait_until("wireguard-go", LIMIT, || Ok(UnixStream::connect(&socket).ok()))
                .with_context(|| fs::read_to_string(&log).unwrap_or_default())?;
        socket.set_read_timeout(Some(LIMIT))?;
        write!(
            socket,
            "set=1\nprivate_key={}\n{own}public_key={}\nallowed_ip={}/32\n{of_peer}\n",
            self.private,
            peer.public,
            inner_v4(peer.host)
        )?;
        let mut answer = [0; 64];
        let length = socket.read(&mut answer)?;
        let answer = String::from_utf8_lossy(&answer[..length]);
        ensure!(answer.starts_with("errno=0\n"), "wireguard-go refused its keys: {answer}");
        let device = self.device;
        ip_batch(
            self.netns,
            "",
            &[
                format!("addr add {}/32 dev {device}", inner_v4(self.host)),
                format!("link set {device} mtu {MTU} up"),
                format!("route add {}/32 dev {device}", inner_v4(peer.host)),
            ],
        )?;
        Ok(service)
    }
}

/// A key in base64 as the configuration protocol wants it.
fn hex(key: &str) -> Result<String> {
    let bytes = STANDARD.decode(key.trim()).context("a key is no base64")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_written_in_hexadecimal() {
        assert_eq!(hex("AAECgP8=\n").unwrap(), "00010280ff");
        assert!(hex("not a key").is_err());
    }
}
