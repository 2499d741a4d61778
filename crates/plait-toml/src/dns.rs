//! `[dns]` of a gateway's file: name servers that the host asks through the bond.

use std::fmt;
use std::net::IpAddr;

use crate::form::List;
use crate::option::{Field, Options};
use crate::problem::Problem;
use crate::section::Section;

/// Name servers that resolv.conf(5) knows.
const SERVERS_MAX: usize = 3;
const DOMAINS_MAX: usize = 16;
/// RFC 1035 section 2.3.4, without the final dot.
const DOMAIN_BYTES_MAX: usize = 253;
const LABEL_BYTES_MAX: usize = 63;

/// A domain whose names are asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Domain(String);

impl Domain {
    /// All names.
    pub fn root() -> Self {
        Self(".".to_owned())
    }

    /// Whether it holds all names.
    pub fn is_root(&self) -> bool {
        self.0 == "."
    }

    /// Reads `.`, `example.net` or `lan`.
    ///
    /// # Errors
    ///
    /// It is no domain.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        if text == "." {
            return Ok(Self::root());
        }
        let name = text.strip_suffix('.').unwrap_or(text);
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let is_label = |label: &str| {
            !label.is_empty()
                && label.len() <= LABEL_BYTES_MAX
                && !label.starts_with('-')
                && label.chars().all(is_plain)
        };
        if name.len() > DOMAIN_BYTES_MAX || !name.split('.').all(is_label) {
            let help = "write it as in \"example.net\", or \".\" for all names";
            return Err(Problem::new(format!("\"{text}\" is no domain"), help));
        }
        Ok(Self(name.to_ascii_lowercase()))
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// `[dns]`: name servers that the host asks through the bond.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Dns {
    /// The servers, the first preferred.
    pub servers: Vec<IpAddr>,
    /// Whose names they are asked for; none stands for all.
    pub domains: Vec<Domain>,
}

/// The options of `[dns]`.
pub const DNS: Options<Dns> = &[
    &Field::new(
        "servers",
        "the name servers, up to 3, the first preferred",
        List { told: "IP address or list", read: server },
        |dns: &mut Dns| &mut dns.servers,
    )
    .absent("required"),
    &Field::new(
        "domains",
        "the domains for whose names they are asked, up to 16; `.` stands for all. Others than \
         `.` need systemd-resolved or openresolv",
        List { told: "text or list", read: Domain::parse },
        |dns: &mut Dns| &mut dns.domains,
    )
    .absent("`.`"),
];

fn server(text: &str) -> Result<IpAddr, Problem> {
    let is_usable = |address: &IpAddr| !address.is_unspecified() && !address.is_multicast();
    text.parse().ok().filter(is_usable).ok_or_else(|| {
        let text = format!("\"{text}\" is not the address of a name server");
        Problem::new(text, "write it as in \"1.1.1.1\" or \"2606:4700:4700::1111\"")
    })
}

/// Notes options of `[dns]` that contradict each other.
pub fn check_dns(section: &Section<'_>, dns: &Dns) {
    let note = |option: &str, text: String, help: &str| {
        section.problem(option, Problem::new(text, help));
    };
    for (option, count, limit) in
        [("servers", dns.servers.len(), SERVERS_MAX), ("domains", dns.domains.len(), DOMAINS_MAX)]
    {
        if count > limit {
            note(option, format!("more than {limit} of them"), "write the most important ones");
        }
    }
    if !section.holds_any(&["servers"]) {
        section.missing("servers", "servers = [\"1.1.1.1\", \"2606:4700:4700::1111\"]");
    }
    if !section.is_right_so_far() {
        return;
    }
    if dns.servers.is_empty() {
        note("servers", "there is none".into(), "add one, or remove [dns]");
    }
    if section.holds_any(&["domains"]) && dns.domains.is_empty() {
        note("domains", "there is none".into(), "write \".\" for all names, or remove it");
    }
    if dns.domains.len() > 1 && dns.domains.iter().any(Domain::is_root) {
        note("domains", "\".\" stands for all names already".into(), "write it alone");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::round_trip;

    proptest::proptest! {
        #[test]
        fn what_is_written_is_read_again(seed: u64) {
            round_trip(seed, DNS, Dns::default());
        }

        /// Domains are arguments of programs and words of a file.
        #[test]
        fn a_domain_is_one_plain_word(text in ".{0,80}") {
            if let Ok(domain) = Domain::parse(&text) {
                let word = domain.to_string();
                let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
                proptest::prop_assert!(!word.is_empty() && !word.starts_with('-'));
                proptest::prop_assert!(word.chars().all(is_plain), "{}", word);
            }
        }
    }

    #[test]
    fn domains_are_read() {
        let of = |text| Domain::parse(text).ok().map(|domain| domain.to_string());
        for (text, domain) in [(".", "."), ("Example.net.", "example.net"), ("lan", "lan")] {
            assert_eq!(of(text).as_deref(), Some(domain));
        }
        for text in ["", "..", "a..b", "-a", "a b", "~a", "ü.net", &"a".repeat(64)] {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
