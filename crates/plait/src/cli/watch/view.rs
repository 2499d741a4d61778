//! The screen's content as lines of text, for any width. Pure: what is drawn depends only on the
//! model, the time and the terminal's width.

use std::time::Duration;

use plait_proto::resequencer::{Released, ResequencerStats};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::glyphs::{Look, Mood, state_word};
use super::layout::{self, Columns, cut, wrap};
use super::model::{Gateway, Model, Path, Peer, Rates};
use crate::cli::format::{self, milliseconds, path_traits};

/// What the keys do, and what the figures mean.
const HELP: [&str; 5] = [
    "q ends, ? hides this help; arrows, PgUp, PgDn and Home move; Ctrl-L draws anew",
    "out, in: bit/s at the IP layer since the last answer; rtt, jitter: ms; loss: % of late",
    "share: of the bond's bytes in both directions; last minute: both directions, each picture \
     scaled to its own highest",
    "standby: answers, used when no other path carries; unused: answers, not scheduled now",
    "waiting: packets at this end that miss one before them; released: why the wait of others \
     ended since the last answer",
];

/// Characters of a key that are enough to tell peers apart.
const KEY_MIN: usize = 8;

/// Everything, top to bottom. `now` is the time since the start of watching.
pub(super) fn lines(model: &Model, now: Duration, width: usize, look: Look) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    if let Some(failure) = &model.failure {
        let waited = format::duration(now.saturating_sub(failure.since).as_secs());
        let text = format!("{} {}", look.sign(Mood::Bad), failure.what);
        push_wrapped(&mut lines, &text, width, 0, look.style(Mood::Bad).patch(Look::bold()));
        let text = format!("asked again every interval, for {waited} now");
        push_wrapped(&mut lines, &text, width, 2, Style::new());
    }
    let Some(gateway) = &model.gateway else {
        if model.failure.is_none() {
            lines.push(Line::from("asking the gateway"));
        }
        return lines;
    };
    if model.failure.is_some() {
        let ago = format::duration(now.saturating_sub(gateway.at).as_secs());
        push_wrapped(&mut lines, &format!("what it said {ago} ago:"), width, 0, Style::new());
    }
    let told = lines.len();
    push_wrapped(&mut lines, &gateway_text(model, gateway), width, 0, Look::bold());
    for peer in &gateway.peers {
        lines.push(Line::default());
        push_peer(&mut lines, peer, now, width, look);
    }
    if gateway.peers.is_empty() {
        lines.push(Line::from("no peers"));
    }
    push_drops(&mut lines, gateway, width);
    if model.failure.is_some() {
        // Old figures are dimmed; the failure above them is not.
        for line in lines.iter_mut().skip(told) {
            *line = std::mem::take(line).patch_style(Look::dim());
        }
    }
    lines
}

/// The explanation of keys and figures.
pub(super) fn help(width: usize) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for text in HELP {
        push_wrapped(&mut lines, text, width, 0, Style::new());
    }
    lines
}

fn gateway_text(model: &Model, gateway: &Gateway) -> String {
    let restarts = match model.restarts {
        0 => String::new(),
        1 => " (restarted meanwhile)".into(),
        n => format!(" (restarted {n} times meanwhile)"),
    };
    let uptime = format::duration(gateway.uptime_s);
    format!("{}, up for {uptime}{restarts}, key {}", gateway.tun, gateway.public_key)
}

fn push_peer(lines: &mut Vec<Line<'static>>, peer: &Peer, now: Duration, width: usize, look: Look) {
    let status = &peer.status;
    let mood = Mood::of_peer(&status.state);
    let session = match (status.session_age_s, &status.cipher) {
        (Some(age), Some(cipher)) => format!("  {}, {cipher}", format::duration(age)),
        _ => "  no session".into(),
    };
    let scheduler = format!(", {}", status.scheduler);
    let mut room = width.saturating_sub(2 + 5 + 2 + status.state.len());
    let mut facts = String::new();
    for fact in [session, scheduler] {
        let needed = fact.chars().count() + KEY_MIN;
        if fact.len() > 2 && needed <= room {
            room -= fact.chars().count();
            facts += &fact;
        }
    }
    // As much of the key as fits, but enough to tell peers apart.
    let key = cut(&status.public_key, room.max(KEY_MIN), look.ellipsis());
    lines.push(Line::from(vec![
        Span::styled(format!("{} ", look.sign(mood)), look.style(mood)),
        Span::styled(format!("peer {key}  "), Look::bold()),
        Span::styled(status.state.clone(), look.style(mood)),
        Span::raw(facts),
    ]));
    for line in format::contact_lines(status, peer.contact.as_ref()) {
        push_wrapped(lines, &line, width, 2, Style::new());
    }
    push_paths(lines, peer, now, width, look);
    if status.resequencer != ResequencerStats::default() {
        push_resequencer(lines, peer, width);
    }
}

