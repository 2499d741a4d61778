//! `[[beside]]` of a gateway's file: traffic that goes beside the bond, over a bare link.

use crate::form::{List, Maybe, Parsed, Words};
use crate::forward::Protocols;
use crate::option::{Field, Options};
use crate::problem::Problem;
use crate::proxy::Ports;
use crate::section::Section;
use crate::value::{Cidr, DscpList, LinkName};

/// Longest name in DNS (RFC 1035 §2.3.4), and longest part of one, in bytes.
const DOMAIN_BYTES_MAX: usize = 253;
const LABEL_BYTES_MAX: usize = 63;

/// What becomes of a rule's traffic while its link is down.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Otherwise {
    /// The bond carries it.
    #[default]
    Bond,
    /// Nobody does.
    Block,
}

impl Otherwise {
    const WORDS: &[(&str, Self)] = &[("bond", Self::Bond), ("block", Self::Block)];
}

/// `[[beside]]`: what goes beside the bond.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Beside {
    /// From whom.
    pub sources: Vec<Cidr>,
    /// To whom.
    pub destinations: Vec<Cidr>,
    /// To whom, by name.
    pub domains: Vec<String>,
    /// By which protocol.
    pub protocol: Option<Protocols>,
    /// To which ports.
    pub ports: Vec<Ports>,
    /// With which DSCP codepoints.
    pub dscp: Vec<u8>,
    /// The link; the best one unless the file says otherwise.
    pub over: Option<LinkName>,
    /// What becomes of it while the link is down.
    pub otherwise: Option<Otherwise>,
}

/// The options that say what goes beside the bond.
const SAID: [&str; 6] = ["sources", "destinations", "domains", "protocol", "ports", "dscp"];

/// The options of `[[beside]]`.
pub const BESIDE: Options<Beside> = &[
    &Field::new(
        "sources",
        "from these networks: `192.168.7.20`, `fd99:7::/64`",
        List { told: "text or list", read: Cidr::prefix },
        |beside: &mut Beside| &mut beside.sources,
    )
    .absent("everybody"),
    &Field::new(
        "destinations",
        "to these networks",
        List { told: "text or list", read: Cidr::prefix },
        |beside: &mut Beside| &mut beside.destinations,
    )
    .absent("everywhere"),
    &Field::new(
        "domains",
        "to the addresses that the host's resolver has for these names, beside those of \
         `destinations`",
        List { told: "text or list", read: domain },
        |beside: &mut Beside| &mut beside.domains,
    ),
    &Field::new(
        "protocol",
        "by this protocol",
        Maybe(Words(&[("tcp", Protocols::Tcp), ("udp", Protocols::Udp)])),
        |beside: &mut Beside| &mut beside.protocol,
    )
    .absent("any; with `ports` TCP and UDP"),
    &Field::new(
        "ports",
        "to these ports, as in `443` or `5060-5080`",
        List { told: "text or list", read: Ports::parse },
        |beside: &mut Beside| &mut beside.ports,
    )
    .absent("all"),
    &Field::new(
        "dscp",
        "with one of these DSCP codepoints, as in `[\"ef\", 46]`",
        DscpList,
        |beside: &mut Beside| &mut beside.dscp,
    )
    .absent("any"),
    &Field::new(
        "over",
        "the link: a path's name, an interface, or `mac:…` or `bus:…` as for `link` of `[[path]]`",
        Maybe(Parsed { told: "name", read: LinkName::parse }),
        |beside: &mut Beside| &mut beside.over,
    )
    .absent("the best bare link"),
    &Field::new(
        "else",
        "what becomes of it while that link is down: the `bond` carries it, or nobody does",
        Maybe(Words(Otherwise::WORDS)),
        |beside: &mut Beside| &mut beside.otherwise,
    )
    .absent("`bond`"),
];

/// A name of DNS, in small letters and without the final dot.
fn domain(text: &str) -> Result<String, Problem> {
    let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    let is_label = |label: &str| {
        (1..=LABEL_BYTES_MAX).contains(&label.len())
            && label.chars().all(allowed)
            && !label.starts_with('-')
    };
    let is_address = name.parse::<std::net::IpAddr>().is_ok();
    if name.len() <= DOMAIN_BYTES_MAX && name.split('.').all(is_label) && !is_address {
        return Ok(name);
    }
    let help = match text {
        _ if text.starts_with("*.") => "write each name: the resolver cannot be asked for all",
        _ if is_address => "write an address among `destinations`",
        _ => "write it as in \"bank.example\"; other letters in their form for DNS (xn--…)",
    };
    Err(Problem::new(format!("\"{text}\" is not a name that the resolver can be asked for"), help))
}

/// Notes a rule that says nothing.
pub fn check_beside(section: &Section<'_>, beside: &Beside) {
    let Beside { sources, destinations, domains, ports, dscp, .. } = beside;
    if !section.holds_any(&SAID) {
        let help = "say what goes beside the bond, as in `destinations = [\"203.0.113.0/24\"]`";
        section.problem("", Problem::new("the rule is for nothing", help));
    }
    for option in SAID {
        let is_empty = match option {
            "sources" => sources.is_empty(),
            "destinations" => destinations.is_empty(),
            "domains" => domains.is_empty(),
            "ports" => ports.is_empty(),
            "dscp" => dscp.is_empty(),
            _ => false,
        };
        if is_empty && section.holds_any(&[option]) && section.is_right_so_far() {
            let help = "remove it, or write what is meant: without it the rule is for all";
            section.problem(option, Problem::new("the list is empty", help));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::round_trip;

    proptest::proptest! {
        #[test]
        fn what_is_written_is_read_again(seed: u64) {
            round_trip(seed, BESIDE, Beside::default());
        }
    }

    #[test]
    fn only_names_are_domains() {
        for (text, name) in [
            ("bank.example", "bank.example"),
            ("Bank.Example.", "bank.example"),
            ("_sip.x", "_sip.x"),
        ] {
            assert_eq!(domain(text).unwrap(), name);
        }
        for text in ["", ".", "a..b", "*.bank.example", "192.0.2.1", "bänk.example", "-a.b", "a b"]
        {
            assert!(domain(text).is_err(), "{text}");
        }
    }
}
