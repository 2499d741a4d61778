//! The house rules that no lint knows. Each rule is a function over a file's text, and each is
//! tested on a text that breaks it; the last tests apply them to the tree.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const FILE_LINES_MAX: usize = 800;
const FUNCTION_LINES_MAX: usize = 70;
const COLUMNS_MAX: usize = 100;
/// Sections of ARCHITECTURE.md, and how many files each may name.
const WAYS: [(&str, usize); 3] =
    [("A packet's way out", 12), ("A packet's way in", 10), ("An option's way", 5)];

/// Functions that may be longer than the limit: file, name, reason.
const LONG_FUNCTIONS: &[(&str, &str, &str)] = &[];

/// Words that plait does not use, in lower case, and what to write.
const BANNED_WORDS: &[(&str, &str)] = &[
    ("blacklist", "blocklist"),
    ("whitelist", "allowlist"),
    ("utilize", "use"),
    ("leverage", "use"),
    ("seamless", "what is not noticed, and by whom"),
    ("blazing", "the figure"),
    ("state-of-the-art", "the name of what it is compared with"),
    ("cutting-edge", "the name of what it is compared with"),
    ("sub-flow", "path"),
    ("reorder buffer time-out", "timeout"),
    ("reassembly buffer", "resequencer"),
    ("load balancer", "scheduler"),
];

/// Marks of unfinished work; split so that this file does not hold them itself.
const UNFINISHED: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X:"),
    concat!("unimple", "mented!("),
    concat!("to", "do!("),
];

/// Beginnings of paths that exist on one machine only.
const MACHINE_PATHS: &[&str] =
    &[concat!("/wo", "rk/"), concat!("/ho", "me/"), concat!("/ro", "ot/"), concat!("/Us", "ers/")];

// Rules: each returns what is wrong, one text per finding.

/// Files stay short; tests at their end and in files of their own do not count.
fn file_length(name: &str, text: &str) -> Vec<String> {
    let lines = without_tests(text).lines().count();
    let long = !is_test_file(name) && lines > FILE_LINES_MAX;
    finding(long, || format!("{lines} lines without tests, the limit is {FILE_LINES_MAX}"))
}

/// Functions stay short.
fn function_length(name: &str, text: &str) -> Vec<String> {
    if is_test_file(name) {
        return Vec::new();
    }
    let excused = |function: &str| {
        LONG_FUNCTIONS.iter().any(|(file, known, _)| *file == name && *known == function)
    };
    let long = functions(without_tests(text)).into_iter();
    long.filter(|(function, lines)| *lines > FUNCTION_LINES_MAX && !excused(function))
        .map(|(function, lines)| {
            format!("fn {function} has {lines} lines, the limit is {FUNCTION_LINES_MAX}")
        })
        .collect()
}

/// Lines fit a screen.
fn columns(text: &str) -> Vec<String> {
    numbered(text)
        .filter(|(_, line)| line.chars().count() > COLUMNS_MAX)
        .map(|(number, _)| format!("line {number} is longer than {COLUMNS_MAX} columns"))
        .collect()
}

/// Some words are not the field's.
fn banned_words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in numbered(text) {
        let line = line.to_lowercase();
        for (word, instead) in BANNED_WORDS {
            if line.contains(word) {
                found.push(format!("line {number} says \"{word}\"; write {instead}"));
            }
        }
    }
    found
}

/// Work is finished before it is merged.
fn unfinished_work(text: &str) -> Vec<String> {
    containing(text, UNFINISHED, "marks unfinished work with")
}

/// Nothing refers to one machine's folders.
fn machine_paths(text: &str) -> Vec<String> {
    containing(text, MACHINE_PATHS, "names a folder of one machine:")
}

/// `foo.rs` with `foo/` beside it.
fn module_file(name: &str) -> Vec<String> {
    finding(name.ends_with("/mod.rs"), || "name the file after its module instead".into())
}

