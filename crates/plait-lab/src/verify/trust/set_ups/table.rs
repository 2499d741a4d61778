//! The set-ups of trust.5, read from `set_ups.toml`.

use serde::Deserialize;

use crate::gateway::Level;

/// A resource that is already in use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Held {
    #[default]
    Nothing,
    UdpPort(u16),
    TcpPort(u16),
    /// A program answers at the control socket's path.
    ControlSocket,
    /// A socket's file that nobody listens on.
    StaleSocket,
}

/// A host and a configuration; the file explains each field.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct SetUp {
    pub(super) name: String,
    pub(super) was_silent: bool,
    pub(super) is_in_short: bool,
    pub(super) prepare: String,
    pub(super) held: Held,
    mounts: Option<String>,
    through: String,
    gateway: String,
    address: Vec<String>,
    control_socket: String,
    paths: Vec<String>,
    endpoint: Vec<String>,
    allowed_ips: Vec<String>,
    pub(super) says: Vec<(Level, String)>,
}

impl Default for SetUp {
    /// Two links to a provider, no faults.
    fn default() -> Self {
        let one = |text: &str| vec![text.to_owned()];
        Self {
            name: String::new(),
            was_silent: false,
            is_in_short: false,
            prepare: String::new(),
            held: Held::Nothing,
            mounts: None,
            through: String::new(),
            gateway: String::new(),
            address: one("10.99.0.2/24"),
            control_socket: "FOLDER/control.sock".to_owned(),
            paths: ["eth0", "eth1"].map(|link| format!("interface = \"{link}\"")).to_vec(),
            endpoint: one("192.0.2.1:7788"),
            allowed_ips: one("10.99.0.1/32"),
            says: Vec::new(),
        }
    }
}

impl SetUp {
    /// The command prefix that takes something from `plait`.
    pub(super) fn words_before(&self) -> Vec<String> {
        let before = self.through.split_whitespace().map(str::to_owned).collect();
        let Some(mounts) = &self.mounts else { return before };
        let script = format!("{mounts} && exec \"$0\" \"$@\"");
        ["unshare", "--mount", "sh", "-c"].map(str::to_owned).into_iter().chain([script]).collect()
    }

    /// The configuration.
    pub(super) fn toml(&self, folder: &str, peer_key: &str) -> String {
        let default = |option: &str, value: &str| match self.gateway.contains(option) {
            true => String::new(),
            false => format!("{option} = \"{value}\"\n"),
        };
        let (key_file, state_file) = (
            default("private_key_file", "../gateway.key"),
            default("state_file", "FOLDER/state.json"),
        );
        let paths: String = self.paths.iter().map(|path| format!("[[path]]\n{path}\n")).collect();
        let endpoint = match &self.endpoint[..] {
            [] => String::new(),
            all => format!("endpoint = {}\n", list(all)),
        };
        let Self { gateway, control_socket, .. } = self;
        let (address, allowed_ips) = (list(&self.address), list(&self.allowed_ips));
        let text = format!(
            "[gateway]\n{key_file}address = {address}\ncontrol_socket = \"{control_socket}\"\n\
             {state_file}{gateway}\n\n{paths}\n\
             [[peer]]\npublic_key = \"{peer_key}\"\n{endpoint}allowed_ips = {allowed_ips}\n"
        );
        text.replace("FOLDER", folder)
    }
}

/// Texts in configuration syntax: one as a string, several as an array.
fn list(texts: &[String]) -> String {
    match texts {
        [one] => format!("{one:?}"),
        several => format!("{several:?}"),
    }
}

/// All of them.
pub(super) fn all() -> Vec<SetUp> {
    #[derive(Deserialize)]
    struct File {
        set_up: Vec<SetUp>,
    }
    let file: File =
        toml::from_str(include_str!("set_ups.toml")).expect("the file is a part of the lab");
    file.set_up
}
