//! The log of keys: with it a captured conversation can be read, as by Wireshark. Only the
//! environment turns it on, so that no configuration file does it for good.

use std::env;
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;

use plait_net::entry::append_private;
use plait_proto::endpoint::Endpoint;

use crate::advice::Advised;

const VARIABLE: &str = "PLAIT_KEYLOG";

/// An open log of keys.
#[derive(Debug)]
pub(super) struct KeyLog {
    path: PathBuf,
    file: File,
    /// Writing failed, which was logged.
    has_failed: bool,
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
        Ok(Some(Self { path, file, has_failed: false }))
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
            let written = self.file.write_all(secret.line().as_bytes());
            if let Err(error) = written
                && !std::mem::replace(&mut self.has_failed, true)
            {
                log::error!("{}: keys are missing in it: {error}", self.path.display());
            }
        }
    }
}
