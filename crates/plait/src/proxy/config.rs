//! The configuration of a proxy: read from a TOML file, checked, ready to use. Its options are
//! described in `docs/guide/proxy.md`.

pub(crate) mod host;

use std::fs;
use std::path::{Path, PathBuf};

use ipnet::IpNet;
use plait_net::rights::UserId;
use plait_proxy::Users;
use plait_proxy::config::{
    Access, Clients, Config, Limits, Listener, Reach, Upstream, WayIn, WayOut,
};
use plait_toml::proxy::{self as file, ACCESS, LISTEN, PROXY, SOCKET, UPSTREAM};
use plait_toml::{Problem, Problems, Section, Table, common, option};

use crate::config::{self, Cidr, ConfigErrors, Kind, Located, check_secrecy, user_of};

/// Listeners and accesses that one proxy may have.
const LISTENERS_MAX: usize = 64;
const ACCESSES_MAX: usize = 64;

/// A checked file.
#[derive(Debug)]
pub(crate) struct ProxyConfig {
    /// Name of its control socket.
    pub(crate) name: String,
    /// Unix socket that answers `plait status`.
    pub(crate) control_socket: PathBuf,
    /// The file itself.
    pub(crate) file: PathBuf,
    /// The user that it becomes.
    pub(crate) user: Option<Located<String>>,
    /// Whether it enters a sandbox without the files and system calls that it does not need.
    pub(crate) sandbox: bool,
    /// What it does.
    pub(crate) config: Config,
}

impl ProxyConfig {
    /// Reads and checks a file and those that it names.
    ///
    /// # Errors
    /// Everything that is wrong, each with file, line, option and remedy.
    pub(crate) fn load(file: &Path) -> Result<Self, ConfigErrors> {
        let document = config::read(file)?;
        Kind::Proxy.expect(file, &document)?;
        let problems = Problems::default();
        let config = sections(&problems, file, &document);
        problems.finish(config)
    }

    /// The path of the control socket that a file names.
    ///
    /// # Errors
    /// The file names the socket wrongly.
    pub(crate) fn control_socket_of(
        file: &Path,
        document: &Table,
    ) -> Result<PathBuf, ConfigErrors> {
        let problems = Problems::default();
        let mut section = config::top(&problems, file, document).single("proxy");
        let mut said = file::Proxy::default();
        option::read(SOCKET, &mut section, &mut said);
        let folder = file.parent().unwrap_or(Path::new(""));
        problems.finish(Some(folder.join(control_socket(&said))))
    }
}

fn control_socket(said: &file::Proxy) -> PathBuf {
    common::control_socket_of(said.control_socket.as_deref(), &said.name).into()
}

/// Reads all sections. `None` when a problem was noted.
fn sections(problems: &Problems, file: &Path, document: &Table) -> Option<ProxyConfig> {
    let folder = file.parent().unwrap_or(Path::new(""));
    let mut top = config::top(problems, file, document);
    let mut section = top.single("proxy");
    if !section.is_present() {
        section.problem("", Problem::Missing { example: "[proxy]" });
    }
    let mut said = file::Proxy::default();
    option::read(PROXY, &mut section, &mut said);
    let user = Located::maybe(&section, "user", said.user.clone());
    // A user that is not there is told when the proxy becomes it.
    let user_id = user_of(user.as_ref()).ok().flatten();
    let secrets = Secrets { folder, user: user_id, may_be_open: said.allow_open_key_files };
    let users = said.users_file.as_ref().and_then(|name| secrets.users(&section, name));
    section.finish();
    let listeners = bounded(&mut top, "listen", LISTENERS_MAX).into_iter().map(listener).collect();
    let upstream = top.single("upstream");
    let upstream = upstream.is_present().then(|| secrets.upstream(upstream));
    let accesses = bounded(&mut top, "access", ACCESSES_MAX).into_iter().map(access).collect();
    // These are for `plait proxy endpoints` and `plait proxy rules`.
    for name in ["path", "endpoints", "rules"] {
        top.know(&[name]);
    }
    top.finish();
    if !problems.none_found() {
        return None;
    }
    let config = Config {
        listeners,
        clients: Clients { allow: networks(&said.allow), users },
        reach: Reach {
            deny: networks(&said.deny_to),
            allow: networks(&said.allow_to),
            ports: said.ports_to.iter().map(|ports| ports.0.clone()).collect(),
        },
        upstream: upstream.flatten(),
        multipath_out: said.mptcp,
        congestion: said.congestion.clone(),
        accesses,
        limits: limits(&said),
    };
    let control_socket = control_socket(&said);
    let (file, sandbox) = (file.to_owned(), said.sandbox);
    Some(ProxyConfig { name: said.name, control_socket, file, user, sandbox, config })
}

