//! `plait watch`: a running gateway, live.
//!
//! - [`model`]: rates from two answers in a row; [`history`]: the last minute of a rate
//! - [`view`]: the screen's content as lines, with [`layout`] and [`glyphs`]; [`screen`]: terminal
//!   and keys
//! - [`report`]: status lines and JSON Lines where stdout is not a terminal

mod glyphs;
mod history;
mod layout;
mod model;
mod report;
mod screen;
#[cfg(test)]
pub(super) mod testing;
mod view;

use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;

use self::glyphs::Look;
use self::model::Model;
use super::Outcome;
use super::control::{self, StatusAnswer, Target};
use crate::output::Style;

const AFTER_HELP: &str = "\
Examples:
  plait watch
  plait watch gateway.toml --interval 0.5
  plait watch --count 60 | grep lte
  plait watch --json | jq -c '.peers[]?.paths[] | {name, out_bps, in_bps, share}'

On a terminal q ends and ? explains the figures. Elsewhere a line is printed for each peer and each
path, the first after one interval.

Exit codes:
  0  ended; with --count: every bond is up at the last tick
  1  with --count: a bond is not up at the last tick, or the gateway does not answer
  2  an error; it is explained on stderr";

/// Watch a running gateway live: rates, round-trip times, loss, shares, what waits
///
/// Asks the gateway over its control socket again and again. Without an argument the only gateway
/// of this machine is meant. A gateway that goes away is waited for.
#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Args {
    #[command(flatten)]
    target: Target,
    /// Seconds from one question to the next, 0.1 to 3600
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = interval)]
    interval: Duration,
    /// End after this many ticks
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Print JSON Lines, one record per tick, also on a terminal
    #[arg(long)]
    json: bool,
}

fn interval(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "expected a number of seconds".to_owned())?;
    if (0.1..=3600.0).contains(&seconds) {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err("expected 0.1 to 3600 seconds".into())
    }
}

/// The result of one request.
#[derive(Debug)]
struct Tick {
    /// Time of the answer, since the start of watching.
    at: Duration,
    answer: Result<Box<StatusAnswer>, String>,
}

impl Tick {
    fn enter(self, model: &mut Model) {
        match self.answer {
            Ok(answer) => model.answered(self.at, *answer),
            Err(what) => model.failed(self.at, what),
        }
    }
}

pub(super) fn run(args: &Args) -> anyhow::Result<Outcome> {
    let socket = args.target.socket()?;
    let start = Instant::now();
    let first = first_tick(&socket, start)?;
    let mut model = Model::default();
    first.enter(&mut model);
    let (sender, ticks) = sync_channel(1);
    let (interval, count) = (args.interval, args.count.unwrap_or(u64::MAX));
    thread::Builder::new()
        .name("asks".into())
        .spawn(move || keep_asking(&socket, start, interval, count, &sender))
        .context("cannot start a thread")?;
    if is_live_screen(args.json) {
        let look = Look::from_environment(Style::for_stdout().has_colour());
        screen::run(&mut model, &ticks, start, look)?;
    } else {
        print(&mut model, &ticks, args.json)?;
    }
    Ok(if args.count.is_none() || model.all_up() { Outcome::Good } else { Outcome::No })
}

/// A terminal that can move its cursor.
fn is_live_screen(json: bool) -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb" || term.is_empty());
    !json && !is_dumb && io::stdout().is_terminal()
}

/// The first request. Waiting does not help against missing rights, so they end the program.
fn first_tick(socket: &Path, start: Instant) -> anyhow::Result<Tick> {
    match control::ask(socket) {
        Err(cause) if cause.kind() == io::ErrorKind::PermissionDenied => {
            Err(control::explain(socket, cause).into())
        }
        asked => Ok(tick(socket, start, asked)),
    }
}

fn tick(socket: &Path, start: Instant, asked: io::Result<String>) -> Tick {
    let answer = asked
        .map_err(|cause| control::explain(socket, cause))
        .and_then(|text| StatusAnswer::parse(&text, socket))
        .map(Box::new)
        .map_err(|error| format!("{:#}", anyhow::Error::from(error)));
    Tick { at: start.elapsed(), answer }
}

/// Asks `count` times, at whole intervals since the start, until nobody listens.
fn keep_asking(
    socket: &Path,
    start: Instant,
    interval: Duration,
    count: u64,
    ticks: &SyncSender<Tick>,
) {
    let mut due = interval;
    for _ in 0..count {
        thread::sleep(due.saturating_sub(start.elapsed()));
        if ticks.send(tick(socket, start, control::ask(socket))).is_err() {
            return;
        }
        // A gateway slower than the interval gets one request at a time.
        while due <= start.elapsed() {
            due += interval;
        }
    }
}

/// Prints ticks as they come.
fn print(model: &mut Model, ticks: &Receiver<Tick>, json: bool) -> anyhow::Result<()> {
    for tick in ticks {
        let at = tick.at;
        tick.enter(model);
        let text = if json { report::json(model, at)? } else { report::text(model, at) };
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        stdout.flush()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_is_some_time() {
        assert_eq!(interval("0.5"), Ok(Duration::from_millis(500)));
        for wrong in ["0", "nan", "-1", "inf", "4000", "1s"] {
            assert!(interval(wrong).is_err(), "{wrong}");
        }
    }
}
