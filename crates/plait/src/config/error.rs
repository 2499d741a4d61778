//! What can be wrong with a configuration, where, and what to do about it.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Everything that is wrong with one file, in the order of its lines; never empty.
#[derive(Debug)]
pub(crate) struct ConfigErrors(Vec<ConfigError>);

impl ConfigErrors {
    /// Wraps what was found; `None` when nothing was.
    pub(crate) fn new(mut errors: Vec<ConfigError>) -> Option<Self> {
        errors.sort_by_key(|error| error.line.unwrap_or(0));
        (!errors.is_empty()).then_some(Self(errors))
    }

    /// The errors, by line.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &ConfigError> {
        self.0.iter()
    }
}

impl From<ConfigError> for ConfigErrors {
    fn from(error: ConfigError) -> Self {
        Self(vec![error])
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in the configuration", self.0.len())
    }
}

impl std::error::Error for ConfigErrors {}

/// One thing that is wrong: file, line, option, problem.
#[derive(Debug, thiserror::Error)]
#[error("{}: {}{problem}", Place { file, line: *line }, Label(option))]
pub(crate) struct ConfigError {
    /// The configuration file, as the user named it.
    pub(crate) file: PathBuf,
    /// Line in the file, counted from 1; `None` when the file could not be read.
    pub(crate) line: Option<usize>,
    /// The option with its section, or the section alone; empty for the file as a whole.
    pub(crate) option: String,
    /// What is wrong with it.
    pub(crate) problem: Problem,
}

impl ConfigError {
    /// The remedy.
    pub(crate) fn help(&self) -> String {
        self.problem.help()
    }
}

struct Place<'a> {
    file: &'a std::path::Path,
    line: Option<usize>,
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}", self.file.display()),
            None => write!(f, "{}", self.file.display()),
        }
    }
}

struct Label<'a>(&'a str);

impl fmt::Display for Label<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, "{}: ", self.0) }
    }
}

/// What is wrong with an option.
#[derive(Debug)]
pub(crate) enum Problem {
    /// With the file or its words.
    Form(FormProblem),
    /// With a value taken alone.
    Value(ValueProblem),
    /// With a key or a key file.
    Key(KeyProblem),
    /// With two options taken together.
    Conflict(Conflict),
}

impl Problem {
    fn inner(&self) -> &dyn std::error::Error {
        match self {
            Self::Form(problem) => problem,
            Self::Value(problem) => problem,
            Self::Key(problem) => problem,
            Self::Conflict(problem) => problem,
        }
    }

