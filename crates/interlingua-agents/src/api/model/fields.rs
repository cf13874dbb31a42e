//! The fields of an object that is sent back as the provider wrote it.

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// The fields of an object, in their order. Their values are kept as text: a number that is too
/// long for a float would change as a parsed value, and what the provider signed would not match.
#[derive(Debug, Clone, Default)]
pub(super) struct Fields(Vec<(String, Box<RawValue>)>);

impl Fields {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn get(&self, name: &str) -> Option<&RawValue> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }

    /// A field that is a string.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        serde_json::from_str(self.get(name)?.get()).ok()
    }

    /// Sets a field. A new one is the last; a value that has no JSON form changes nothing.
    pub(super) fn set(&mut self, name: &str, value: &(impl Serialize + ?Sized)) {
        if let Ok(value) = serde_json::value::to_raw_value(value) {
            self.insert(name.to_owned(), value);
        }
    }

    /// Of a repeated field, the last value is kept.
    fn insert(&mut self, name: String, value: Box<RawValue>) {
        match self.0.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => *known = value,
            None => self.0.push((name, value)),
        }
    }
}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = Fields;

            fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Fields, M::Error> {
                let mut fields = Fields::default();
                while let Some((name, value)) = map.next_entry()? {
                    fields.insert(name, value);
                }
                Ok(fields)
            }
        }

        deserializer.deserialize_map(Object)
    }
}
