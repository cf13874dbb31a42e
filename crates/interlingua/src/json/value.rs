//! A JSON value that passes through without being read.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::Text;
use super::cursor::Cursor;

/// Any JSON value, as it was written in the frame.
#[derive(Clone)]
pub struct Json<'a>(Stored<'a>);

/// The text of a value.
#[derive(Clone)]
enum Stored<'a> {
    Borrowed(&'a str),
    /// Shared by all copies, since a value may have megabytes.
    Shared(Arc<String>),
}

impl<'a> Json<'a> {
    /// The value `null`.
    pub(crate) const NULL: Self = Json(Stored::Borrowed("null"));

    /// The JSON form of a caller's value; `None` if it has none.
    pub fn from_serialize<T: Serialize + ?Sized>(value: &T) -> Option<Json<'static>> {
        serde_json::to_string(value).ok().map(Json::owned)
    }

    /// The value of a caller's text; `None` if it is not valid JSON.
    pub fn from_text(text: String) -> Option<Json<'static>> {
        let mut cursor = Cursor::new(&text);
        let whole = cursor.value().is_ok_and(|value| value.len() == text.len());
        if whole { Some(Json::owned(text)) } else { None }
    }

    /// Text that is known to be a JSON value.
    #[inline]
    pub(crate) fn read_from(text: &'a str) -> Self {
        Json(Stored::Borrowed(text))
    }

    /// Text that is known to be a JSON value.
    fn owned(text: String) -> Json<'static> {
        Json(Stored::Shared(Arc::new(text)))
    }

    /// An object that is written field by field.
    pub fn object(fields: impl FnOnce(&mut super::write::Object<'_>)) -> Json<'static> {
        let mut bytes = Vec::with_capacity(256);
        let mut object = super::write::Object::open(&mut bytes);
        fields(&mut object);
        object.close();
        // An `Object` writes valid JSON.
        String::from_utf8(bytes).map_or(Json::NULL, Json::owned)
    }

    /// The JSON text.
    pub fn get(&self) -> &str {
        match &self.0 {
            Stored::Borrowed(text) => text,
            Stored::Shared(text) => text,
        }
    }

    /// The text, if the value is a string.
    pub fn as_text(&self) -> Option<Text<'_>> {
        Text::read_from(self.get())
    }

    /// Whether the value is an object.
    pub fn is_object(&self) -> bool {
        self.get().starts_with('{')
    }

    /// Whether the value is an array.
    pub fn is_array(&self) -> bool {
        self.get().starts_with('[')
    }

    /// Whether the value is `null`.
    pub fn is_null(&self) -> bool {
        self.get() == "null"
    }

    /// The same value, borrowed from this one.
    pub fn borrowed(&self) -> Json<'_> {
        Json(Stored::Borrowed(self.get()))
    }

    /// A copy that does not borrow from the frame.
    pub fn into_owned(self) -> Json<'static> {
        match self.0 {
            Stored::Borrowed(text) => Json::owned(text.to_owned()),
            Stored::Shared(text) => Json(Stored::Shared(text)),
        }
    }

    /// Reads the value into a type that borrows from it; `None` if it has another shape.
    pub fn read<'s, T: Deserialize<'s>>(&'s self) -> Option<T> {
        serde_json::from_str(self.get()).ok()
    }
}

impl<'a> From<&'a RawValue> for Json<'a> {
    fn from(raw: &'a RawValue) -> Self {
        Self(Stored::Borrowed(raw.get()))
    }
}

impl From<&Text<'_>> for Json<'static> {
    fn from(text: &Text<'_>) -> Self {
        let mut literal = Vec::with_capacity(text.body().len() + 2);
        super::write::text(&mut literal, text);
        String::from_utf8(literal).map_or(Json::NULL, Json::owned)
    }
}

impl PartialEq for Json<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
            || matches!(
                (self.read::<serde_json::Value>(), other.read::<serde_json::Value>()),
                (Some(one), Some(two)) if one == two
            )
    }
}

impl fmt::Debug for Json<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.get())
    }
}

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write_raw(self.get(), serializer)
    }
}

/// Writes a value unchanged.
pub(super) fn write_raw<S: Serializer>(value: &str, serializer: S) -> Result<S::Ok, S::Error> {
    let raw: &RawValue = serde_json::from_str(value).map_err(serde::ser::Error::custom)?;
    raw.serialize(serializer)
}

impl<'de: 'a, 'a> Deserialize<'de> for Json<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(deserializer).map(Self::from)
    }
}
