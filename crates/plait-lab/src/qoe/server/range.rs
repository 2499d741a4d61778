//! Ranges of bytes of a file (RFC 9110 section 14).

use std::ops::Range;

/// What a `Range` header asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Asked {
    /// All of the file: no range, or one that may be ignored because it is no range of bytes, or
    /// several.
    Whole,
    /// This part of it.
    Part(Range<u64>),
    /// A range beyond its end.
    Beyond,
}

/// Reads a `Range` header for a file of this length.
pub(crate) fn parse(header: &str, length: u64) -> Asked {
    let Some((unit, set)) = header.split_once('=') else { return Asked::Whole };
    if !unit.trim().eq_ignore_ascii_case("bytes") || set.contains(',') {
        return Asked::Whole;
    }
    let Some((first, last)) = set.trim().split_once('-') else { return Asked::Whole };
    match (number(first), number(last)) {
        (Number::Is(first), Number::Is(last)) if first <= last => part(first, last, length),
        (Number::Is(first), Number::Missing) => part(first, u64::MAX, length),
        (Number::Missing, Number::Is(0)) => Asked::Beyond,
        (Number::Missing, Number::Is(_)) if length == 0 => Asked::Beyond,
        (Number::Missing, Number::Is(last)) => Asked::Part(length.saturating_sub(last)..length),
        _ => Asked::Whole,
    }
}

fn part(first: u64, last: u64, length: u64) -> Asked {
    if first >= length {
        return Asked::Beyond;
    }
    Asked::Part(first..last.saturating_add(1).min(length))
}

enum Number {
    Is(u64),
    Missing,
    Wrong,
}

fn number(text: &str) -> Number {
    let text = text.trim();
    if text.is_empty() {
        return Number::Missing;
    }
    // `parse` would take a sign.
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(number) if digits => Number::Is(number),
        _ => Number::Wrong,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ranges_are_those_of_the_rfc() {
        for (header, expected) in [
            ("bytes=0-499", Asked::Part(0..500)),
            ("bytes=500-999", Asked::Part(500..1000)),
            ("bytes=990-5000", Asked::Part(990..1000)),
            ("bytes=-500", Asked::Part(500..1000)),
            ("bytes=-5000", Asked::Part(0..1000)),
            ("bytes=999-", Asked::Part(999..1000)),
            ("Bytes = 1 - 2", Asked::Part(1..3)),
            ("bytes=1000-", Asked::Beyond),
            ("bytes=-0", Asked::Beyond),
            ("bytes=2-1", Asked::Whole),
            ("bytes=0-1,5-6", Asked::Whole),
            ("bytes=+1-2", Asked::Whole),
            ("bytes=-", Asked::Whole),
            ("bytes=a-b", Asked::Whole),
            ("bytes=0-99999999999999999999", Asked::Whole),
            ("lines=0-1", Asked::Whole),
            ("", Asked::Whole),
        ] {
            assert_eq!(parse(header, 1000), expected, "{header}");
        }
        assert_eq!(parse("bytes=0-", 0), Asked::Beyond);
        assert_eq!(parse("bytes=-5", 0), Asked::Beyond);
    }

    proptest! {
        #[test]
        fn any_header_gives_a_part_of_the_file_or_none(
            header in "(bytes=)?[0-9 ,+-]{0,24}|\\PC{0,40}",
            length in prop_oneof![0..3000_u64, Just(u64::MAX)],
        ) {
            if let Asked::Part(part) = parse(&header, length) {
                prop_assert!(part.start < part.end && part.end <= length, "{part:?}");
            }
        }

        #[test]
        fn a_range_that_is_written_is_read(first in 0..500_u64, last in 500..5000_u64) {
            let header = format!("bytes={first}-{last}");
            prop_assert_eq!(parse(&header, 1000), Asked::Part(first..(last + 1).min(1000)));
        }
    }
}
