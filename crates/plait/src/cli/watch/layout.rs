//! Which columns fit: the narrower the terminal, the fewer.

/// Columns that every width has: sign, name, state, rate out.
const SIGN: usize = 2;
pub(super) const STATE: usize = 10;
/// `48.2 M`.
pub(super) const RATE: usize = 6;
pub(super) const RTT: usize = 6;
pub(super) const JITTER: usize = 6;
pub(super) const LOSS: usize = 6;
/// `100 %`.
pub(super) const PERCENT: usize = 5;
const NAME_MAX: usize = 16;
const BAR_MAX: usize = 10;
const SPARK_MIN: usize = 6;
const SPARK_MAX: usize = 60;
const BAR: usize = 5;

/// Widths of the columns of a bond's table; 0 and `false` where one is left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Columns {
    pub name: usize,
    pub incoming: bool,
    pub rtt: bool,
    pub jitter: bool,
    pub loss: bool,
    pub percent: bool,
    pub bar: usize,
    pub spark: usize,
}

impl Columns {
    /// For a terminal of `width` columns and path names of `name` characters at most.
    pub(super) fn fit(width: usize, name: usize) -> Self {
        let mut columns = Self {
            name: name.clamp(4, NAME_MAX),
            incoming: true,
            rtt: true,
            jitter: true,
            loss: true,
            percent: true,
            bar: BAR,
            spark: SPARK_MIN,
        };
        // Columns in the order in which they are left out, the least important first.
        let leave_out: [fn(&mut Self); 9] = [
            |columns| columns.name = columns.name.min(12),
            |columns| columns.bar = 0,
            |columns| columns.jitter = false,
            |columns| columns.spark = 0,
            |columns| columns.percent = false,
            |columns| columns.name = columns.name.min(8),
            |columns| columns.loss = false,
            |columns| columns.rtt = false,
            |columns| columns.incoming = false,
        ];
        for step in leave_out {
            if columns.width() <= width {
                break;
            }
            step(&mut columns);
        }
        columns.widen(width.saturating_sub(columns.width()));
        columns
    }

    /// Gives spare columns to the pictures, the history first.
    fn widen(&mut self, mut spare: usize) {
        if self.spark > 0 {
            let more = spare.min(SPARK_MAX - self.spark);
            self.spark += more;
            spare -= more;
        }
        if self.bar > 0 {
            self.bar += spare.min(BAR_MAX - self.bar);
        }
    }

    /// Width of a row, with a space before each column but the sign's.
    pub(super) fn width(&self) -> usize {
        let optional = [
            (self.incoming, RATE),
            (self.rtt, RTT),
            (self.jitter, JITTER),
            (self.loss, LOSS),
            (self.percent, PERCENT),
            (self.bar > 0, self.bar),
            (self.spark > 0, self.spark),
        ];
        let extra: usize = optional.iter().filter(|(is, _)| *is).map(|(_, width)| width + 1).sum();
        SIGN + self.name + 1 + STATE + 1 + RATE + extra
    }
}

/// `text` in lines of at most `width` characters, broken at spaces; a longer word stands alone.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// `text` cut to `width` characters, the last of them `ellipsis` when something is missing.
pub(super) fn cut(text: &str, width: usize, ellipsis: char) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    short.push(ellipsis);
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eighty_columns_show_everything() {
        let columns = Columns::fit(80, 6);
        assert!(columns.incoming && columns.rtt && columns.jitter && columns.loss);
        assert!(columns.percent && columns.bar >= BAR && columns.spark >= SPARK_MIN);
        assert_eq!(columns.width(), 80, "the history takes what is left");
    }

    #[test]
    fn every_width_that_holds_the_least_is_kept_to() {
        for width in 28..300 {
            let columns = Columns::fit(width, 30);
            assert!(columns.width() <= width, "{width}: {columns:?}");
        }
        let least = Columns::fit(10, 8);
        assert!(!least.incoming && !least.rtt && least.bar == 0 && least.spark == 0);
    }

    #[test]
    fn rates_outlive_every_picture() {
        let columns = Columns::fit(45, 6);
        assert!(columns.incoming && columns.rtt && columns.bar == 0 && columns.spark == 0);
    }

    #[test]
    fn text_breaks_at_spaces_or_is_cut() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("enormous if", 4), ["enormous", "if"]);
        assert_eq!(cut("abcdef", 4, '~'), "abc~");
        assert_eq!(cut("abcd", 4, '~'), "abcd");
    }
}
