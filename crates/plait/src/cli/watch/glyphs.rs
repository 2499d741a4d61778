//! Signs and colours, for terminals with and without Unicode and colour.

use plait_proto::stats::{PathState, PathStatus};
use ratatui::style::{Color, Modifier, Style};

/// A rate below this, in bits per second, is drawn low even if it is the highest of its minute:
/// keepalives and probes are not traffic.
const FULL_SCALE_BPS_MIN: f64 = 20_000.0;

/// What the terminal can show.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub unicode: bool,
    pub colour: bool,
}

/// The class of a state; decides sign and colour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mood {
    Good,
    /// Ready, and not needed now.
    Resting,
    Waiting,
    Bad,
    Asleep,
}

impl Mood {
    pub(super) fn of_path(path: &PathStatus) -> Self {
        match path.state {
            PathState::Up if path.in_use => Self::Good,
            PathState::Up => Self::Resting,
            PathState::Validating => Self::Waiting,
            PathState::Silent | PathState::Lossy => Self::Bad,
            PathState::Asleep => Self::Asleep,
        }
    }

    pub(super) fn of_peer(state: &str) -> Self {
        match state {
            "up" => Self::Good,
            "connecting" => Self::Waiting,
            _ => Self::Bad,
        }
    }
}

/// The word for a path's state: a path that answers but stands by is not just `up`.
pub(super) fn state_word(path: &PathStatus) -> &'static str {
    match path.state {
        PathState::Up if !path.in_use && path.standby => "standby",
        PathState::Up if !path.in_use => "unused",
        state => state.name(),
    }
}

impl Look {
    /// Reads the environment: Unicode where the locale is UTF-8, colour unless NO_COLOR is set.
    pub(super) fn from_environment(colour: bool) -> Self {
        let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG"));
        Self { unicode: is_utf8(locale.as_deref()), colour }
    }

    pub(super) fn sign(self, mood: Mood) -> &'static str {
        let (sign, ascii) = match mood {
            Mood::Good => ("●", "*"),
            Mood::Resting => ("○", "o"),
            Mood::Waiting => ("◌", "?"),
            Mood::Bad => ("✗", "x"),
            Mood::Asleep => ("·", "z"),
        };
        if self.unicode { sign } else { ascii }
    }

    pub(super) fn style(self, mood: Mood) -> Style {
        self.coloured(match mood {
            Mood::Good => Color::Green,
            Mood::Resting | Mood::Asleep => Color::Blue,
            Mood::Waiting => Color::Yellow,
            Mood::Bad => Color::Red,
        })
    }

    /// Pictures.
    pub(super) fn picture_style(self) -> Style {
        self.coloured(Color::Cyan)
    }

    pub(super) fn bold() -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(super) fn dim() -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    fn coloured(self, colour: Color) -> Style {
        if self.colour { Style::new().fg(colour) } else { Style::new() }
    }

    /// A picture of rates in bits per second, a sign each, scaled to the highest. A space means no
    /// reading.
    pub(super) fn sparkline(self, columns: &[Option<f64>]) -> String {
        let levels = self.levels();
        let highest = columns.iter().flatten().copied().fold(FULL_SCALE_BPS_MIN, f64::max);
        let level = |bps: f64| {
            let top = (levels.len() - 1) as f64;
            // Any rate above zero is drawn differently from zero.
            let level = if bps > 0.0 { (bps / highest * top).ceil() } else { 0.0 };
            levels[level as usize]
        };
        columns.iter().map(|column| column.map_or(' ', level)).collect()
    }

    /// A bar of `width` signs, filled to `ratio` (0 to 1).
    pub(super) fn bar(self, ratio: f64, width: usize) -> String {
        let eighths = (ratio.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
        let (full, rest) = (eighths / 8, eighths % 8);
        let (block, parts) = if self.unicode {
            ("█", ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"])
        } else {
            ("#", ["", "", "", "", "-", "-", "-", "-"])
        };
        let bar = block.repeat(full) + parts[rest];
        format!("{bar:<width$}")
    }

    pub(super) fn ellipsis(self) -> char {
        if self.unicode { '…' } else { '~' }
    }

    fn levels(self) -> &'static [char] {
        if self.unicode {
            &['·', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█']
        } else {
            &['.', '_', '-', '=', '+', '#']
        }
    }
}

fn is_utf8(locale: Option<&str>) -> bool {
    locale.is_some_and(|name| {
        let name = name.to_ascii_lowercase();
        name.ends_with("utf-8") || name.ends_with("utf8")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNICODE: Look = Look { unicode: true, colour: false };
    const ASCII: Look = Look { unicode: false, colour: false };

    #[test]
    fn a_sparkline_tells_no_reading_nothing_little_and_most_apart() {
        let columns = [None, Some(0.0), Some(1.0), Some(5e5), Some(1e6)];
        assert_eq!(UNICODE.sparkline(&columns), " ·▁▄█");
        assert_eq!(ASCII.sparkline(&columns), " ._=#");
        assert_eq!(UNICODE.sparkline(&[Some(1000.0)]), "▁", "keepalives are no full scale");
    }

    #[test]
    fn a_bar_has_its_width_and_fills_in_eighths() {
        assert_eq!(UNICODE.bar(0.8, 5), "████ ");
        assert_eq!(UNICODE.bar(0.3, 5), "█▌   ");
        assert_eq!(UNICODE.bar(2.0, 3), "███");
        assert_eq!(ASCII.bar(0.3, 5), "#-   ");
    }

    #[test]
    fn each_mood_has_a_sign_of_its_own() {
        let moods = [Mood::Good, Mood::Resting, Mood::Waiting, Mood::Bad, Mood::Asleep];
        for look in [UNICODE, ASCII] {
            let signs: std::collections::BTreeSet<_> = moods.map(|mood| look.sign(mood)).into();
            assert_eq!(signs.len(), moods.len());
        }
    }

    #[test]
    fn only_a_utf8_locale_gets_unicode() {
        assert!(is_utf8(Some("C.UTF-8")) && is_utf8(Some("de_DE.utf8")));
        assert!(!is_utf8(Some("POSIX")) && !is_utf8(None));
    }
}
