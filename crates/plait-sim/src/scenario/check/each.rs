//! One check for each combination of some axes' values.

use plait_toml::{Problem, Section};

use super::{Check, CheckKind, read_axes};
use crate::scenario::sweep::{Axis, Selector, Settings, display, read_selector};

/// What a check is repeated for; without axes it stays one.
pub(super) struct Each<'a> {
    axes: Vec<&'a Axis>,
    /// The repetitions that are required, where not all are.
    required_of: Option<Selector>,
}

impl<'a> Each<'a> {
    /// Reads `each` and `required_of` of a check of this name, over cells that it names by itself.
    pub(super) fn read(
        section: &mut Section<'_>,
        axes: &'a [Axis],
        (name, cells): (Option<&str>, &Selector),
    ) -> Self {
        let named = read_axes(section, "each", axes);
        for axis in &named {
            if cells.names(axis) {
                let text = format!("where chooses values of {axis}, which each goes through");
                section.problem("each", Problem::new(text, "keep one of the two"));
            }
            if name.is_some_and(|name| !name.contains(&placeholder(axis))) {
                let text = format!("its repetitions for {axis} have one name");
                let help = format!("write {} into the name", placeholder(axis));
                section.problem("name", Problem::new(text, help));
            }
        }
        let has_some = section.holds_any(&["required_of"]);
        if named.is_empty() {
            let belongs_to = "each = [\"axis\"]";
            section.no_effect(&["required_of"], "a check that is not repeated", belongs_to);
        }
        let required_of = read_selector(section, "required_of", axes);
        Self {
            axes: axes.iter().filter(|axis| named.contains(&axis.name)).collect(),
            required_of: has_some.then_some(required_of),
        }
    }

    /// The repetitions, the last axis fastest.
    pub(super) fn repeat(&self, check: Check) -> Vec<Check> {
        let mut all = vec![(Settings::new(), check)];
        for axis in &self.axes {
            let of_axis = |(settings, check): &(Settings, Check)| {
                let of_value = |value| {
                    let mut settings = settings.clone();
                    settings.insert(axis.name.clone(), toml::Value::clone(value));
                    (settings, within(check, axis, value))
                };
                axis.values.iter().map(of_value).collect::<Vec<_>>()
            };
            all = all.iter().flat_map(of_axis).collect();
        }
        let judged = |(settings, mut check): (Settings, Check)| {
            let is_chosen = |some: &Selector| some.chooses(&settings);
            check.required &= self.required_of.as_ref().is_none_or(is_chosen);
            check
        };
        all.into_iter().map(judged).collect()
    }
}

fn placeholder(axis: &str) -> String {
    format!("{{{axis}}}")
}

/// A check whose cells all have this value, those that it compares with too.
fn within(check: &Check, axis: &Axis, value: &toml::Value) -> Check {
    let mut check = check.clone();
    check.name = check.name.replace(&placeholder(&axis.name), &display(value));
    check.cells.also(&axis.name, value);
    match &mut check.kind {
        CheckKind::Larger { than: others }
        | CheckKind::Ratio { to: others, .. }
        | CheckKind::Best { to: others }
        | CheckKind::Lead { to: others } => others.also(&axis.name, value),
        CheckKind::Band
        | CheckKind::Worst
        | CheckKind::RmsLnError
        | CheckKind::Ordering { .. }
        | CheckKind::Spread
        | CheckKind::Share { .. }
        | CheckKind::BestFit { .. }
        | CheckKind::HoldOut { .. }
        | CheckKind::FitEnd { .. } => {}
    }
    check
}
