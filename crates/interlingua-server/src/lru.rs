//! A map of bounded size, which forgets what was not used for the longest time.

use std::collections::HashMap;
use std::hash::Hash;

#[derive(Debug)]
pub(crate) struct Lru<K, V> {
    capacity: usize,
    /// Counts uses; what has the lowest number was used the longest time ago.
    uses: u64,
    values: HashMap<K, (u64, V)>,
}

impl<K: Eq + Hash + Clone, V> Lru<K, V> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { capacity: capacity.max(1), uses: 0, values: HashMap::new() }
    }

    /// The value of a key, if it is known.
    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.uses += 1;
        let (used, value) = self.values.get_mut(key)?;
        *used = self.uses;
        Some(value)
    }

    /// Sets the value of a key.
    pub(crate) fn insert(&mut self, key: K, value: V) {
        self.uses += 1;
        if self.values.len() >= self.capacity && !self.values.contains_key(&key) {
            let oldest = self.values.iter().min_by_key(|(_, (used, _))| *used);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                self.values.remove(&oldest);
            }
        }
        self.values.insert(key, (self.uses, value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_used_for_the_longest_time_is_forgotten() {
        let mut map = Lru::new(2);
        map.insert("a", 1);
        map.insert("b", 2);
        assert_eq!(map.get_mut(&"a"), Some(&mut 1));
        map.insert("c", 3);
        assert_eq!(map.get_mut(&"b"), None);
        assert_eq!(map.get_mut(&"a"), Some(&mut 1));
        map.insert("a", 4);
        assert_eq!(map.get_mut(&"a"), Some(&mut 4));
        assert_eq!(map.get_mut(&"c"), Some(&mut 3));
    }
}
