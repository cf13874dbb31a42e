//! The known fields of a record, by which unknown ones are found.

/// The fields that are read from an object.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// All of them: the object is kept whole.
    Anything,
    /// Only these.
    Fields(&'static [KnownField]),
}

/// A field that is read.
#[derive(Debug, Clone, Copy)]
pub struct KnownField {
    /// The names under which it is known.
    pub names: &'static [&'static str],
    /// The shape of the objects in it.
    pub inside: fn() -> Shape,
}

impl Shape {
    /// The shape of a value that is kept whole.
    pub fn anything() -> Self {
        Self::Anything
    }

    /// The shape of a field; `None` if the field is not read.
    pub fn of_field(self, name: &str) -> Option<Self> {
        match self {
            Self::Anything => Some(Self::Anything),
            Self::Fields(fields) => {
                let known = fields.iter().find(|field| field.names.contains(&name))?;
                Some((known.inside)())
            }
        }
    }
}