fn push_paths(
    lines: &mut Vec<Line<'static>>,
    peer: &Peer,
    now: Duration,
    width: usize,
    look: Look,
) {
    if peer.paths.is_empty() {
        lines.push(Line::from("  no paths"));
        return;
    }
    let names = peer.paths.iter().map(|path| path.status.name.chars().count());
    let columns = Columns::fit(width, names.max().unwrap_or(0));
    lines.push(Line::styled(headings(&columns), Look::dim()));
    for path in &peer.paths {
        lines.push(path_line(path, &columns, now, look));
        push_reason(lines, path, width);
    }
    lines.push(total_line(peer, &columns, now, look));
}

fn headings(columns: &Columns) -> String {
    let mut text = format!("  {:<w$} {:<v$}", "path", "state", w = columns.name, v = layout::STATE);
    let optional = [
        (true, "out", layout::RATE),
        (columns.incoming, "in", layout::RATE),
        (columns.rtt, "rtt ms", layout::RTT),
        (columns.jitter, "jitter", layout::JITTER),
        (columns.loss, "loss %", layout::LOSS),
        (columns.percent, "share", layout::PERCENT),
    ];
    for (_, heading, width) in optional.iter().filter(|(is_shown, ..)| *is_shown) {
        text.push_str(&format!(" {heading:>width$}"));
    }
    if columns.bar > 0 {
        text.push_str(&" ".repeat(columns.bar + 1));
    }
    if columns.spark > 0 {
        text.push_str(if columns.spark >= 11 { " last minute" } else { " 1 min" });
    }
    text
}

fn path_line(path: &Path, columns: &Columns, now: Duration, look: Look) -> Line<'static> {
    let status = &path.status;
    let mood = Mood::of_path(status);
    let name = cut(&status.name, columns.name, look.ellipsis());
    let word = state_word(status);
    let share = path.share.map_or_else(|| "-".into(), |share| format!("{:.0} %", share * 100.0));
    let figures = rates_text(path.rates, columns)
        + &cell(columns.rtt, &milliseconds(status.srtt_us), layout::RTT)
        + &cell(columns.jitter, &milliseconds(status.jitter_us), layout::JITTER)
        + &cell(columns.loss, &format::percent(status.loss_ratio), layout::LOSS)
        + &cell(columns.percent, &share, layout::PERCENT);
    let mut spans = vec![
        Span::styled(format!("{} ", look.sign(mood)), look.style(mood)),
        Span::styled(format!("{name:<w$} ", w = columns.name), Look::bold()),
        Span::styled(format!("{word:<w$}", w = layout::STATE), look.style(mood)),
        Span::raw(figures),
    ];
    if columns.bar > 0 {
        let bar = format!(" {}", look.bar(path.share.unwrap_or(0.0), columns.bar));
        spans.push(Span::styled(bar, look.picture_style()));
    }
    if columns.spark > 0 {
        let picture = look.sparkline(&path.history.columns(now, columns.spark));
        spans.push(Span::styled(format!(" {picture}"), look.picture_style()));
    }
    Line::from(spans)
}

fn total_line(peer: &Peer, columns: &Columns, now: Duration, look: Look) -> Line<'static> {
    let label = format!("  {:<w$} {:<v$}", "all", "", w = columns.name, v = layout::STATE);
    let mut text = rates_text(peer.rates, columns);
    let blanks = [
        (columns.rtt, layout::RTT),
        (columns.jitter, layout::JITTER),
        (columns.loss, layout::LOSS),
        (columns.percent, layout::PERCENT),
        (columns.bar > 0, columns.bar),
    ];
    for (is_shown, width) in blanks {
        text.push_str(&cell(is_shown, "", width));
    }
    let mut spans = vec![Span::styled(label, Look::bold()), Span::raw(text)];
    if columns.spark > 0 {
        let picture = look.sparkline(&peer.history.columns(now, columns.spark));
        spans.push(Span::styled(format!(" {picture}"), look.picture_style()));
    }
    Line::from(spans)
}

