//! What becomes of the host's traffic while the bond cannot carry it.

/// What becomes of the host's traffic while the bond cannot carry it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WhenDown {
    /// The routes stay: it waits, or is lost.
    #[default]
    Hold,
    /// It leaves over the best bare link.
    Bypass,
    /// As with [`Self::Hold`]; and nothing leaves outside the bond, at any time.
    Block,
}

impl WhenDown {
    /// Their words in a file.
    pub const WORDS: &[(&str, Self)] =
        &[("hold", Self::Hold), ("bypass", Self::Bypass), ("block", Self::Block)];

    /// Its word.
    pub fn word(self) -> &'static str {
        let known = Self::WORDS.iter().find(|(_, value)| *value == self);
        known.map(|(word, _)| *word).expect("every value has a word")
    }
}