/// Every scheduler has its page, with source, equations and deviations.
fn algorithm_page(name: &str, text: &str, pages: &BTreeSet<String>) -> Vec<String> {
    let Some(stem) = name
        .strip_prefix("crates/plait-proto/src/scheduler/")
        .and_then(|rest| rest.strip_suffix(".rs"))
    else {
        return Vec::new();
    };
    let is_algorithm = !stem.contains('/') && without_tests(text).contains("impl Scheduler for");
    let page = format!("docs/algorithms/{}.md", stem.replace('_', "-"));
    finding(is_algorithm && !pages.contains(&page), || format!("has no page {page}"))
}

/// The map of the tree names each top-level module in its crate's section.
fn map_names_modules(crate_name: &str, root_file: &str, map: &str) -> Vec<String> {
    let Some(section) = section_of(map, crate_name) else {
        return vec![format!("ARCHITECTURE.md has no heading with `{crate_name}`")];
    };
    let modules = root_file.lines().filter_map(|line| {
        let line = line.strip_prefix("pub ").or(line.strip_prefix("pub(crate) ")).unwrap_or(line);
        line.strip_prefix("mod ")?.strip_suffix(';')
    });
    modules
        .filter(|module| !section.contains(&format!("`{module}`")))
        .map(|module| format!("ARCHITECTURE.md does not name `{module}` under `{crate_name}`"))
        .collect()
}

/// The files to open on a way, which are numbered in the order of reading: each exists, and there
/// are at most so many.
fn ways(map: &str, files: &BTreeSet<String>) -> Vec<String> {
    let mut found = Vec::new();
    for (way, files_max) in WAYS {
        let Some((_, rest)) = map.split_once(&format!("\n## {way}\n")) else {
            found.push(format!("ARCHITECTURE.md has no heading {way}"));
            continue;
        };
        let section = rest.split("\n## ").next().unwrap_or(rest);
        let numbered = section.lines().filter_map(|line| line.split_once(". `"));
        let steps: Vec<&str> =
            numbered.filter_map(|(_, rest)| rest.split_once("`:")).map(|(file, _)| file).collect();
        let missing = steps.iter().filter(|file| !files.contains(&format!("crates/{file}")));
        found.extend(missing.map(|file| format!("ARCHITECTURE.md: {way}: there is no {file}")));
        if steps.is_empty() || steps.len() > files_max {
            found.push(format!(
                "ARCHITECTURE.md: {way} takes {} files, of at most {files_max}",
                steps.len()
            ));
        }
    }
    found
}

/// A citation of the wire specification names a clause that exists.
fn citations(text: &str, clauses: &BTreeSet<String>) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in numbered(text) {
        for cited in cited_clauses(line) {
            if !clauses.contains(&cited) {
                found.push(format!("line {number} cites {cited}, which docs/spec does not have"));
            }
        }
    }
    found
}

// What the rules need.

fn finding(wrong: bool, text: impl FnOnce() -> String) -> Vec<String> {
    if wrong { vec![text()] } else { Vec::new() }
}

fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, line))
}

fn containing(text: &str, marks: &[&str], what: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in numbered(text) {
        for mark in marks.iter().filter(|mark| line.contains(**mark)) {
            found.push(format!("line {number} {what} {mark}"));
        }
    }
    found
}

fn is_test_file(name: &str) -> bool {
    name.contains("/tests/") || name.ends_with("/tests.rs") || name.ends_with("/testing.rs")
}

/// The text up to the test module that ends it.
fn without_tests(text: &str) -> &str {
    text.find("\n#[cfg(test)]\nmod tests {").map_or(text, |end| &text[..end])
}

/// Name and length of each function; relies on the formatter's indentation.
fn functions(text: &str) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    let lines: Vec<&str> = text.lines().collect();
    for (start, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else { continue };
        let indent = &line[..line.len() - line.trim_start().len()];
        let end = format!("{indent}}}");
        let ends =
            |line: &&str| **line == end || line.trim_end().ends_with(';') && *line == lines[start];
        if let Some(length) = lines[start..].iter().position(ends) {
            found.push((name.to_owned(), length + 1));
        }
    }
    found
}

