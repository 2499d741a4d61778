//! A map from path ids to what is kept of each path.

use crate::seq::PathId;

const NO_PLACE: u16 = u16::MAX;

/// A map in the order of ids. Paths are looked up several times a packet, and there are only 256
/// ids: a table says where each has its value.
#[derive(Debug)]
pub(crate) struct PathMap<T> {
    places: [u16; 256],
    /// In ascending order.
    ids: Vec<PathId>,
    /// The value of each id, at the same place.
    values: Vec<T>,
}

impl<T> Default for PathMap<T> {
    fn default() -> Self {
        Self { places: [NO_PLACE; 256], ids: Vec::new(), values: Vec::new() }
    }
}

impl<T> PathMap<T> {
    fn place(&self, id: PathId) -> Option<usize> {
        let place = self.places[usize::from(id.0)];
        (place != NO_PLACE).then_some(usize::from(place))
    }

    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    pub(crate) fn contains(&self, id: PathId) -> bool {
        self.place(id).is_some()
    }

    pub(crate) fn get(&self, id: PathId) -> Option<&T> {
        self.place(id).map(|at| &self.values[at])
    }

    pub(crate) fn get_mut(&mut self, id: PathId) -> Option<&mut T> {
        self.place(id).map(|at| &mut self.values[at])
    }

    /// The value of an id, made first if there is none.
    pub(crate) fn get_or_insert_with(&mut self, id: PathId, make: impl FnOnce() -> T) -> &mut T {
        let at = match self.place(id) {
            Some(at) => at,
            None => self.insert_new(id, make()),
        };
        &mut self.values[at]
    }

    /// Sets the value of an id.
    pub(crate) fn insert(&mut self, id: PathId, value: T) {
        match self.place(id) {
            Some(at) => self.values[at] = value,
            None => {
                self.insert_new(id, value);
            }
        }
    }

    fn insert_new(&mut self, id: PathId, value: T) -> usize {
        let at = self.ids.partition_point(|known| *known < id);
        self.ids.insert(at, id);
        self.values.insert(at, value);
        self.note_places_from(at);
        at
    }

    fn note_places_from(&mut self, at: usize) {
        for (place, id) in self.ids.iter().enumerate().skip(at) {
            self.places[usize::from(id.0)] = place as u16;
        }
    }

    pub(crate) fn remove(&mut self, id: PathId) {
        if let Some(at) = self.place(id) {
            self.ids.remove(at);
            self.values.remove(at);
            self.places[usize::from(id.0)] = NO_PLACE;
            self.note_places_from(at);
        }
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = PathId> + '_ {
        self.ids.iter().copied()
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.values.iter()
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.values.iter_mut()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (PathId, &T)> {
        self.ids.iter().copied().zip(&self.values)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (PathId, &mut T)> {
        self.ids.iter().copied().zip(&mut self.values)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn is_a_map_in_the_order_of_ids(ops in vec((0..3, 0..8_u8, 0..9_u32), 0..60)) {
            let (mut map, mut model) = (PathMap::default(), BTreeMap::new());
            for (op, id, value) in ops {
                match op {
                    0 => {
                        map.insert(PathId(id), value);
                        model.insert(PathId(id), value);
                    }
                    1 => {
                        *map.get_or_insert_with(PathId(id), || value) += 1;
                        *model.entry(PathId(id)).or_insert(value) += 1;
                    }
                    _ => {
                        map.remove(PathId(id));
                        model.remove(&PathId(id));
                    }
                }
                prop_assert_eq!(map.get(PathId(id)), model.get(&PathId(id)));
            }
            let known: Vec<_> = map.iter().map(|(id, value)| (id, *value)).collect();
            prop_assert_eq!(known, model.into_iter().collect::<Vec<_>>());
        }
    }
}
