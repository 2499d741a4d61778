//! `like`: a scenario that is based on another one's file.
//!
//! The file's own content overrides the other's: a section merges into the section of its name, a
//! value replaces the value. A list of sections, such as `[[check]]`, is appended; a section in the
//! place of a list, such as `[app.down]`, merges into the member of that name. `[links.NAME]`
//! replaces the other's link as a whole.

use plait_toml::{Entry, Node, Place, Problem, Section, Table, Value};

use super::files::Reader;
use super::settings;

/// The longest chain of files.
const DEPTH_MAX: usize = 4;

/// The table with its base merged under it. Problems are noted; the table is then as far as it
/// could be read.
pub(super) fn resolve(root: Table, files: &Reader<'_>) -> Table {
    let mut layers = vec![root];
    while let Some(like) = layers.last().and_then(|layer| layer.get("like")) {
        let key_place = like.key_place.clone();
        let problem = |problem: Problem| files.problems().add(&key_place, "like", problem);
        let Value::Text(name) = &like.node.value else {
            problem(Problem::new("it is no name of a file", "write like = \"other.toml\""));
            break;
        };
        if layers.len() > DEPTH_MAX {
            let text = format!("more than {DEPTH_MAX} files, each like another");
            problem(Problem::new(text, "let one of them begin from none"));
            break;
        }
        match files.table(&like.node.place, name) {
            Ok(base) => layers.push(base),
            Err(error) => {
                let empty = Table::new();
                let section = Section::top(files.problems(), key_place.clone(), &empty);
                error.note(&section, "like", files.problems());
                break;
            }
        }
    }
    let mut merged = layers.pop().expect("the first layer is the scenario's own");
    while let Some(layer) = layers.pop() {
        overlay(&mut merged, layer, files, "");
    }
    merged.remove("like");
    merged
}

/// Merges `own` over `base`; `inside` is the section that contains both.
fn overlay(base: &mut Table, own: Table, files: &Reader<'_>, inside: &str) {
    for (key, entry) in own {
        let whole = inside == "links";
        match (base.get_mut(&key).map(|entry| &mut entry.node.value), entry.node.value) {
            (Some(Value::Table(under)), Value::Table(over)) if !whole => {
                overlay(under, over, files, &key);
            }
            (Some(Value::List(under)), Value::List(over))
                if matches!(inside, "" | "draw") && is_sections(under) && is_sections(&over) =>
            {
                under.extend(over);
            }
            (Some(Value::List(under)), Value::Table(over)) if is_sections(under) => {
                into_members(&key, under, over, files);
            }
            (_, value) => {
                let node = Node { place: entry.node.place, value };
                base.insert(key, Entry { key_place: entry.key_place, node });
            }
        }
    }
}

/// Merges each section of `own` into the list's member of its name.
fn into_members(list: &str, members: &mut [Node], own: Table, files: &Reader<'_>) {
    for (name, entry) in own {
        let place: &Place = &entry.key_place;
        let member = match settings::element(list, members, Some(&name)) {
            Ok(member) => member,
            Err(problem) => {
                files.problems().add(place, format!("[{list}.{name}]"), problem);
                continue;
            }
        };
        match entry.node.value {
            Value::Table(over) => overlay(member, over, files, list),
            _ => {
                let text = format!("no section for the [[{list}]] called \"{name}\"");
                let help = format!("write its options under [{list}.{name}]");
                files.problems().add(place, name, Problem::new(text, help));
            }
        }
    }
}

fn is_sections(list: &[Node]) -> bool {
    list.iter().all(|node| matches!(node.value, Value::Table(_)))
}
