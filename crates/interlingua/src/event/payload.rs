//! What all payloads have in common: they are read and written as JSON, absent fields are left
//! out, and each has a copy that does not borrow from the frame.

use crate::json::{Json, Text};

/// Makes a copy that does not borrow.
pub(crate) trait Own {
    /// The type of the copy.
    type Owned;

    /// Makes the copy.
    fn own(self) -> Self::Owned;
}

impl Own for Text<'_> {
    type Owned = Text<'static>;

    fn own(self) -> Text<'static> {
        self.into_owned()
    }
}

impl Own for Json<'_> {
    type Owned = Json<'static>;

    fn own(self) -> Json<'static> {
        self.into_owned()
    }
}

impl<T: Own> Own for Option<T> {
    type Owned = Option<T::Owned>;

    fn own(self) -> Self::Owned {
        self.map(Own::own)
    }
}

impl<T: Own> Own for Vec<T> {
    type Owned = Vec<T::Owned>;

    fn own(self) -> Self::Owned {
        self.into_iter().map(Own::own).collect()
    }
}

impl<T: Own> Own for Box<T> {
    type Owned = Box<T::Owned>;

    fn own(self) -> Self::Owned {
        Box::new((*self).own())
    }
}

/// Types that never borrow.
macro_rules! owned {
    ($($name:ty),+ $(,)?) => {
        $(impl $crate::event::payload::Own for $name {
            type Owned = Self;

            fn own(self) -> Self {
                self
            }
        }
        impl $crate::event::payload::Absent for $name {})+
    };
}

owned!(u32, u64, i64, f64);

/// Whether a field is empty and left out.
pub(crate) trait Absent {
    /// Whether an empty list of these is left out.
    const NONE_IS_ABSENT: bool = true;

    fn absent(&self) -> bool {
        false
    }
}

impl Absent for Text<'_> {}
impl Absent for Json<'_> {}

impl<T> Absent for Option<T> {
    fn absent(&self) -> bool {
        self.is_none()
    }
}

impl<T: Absent> Absent for Vec<T> {
    fn absent(&self) -> bool {
        self.is_empty() && T::NONE_IS_ABSENT
    }
}

impl Absent for bool {
    fn absent(&self) -> bool {
        !self
    }
}

impl Own for bool {
    type Owned = bool;

    fn own(self) -> bool {
        self
    }
}

/// Declares a payload. Lists of a `listed` one are written even if they are empty.
macro_rules! payload {
    ($(#[doc = $about:literal])* pub struct $name:ident<'a> $fields:tt) => {
        payload!(@declare true $(#[doc = $about])* $name $fields);
    };
    ($(#[doc = $about:literal])* pub listed struct $name:ident<'a> $fields:tt) => {
        payload!(@declare false $(#[doc = $about])* $name $fields);
    };
    (@declare $absent:literal $(#[doc = $about:literal])* $name:ident {
        $($(#[doc = $doc:literal])* pub $field:ident: $kind:ty,)*
    }) => {
        $(#[doc = $about])*
        #[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize)]
        #[serde(default, bound(deserialize = "'de: 'a"))]
        pub struct $name<'a> {
            $(
                $(#[doc = $doc])*
                #[serde(skip_serializing_if = "crate::event::payload::Absent::absent")]
                pub $field: $kind,
            )*
        }

        impl crate::event::payload::Own for $name<'_> {
            type Owned = $name<'static>;

            fn own(self) -> $name<'static> {
                $name { $($field: self.$field.own(),)* }
            }
        }
        impl crate::event::payload::Absent for $name<'_> {
            const NONE_IS_ABSENT: bool = $absent;
        }
        impl<'a> crate::event::schema::Described for $name<'a> {
            fn schema() -> serde_json::Value {
                crate::event::schema::object(
                    concat!($($about),*),
                    &[$((
                        stringify!($field),
                        concat!($($doc),*),
                        <$kind as crate::event::schema::Described>::schema(),
                    ),)*],
                )
            }
        }
    };
}

pub(crate) use {owned, payload};
