//! The log of keys: with it a captured conversation can be read, as by Wireshark. Only the
//! environment turns it on, so that no configuration file does it for good.

use std::env;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::PathBuf;

use plait_net::entry::append_private;
use plait_proto::endpoint::Endpoint;

use crate::advice::{Advised, help_to_write};

const VARIABLE: &str = "PLAIT_KEYLOG";

/// An open log of keys.
#[derive(Debug)]
pub(super) struct KeyLog {
    path: PathBuf,
    file: File,
    /// Writing fails, which was logged.
    fails: bool,
}

impl KeyLog {
    /// Opens it, when the environment asks for one.
    ///
    /// # Errors
    /// It cannot be opened, or is not this user's alone.
    pub(super) fn open() -> Result<Option<Self>, Advised> {
        let Some(path) = env::var_os(VARIABLE).filter(|path| !path.is_empty()) else {
            return Ok(None);
        };
        let path = PathBuf::from(path);
        let file = append_private(&path).map_err(|cause| {
            let message = format!("cannot write the log of keys {}", path.display());
            let help =
                "name a new file in a folder of your own in PLAIT_KEYLOG, no link, or unset it";
            Advised::new(message, help).caused_by(cause)
        })?;
        Ok(Some(Self { path, file, fails: false }))
    }

    /// Makes the endpoint give out its keys, and says so. Returns the file's name.
    pub(super) fn begin(&self, endpoint: &mut Endpoint) -> String {
        endpoint.log_secrets();
        let path = self.path.display().to_string();
        log::warn!(
            "the keys of all sessions are written to {path}: who reads it can read the traffic \
             (unset {VARIABLE} and start again to end this)"
        );
        path
    }

    /// Writes the keys of new sessions.
    pub(super) fn take_from(&mut self, endpoint: &mut Endpoint) {
        while let Some(secret) = endpoint.poll_secret() {
            let written = self.append(secret.line().as_bytes());
            let failed_before = std::mem::replace(&mut self.fails, written.is_err());
            let path = self.path.display();
            match written {
                Err(error) if !failed_before => {
                    let help = help_to_write(&error).unwrap_or("look at the file");
                    log::error!("{path}: keys are missing in it from here on: {error} ({help})");
                }
                Ok(()) if failed_before => log::info!("{path}: keys are written again"),
                _ => {}
            }
        }
    }

    /// Writes a line whole, or none of it: readers take the next one for its end.
    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        let length = self.file.metadata()?.len();
        let written = self.file.write_all(line);
        if written.is_err() {
            // What went wrong first is told.
            let _ = self.file.set_len(length);
        }
        written
    }
}
