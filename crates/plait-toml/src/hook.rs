//! `[[hook]]` of a gateway's file: what is run, or told, when something happens.

use std::fmt;
use std::time::Duration;

use crate::form::{List, Maybe, Parsed, Time, Whole};
use crate::option::{Field, Options};
use crate::problem::Problem;
use crate::section::Section;

/// Something that happens to a gateway.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum HookEvent {
    /// A path carries data.
    PathUp,
    /// A path does not any more.
    PathDown,
    /// There is a bond with a peer.
    BondUp,
    /// There is none any more.
    BondDown,
    /// A path has used up its quota.
    QuotaSpent,
    /// There is one more peer.
    PeerNew,
}

impl HookEvent {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::PathUp,
        Self::PathDown,
        Self::BondUp,
        Self::BondDown,
        Self::QuotaSpent,
        Self::PeerNew,
    ];

    /// Its name in the file.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PathUp => "path-up",
            Self::PathDown => "path-down",
            Self::BondUp => "bond-up",
            Self::BondDown => "bond-down",
            Self::QuotaSpent => "quota-spent",
            Self::PeerNew => "peer-new",
        }
    }

    fn parse(text: &str) -> Result<Self, Problem> {
        Self::ALL.into_iter().find(|event| event.name() == text).ok_or_else(|| {
            let known = Self::ALL.map(Self::name).join(", ");
            Problem::new(format!("\"{text}\" is no event"), format!("known here: {known}"))
        })
    }
}

impl fmt::Display for HookEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// `[[hook]]`: what is run, or told, when something happens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hook {
    /// At which events.
    pub on: Vec<HookEvent>,
    /// A program and its arguments.
    pub command: Vec<String>,
    /// Where a POST request goes.
    pub webhook: Option<String>,
    /// The longest that either may take.
    pub timeout: Duration,
    /// Events in a minute, beyond which they are left out.
    pub per_minute_max: u16,
}

impl Default for Hook {
    fn default() -> Self {
        Self {
            on: Vec::new(),
            command: Vec::new(),
            webhook: None,
            timeout: Duration::from_secs(10),
            per_minute_max: 10,
        }
    }
}

/// The options of `[[hook]]`.
pub const HOOK: Options<Hook> = &[
    &Field::new(
        "on",
        "at which events",
        List {
            told: "list of `path-up`, `path-down`, `bond-up`, `bond-down`, `quota-spent` and \
                   `peer-new`",
            read: HookEvent::parse,
        },
        |hook: &mut Hook| &mut hook.on,
    )
    .absent("required"),
    &Field::new(
        "command",
        "a program by its whole path, and its arguments; run without a shell",
        List { told: "text or list", read: |text| Ok(text.to_owned()) },
        |hook: &mut Hook| &mut hook.command,
    )
    .absent("one of these two"),
    &Field::new(
        "webhook",
        "where the event is sent by a POST request, as JSON",
        Maybe(Parsed { told: "`http://host/path`", read: webhook }),
        |hook: &mut Hook| &mut hook.webhook,
    )
    .absent("one of these two"),
    &Field::new(
        "timeout_s",
        "the longest that either may take; a command is ended then",
        Time::seconds(1, 600),
        |hook: &mut Hook| &mut hook.timeout,
    ),
    &Field::new(
        "per_minute_max",
        "events in a minute beyond which they are left out, and counted",
        Whole::new(1, 1000, ""),
        |hook: &mut Hook| &mut hook.per_minute_max,
    ),
];

fn webhook(text: &str) -> Result<String, Problem> {
    let host = text.strip_prefix("http://").and_then(|rest| rest.split('/').next());
    let is_sound = |host: &str| !host.is_empty() && !host.contains(char::is_whitespace);
    if host.is_some_and(is_sound) && text.chars().all(|c| c.is_ascii_graphic()) {
        return Ok(text.to_owned());
    }
    let problem = format!("\"{text}\" is not the URL of a webhook");
    Err(Problem::new(problem, "write it as in \"http://127.0.0.1:8080/plait\"; without TLS"))
}

/// Notes options of a `[[hook]]` that contradict each other.
pub fn check(section: &Section<'_>, hook: &Hook) {
    const EXAMPLE: &str = "on = [\"path-down\", \"path-up\"]";
    if !section.holds_any(&["on"]) {
        section.missing("on", EXAMPLE);
    } else if hook.on.is_empty() && section.is_right_so_far() {
        let help = format!("write for what it is, as in `{EXAMPLE}`");
        section.problem("on", Problem::new("the hook is for no event", help));
    }
    if !section.holds_any(&["command", "webhook"]) {
        let help = "add `command = [\"/usr/local/bin/told\"]` or `webhook = \"http://…\"`";
        section.problem("", Problem::new("the hook neither runs nor tells anything", help));
    }
    if hook.command.first().is_some_and(|program| !program.starts_with('/')) {
        let help = "name it from the root, as in \"/usr/local/bin/told\"";
        section.problem("command", Problem::new("the program has no whole path", help));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::round_trip;

    proptest::proptest! {
        #[test]
        fn what_is_written_is_read_again(seed: u64) {
            round_trip(seed, HOOK, Hook::default());
        }
    }

    #[test]
    fn only_plain_urls_are_webhooks() {
        for sound in ["http://a", "http://127.0.0.1:8080/plait?x=1", "http://[::1]:1/"] {
            assert_eq!(webhook(sound).unwrap(), sound);
        }
        for text in ["", "http://", "https://a/", "http:///x", "http://a b/", "http://a/ü"] {
            assert!(webhook(text).is_err(), "{text}");
        }
    }
}
