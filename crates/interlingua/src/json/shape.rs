//! What a record is known to have: for those who look for what is new in a stream.

/// Which fields are read of an object.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// All of them: the object is carried as it is.
    Anything,
    /// These.
    Fields(&'static [KnownField]),
}

/// One field that is read.
#[derive(Debug, Clone, Copy)]
pub struct KnownField {
    /// The names under which it is known.
    pub names: &'static [&'static str],
    /// What is read of the objects in it.
    pub inside: fn() -> Shape,
}

impl Shape {
    /// What is carried as it is.
    pub fn anything() -> Self {
        Self::Anything
    }

    /// What is read of a field; `None` where it is not read at all.
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
