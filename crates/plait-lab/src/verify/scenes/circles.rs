//! Top-level modules of a crate do not import each other in a circle, so each can be read after
//! those that it stands on.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

use anyhow::{Context, Result};

/// Who imports whom.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// The top-level module of a file, by its path below `src`.
pub(super) fn module_of(file: &str) -> &str {
    file.split(['/', '.']).next().unwrap_or(file)
}

pub(super) fn is_for_tests(file: &str) -> bool {
    let parts = ["tests", "tests.rs", "testing", "testing.rs"];
    file.split('/').any(|part| parts.contains(&part))
}

/// The modules that a file's code names by `crate::`, tests at its end and comments left out.
fn named(text: &str) -> BTreeSet<String> {
    let code = text.split("\n#[cfg(test)]\nmod tests").next().unwrap_or(text);
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code: String = lines.flat_map(|line| [line, "\n"]).collect();
    let first_word = |rest: &str| {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        rest[..end].to_owned()
    };
    let mut found = BTreeSet::new();
    for rest in code.split("crate::").skip(1) {
        match rest.strip_prefix('{').and_then(|group| group.split("};").next()) {
            Some(group) => found.extend(group.split(',').map(|item| first_word(item.trim()))),
            None => drop(found.insert(first_word(rest))),
        }
    }
    found
}

/// Who imports whom among the modules of these files.
fn imports(files: &[(String, String)]) -> Imports {
    let modules: BTreeSet<&str> = files.iter().map(|(file, _)| module_of(file)).collect();
    let mut imports = Imports::new();
    for (file, text) in files.iter().filter(|(file, _)| !is_for_tests(file)) {
        let own = module_of(file);
        let is_other = |module: &String| module != own && modules.contains(module.as_str());
        imports.entry(own.to_owned()).or_default().extend(named(text).into_iter().filter(is_other));
    }
    for root in ["main", "lib"] {
        imports.remove(root);
    }
    imports
}

/// A circle, as the modules on it in their order.
fn circle(imports: &Imports) -> Option<Vec<String>> {
    fn follow(imports: &Imports, way: &mut Vec<String>, done: &mut BTreeSet<String>) -> bool {
        let last = way.last().expect("a way begins somewhere").clone();
        for next in imports.get(&last).into_iter().flatten() {
            if let Some(start) = way.iter().position(|module| module == next) {
                way.drain(..start);
                return true;
            }
            if !done.contains(next) {
                way.push(next.clone());
                if follow(imports, way, done) {
                    return true;
                }
                way.pop();
            }
        }
        done.insert(last);
        false
    }
    let mut done = BTreeSet::new();
    imports.keys().find_map(|start| {
        let mut way = vec![start.clone()];
        follow(imports, &mut way, &mut done).then_some(way)
    })
}

/// All files of Rust below a folder: name and text.
pub(super) fn read(folder: &Path) -> Result<Vec<(String, String)>> {
    let mut files = Vec::new();
    read_below(folder, "", &mut files)
        .with_context(|| format!("cannot read what is in {}", folder.display()))?;
    Ok(files)
}

fn read_below(folder: &Path, below: &str, files: &mut Vec<(String, String)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = if below.is_empty() { name } else { format!("{below}/{name}") };
        if path.is_dir() {
            read_below(&path, &name, files)?;
        } else if name.ends_with(".rs") {
            files.push((name, fs::read_to_string(&path)?));
        }
    }
    Ok(())
}

/// A circle of a crate's top-level modules.
pub(super) fn of_crate(folder: &Path) -> Result<Option<Vec<String>>> {
    Ok(circle(&imports(&read(&folder.join("src"))?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_modules_import_each_other_in_a_circle() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut tried = 0;
        for entry in fs::read_dir(&crates).unwrap() {
            let folder = entry.unwrap().path();
            tried += u32::from(imports(&read(&folder.join("src")).unwrap()).len() > 5);
            assert_eq!(of_crate(&folder).unwrap(), None, "a circle of {}", folder.display());
        }
        assert!(tried >= 6, "{tried} crates with modules");
    }

    #[test]
    fn a_circle_is_found_and_tests_and_comments_make_none() {
        let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        let straight = [
            file("main.rs", "mod a;\nmod b;\nmod c;\nuse crate::a;\n"),
            file("a.rs", "use crate::{b::X, c};\n"),
            file("b/inner.rs", "//! [`crate::a`]\nuse crate::c::Y;\n"),
            file("c.rs", "struct Y;\n\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n"),
            file("c/tests.rs", "use crate::b;\n"),
        ];
        assert_eq!(circle(&imports(&straight)), None);
        let mut bent = straight.to_vec();
        bent[3].1 = "fn y() {\n    crate::a::z();\n}\n".into();
        assert_eq!(circle(&imports(&bent)), Some(vec!["a".into(), "b".into(), "c".into()]));
    }
}
