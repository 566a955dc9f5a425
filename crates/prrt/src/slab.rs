//! Fixed places for values with keys that go stale when the place is reused, so that a late acknowledgement or timer can
//! never touch another message.

/// Names a place and one occupant of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    index: u32,
    generation: u32,
}

#[derive(Debug)]
struct Place<T> {
    generation: u32,
    value: Option<T>,
}

/// Places that grow to the largest number of values held at once and are then reused.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self {
            places: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Slab<T> {
    pub(crate) fn insert(&mut self, value: T) -> Key {
        let index = self.free.pop().unwrap_or(self.places.len() as u32);
        if index as usize == self.places.len() {
            self.places.push(Place {
                generation: 0,
                value: None,
            });
        }
        let Some(place) = self.places.get_mut(index as usize) else {
            return Key {
                index,
                generation: u32::MAX,
            };
        };
        place.value = Some(value);
        Key {
            index,
            generation: place.generation,
        }
    }

    pub(crate) fn get(&self, key: Key) -> Option<&T> {
        self.places
            .get(key.index as usize)
            .filter(|place| place.generation == key.generation)?
            .value
            .as_ref()
    }

    pub(crate) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        self.places
            .get_mut(key.index as usize)
            .filter(|place| place.generation == key.generation)?
            .value
            .as_mut()
    }

    pub(crate) fn remove(&mut self, key: Key) -> Option<T> {
        let place = self
            .places
            .get_mut(key.index as usize)
            .filter(|place| place.generation == key.generation)?;
        let value = place.value.take()?;
        place.generation = place.generation.wrapping_add(1);
        self.free.push(key.index);
        Some(value)
    }

    /// Number of values held.
    pub(crate) fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Every value, in order of place.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        self.places.iter().enumerate().filter_map(|(index, place)| {
            let key = Key {
                index: index as u32,
                generation: place.generation,
            };
            place.value.as_ref().map(|value| (key, value))
        })
    }

    /// Every value, in order of place.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (Key, &mut T)> {
        self.places
            .iter_mut()
            .enumerate()
            .filter_map(|(index, place)| {
                let key = Key {
                    index: index as u32,
                    generation: place.generation,
                };
                place.value.as_mut().map(|value| (key, value))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stale_keys_find_nothing() {
        let mut slab = Slab::default();
        let old = slab.insert("a");
        assert_eq!(slab.remove(old), Some("a"));
        let new = slab.insert("b");
        assert!(
            slab.get(old).is_none() && slab.get_mut(old).is_none() && slab.remove(old).is_none()
        );
        assert_eq!((slab.get(new), slab.len()), (Some(&"b"), 1));
    }
}
