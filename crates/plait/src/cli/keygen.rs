//! `plait keygen`: makes a private key.

use std::fs::File;
use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::PermissionsExt as _;

use plait_proto::session::PrivateKey;
use zeroize::Zeroizing;

use super::Outcome;
use crate::advice::{Advised, help_to_write};
use crate::randomness::fill_for_command;

const AFTER_HELP: &str = "\
Examples:
  (umask 077; plait keygen > gateway.key)
  (umask 077; plait keygen | tee gateway.key | plait pubkey > gateway.pub)
  (umask 077; plait keygen > bond.psk)      a preshared key is made the same way

Exit codes:
  0  a key was printed
  2  an error; it is explained on stderr";

/// Make a private key and print it
///
/// Prints 32 random bytes in base64, in the form that WireGuard uses. Keep them in a file that only
/// its owner can read.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    /// Print {"private_key": …, "public_key": …} instead
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    // A failure does not weaken the key; only a crash at this moment would reveal it.
    let _ = plait_net::rights::keep_memory_private();
    let private_key = random_key()?;
    warn_when_exposed();
    print(&private_key, args.json).map_err(cannot_print)?;
    Ok(Outcome::Good)
}

fn print(private_key: &PrivateKey, as_json: bool) -> io::Result<()> {
    let private_text = private_key.to_base64();
    let mut stdout = io::stdout().lock();
    if as_json {
        let public_text = private_key.public_key();
        writeln!(
            stdout,
            r#"{{"private_key":"{}","public_key":"{public_text}"}}"#,
            private_text.as_str()
        )?;
    } else {
        writeln!(stdout, "{}", private_text.as_str())?;
    }
    stdout.flush()
}

/// What was written of the key, if anything, is not to be used.
fn cannot_print(cause: io::Error) -> Advised {
    let help = help_to_write(&cause).unwrap_or("look at where stdout leads");
    let message = "cannot write the key to stdout; what is there is none";
    Advised::new(message, format!("{help}, and make another")).caused_by(cause)
}

/// A new private key. RFC 7748 §5: three bits at the bottom are zero, the top two are 0 and 1.
pub(super) fn random_key() -> anyhow::Result<PrivateKey> {
    let mut key = Zeroizing::new([0_u8; 32]);
    fill_for_command(&mut *key)?;
    key[0] &= 0xf8;
    key[31] = key[31] & 0x7f | 0x40;
    Ok(PrivateKey::from_bytes(*key))
}

/// Warns when the key is about to be written where others can read it.
fn warn_when_exposed() {
    let stdout = io::stdout();
    if stdout.is_terminal() {
        eprintln!("plait: note: to keep the key: (umask 077; plait keygen > gateway.key)");
        return;
    }
    let Ok(handle) = stdout.as_fd().try_clone_to_owned() else { return };
    let Ok(meta) = File::from(handle).metadata() else { return };
    if meta.is_file() && meta.permissions().mode() & 0o007 != 0 {
        eprintln!("plait: warning: every user of this machine can read the file with the key");
        eprintln!("  help: set the umask first: (umask 077; plait keygen > gateway.key)");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    #[test]
    fn keys_are_clamped_and_differ() {
        let keys = [random_key().unwrap(), random_key().unwrap()].map(|key| key.to_base64());
        assert_ne!(keys[0], keys[1]);
        let bytes = *config::parse_key(&keys[0]).unwrap();
        assert_eq!((bytes[0] & 7, bytes[31] & 0xc0), (0, 0x40));
    }
}