/// Sections of a name, at most so many.
fn bounded<'a>(top: &mut Section<'a>, name: &'static str, max: usize) -> Vec<Section<'a>> {
    let sections = top.many(name);
    if let Some(beyond) = sections.get(max) {
        let help = format!("remove some: {max} are the most");
        beyond.problem("", Problem::new(format!("there are more than {max} of these"), help));
    }
    sections
}

fn limits(said: &file::Proxy) -> Limits {
    Limits {
        connections_max: said.connections_max as usize,
        connections_per_client_max: said.connections_per_client_max as usize,
        request_timeout: said.request_timeout,
        connect_timeout: said.connect_timeout,
        idle_timeout: said.idle_timeout,
        drain: said.drain,
    }
}

fn networks(all: &[Cidr]) -> Vec<IpNet> {
    // A `Cidr`'s length fits its address.
    let network = |cidr: &Cidr| IpNet::new(cidr.address, cidr.length).ok();
    all.iter().filter_map(network).map(|network| network.trunc()).collect()
}

fn listener(mut section: Section<'_>) -> Listener {
    let mut said = file::Listen::default();
    option::read(LISTEN, &mut section, &mut said);
    let way = match said.way {
        file::WayIn::Http => WayIn::Http,
        file::WayIn::Socks => WayIn::Socks,
        file::WayIn::Convert => WayIn::Convert,
        file::WayIn::Redirect => WayIn::Redirect,
        file::WayIn::Tproxy => WayIn::Tproxy,
    };
    if way.is_transparent() && said.mptcp == Some(true) {
        let help = "remove it: the kernel leads plain TCP here";
        section.problem("mptcp", Problem::new(format!("does not go with {}", way.name()), help));
    }
    section.finish();
    let multipath = said.mptcp.unwrap_or(!way.is_transparent());
    Listener { address: said.address, way, multipath }
}

fn access(mut section: Section<'_>) -> Access {
    let mut said = file::Access::default();
    option::read(ACCESS, &mut section, &mut said);
    if said.networks.is_empty() && section.is_right_so_far() {
        section.problem("networks", Problem::Missing { example: "networks = [\"10.1.0.0/16\"]" });
    }
    section.finish();
    Access { name: said.name, networks: networks(&said.networks) }
}

/// Reads files with passwords.
struct Secrets<'a> {
    folder: &'a Path,
    user: Option<UserId>,
    may_be_open: bool,
}

