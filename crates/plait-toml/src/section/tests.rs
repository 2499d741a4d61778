use std::path::Path;

use super::*;
use crate::bounds::Bounds;

/// The errors of reading a file with `read`: one line for each error and one for its help.
fn told(text: &str, read: impl FnOnce(&mut Section<'_>)) -> String {
    let file = Path::new("x.toml");
    let table = crate::tree::parse(file, text).unwrap();
    let problems = Problems::default();
    let mut top = Section::top(&problems, Place::Line(file.into(), 1), &table);
    read(&mut top);
    top.finish();
    problems.finish(Some(())).map_or_else(|errors| errors.to_string(), |()| "sound".into())
}

#[test]
fn an_option_is_named_with_its_section() {
    let text =
        "[a]\nx = 1\n[a.b]\nx = 1\n[[c]]\nx = 1\nd = { x = 1 }\n[e.f]\nx = 1\n[[a.g]]\nx = 1\n";
    let words = told(text, |top| {
        let mut a = top.single("a");
        a.single("b").finish();
        a.many("g").into_iter().for_each(Section::finish);
        a.finish();
        for mut c in top.many("c") {
            c.single("d").finish();
            c.finish();
        }
        top.named("e").into_iter().for_each(|(_, section)| section.finish());
    });
    let unknown: Vec<_> = words.lines().filter(|line| !line.starts_with(' ')).collect();
    let expected = [
        "x.toml:2: [a] x: unknown option",
        "x.toml:4: [a.b] x: unknown option",
        "x.toml:6: [[c]] x: unknown option",
        "x.toml:7: [[c]] d.x: unknown option",
        "x.toml:9: [e.f] x: unknown option",
        "x.toml:11: [[a.g]] x: unknown option",
    ];
    assert_eq!(unknown, expected);
}

#[test]
fn an_unknown_word_at_the_top_is_a_section_or_an_option() {
    let words = told("mtv = 1\nlist = [1]\n[pth]\n[[app]]\n", |top| {
        top.know(&["mtu", "path"]);
    });
    assert_eq!(
        words,
        "x.toml:1: mtv: unknown option\n  help: did you mean `mtu`?\n\
         x.toml:2: list: unknown option\n  help: known here: mtu, path\n\
         x.toml:3: pth: unknown section\n  help: did you mean `path`?\n\
         x.toml:4: app: unknown section\n  help: known here: mtu, path"
    );
}

#[test]
fn a_section_of_another_form_is_told() {
    let words = told("[many]\n[[single]]\n[named]\nn = 7\n", |top| {
        assert!(top.many("many").is_empty());
        assert!(!top.single("single").is_present());
        assert_eq!(top.named("named").len(), 1);
    });
    let form = "a section in brackets, or a table in braces";
    assert_eq!(
        words,
        format!(
            "x.toml:1: [[many]]: expected a section in double brackets, found a section\n  \
             help: write a section in double brackets\n\
             x.toml:2: single: expected {form}, found a list\n  help: write {form}\n\
             x.toml:4: [named.n]: expected {form}, found the number 7\n  help: write {form}"
        )
    );
}

#[test]
fn numbers_outside_their_bounds_are_told_as_written() {
    let text = "a = 99999999999999999999\nb = 0.0\nc = 99999999999999999999\nd = 300\ne = nan\n\
                f = \"1\"\ng = 1.5\n";
    let words = told(text, |top| {
        assert_eq!(top.integer::<u16>("a", (1, 9), "bytes"), None);
        assert_eq!(top.number("b", Bounds::above_zero(100.0)), None);
        assert_eq!(top.number("c", Bounds::new(0.0, 1.0, "")), None);
        assert_eq!(top.integer::<u8>("d", (0, 255), ""), None);
        assert_eq!(top.seconds("e"), None);
        assert_eq!(top.millis("f", 5.0), None);
        assert_eq!(top.integer::<u8>("g", (0, 255), ""), None);
    });
    assert_eq!(
        words,
        "x.toml:1: a: 99999999999999999999 is out of range\n  \
         help: write a number from 1 to 9 bytes\n\
         x.toml:2: b: 0.0 is out of range\n  \
         help: write a number from 0 to 100 (a fraction will do, zero will not)\n\
         x.toml:3: c: 99999999999999999999 is out of range\n  \
         help: write a number from 0 to 1\n\
         x.toml:4: d: 300 is out of range\n  help: write a number from 0 to 255\n\
         x.toml:5: e: nan is out of range\n  help: write a number from 0 to 86400 seconds\n\
         x.toml:6: f: expected a number, found the text \"1\"\n  help: write a number\n\
         x.toml:7: g: expected a whole number, found the number 1.5\n  help: write a whole number"
    );
}

#[test]
fn words_that_are_not_understood_are_told_where_they_stand() {
    let text = "a = \"fixd\"\nb = [\"1\",\n  \"x\"]\nc = \"y\"\nd = \"\"\n";
    let words = told(text, |top| {
        let read = |text: &str| text.parse::<u8>().map_err(|_| Problem::new("odd", "write 7"));
        assert_eq!(top.choice("a", &[("fixed", 1), ("adaptive", 2)]), None);
        assert_eq!(top.parsed_texts("b", read).len(), 1);
        assert_eq!(top.parsed("c", read), None);
        assert_eq!(top.required_text("d", "d = \"it\""), None);
        assert_eq!(top.required_text("e", "e = \"it\""), None);
        top.no_effect(&["c", "absent"], "d", "e");
    });
    assert_eq!(
        words,
        "x.toml:1: a: \"fixd\" is not one of the choices\n  help: did you mean \"fixed\"?\n\
         x.toml:1: e: missing\n  help: add `e = \"it\"`\n\
         x.toml:3: b: odd\n  help: write 7\n\
         x.toml:4: c: odd\n  help: write 7\n\
         x.toml:4: c: has no effect with d\n  help: remove it; it belongs to e\n\
         x.toml:5: d: empty\n  help: write it as in `d = \"it\"`"
    );
}

#[test]
fn what_is_right_is_read() {
    let text = "a = 7\nb = 0.5\nc = \"w\"\nd = [1, 2]\ne = [[1, 2], [3, 4]]\nf = true\ng = 5\n\
                h = { i = 1 }\n";
    let words = told(text, |top| {
        let unit = Bounds::new(0.0, 10.0, "");
        assert_eq!(top.integer("a", (0, 255), ""), Some(7_u8));
        assert_eq!(top.number("b", unit), Some(0.5));
        assert_eq!(top.choice("c", &[("v", 1), ("w", 2)]), Some(2));
        assert_eq!(top.range("d", unit), Some((1.0, 2.0)));
        assert_eq!(top.range("a", unit), Some((7.0, 7.0)));
        assert_eq!(top.pairs("e", (unit, unit), "pairs"), Some(vec![(1.0, 2.0), (3.0, 4.0)]));
        assert_eq!(top.boolean("f"), Some(true));
        assert_eq!(top.millis("g", 10.0), Some(std::time::Duration::from_millis(5)));
        assert_eq!(top.free_table("h").len(), 1);
    });
    assert_eq!(words, "sound");
}
