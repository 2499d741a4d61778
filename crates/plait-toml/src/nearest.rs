//! The known word that a misspelt one resembles.

/// The known word of which `word` may be a misspelling.
pub(crate) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    let slips_max = (word.chars().count() / 3).clamp(1, 3);
    let (slips, best) =
        known.map(|word_known| (edit_distance(word, word_known), word_known)).min()?;
    (slips <= slips_max).then(|| best.to_owned())
}

/// Levenshtein's distance: insertions, deletions and substitutions.
fn edit_distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let substituted = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edit_distance_counts_slips() {
        for (from, to, slips) in
            [("", "abc", 3), ("mtu", "mtu", 0), ("mtu", "mut", 2), ("prise", "price", 1)]
        {
            assert_eq!(edit_distance(from, to), slips, "{from} {to}");
        }
    }

    #[test]
    fn only_a_near_word_is_suggested() {
        let known = ["listen_port", "mtu", "routes", "duration_s", "loss", "links"];
        let near = |word| nearest(word, known.into_iter());
        assert_eq!(near("listenport").as_deref(), Some("listen_port"));
        assert_eq!(near("route").as_deref(), Some("routes"));
        assert_eq!(near("duration").as_deref(), Some("duration_s"));
        assert_eq!(near("link").as_deref(), Some("links"));
        assert_eq!(near("colour"), None);
    }
}
