//! Declares the shape of a record: the fields that it takes, and their types.

/// Declares a record that is read field by field. All fields are optional, and repeated ones
/// overwrite.
///
/// A field is declared as `name: how "key" | "other key"`, where `how` is one of the methods of
/// [`Field`](crate::json::read::Field): `text`, `json`, `number`, `integer`, `float`, `flag`,
/// `record<Type>`, `whole<Type>`, `records<Type>` or `shape<Type>`. With `json<Type>`, the value is
/// kept as JSON, and its fields are those of a record that is read from it later.
macro_rules! record {
    ($(#[$meta:meta])* $vis:vis struct $name:ident<'a> {
        $($(#[$doc:meta])* $field:ident: $how:ident $(<$inner:ident>)? $($key:literal)|+,)*
    }) => {
        $(#[$meta])*
        #[derive(Debug, Default, Clone)]
        $vis struct $name<'a> {
            $($(#[$doc])* $vis $field: crate::json::record!(@type 'a $how $($inner)?),)*
        }

        impl<'a> crate::json::read::Record<'a> for $name<'a> {
            #[inline]
            fn field(
                &mut self,
                name: &str,
                value: crate::json::read::Field<'_, 'a>,
            ) -> Result<(), crate::json::read::Flaw> {
                match name {
                    $($($key)|+ => {
                        crate::json::record!(@take value $how self.$field);
                    })*
                    _ => value.skip()?,
                }
                Ok(())
            }

            fn shape() -> crate::json::Shape {
                crate::json::Shape::Fields(&[$(crate::json::KnownField {
                    names: &[$($key),+],
                    inside: crate::json::record!(@inside $how $($inner)?),
                },)*])
            }
        }
    };
    // A value that is kept whole may have any fields.
    (@inside whole $inner:ident) => { crate::json::Shape::anything };
    (@inside $how:ident $($inner:ident)?) => { crate::json::known!(@inside $($inner)?) };
    (@type $a:lifetime text) => { Option<crate::json::Text<$a>> };
    (@type $a:lifetime json $($inner:ident)?) => { Option<crate::json::Json<$a>> };
    (@type $a:lifetime number) => { Option<u64> };
    (@type $a:lifetime integer) => { Option<i64> };
    (@type $a:lifetime float) => { Option<f64> };
    (@type $a:lifetime flag) => { Option<bool> };
    (@type $a:lifetime record $inner:ident) => { Option<$inner<$a>> };
    (@type $a:lifetime whole $inner:ident) => {
        Option<crate::json::read::Whole<$a, $inner<$a>>>
    };
    (@type $a:lifetime records $inner:ident) => { Vec<$inner<$a>> };
    (@type $a:lifetime shape $inner:ident) => { crate::json::read::Shaped<$a, $inner<$a>> };
    (@take $value:ident text $place:expr) => { $place = $value.text()? };
    (@take $value:ident json $place:expr) => { $place = $value.json()? };
    (@take $value:ident number $place:expr) => { $place = $value.number()? };
    (@take $value:ident integer $place:expr) => { $place = $value.integer()? };
    (@take $value:ident float $place:expr) => { $place = $value.float()? };
    (@take $value:ident flag $place:expr) => { $place = $value.flag()? };
    (@take $value:ident record $place:expr) => { $value.record(&mut $place)? };
    (@take $value:ident whole $place:expr) => { $value.whole(&mut $place)? };
    (@take $value:ident records $place:expr) => { $value.records(&mut $place)? };
    (@take $value:ident shape $place:expr) => { $value.shape(&mut $place)? };
}

/// The [`Shape`](crate::json::Shape) of a record that is read by hand: `"key" | "other key"`, and
/// `=> Type` where the value is a record of its own.
macro_rules! known {
    ($($($key:literal)|+ $(=> $inner:ident)?,)*) => {
        crate::json::Shape::Fields(&[$(crate::json::KnownField {
            names: &[$($key),+],
            inside: crate::json::known!(@inside $($inner)?),
        },)*])
    };
    (@inside) => { crate::json::Shape::anything };
    (@inside $inner:ident) => { <$inner<'static> as crate::json::read::Record<'static>>::shape };
}

pub(crate) use {known, record};
