//! `plait path`: the paths of a running gateway, changed without a restart.

use std::io::{self, Write as _};

use toml_edit::Table;

use super::Outcome;
use super::control::{self, NamedTarget};
use super::peer::How;
use super::save::{self, Prepared};
use crate::control::message::{Answer, PathTold, Request, Told};

const AFTER_HELP: &str = "\
Examples:
  plait path list
  plait path down dsl
  plait path up dsl
  plait path standby lte on
  plait path price lte 2 --save
  plait path quota lte 20GB
  plait path quota lte none

A change lasts until the next reload or restart, unless `--save` also writes it to the file.

Exit codes:
  0  done
  2  refused, and nothing has changed; or the gateway does not answer";

const LIST_HELP: &str = "\
Examples:
  plait path list
  plait path list --json | jq '.ok.paths[] | {name, down, price}'

Exit codes:
  0  the list is complete
  2  the gateway does not answer";

const DOWN_HELP: &str = "\
Examples:
  plait path down dsl

At once its packets go over the others; what is on its way still arrives. A second later its socket
is closed, and `plait status` says \"down by command\".

Exit codes:
  0  done
  2  refused, and nothing has changed; or the gateway does not answer";

const CHANGE_HELP: &str = "\
Examples:
  plait path up dsl
  plait path standby lte on
  plait path price lte 2 --save
  plait path quota lte none

Exit codes:
  0  done
  2  refused, and nothing has changed; or the gateway does not answer";

/// Change or list the paths of a running gateway
///
/// Without a restart: bonds and connections go on. A path is named as in `plait status`; one with a
/// wildcard as in the file, with all its links.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    List(List),
    Down(Down),
    Up(Up),
    Standby(Standby),
    Price(Price),
    Quota(Quota),
}

/// List the paths
#[derive(Debug, clap::Args)]
#[command(after_help = LIST_HELP)]
struct List {
    /// Print the answer as it is: one JSON document
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    target: NamedTarget,
}

/// Take a path out
#[derive(Debug, clap::Args)]
#[command(after_help = DOWN_HELP)]
struct Down {
    /// The path's name
    path: String,
    #[command(flatten)]
    how: How,
}

/// Use a path again
#[derive(Debug, clap::Args)]
#[command(after_help = CHANGE_HELP)]
struct Up {
    /// The path's name
    path: String,
    #[command(flatten)]
    how: How,
}

