//! The versioned requests of a gateway's control socket and their answers, as
//! `docs/spec/control.md` describes them: each a line of JSON.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::advice::Advised;

/// The version of requests and answers.
pub(crate) const VERSION: u64 = 1;
/// A request of so many bytes of peers is short enough.
pub(crate) const REQUEST_ROOM_BYTES: usize = super::REQUEST_BYTES_MAX - 1024;
/// Where the interface is described.
const PAGE: &str = "docs/spec/control.md";

/// What a gateway is asked for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "request", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Request {
    /// Add peers: all of them, or none.
    PeerAdd {
        /// The peers.
        peers: Vec<PeerAsked>,
    },
    /// Remove a peer.
    PeerRemove {
        /// Its key in base64.
        public_key: String,
    },
    /// List the peers.
    PeerList {},
    /// List the configured paths.
    PathList {},
    /// Take a path out: first its packets go over the others, then its sockets are closed.
    PathDown {
        /// Its name.
        path: String,
    },
    /// Use a path again.
    PathUp {
        /// Its name.
        path: String,
    },
    /// Let a path carry data only while no other does, or as any other.
    PathStandby {
        /// Its name.
        path: String,
        /// Whether it stands by.
        standby: bool,
    },
    /// Give a path another price class.
    PathPrice {
        /// Its name.
        path: String,
        /// Cheaper first.
        price: u8,
    },
    /// Give a path another monthly quota, or none.
    PathQuota {
        /// Its name.
        path: String,
        /// An amount as in the file, such as `20 GB`; `none` for no quota.
        quota: String,
    },
    /// Tell the configuration file and what was read of it.
    File {},
    /// The file was written so that it says what is in force.
    FileSaved {
        /// Fingerprint of what was written.
        fingerprint: String,
    },
}

/// A peer to be added: the options of `[[peer]]`, but that the preshared key itself is told.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct PeerAsked {
    /// The peer's identity in base64.
    pub(crate) public_key: String,
    /// A secret that both gateways mix into the handshake, in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) preshared_key: Option<String>,
    /// Where the peer listens: `IP:port`, `[IPv6]:port` or `name:port`; empty: the peer calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) endpoint: Vec<String>,
    /// Inner networks behind the peer.
    #[serde(default)]
    pub(crate) allowed_ips: Vec<String>,
    /// An idle path sends a datagram this often, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) keepalive_s: Option<u16>,
    /// Whether the peer may measure; absent: as `[gateway]` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) measure: Option<bool>,
}

impl std::fmt::Debug for PeerAsked {
    /// Without the secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PeerAsked").field("public_key", &self.public_key).finish_non_exhaustive()
    }
}

/// An answer's content.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Told {
    /// What was asked for is done.
    Changed {
        /// What is allowed but looks unintended.
        warnings: Vec<String>,
    },
    /// The peers.
    Peers(Vec<PeerTold>),
    /// The configured paths.
    Paths(Vec<PathTold>),
    /// The configuration file.
    File {
        /// Its name, as given to `plait up`, from the root.
        path: String,
        /// Fingerprint of what was read.
        fingerprint: String,
    },
}

/// A peer of a running gateway.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct PeerTold {
    /// Its key in base64.
    pub(crate) public_key: String,
    /// Where it listens.
    pub(crate) endpoint: Vec<String>,
    /// Inner networks behind it.
    pub(crate) allowed_ips: Vec<String>,
    /// An idle path sends a datagram this often, in seconds.
    pub(crate) keepalive_s: u64,
    /// Whether there is a preshared key.
    pub(crate) has_preshared_key: bool,
    /// Whether it may measure; null: as `[gateway]` says.
    pub(crate) measure: Option<bool>,
    /// Whether the bond with it carries data now.
    pub(crate) up: bool,
}

/// A configured path of a running gateway.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct PathTold {
    /// Its name.
    pub(crate) name: String,
    /// Price class; cheaper first.
    pub(crate) price: u8,
    /// Whether it carries data only while no other does.
    pub(crate) standby: bool,
    /// Whether it is taken out.
    pub(crate) down: bool,
    /// Bytes that it may carry in a month.
    pub(crate) quota_bytes: Option<u64>,
    /// Its links: one, or one for each interface of a wildcard.
    pub(crate) links: Vec<LinkTold>,
}

/// The link of a path.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct LinkTold {
    /// Its name.
    pub(crate) name: String,
    /// Its interface, or the wildcard while nothing matches it.
    pub(crate) interface: String,
    /// `up`, `down`, `absent` or `no address`.
    pub(crate) state: String,
    /// Why, in words.
    pub(crate) reason: String,
}

/// A request as it is sent.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Asked {
    /// The version.
    pub(crate) version: u64,
    /// What is asked for.
    #[serde(flatten)]
    pub(crate) request: Request,
}

/// An answer as it is sent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub(crate) enum Answer {
    /// It is done.
    Done(Done),
    /// It is not.
    Refused(Refused),
}

/// What was asked for is done.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Done {
    /// The version.
    pub(crate) version: u64,
    /// The answer's content.
    pub(crate) ok: Told,
}

/// What was asked for is not done.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct Refused {
    /// The version.
    pub(crate) version: u64,
    /// What is wrong.
    pub(crate) error: String,
    /// What to do.
    pub(crate) help: String,
}

impl Request {
    /// The line that asks for it, without its end.
    pub(crate) fn line(&self) -> String {
        let asked = Asked { version: VERSION, request: self.clone() };
        serde_json::to_string(&asked).expect("requests have texts for keys")
    }

