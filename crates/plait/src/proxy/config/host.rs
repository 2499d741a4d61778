//! What a file says of the host around a proxy: `[[path]]` and `[endpoints]`, `[rules]`.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use plait_proto::config::Prefix;
use plait_proxy::config::WayIn;
use plait_toml::gateway::{self, PATH, check_path};
use plait_toml::proxy::{self as file, ENDPOINTS, PROXY, RULES, SOCKET};
use plait_toml::{Problem, Problems, Section, common, option};

use super::ProxyConfig;
use crate::advice::Advised;
use crate::config::{self, Cidr, ConfigErrors, user_of};
use crate::proxy::endpoints::{EndpointLink, EndpointsConfig, Role};
use crate::proxy::rules::{self, Kind, Own, RulesConfig};

/// Links that MPTCP can use: the kernel takes as many endpoints.
const LINKS_MAX: usize = 8;

/// Whether a file says anything of links, and of rules.
///
/// # Errors
/// It cannot be read.
pub(crate) fn has_links_and_rules(file: &Path) -> Result<(bool, bool), ConfigErrors> {
    let document = config::read(file)?;
    let problems = Problems::default();
    let mut top = config::top(&problems, file, &document);
    Ok((!top.many("path").is_empty(), top.single("rules").is_present()))
}

/// Reads what `plait proxy endpoints` needs from any file with `[[path]]`: a proxy's, a gateway's,
/// or one of its own.
///
/// # Errors
/// Everything that is wrong, each with file, line, option and remedy.
pub(crate) fn load_endpoints(file: &Path) -> Result<EndpointsConfig, ConfigErrors> {
    let document = config::read(file)?;
    let folder = file.parent().unwrap_or(Path::new(""));
    let problems = Problems::default();
    let mut top = config::top(&problems, file, &document);
    let paths = super::bounded(&mut top, "path", LINKS_MAX);
    if paths.is_empty() {
        let help = "add a [[path]] with `interface = \"eth0\"` for each link, the preferred first";
        top.problem("path", Problem::new("there is no link", help));
    }
    let links = paths.into_iter().map(|section| EndpointLink::of(&path(section))).collect();
    let mut said = file::Endpoints::default();
    let mut section = top.single("endpoints");
    option::read(ENDPOINTS, &mut section, &mut said);
    section.finish();
    let mut proxy = file::Proxy::default();
    option::read(SOCKET, &mut top.single("proxy"), &mut proxy);
    let role = match said.role {
        file::Role::Client => Role::Client,
        file::Role::Server => Role::Server { signal: false },
        file::Role::Announcer => Role::Server { signal: true },
    };
    let state =
        common::state_file_of(said.state_file.as_deref(), &format!("{}-endpoints", proxy.name));
    problems.finish(Some(EndpointsConfig {
        links,
        role,
        table: said.table,
        state_file: folder.join(state),
    }))
}

fn path(mut section: Section<'_>) -> gateway::Path {
    let mut said = gateway::Path::default();
    option::read(PATH, &mut section, &mut said);
    check_path(&section, &said);
    section.finish();
    said
}

/// Reads what `plait proxy rules` needs: one for each listener that the kernel leads to.
///
/// # Errors
/// As [`load_endpoints`]; no such listener; own programs without a user to tell the proxy by.
pub(crate) fn load_rules(file: &Path) -> anyhow::Result<Vec<RulesConfig>> {
    let proxy = ProxyConfig::load(file)?;
    let document = config::read(file)?;
    let problems = Problems::default();
    let mut top = config::top(&problems, file, &document);
    let mut said = file::Rules::default();
    let mut section = top.single("rules");
    option::read(RULES, &mut section, &mut said);
    section.finish();
    let mut of_proxy = file::Proxy::default();
    option::read(PROXY, &mut top.single("proxy"), &mut of_proxy);
    problems.finish(Some(()))?;
    let user = user_of(proxy.user.as_ref())?.map(|user| Own::User(user.uid));
    let own = user.or(said.own_mark.map(Own::Mark)).filter(|_| said.own_programs);
    if said.own_programs && own.is_none() {
        let message = "own_programs needs a user, by whom the proxy itself is told from others";
        let help = "add `user = \"plait\"` under [proxy], or remove `own_programs`";
        return Err(Advised::new(message, help).into());
    }
    let transparent = proxy.config.listeners.iter().filter(|one| one.way.is_transparent());
    let rules: Vec<RulesConfig> = transparent
        .map(|listener| {
            let port = listener.address.port();
            let name = format!("{}_{port}", proxy.name);
            RulesConfig {
                kind: match listener.way {
                    WayIn::Tproxy => Kind::Tproxy { mark: rules::MARK, table: rules::TABLE },
                    _ => Kind::Redirect { own_but: own },
                },
                port,
                interfaces: said.interfaces.clone(),
                ports: said
                    .ports
                    .iter()
                    .map(|ports| -> RangeInclusive<u16> { ports.0.clone() })
                    .collect(),
                clients: prefixes(&of_proxy.allow),
                exempt: prefixes(&said.exempt),
                state_file: PathBuf::from(common::state_file_of(None, &format!("{name}-rules"))),
                name,
            }
        })
        .collect();
    if rules.is_empty() {
        let message = format!("{}: no listener is transparent", file.display());
        let help = "add a [[listen]] with `way = \"redirect\"` or `way = \"tproxy\"`";
        return Err(Advised::new(message, help).into());
    }
    Ok(rules)
}

fn prefixes(all: &[Cidr]) -> Vec<Prefix> {
    all.iter().map(|cidr| Prefix::from(*cidr)).collect()
}