fn function_name(line: &str) -> Option<&str> {
    let mut rest = line.trim_start();
    for qualifier in ["pub ", "pub(crate) ", "pub(super) ", "const ", "unsafe ", "async "] {
        rest = rest.strip_prefix(qualifier).unwrap_or(rest);
    }
    let rest = rest.strip_prefix("fn ")?;
    let one_line = line.trim_end().ends_with('}') || line.trim_end().ends_with(';');
    rest.split(['(', '<']).next().filter(|_| !one_line)
}

/// The part of the map from the crate's heading to the next heading.
fn section_of<'a>(map: &'a str, crate_name: &str) -> Option<&'a str> {
    let name = format!("`{crate_name}`");
    let mut start = 0;
    for line in map.split_inclusive('\n') {
        let next = start + line.len();
        if line.starts_with('#') && line.contains(&name) {
            let end = map[next..].find("\n#").map_or(map.len(), |end| next + end);
            return Some(&map[next..end]);
        }
        start = next;
    }
    None
}

/// Clauses cited as in `spec W-12`, `Spec P-5c:`, `spec H-1 to H-3` and `[W-12]`.
fn cited_clauses(line: &str) -> Vec<String> {
    let after_spec = ["spec ", "Spec "].iter().filter_map(|word| line.find(word)).min();
    let after_spec = after_spec.map(|start| &line[start..]);
    let words = after_spec.into_iter().flat_map(|rest| rest.split([' ', ',', ')', ';', ':', '.']));
    let bracketed = line.split('[').skip(1).filter_map(|rest| rest.split_once(']')).map(|(w, _)| w);
    words.chain(bracketed).filter(|word| is_clause(word)).map(str::to_owned).collect()
}

/// One capital letter, a hyphen, a number; perhaps a small letter, as in `P-5c`.
fn is_clause(word: &str) -> bool {
    let Some((letter, number)) = word.split_once('-') else { return false };
    let capital = letter.len() == 1 && letter.bytes().all(|b| b.is_ascii_uppercase());
    let number = number.strip_suffix(|c: char| c.is_ascii_lowercase()).unwrap_or(number);
    capital && !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
}

/// The clauses that tests name: in the comment above a test, or in one inside it. A module's
/// comment names none, because it does not say which test shows what.
fn tested_clauses(text: &str) -> BTreeSet<String> {
    let lines: Vec<&str> = text.lines().collect();
    let is_comment = |line: &&&str| {
        let line = line.trim_start();
        line.starts_with("//") && !line.starts_with("//!")
    };
    let is_attribute = |line: &&str| line.trim_start().starts_with("#[");
    let mut found = BTreeSet::new();
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.trim() == "#[test]") {
        let end = format!("{}}}", &line[..line.len() - line.trim_start().len()]);
        let above = lines[..at].iter().rev();
        let above = above.take_while(|line| is_comment(line) || is_attribute(line));
        let inside = lines[at..].iter().take_while(|line| **line != end);
        let comments = above.chain(inside).filter(is_comment);
        found.extend(comments.flat_map(|line| cited_clauses(line)));
    }
    found
}

/// Every clause of the specification is shown by a test that names it.
fn clauses_without_a_test(defined: &BTreeSet<String>, tested: &BTreeSet<String>) -> Vec<String> {
    let missing = defined.difference(tested);
    missing.map(|clause| format!("no test names clause {clause} (\"spec {clause}\")")).collect()
}

/// The clauses that a page of the specification defines: each begins its line, perhaps in bold or
/// as a heading or a list item.
fn defined_clauses(page: &str) -> BTreeSet<String> {
    let first = |line: &str| {
        let line = line.trim_start_matches(['#', '*', '-', '|', '[', ' ', '`']);
        let end = line.find(|c: char| !c.is_ascii_alphanumeric() && c != '-')?;
        Some(line[..end].to_owned())
    };
    page.lines().filter_map(first).filter(|word| is_clause(word)).collect()
}

// The tree.

struct Tree {
    files: Vec<(String, String)>,
}

