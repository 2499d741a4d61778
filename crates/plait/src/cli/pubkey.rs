//! `plait pubkey`: finds the public key of a private key.

use std::io::{self, Read as _, Write as _};

use plait_proto::session::PrivateKey;
use zeroize::Zeroizing;

use super::Outcome;
use crate::advice::Advised;
use crate::config;

const AFTER_HELP: &str = "\
Examples:
  plait pubkey < gateway.key
  (umask 077; plait keygen | tee gateway.key | plait pubkey > gateway.pub)

Exit codes:
  0  the public key was printed
  2  an error; it is explained on stderr";

/// Read a private key and print its public key
///
/// Reads the private key in base64 from stdin. The public key goes into the other gateway's
/// configuration.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// Print {"public_key": …} instead
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    // A key has 44 characters; longer input is not a key, whatever follows.
    const INPUT_BYTES_MAX: u64 = 1024;
    let mut text = Zeroizing::new(String::new());
    let read = io::stdin().lock().take(INPUT_BYTES_MAX).read_to_string(&mut text);
    let help = "pipe a private key in: plait pubkey < gateway.key";
    read.map_err(|cause| Advised::new("cannot read a key from stdin", help).caused_by(cause))?;
    let private_key = config::parse_key(&text).map_err(|cause| {
        Advised::new("stdin does not hold a private key", help).caused_by(cause)
    })?;
    let public_text = PrivateKey::from_bytes(*private_key).public_key();
    let mut stdout = io::stdout().lock();
    if args.json {
        writeln!(stdout, r#"{{"public_key":"{public_text}"}}"#)?;
    } else {
        writeln!(stdout, "{public_text}")?;
    }
    stdout.flush()?;
    Ok(Outcome::Good)
}