    /// Reads a line; `None` when it is not of this kind.
    ///
    /// # Errors
    /// It is of this kind, and wrong.
    pub(crate) fn read(line: &str) -> Option<Result<Self, Advised>> {
        let line = line.trim_start();
        line.starts_with('{').then(|| Self::read_json(line))
    }

    fn read_json(line: &str) -> Result<Self, Advised> {
        let wrong = |message: String| Advised::new(message, format!("{PAGE} has all requests"));
        if !line.ends_with('\n') {
            let most = super::REQUEST_BYTES_MAX;
            let help = format!("end it with a new line within {most} bytes; ask several times");
            return Err(Advised::new("the request has no end, or is too long", help));
        }
        let value: Value =
            serde_json::from_str(line).map_err(|error| wrong(format!("not JSON: {error}")))?;
        let Value::Object(mut fields) = value else {
            return Err(wrong("not a JSON object".into()));
        };
        let known = format!("`\"version\": {VERSION}` is the one that is known here");
        match fields.remove("version").map(|version| (version.as_u64(), version)) {
            Some((Some(VERSION), _)) => {}
            Some((_, version)) => {
                return Err(Advised::new(format!("version {version} is not known here"), known));
            }
            None => return Err(Advised::new("the request says no version", known)),
        }
        serde_json::from_value(Value::Object(fields)).map_err(|error| wrong(error.to_string()))
    }
}

impl From<Result<Told, Advised>> for Answer {
    fn from(result: Result<Told, Advised>) -> Self {
        match result {
            Ok(ok) => Self::Done(Done { version: VERSION, ok }),
            Err(refused) => Self::Refused(Refused {
                version: VERSION,
                error: refused.to_string(),
                help: refused.help().to_owned(),
            }),
        }
    }
}

impl From<Answer> for Result<Told, Advised> {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Done(done) => Ok(done.ok),
            Answer::Refused(refused) => Err(Advised::new(refused.error, refused.help)),
        }
    }
}

/// What is read of a file, in a short text: another text of the file has another one. It tells
/// changes, and is no protection against somebody who wants two texts to look alike.
pub(crate) fn fingerprint(text: &str) -> String {
    // FNV-1a.
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}-{}", text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page's schema, from the types.
    fn schema() -> String {
        let schemas = serde_json::json!({
            "request": schemars::schema_for!(Asked),
            "answer": schemars::schema_for!(Answer),
        });
        serde_json::to_string_pretty(&schemas).unwrap() + "\n"
    }

    /// Set WRITE_SCHEMA=1 to write it anew.
    #[test]
    fn the_schema_of_the_page_is_that_of_the_types() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/spec/control.schema.json");
        if std::env::var_os("WRITE_SCHEMA").is_some() {
            std::fs::write(file, schema()).unwrap();
        }
        assert_eq!(std::fs::read_to_string(file).unwrap(), schema());
    }

    #[test]
    fn requests_are_lines_and_back() {
        let path = || "dsl".to_owned();
        let peer = PeerAsked { public_key: "S0VZ".into(), ..PeerAsked::default() };
        for request in [
            Request::PeerAdd { peers: vec![peer] },
            Request::PeerRemove { public_key: "S0VZ".into() },
            Request::PeerList {},
            Request::PathList {},
            Request::PathDown { path: path() },
            Request::PathUp { path: path() },
            Request::PathStandby { path: path(), standby: true },
            Request::PathPrice { path: path(), price: 2 },
            Request::PathQuota { path: path(), quota: "20 GB".into() },
            Request::File {},
            Request::FileSaved { fingerprint: "0-0".into() },
        ] {
            let line = request.line() + "\n";
            assert!(line.starts_with(r#"{"version":1,"request":""#), "{line}");
            assert_eq!(Request::read(&line).unwrap().unwrap(), request);
        }
    }

    #[test]
    fn what_is_not_known_is_an_error_with_a_remedy() {
        let told = |line: &str| {
            let error = Request::read(&format!("{line}\n")).unwrap().unwrap_err();
            assert!(!error.help().is_empty());
            error.to_string()
        };
        for (line, error) in [
            ("{", "not JSON: EOF"),
            (r#"{"request":"peer-list"}"#, "the request says no version"),
            (r#"{"version":2,"request":"peer-list"}"#, "version 2 is not known here"),
            (r#"{"version":"1","request":"peer-list"}"#, "version \"1\" is not known here"),
            (r#"{"version":1,"request":"peer-lost"}"#, "unknown variant `peer-lost`, expected"),
            (r#"{"version":1,"request":"peer-list","x":1}"#, "unknown field `x`"),
            (r#"{"version":1,"request":"peer-add","peers":[{"public_key":"","x":1}]}"#, "unknown"),
            (r#"{"version":1,"request":"path-price","path":"a","price":300}"#, "invalid value"),
            (r#"{"version":1,"request":"path-down"}"#, "missing field `path`"),
            (r#"{"version":1}"#, "missing field `request`"),
        ] {
            let found = told(line);
            assert!(found.starts_with(error), "{line}: {found}");
        }
        let long = Request::read(r#"{"version":1"#).unwrap().unwrap_err();
        assert!(long.to_string().contains("too long"));
        assert!(Request::read("status\n").is_none());
    }

    #[test]
    fn no_secret_is_shown() {
        let peer = PeerAsked { preshared_key: Some("c2VjcmV0".into()), ..PeerAsked::default() };
        assert!(!format!("{:?}", Request::PeerAdd { peers: vec![peer] }).contains("c2Vj"));
    }

    #[test]
    fn another_text_has_another_fingerprint() {
        assert_eq!(fingerprint(""), "cbf29ce484222325-0");
        assert_ne!(fingerprint("a"), fingerprint("b"));
    }
}