impl Tree {
    /// Every text file of the project.
    fn read() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut files = Vec::new();
        walk(&root, &root, &mut files);
        assert!(files.len() > 20, "the tree holds more files than {}", files.len());
        Self { files }
    }

    fn with_ending<'a>(&'a self, endings: &'a [&str]) -> impl Iterator<Item = (&'a str, &'a str)> {
        let files = self.files.iter().map(|(name, text)| (name.as_str(), text.as_str()));
        files.filter(move |(name, _)| endings.iter().any(|ending| name.ends_with(ending)))
    }

    fn file(&self, name: &str) -> &str {
        let found = self.files.iter().find(|(file, _)| file == name);
        &found.unwrap_or_else(|| panic!("{name} exists")).1
    }

    /// Fails with every finding of a rule over files with these endings.
    fn check(&self, endings: &[&str], rule: impl Fn(&str, &str) -> Vec<String>) {
        let of_file = |(name, text): (&str, &str)| {
            rule(name, text)
                .into_iter()
                .map(move |what| format!("{name}: {what}"))
                .collect::<Vec<_>>()
        };
        let found: Vec<_> = self.with_ending(endings).flat_map(of_file).collect();
        assert!(found.is_empty(), "\n{}\n", found.join("\n"));
    }
}

fn walk(root: &Path, folder: &Path, files: &mut Vec<(String, String)>) {
    const ENDINGS: &[&str] = &["rs", "md", "toml", "sh", "py", "yml", "json"];
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .expect("the folder exists")
        .map(|entry| entry.expect("the folder can be read").path())
        .collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if !matches!(name.as_str(), "target" | "out" | ".git" | "node_modules") {
                walk(root, &path, files);
            }
        } else if path.extension().is_none_or(|e| ENDINGS.iter().any(|known| e == *known))
            && let Ok(text) = fs::read_to_string(&path)
        {
            let name = path.strip_prefix(root).expect("the walk stays below its root");
            files.push((name.to_string_lossy().into_owned(), text));
        }
    }
}

const TEXT: &[&str] =
    &[".rs", ".md", ".toml", ".sh", ".py", "Makefile", ".ci/run", "scripts/setup"];

#[test]
fn files_and_functions_are_short() {
    let tree = Tree::read();
    tree.check(&[".rs"], file_length);
    tree.check(&[".rs"], function_length);
    for (file, function, reason) in LONG_FUNCTIONS {
        let length = functions(tree.file(file)).into_iter().find(|(name, _)| name == function);
        let long = length.is_some_and(|(_, lines)| lines > FUNCTION_LINES_MAX);
        assert!(long, "{file}: fn {function} needs no exception any more ({reason})");
    }
}

#[test]
fn lines_fit_a_screen() {
    Tree::read().check(&[".rs"], |_, text| columns(text));
}

#[test]
fn words_are_the_fields() {
    let this_file = "crates/plait-lab/tests/tidy.rs";
    Tree::read().check(
        TEXT,
        |name, text| {
            if name == this_file { Vec::new() } else { banned_words(text) }
        },
    );
}

#[test]
fn no_work_is_left_unfinished() {
    Tree::read().check(TEXT, |_, text| unfinished_work(text));
}

#[test]
fn no_folder_of_one_machine_is_named() {
    Tree::read().check(TEXT, |_, text| machine_paths(text));
}

#[test]
fn modules_are_files_of_their_name() {
    Tree::read().check(&[".rs"], |name, _| module_file(name));
}

#[test]
fn every_scheduler_has_its_page() {
    let tree = Tree::read();
    let pages = tree.with_ending(&[".md"]).map(|(name, _)| name.to_owned()).collect();
    tree.check(&[".rs"], |name, text| algorithm_page(name, text, &pages));
}