fn rates_text(rates: Option<Rates>, columns: &Columns) -> String {
    let short = |rate: fn(Rates) -> f64| rates.map_or_else(|| "-".into(), |r| short_rate(rate(r)));
    cell(true, &short(|rates| rates.out_bps), layout::RATE)
        + &cell(columns.incoming, &short(|rates| rates.in_bps), layout::RATE)
}

fn cell(is_shown: bool, text: &str, width: usize) -> String {
    if is_shown { format!(" {text:>width$}") } else { String::new() }
}

/// A rate in at most six characters, in bits per second with a decimal prefix.
fn short_rate(bps: f64) -> String {
    let (value, prefix) = match bps {
        bps if bps < 0.5 => return "0".into(),
        bps if bps < 999_500.0 => (bps / 1e3, 'k'),
        bps if bps < 999_500_000.0 => (bps / 1e6, 'M'),
        bps => (bps / 1e9, 'G'),
    };
    if value < 99.95 { format!("{value:.1} {prefix}") } else { format!("{value:.0} {prefix}") }
}

/// The reason in full, then as many details without a column as fit on its line.
fn push_reason(lines: &mut Vec<Line<'static>>, path: &Path, width: usize) {
    const INDENT: usize = 4;
    let first = lines.len();
    push_wrapped(lines, &path.status.reason, width, INDENT, Look::dim());
    let mut separator = "; ";
    if lines.len() == first {
        lines.push(Line::raw(" ".repeat(INDENT)));
        separator = "";
    }
    let Some(last) = lines.last_mut() else { return };
    for one in path_traits(&path.status) {
        if last.width() + separator.len() + one.chars().count() <= width {
            last.push_span(Span::styled(format!("{separator}{one}"), Look::dim()));
            separator = ", ";
        }
    }
}

fn push_resequencer(lines: &mut Vec<Line<'static>>, peer: &Peer, width: usize) {
    let stats = &peer.status.resequencer;
    let mut now = format!(
        "waiting {} packets, {}",
        stats.waiting_now_packets,
        format::bytes(stats.waiting_now_bytes)
    );
    if let Some(released) = peer.released {
        now.push_str(&format!("; released: {}", released_text(released)));
    }
    push_wrapped(lines, &now, width, 2, Style::new());
    let total = format!(
        "since start: {}; given up {}, duplicates {}",
        released_text(stats.released),
        stats.given_up,
        stats.duplicates
    );
    push_wrapped(lines, &total, width, 2, Look::dim());
}

/// The reasons that occurred.
fn released_text(released: Released) -> String {
    let reasons = [
        (released.in_order, "in order"),
        (released.known_lost, "known lost"),
        (released.timer, "timer"),
        (released.overflow, "overflow"),
    ];
    let texts: Vec<_> = reasons
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, reason)| format!("{count} {reason}"))
        .collect();
    if texts.is_empty() { "none".into() } else { texts.join(", ") }
}

fn push_drops(lines: &mut Vec<Line<'static>>, gateway: &Gateway, width: usize) {
    if gateway.drops.is_empty() {
        return;
    }
    let texts = gateway.drops.iter().map(|(reason, count)| match gateway.new_drops(reason) {
        0 => format!("{reason} {count}"),
        new => format!("{reason} {count} (+{new})"),
    });
    let text =
        format!("drops since start (+ while watching): {}", texts.collect::<Vec<_>>().join(", "));
    lines.push(Line::default());
    push_wrapped(lines, &text, width, 0, Style::new());
}

/// Text over as many lines as it takes; the first is indented by `indent`, the others by two more.
fn push_wrapped(
    lines: &mut Vec<Line<'static>>,
    text: &str,
    width: usize,
    indent: usize,
    style: Style,
) {
    let parts = wrap(text, width.saturating_sub(indent + 2).max(10));
    for (index, part) in parts.into_iter().enumerate() {
        let space = " ".repeat(if index == 0 { indent } else { indent + 2 });
        lines.push(Line::from(vec![Span::raw(space), Span::styled(part, style)]));
    }
}

#[cfg(test)]
mod tests;