/// Let a path carry data only while no other does
#[derive(Debug, clap::Args)]
#[command(after_help = CHANGE_HELP)]
struct Standby {
    /// The path's name
    path: String,
    /// Whether it stands by
    standby: OnOff,
    #[command(flatten)]
    how: How,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum OnOff {
    On,
    Off,
}

/// Give a path another price class
#[derive(Debug, clap::Args)]
#[command(after_help = CHANGE_HELP)]
struct Price {
    /// The path's name
    path: String,
    /// Its price class; cheaper first
    price: u8,
    #[command(flatten)]
    how: How,
}

/// Give a path another monthly quota
#[derive(Debug, clap::Args)]
#[command(after_help = CHANGE_HELP)]
struct Quota {
    /// The path's name
    path: String,
    /// An amount such as 20GB, or `none`
    quota: String,
    #[command(flatten)]
    how: How,
}

pub(super) fn run(args: Args) -> anyhow::Result<Outcome> {
    match args.action {
        Action::List(list) => list.run(),
        Action::Down(Down { path, how }) => {
            let done = format!("{path} is down");
            change(&how, &path, Request::PathDown { path: path.clone() }, &done, |table| {
                save::set(table, "down", true);
            })
        }
        Action::Up(Up { path, how }) => {
            let done = format!("{path} is used again");
            change(&how, &path, Request::PathUp { path: path.clone() }, &done, |table| {
                if table.contains_key("down") {
                    save::set(table, "down", false);
                }
            })
        }
        Action::Standby(Standby { path, standby, how }) => {
            let standby = standby == OnOff::On;
            let done = format!("{path} {}", if standby { "stands by" } else { "carries data" });
            let request = Request::PathStandby { path: path.clone(), standby };
            change(&how, &path, request, &done, |table| save::set(table, "standby", standby))
        }
        Action::Price(Price { path, price, how }) => {
            let done = format!("{path} has price {price}");
            let request = Request::PathPrice { path: path.clone(), price };
            change(&how, &path, request, &done, |table| {
                save::set(table, "price", i64::from(price));
            })
        }
        Action::Quota(Quota { path, quota, how }) => {
            let done = format!("{path} has quota {quota}");
            let request = Request::PathQuota { path: path.clone(), quota: quota.clone() };
            change(&how, &path, request, &done, |table| set_quota(table, &quota))
        }
    }
}

fn set_quota(table: &mut Table, quota: &str) {
    if quota == "none" {
        table.remove("quota");
        // Without a quota it is an error.
        table.remove("quota_day");
    } else {
        save::set(table, "quota", quota);
    }
}

/// Makes the gateway change a path, and the file say so if that is wanted.
fn change(
    how: &How,
    path: &str,
    request: Request,
    done: &str,
    in_file: impl FnOnce(&mut Table),
) -> anyhow::Result<Outcome> {
    let socket = how.target.socket()?;
    let prepare = || save::prepare(&socket, |file| save::change_path(file, path, in_file));
    let prepared = if how.save { Some(prepare()?) } else { None };
    let told = control::request(&socket, &request)?;
    prepared.map(Prepared::commit).transpose()?;
    let warnings = match told {
        Told::Changed { warnings } => warnings,
        _ => Vec::new(),
    };
    how.tell(done, &warnings)?;
    Ok(Outcome::Good)
}

impl List {
    fn run(self) -> anyhow::Result<Outcome> {
        let told = control::request(&self.target.socket()?, &Request::PathList {})?;
        let mut stdout = io::stdout().lock();
        if self.json {
            writeln!(stdout, "{}", serde_json::to_string(&Answer::from(Ok(told)))?)?;
        } else if let Told::Paths(paths) = &told {
            stdout.write_all(table(paths).as_bytes())?;
        }
        Ok(Outcome::Good)
    }
}

fn table(paths: &[PathTold]) -> String {
    let mut text = String::new();
    for path in paths {
        let quota = match path.quota_bytes {
            Some(bytes) => format!(", quota {} MB", bytes / 1_000_000),
            None => String::new(),
        };
        let standby = if path.standby { ", standby" } else { "" };
        text.push_str(&format!("{}  price {}{standby}{quota}\n", path.name, path.price));
        for link in &path.links {
            text.push_str(&format!("  {}  {}: {}\n", link.interface, link.state, link.reason));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::message::LinkTold;

    #[test]
    fn a_quota_goes_with_its_day() {
        let mut document: toml_edit::DocumentMut =
            "quota = \"1 GB\" # a\nquota_day = 3\nprice = 1\n".parse().unwrap();
        set_quota(document.as_table_mut(), "20 GB");
        assert_eq!(document.to_string(), "quota = \"20 GB\" # a\nquota_day = 3\nprice = 1\n");
        set_quota(document.as_table_mut(), "none");
        assert_eq!(document.to_string(), "price = 1\n");
    }

    #[test]
    fn each_link_stands_below_its_path() {
        let link = LinkTold {
            name: "dsl".into(),
            interface: "eth0".into(),
            state: "down".into(),
            reason: "down by command".into(),
        };
        let path = PathTold {
            name: "dsl".into(),
            price: 2,
            standby: true,
            down: true,
            quota_bytes: Some(20_000_000_000),
            links: vec![link],
        };
        assert_eq!(
            table(&[path]),
            "dsl  price 2, standby, quota 20000 MB\n  eth0  down: down by command\n"
        );
    }
}