    fn help(&self) -> String {
        match self {
            Self::Form(problem) => problem.help(),
            Self::Value(problem) => problem.help(),
            Self::Key(problem) => problem.help(),
            Self::Conflict(problem) => problem.help(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.inner(), f)
    }
}

macro_rules! into_problem {
    ($($variant:ident($type:ty),)+) => {
        $(impl From<$type> for Problem {
            fn from(problem: $type) -> Self {
                Self::$variant(problem)
            }
        })+
    };
}

into_problem! {
    Form(FormProblem),
    Value(ValueProblem),
    Key(KeyProblem),
    Conflict(Conflict),
}

/// The file cannot be read, or holds words that plait does not know.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FormProblem {
    #[error("cannot read the configuration: {0}")]
    Unreadable(io::Error),
    #[error("not TOML: {0}")]
    Syntax(String),
    #[error("unknown {kind}")]
    Unknown { kind: &'static str, near: Option<&'static str>, known: Vec<&'static str> },
    #[error("missing")]
    Missing { example: &'static str },
    #[error("expected {expected}, found {found}")]
    WrongType { expected: &'static str, found: String },
}

impl FormProblem {
    fn help(&self) -> String {
        match self {
            Self::Unreadable(error) if error.kind() == io::ErrorKind::NotFound => {
                "give the path of an existing file; docs/guide/quickstart.md has one to start from"
                    .into()
            }
            Self::Unreadable(_) => "make the file readable for the user who runs plait".into(),
            Self::Syntax(what) if what.contains("duplicate") => "keep one of the two".into(),
            Self::Syntax(_) => "text goes in double quotes, lists in square brackets".into(),
            Self::Unknown { near: Some(near), .. } => format!("did you mean `{near}`?"),
            Self::Unknown { known, .. } => format!("known here: {}", known.join(", ")),
            Self::Missing { example } => format!("add `{example}`"),
            Self::WrongType { expected, .. } => format!("write {expected}"),
        }
    }
}

/// A value that cannot be what it stands for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ValueProblem {
    #[error("{value} is out of range")]
    Range { value: String, low: i64, high: i64, unit: &'static str },
    #[error("\"{value}\" is not one of the choices")]
    Choice { value: String, known: Vec<&'static str> },
    #[error("\"{value}\" is not an IP address{}", if *cidr { " with a prefix length" } else { "" })]
    Address { value: String, cidr: bool },
    #[error("\"{value}\" is not an endpoint: {why}")]
    Endpoint { value: String, why: &'static str },
    #[error("cannot resolve \"{name}\": {cause}")]
    Unresolved { name: String, cause: io::Error },
    #[error("\"{value}\" is {} bytes long, the limit is 15", value.len())]
    NameTooLong { value: String },
    #[error("\"{value}\" is not a name for an interface")]
    BadName { value: String },
    #[error("has no effect with {setting}")]
    NoEffect { setting: String, belongs_to: &'static str },
}

impl ValueProblem {
    /// The remedy.
    pub(crate) fn help(&self) -> String {
        match self {
            Self::Range { low, high, unit, .. } => {
                let space = if unit.is_empty() { "" } else { " " };
                format!("write a number from {low} to {high}{space}{unit}")
            }
            Self::Choice { known, .. } => format!("choose one of: {}", known.join(", ")),
            Self::Address { cidr: true, .. } => {
                "write it as in \"10.99.0.2/24\" or \"fd99::2/64\"".into()
            }
            Self::Address { cidr: false, .. } => "write it as in \"10.1.0.1\"".into(),
            Self::Endpoint { .. } => {
                "write \"192.0.2.1:7788\", \"[2001:db8::1]:7788\" or \"gw.example.net:7788\"".into()
            }
            Self::Unresolved { .. } => {
                "check the name and this machine's DNS, or write the IP address".into()
            }
            Self::NameTooLong { .. } => "choose a shorter name".into(),
            Self::BadName { .. } => {
                "use letters, digits, `-`, `_` and `.`; no space and no slash".into()
            }
            Self::NoEffect { belongs_to, .. } => {
                format!("remove it; it belongs to {belongs_to}")
            }
        }
    }
}

/// A key that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeyProblem {
    #[error("not a key: {0}")]
    Malformed(Malformed),
    #[error("cannot read the key file {}: {cause}", path.display())]
    File { path: PathBuf, cause: io::Error },
    #[error("the key file {} does not hold a key: {cause}", path.display())]
    FileContent { path: PathBuf, cause: Malformed },
}

impl KeyProblem {
    fn help(&self) -> String {
        match self {
            Self::Malformed(_) => {
                "a key is 32 bytes in base64: 44 characters ending in `=`, as `plait pubkey` prints"
                    .into()
            }
            Self::File { path, cause } if cause.kind() == io::ErrorKind::NotFound => {
                format!("make one: (umask 077; plait keygen > {})", path.display())
            }
            Self::File { .. } => "run plait as the file's owner, or as root".into(),
            Self::FileContent { path, .. } => {
                format!("the file holds one line from `plait keygen`; look at {}", path.display())
            }
        }
    }
}

/// Why some text is not a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("empty")]
    Empty,
    #[error("not base64")]
    NotBase64,
    #[error("{0} bytes instead of 32")]
    Length(usize),
}

/// Options that do not go together.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Conflict {
    #[error("{prefix} belongs to the peer of line {other_line} too")]
    SamePrefix { prefix: String, other_line: usize },
    #[error("this is the gateway's own key")]
    OwnKey,
    #[error("the peer of line {other_line} has the same key")]
    SamePeer { other_line: usize },
    #[error("the path of line {other_line} is called \"{name}\" too")]
    SamePathName { name: String, other_line: usize },
    #[error("the path names neither an interface nor an address")]
    UnboundPath,
    #[error("no way to send: neither listen_port nor a [[path]]")]
    NoSocket,
    #[error("the peer has no endpoint and the gateway does not listen")]
    NobodyCalls,
    #[error("{mtu} bytes are too few for IPv6 inside the bond")]
    MtuTooSmallForIpv6 { mtu: u16 },
    #[error("no peer to bond with")]
    NoPeer,
    #[error("more than {limit} of them")]
    TooMany { limit: usize },
}

impl Conflict {
    fn help(&self) -> String {
        match self {
            Self::SamePrefix { .. } => {
                "give the prefix to one peer, or split it into longer prefixes".into()
            }
            Self::OwnKey => "put the other gateway's public key here".into(),
            Self::SamePeer { .. } => {
                "merge the two [[peer]] sections; a peer may have several endpoints".into()
            }
            Self::SamePathName { .. } => "give each path its own `name`".into(),
            Self::UnboundPath => "add `interface = \"eth0\"` or `address = \"10.1.0.1\"`".into(),
            Self::NoSocket => {
                "add a [[path]] per link to call a peer, or `listen_port = 7788` to be called"
                    .into()
            }
            Self::NobodyCalls => {
                "add `endpoint = \"192.0.2.1:7788\"` to the peer, or `listen_port = 7788` to \
                 [gateway]"
                    .into()
            }
            Self::MtuTooSmallForIpv6 { .. } => {
                "set mtu to 1280 or more, or remove the IPv6 addresses and prefixes".into()
            }
            Self::NoPeer => "add a [[peer]] with the other gateway's `public_key`".into(),
            Self::TooMany { limit } => format!("keep at most {limit}"),
        }
    }
}