#[test]
fn the_map_names_every_module() {
    let tree = Tree::read();
    let map = tree.file("ARCHITECTURE.md");
    let mut found = Vec::new();
    for name in [
        "plait-proto",
        "plait-pair",
        "plait-sim",
        "plait-net",
        "plait-toml",
        "plait-proxy",
        "plait-bpf",
        "plait",
        "plait-lab",
    ] {
        let roots = ["lib", "main"].map(|root| format!("crates/{name}/src/{root}.rs"));
        for (file, text) in tree.with_ending(&["lib.rs", "main.rs"]) {
            if roots.iter().any(|root| root == file) {
                found.extend(map_names_modules(name, text, map));
            }
        }
    }
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn a_packets_way_and_an_options_take_few_files() {
    let tree = Tree::read();
    let files = tree.with_ending(&[".rs"]).map(|(name, _)| name.to_owned()).collect();
    let found = ways(tree.file("ARCHITECTURE.md"), &files);
    assert!(found.is_empty(), "\n{}\n", found.join("\n"));
}

#[test]
fn citations_of_the_specification_resolve() {
    let tree = Tree::read();
    let pages = tree.with_ending(&[".md"]).filter(|(name, _)| name.starts_with("docs/spec/"));
    let clauses = pages.flat_map(|(_, text)| defined_clauses(text)).collect();
    let this_file = "crates/plait-lab/tests/tidy.rs";
    tree.check(&[".rs", ".md"], |name, text| {
        if name == this_file { Vec::new() } else { citations(text, &clauses) }
    });
}

#[test]
fn every_clause_of_the_specification_is_named_by_a_test() {
    let tree = Tree::read();
    let pages = tree.with_ending(&[".md"]).filter(|(name, _)| name.starts_with("docs/spec/"));
    let defined = pages.flat_map(|(_, text)| defined_clauses(text)).collect();
    let this_file = "crates/plait-lab/tests/tidy.rs";
    let tests = tree.with_ending(&[".rs"]).filter(|(name, _)| *name != this_file);
    let tested = tests.flat_map(|(_, text)| tested_clauses(text)).collect();
    let missing = clauses_without_a_test(&defined, &tested);
    assert!(missing.is_empty(), "\n{}\n", missing.join("\n"));
}

// Each rule can fail.

#[test]
fn a_long_file_is_found_and_its_tests_do_not_count() {
    let code = "//\n".repeat(FILE_LINES_MAX);
    assert_eq!(file_length("a.rs", &code).len(), 0);
    assert_eq!(file_length("a.rs", &format!("{code}//\n")).len(), 1);
    let tests = format!("{code}\n#[cfg(test)]\nmod tests {{\n{code}}}\n");
    assert_eq!(file_length("a.rs", &tests).len(), 0);
    assert_eq!(file_length("x/tests.rs", &format!("{code}{code}")).len(), 0);
}

#[test]
fn a_long_function_is_found() {
    let body = "        x();\n".repeat(FUNCTION_LINES_MAX - 2);
    let text = format!("impl A {{\n    pub(crate) const fn a<T>(\n    ) {{\n{body}    }}\n}}\n");
    assert_eq!(functions(&text), [("a".to_owned(), FUNCTION_LINES_MAX + 1)]);
    assert_eq!(function_length("a.rs", &text).len(), 1);
    let text = text.replacen("        x();\n", "", 1);
    assert_eq!(function_length("a.rs", &text).len(), 0);
    assert_eq!(functions("trait A {\n    fn a();\n    fn b() {}\n}\n"), []);
}

#[test]
fn a_long_line_is_found() {
    assert_eq!(columns(&"ü".repeat(COLUMNS_MAX)).len(), 0);
    assert_eq!(columns(&format!("\n{}", "ü".repeat(COLUMNS_MAX + 1))).len(), 1);
}

#[test]
fn a_banned_word_is_found_with_its_replacement() {
    assert_eq!(banned_words("a\nA Blacklist"), ["line 2 says \"blacklist\"; write blocklist"]);
}

#[test]
fn marks_of_unfinished_work_and_machine_paths_are_found() {
    for mark in UNFINISHED {
        assert_eq!(unfinished_work(&format!("// {mark} later")).len(), 1, "{mark}");
    }
    for path in MACHINE_PATHS {
        assert_eq!(machine_paths(&format!("open({path}x)")).len(), 1, "{path}");
    }
    assert_eq!(unfinished_work("done").len() + machine_paths("/etc/hosts").len(), 0);
}

#[test]
fn a_mod_file_is_found() {
    assert_eq!(module_file("crates/a/src/b/mod.rs").len(), 1);
    assert_eq!(module_file("crates/a/src/b.rs").len(), 0);
}

#[test]
fn a_scheduler_without_a_page_is_found() {
    let name = "crates/plait-proto/src/scheduler/min_rtt.rs";
    let text = "impl Scheduler for MinRtt {}";
    let pages = BTreeSet::from(["docs/algorithms/min-rtt.md".to_owned()]);
    assert_eq!(algorithm_page(name, text, &BTreeSet::new()).len(), 1);
    assert_eq!(algorithm_page(name, text, &pages).len(), 0);
    assert_eq!(algorithm_page(name, "struct Helper;", &BTreeSet::new()).len(), 0);
}

#[test]
fn a_module_missing_from_the_map_is_found() {
    let root = "pub mod bond;\nmod wire;\npub(crate) mod flow;\n";
    let map =
        "# Map\n## `plait`\n- `wire`\n## Crate `plait-proto`\n- `bond`: x\n- `flow`: y\n## Z\n";
    let missing = "ARCHITECTURE.md does not name `wire` under `plait-proto`";
    assert_eq!(map_names_modules("plait-proto", root, map), [missing]);
    assert_eq!(map_names_modules("plait-sim", root, map).len(), 1);
}

#[test]
fn a_file_that_is_not_there_and_a_long_way_are_found() {
    let step = |file: &str| format!("1. `{file}`: something\n");
    let map = |out: &str| {
        let rest = "\n## A packet's way in\n1. `a.rs`: x\n\n## An option's way\n1. `a.rs`: x\n";
        format!("\n## A packet's way out\n{out}{rest}")
    };
    let files = BTreeSet::from(["crates/a.rs".to_owned()]);
    assert_eq!(ways(&map(&step("a.rs")), &files), Vec::<String>::new());
    assert_eq!(ways(&map(&step("b.rs")), &files).len(), 1, "it is not there");
    assert_eq!(ways(&map(&step("a.rs").repeat(13)), &files).len(), 1, "it is long");
    assert_eq!(ways(&map(""), &files).len(), 1, "it has no files");
    assert_eq!(ways("", &files).len(), 3);
}

#[test]
fn a_citation_of_no_clause_is_found() {
    let page = "# Wire\n**W-1** The first byte.\n- W-2: Text with W-9 inside.\n### H-3 Cookies\n";
    let clauses = defined_clauses(page);
    assert_eq!(clauses.iter().collect::<Vec<_>>(), ["H-3", "W-1", "W-2"]);
    assert_eq!(citations("as said (spec W-1 to W-2), and [H-3]", &clauses).len(), 0);
    assert_eq!(citations("as said (spec W-1 to W-9)", &clauses).len(), 1);
    assert_eq!(citations("as said in [K-4]", &clauses).len(), 1);
}

#[test]
fn lettered_clauses_are_read() {
    let clauses = defined_clauses("- **P-5c** Text.\n- **P-5** Text.\n- **P-5cd** Text.\n");
    assert_eq!(clauses.iter().collect::<Vec<_>>(), ["P-5", "P-5c"]);
    assert_eq!(cited_clauses("as said (spec P-5c, P-5)"), ["P-5c", "P-5"]);
    assert_eq!(citations("as said (spec P-5b)", &clauses).len(), 1);
    assert_eq!(citations("/// Spec P-5a: text", &clauses).len(), 1);
}

#[test]
fn a_clause_that_no_test_names_is_found() {
    let text = "//! Spec W-1.\n/// Spec W-2: code.\nfn code() {}\n\n/// Spec W-3.\n#[test]\n\
                fn a() {\n    // spec W-4, W-5\n    code(); // spec W-6\n}\n\n// spec W-7\n\
                /// Spec W-8a: text.\n    #[cfg(unix)]\n    #[test]\n    fn b() {\n    }\n";
    let tested = tested_clauses(text);
    assert_eq!(tested.iter().collect::<Vec<_>>(), ["W-3", "W-4", "W-5", "W-7", "W-8a"]);
    let defined = ["W-1", "W-3", "W-8a"].map(str::to_owned).into();
    let missing = clauses_without_a_test(&defined, &tested);
    assert_eq!(missing, ["no test names clause W-1 (\"spec W-1\")"]);
}