impl Secrets<'_> {
    fn users(&self, section: &Section<'_>, name: &str) -> Option<Users> {
        let text = self.read(section, "users_file", name)?;
        let users = Users::parse(&text);
        users
            .map_err(|error| {
                let help = "write a line `name:password` for each user";
                let file = self.folder.join(name);
                let text = format!("{}: {error}", file.display());
                section.problem("users_file", Problem::new(text, help));
            })
            .ok()
    }

    fn upstream(&self, mut section: Section<'_>) -> Option<Upstream> {
        let mut said = file::Upstream::default();
        option::read(UPSTREAM, &mut section, &mut said);
        let password = said.password_file.as_ref().and_then(|name| {
            let text = self.read(&section, "password_file", name)?;
            Some(text.trim_end_matches(['\r', '\n']).to_owned())
        });
        if said.user.is_some() != said.password_file.is_some() {
            let (there, missing) = match said.user {
                Some(_) => ("user", "password_file"),
                None => ("password_file", "user"),
            };
            let help = format!("add `{missing}`, or remove it");
            section.problem(there, Problem::new(format!("has no effect without {missing}"), help));
        }
        let is_right = section.is_right_so_far();
        section.finish();
        let way = match said.way {
            file::WayOut::Convert => WayOut::Convert,
            file::WayOut::Http => WayOut::Http,
            file::WayOut::Socks => WayOut::Socks,
        };
        is_right.then(|| Upstream {
            address: said.address,
            way,
            multipath: said.mptcp,
            user: said.user.zip(password),
        })
    }

    fn read(&self, section: &Section<'_>, option: &str, name: &str) -> Option<String> {
        let file = self.folder.join(name);
        let shown = file.display();
        if !self.may_be_open
            && let Err(problem) = check_secrecy(&file, self.user)
        {
            let help = format!(
                "chmod 600 {shown}; who could read it by now knows the passwords \
                 (`allow_open_key_files = true` accepts it as it is)"
            );
            section.problem(option, Problem::new(problem.to_string(), help));
            return None;
        }
        let text = fs::read_to_string(&file).map_err(|cause| {
            let help =
                "name a file that plait may read; relative names start at this file's folder";
            section.problem(option, Problem::new(format!("cannot read {shown}: {cause}"), help));
        });
        text.ok()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn parse(text: &str) -> Result<ProxyConfig, String> {
        let file = Path::new("proxy.toml");
        let document = plait_toml::tree::parse(file, text).map_err(|error| error.to_string())?;
        let problems = Problems::default();
        let config = sections(&problems, file, &document);
        problems.finish(config).map_err(|errors| errors.to_string())
    }

    const SMALL: &str =
        "[proxy]\nallow = \"10.0.0.7/8\"\n[[listen]]\naddress = \"10.0.0.1:3128\"\n";

    #[test]
    fn what_is_not_said_has_its_default() {
        let ProxyConfig { name, control_socket, config, .. } = parse(SMALL).unwrap();
        assert_eq!((name.as_str(), config.limits), ("proxy0", Limits::default()));
        assert_eq!(control_socket, Path::new("/run/plait/proxy0.sock"));
        assert_eq!(config.listeners[0].way, WayIn::Http);
        assert!(config.listeners[0].multipath && config.multipath_out && config.upstream.is_none());
        assert_eq!(config.clients.allow, ["10.0.0.0/8".parse().unwrap()]);
    }

    #[test]
    fn every_section_has_its_effect() {
        let text = format!(
            "{SMALL}way = \"convert\"\nmptcp = false\n[[listen]]\naddress = \"[::]:1\"\nway = \
             \"tproxy\"\n[upstream]\naddress = \"192.0.2.1:5124\"\n[[access]]\nname = \"lte\"\n\
             networks = [\"10.1.0.0/16\", \"fd01::/64\"]\n[[path]]\ninterface = \"lte0\"\n"
        );
        let config = parse(&text).unwrap().config;
        let ways: Vec<_> = config.listeners.iter().map(|one| (one.way, one.multipath)).collect();
        assert_eq!(ways, [(WayIn::Convert, false), (WayIn::Tproxy, false)]);
        assert_eq!(config.upstream.map(|next| next.way), Some(WayOut::Convert));
        assert_eq!(config.accesses[0].networks.len(), 2);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let told = |addition: &str| parse(&format!("{SMALL}{addition}")).unwrap_err();
        for (addition, place, word) in [
            ("way = \"ftp\"\n", "proxy.toml:5: [[listen]] way", "convert"),
            ("way = \"redirect\"\nmptcp = true\n", "proxy.toml:6: [[listen]] mptcp", "plain TCP"),
            ("[[listen]]\n", "proxy.toml:5: [[listen]] address", "missing"),
            ("[[listen]]\naddress = \"x:1\"\n", "proxy.toml:6: [[listen]] address", "no IP"),
            ("[upstream]\naddress = \"10.0.0.2:0\"\n", "proxy.toml:6: [upstream]", "no IP"),
            (
                "[upstream]\naddress = \"10.0.0.2:1\"\nuser = \"x\"\n",
                "proxy.toml:7: [upstream] user",
                "password_file",
            ),
            ("[[access]]\nname = \"x\"\n", "proxy.toml:5: [[access]] networks", "missing"),
            ("[acess]\n", "proxy.toml:5: acess", "access"),
        ] {
            let errors = told(addition);
            assert!(errors.contains(place) && errors.contains(word), "{addition}: {errors}");
        }
        assert!(parse("[[listen]]\naddress = \"10.0.0.1:1\"\n").unwrap_err().contains("[proxy]"));
        let many = "[[listen]]\naddress = \"10.0.0.1:3128\"\n".repeat(LISTENERS_MAX);
        assert!(told(&many).contains("more than 64"));
    }

    #[test]
    fn passwords_are_read_from_files_that_others_cannot_read() {
        let folder = std::env::temp_dir().join(format!("plait-users-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let users = folder.join("users");
        fs::write(&users, "ann:secret\n").unwrap();
        let text = |more: &str| {
            format!("[proxy]\nallow = \"::/0\"\nusers_file = \"{}\"\n{more}", users.display())
        };
        fs::set_permissions(&users, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(parse(&text("")).unwrap_err().contains("chmod 600"));
        assert!(
            parse(&text("allow_open_key_files = true\n")).unwrap().config.clients.users.is_some()
        );
        fs::set_permissions(&users, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(parse(&text("")).unwrap().config.clients.users.is_some());
        fs::write(&users, "ann\n").unwrap();
        assert!(parse(&text("")).unwrap_err().contains("line 1"));
        fs::remove_file(&users).unwrap();
        assert!(parse(&text("")).unwrap_err().contains("cannot read"));
        fs::remove_dir_all(folder).unwrap();
    }
}
