//! State that a scheduler keeps for each path.

use crate::seq::PathId;

/// A value per path id, the default one until it is touched. Memory grows only when an id is seen
/// for the first time, and ends at 256 values.
#[derive(Debug)]
pub(super) struct ByPath<T>(Vec<T>);

impl<T> Default for ByPath<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Default> ByPath<T> {
    pub(super) fn get(&self, path: PathId) -> Option<&T> {
        self.0.get(usize::from(path.0))
    }

    pub(super) fn touch(&mut self, path: PathId) -> &mut T {
        let index = usize::from(path.0);
        if self.0.len() <= index {
            self.0.resize_with(index + 1, T::default);
        }
        &mut self.0[index]
    }

    pub(super) fn forget(&mut self, path: PathId) {
        if let Some(value) = self.0.get_mut(usize::from(path.0)) {
            *value = T::default();
        }
    }
}
