//! The live screen: the terminal, its keys, and what is drawn.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::Rect;
use ratatui::text::{Line, Text};
use ratatui::widgets::Widget as _;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::Tick;
use super::glyphs::Look;
use super::model::Model;
use super::view;
use crate::cli::full_screen::{FullScreen, end_with_terminal};

/// The longest that a key, a signal or an answer waits before it is handled.
const REACTION: Duration = Duration::from_millis(100);
const FOOTER: &str = "q end  ? help";

/// What the user has chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Choice {
    /// Lines scrolled over.
    scroll: usize,
    help: bool,
}

/// What a key asks of the loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Asked {
    End,
    Redraw,
    DrawAnew,
    Nothing,
}

/// Shows ticks until the user, a signal or the terminal ends it, or the ticks end.
pub(super) fn run(
    model: &mut Model,
    ticks: &Receiver<Tick>,
    start: Instant,
    look: Look,
) -> anyhow::Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .context("cannot watch for signals")?;
    }
    end_with_terminal()?;
    let mut screen = FullScreen::open().context("cannot take over the terminal")?;
    let mut choice = Choice::default();
    let mut is_stale = true;
    while !stop.load(Ordering::Relaxed) {
        loop {
            match ticks.try_recv() {
                Ok(tick) => tick.enter(model),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return Ok(()),
            }
            is_stale = true;
        }
        if is_stale {
            let now = start.elapsed();
            screen.terminal.draw(|frame| {
                draw(model, now, &mut choice, look, frame.area(), frame.buffer_mut());
            })?;
            is_stale = false;
        }
        if event::poll(REACTION).context("cannot read keys")? {
            match react(&event::read().context("cannot read keys")?, &mut choice) {
                Asked::End => return Ok(()),
                Asked::DrawAnew => screen.terminal.clear()?,
                Asked::Nothing => continue,
                Asked::Redraw => {}
            }
            is_stale = true;
        }
    }
    Ok(())
}

fn react(event: &Event, choice: &mut Choice) -> Asked {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => react_to_key(*key, choice),
        Event::Resize(..) => Asked::Redraw,
        _ => Asked::Nothing,
    }
}

fn react_to_key(key: KeyEvent, choice: &mut Choice) -> Asked {
    const PAGE: usize = 10;
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match key.code {
            KeyCode::Char('c') => Asked::End,
            KeyCode::Char('l') => Asked::DrawAnew,
            _ => Asked::Nothing,
        };
    }
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => return Asked::End,
        KeyCode::Char('?' | 'h') => choice.help = !choice.help,
        // The last line is known only when drawing.
        KeyCode::Down | KeyCode::Char('j') => choice.scroll += 1,
        KeyCode::PageDown | KeyCode::Char(' ') => choice.scroll += PAGE,
        KeyCode::Up | KeyCode::Char('k') => choice.scroll = choice.scroll.saturating_sub(1),
        KeyCode::PageUp => choice.scroll = choice.scroll.saturating_sub(PAGE),
        KeyCode::Home => choice.scroll = 0,
        _ => return Asked::Nothing,
    }
    Asked::Redraw
}

/// Draws everything into `area`: the content from where the user scrolled to, then help or the
/// footer.
fn draw(
    model: &Model,
    now: Duration,
    choice: &mut Choice,
    look: Look,
    area: Rect,
    buffer: &mut Buffer,
) {
    let width = usize::from(area.width);
    let height = usize::from(area.height);
    let content = view::lines(model, now, width, look);
    let mut foot = if choice.help { view::help(width) } else { Vec::new() };
    foot.truncate(height / 2);
    let room = height.saturating_sub(foot.len() + usize::from(!choice.help));
    choice.scroll = choice.scroll.min(content.len().saturating_sub(room));
    let below = content.len().saturating_sub(choice.scroll + room);
    if !choice.help {
        foot.push(footer(choice.scroll, below));
    }
    let mut shown: Vec<Line<'_>> = content.into_iter().skip(choice.scroll).take(room).collect();
    shown.resize(room, Line::default());
    shown.extend(foot);
    Text::from(shown).render(area, buffer);
}

fn footer(above: usize, below: usize) -> Line<'static> {
    let mut text = FOOTER.to_owned();
    if above > 0 {
        text.push_str(&format!("  {above} lines above"));
    }
    if below > 0 {
        text.push_str(&format!("  {below} lines below"));
    }
    Line::styled(text, Look::dim())
}

#[cfg(test)]
mod tests;
