//! The live screen of a trace.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use plait_trace::course::Courses;
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::Rect;
use ratatui::style::Stylize as _;
use ratatui::text::{Line, Text};
use ratatui::widgets::Widget as _;

use super::words;
use crate::cli::full_screen::{FullScreen, end_with_terminal};

/// Figures that change more often than this cannot be read.
const REDRAW: Duration = Duration::from_millis(250);

/// The terminal, and where on it the user is.
pub(super) struct Live {
    screen: FullScreen,
    head: Vec<String>,
    scroll: usize,
    drawn: Option<Instant>,
}

impl Live {
    /// Takes the terminal over; `head` is the first line.
    pub(super) fn open(head: String) -> anyhow::Result<Self> {
        end_with_terminal()?;
        let screen = FullScreen::open().context("cannot take over the terminal")?;
        Ok(Self { screen, head: vec![head], scroll: 0, drawn: None })
    }

    /// Adds a line at the top.
    pub(super) fn note(&mut self, line: String) {
        self.head.push(line);
    }

    /// Handles keys, and draws when it is time; breaks when the user has ended it.
    pub(super) fn show(&mut self, courses: &Courses) -> anyhow::Result<ControlFlow<()>> {
        while event::poll(Duration::ZERO).context("cannot read keys")? {
            let event = event::read().context("cannot read keys")?;
            if react(&event, &mut self.scroll).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            self.drawn = None;
        }
        if self.drawn.is_some_and(|drawn| drawn.elapsed() < REDRAW) {
            return Ok(ControlFlow::Continue(()));
        }
        self.drawn = Some(Instant::now());
        let (head, scroll) = (&self.head, &mut self.scroll);
        self.screen.terminal.draw(|frame| {
            draw(head, courses, scroll, frame.area(), frame.buffer_mut());
        })?;
        Ok(ControlFlow::Continue(()))
    }
}

fn react(event: &Event, scroll: &mut usize) -> ControlFlow<()> {
    const PAGE: usize = 10;
    let Event::Key(key) = event else { return ControlFlow::Continue(()) };
    if key.kind == KeyEventKind::Release {
        return ControlFlow::Continue(());
    }
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Char('c') if is_control => return ControlFlow::Break(()),
        KeyCode::Char('q') | KeyCode::Esc => return ControlFlow::Break(()),
        // The last line is known only when drawing.
        KeyCode::Down | KeyCode::Char('j') => *scroll += 1,
        KeyCode::PageDown | KeyCode::Char(' ') => *scroll += PAGE,
        KeyCode::Up | KeyCode::Char('k') => *scroll = scroll.saturating_sub(1),
        KeyCode::PageUp => *scroll = scroll.saturating_sub(PAGE),
        KeyCode::Home => *scroll = 0,
        _ => {}
    }
    ControlFlow::Continue(())
}

/// The head, the table from where the user scrolled to, and the keys.
fn draw(head: &[String], courses: &Courses, scroll: &mut usize, area: Rect, buffer: &mut Buffer) {
    let (table, hidden) = words::table(&courses.by_connection(), area.width.into());
    let height = usize::from(area.height);
    let room = height.saturating_sub(head.len() + 1);
    *scroll = (*scroll).min(table.len().saturating_sub(room));
    let below = table.len().saturating_sub(*scroll + room);
    let mut foot = "q end".to_owned();
    if below > 0 {
        foot.push_str(&format!("  {below} lines below"));
    }
    if !hidden.is_empty() {
        foot.push_str(&format!("  no room for {}", hidden.join(", ")));
    }
    let mut lines: Vec<Line<'_>> =
        head.iter().map(|line| Line::from(line.as_str()).dim()).collect();
    lines.extend(table.into_iter().skip(*scroll).take(room).map(Line::from));
    lines.resize(height.saturating_sub(1), Line::default());
    lines.push(Line::from(foot).dim());
    Text::from(lines).render(area, buffer);
}

#[cfg(test)]
mod tests {
    use ratatui::crossterm::event::KeyEvent;

    use super::*;

    #[test]
    fn keys_end_and_scroll() {
        let mut scroll = 0;
        let mut press = |code, modifiers| {
            let event = Event::Key(KeyEvent::new(code, modifiers));
            (react(&event, &mut scroll), scroll)
        };
        let none = KeyModifiers::NONE;
        assert_eq!(press(KeyCode::PageDown, none), (ControlFlow::Continue(()), 10));
        assert_eq!(press(KeyCode::Up, none).1, 9);
        assert_eq!(press(KeyCode::Char('q'), none).0, ControlFlow::Break(()));
        assert_eq!(press(KeyCode::Char('c'), none).0, ControlFlow::Continue(()));
        assert_eq!(press(KeyCode::Char('c'), KeyModifiers::CONTROL).0, ControlFlow::Break(()));
    }

    #[test]
    fn the_screen_has_head_table_and_foot() {
        let area = Rect::new(0, 0, 60, 5);
        let mut buffer = Buffer::empty(area);
        let mut scroll = 99;
        draw(&["source: x".into()], &Courses::default(), &mut scroll, area, &mut buffer);
        let row = |y| (0..60).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        assert!(row(0).starts_with("source: x") && row(1).starts_with("connection"));
        assert!(row(4).starts_with("q end") && scroll == 0);
    }
}
