//! Reads the fields of a record in one pass.
//!
//! Derived deserializers reject a repeated key, which a real agent prints, and a DOM costs ten
//! times as much. A [`Record`] receives every field in the order of the text, including repeated
//! ones, and takes it raw, as text, or as a nested record. A field of an unexpected type is absent,
//! not an error: only text that is not JSON at all is one.

use super::cursor::Cursor;
use super::{Json, Shape, Text};

/// A type that is filled field by field.
pub trait Record<'a>: Default {
    /// Takes one field, or [skips](Field::skip) it.
    fn field(&mut self, name: &str, value: Field<'_, 'a>) -> Result<(), Flaw>;

    /// The fields that it takes, by which unknown fields are found.
    fn shape() -> Shape {
        Shape::Anything
    }
}

/// All fields of an object, unchanged.
#[derive(Debug, Default)]
pub struct Fields<'a>(pub Vec<(Box<str>, Json<'a>)>);

impl<'a> Record<'a> for Fields<'a> {
    fn field(&mut self, name: &str, value: Field<'_, 'a>) -> Result<(), Flaw> {
        self.0.push((name.into(), value.raw()?));
        Ok(())
    }
}

/// The value of the current field, which must be taken or skipped.
#[derive(Debug)]
pub struct Field<'c, 'a> {
    cursor: &'c mut Cursor<'a>,
}

impl<'a> Field<'_, 'a> {
    /// The value, unchanged.
    #[inline]
    pub fn raw(self) -> Result<Json<'a>, Flaw> {
        self.cursor.value().map(Json::read_from)
    }

    /// The value, unchanged; `None` for `null`.
    #[inline]
    pub fn json(self) -> Result<Option<Json<'a>>, Flaw> {
        let text = self.cursor.value()?;
        Ok((text != "null").then(|| Json::read_from(text)))
    }

    /// The value, if it is a string.
    #[inline]
    pub fn text(self) -> Result<Option<Text<'a>>, Flaw> {
        match self.cursor.string()? {
            Some(literal) => Ok(Some(Text::of_literal(literal, self.cursor.escaped()))),
            None => self.skip().map(|()| None),
        }
    }

    /// The value, if it is a non-negative integer.
    pub fn number(self) -> Result<Option<u64>, Flaw> {
        Ok(self.cursor.value()?.parse().ok())
    }

    /// The value, if it is an integer.
    pub fn integer(self) -> Result<Option<i64>, Flaw> {
        Ok(self.cursor.value()?.parse().ok())
    }

    /// The value, if it is a number.
    pub fn float(self) -> Result<Option<f64>, Flaw> {
        Ok(self.cursor.value()?.parse().ok())
    }

    /// The value, if it is a boolean.
    pub fn flag(self) -> Result<Option<bool>, Flaw> {
        Ok(self.cursor.value()?.parse().ok())
    }

    /// Reads the value into a nested record, in place; `None` if it is not an object.
    ///
    /// It is read in place because records are large, and moving them costs more than reading them.
    #[inline]
    pub fn record<R: Record<'a>>(self, place: &mut Option<R>) -> Result<(), Flaw> {
        if self.cursor.peek() != Some(b'{') {
            *place = None;
            return self.skip();
        }
        fill(self.cursor, place.insert(R::default()))
    }

    /// Like [`Field::record`], but also keeps the value itself, in one pass; `None` for `null`.
    pub fn whole<R: Record<'a>>(self, place: &mut Option<Whole<'a, R>>) -> Result<(), Flaw> {
        let is_object = self.cursor.peek() == Some(b'{');
        let start = self.cursor.at();
        let whole = place.insert(Whole { json: Json::NULL, record: R::default() });
        if is_object {
            fill(self.cursor, &mut whole.record)?;
        } else {
            self.cursor.value()?;
        }
        whole.json = Json::read_from(self.cursor.since(start));
        if whole.json.is_null() {
            *place = None;
        }
        Ok(())
    }

    /// Reads the value as an object, a list of records, or the text that some protocols use
    /// instead.
    pub fn shape<R: Record<'a>>(self, place: &mut Shaped<'a, R>) -> Result<(), Flaw> {
        match self.cursor.peek() {
            Some(b'{') => {
                *place = Shaped::Record(R::default());
                match place {
                    Shaped::Record(record) => fill(self.cursor, record),
                    _ => Ok(()),
                }
            }
            Some(b'[') => {
                *place = Shaped::List(list(self.cursor)?);
                Ok(())
            }
            _ => {
                let text = self.text()?;
                *place = text.map_or(Shaped::Other, Shaped::Text);
                Ok(())
            }
        }
    }

    /// Reads the value into a list of records; empty if it is not an array.
    pub fn records<R: Record<'a>>(self, place: &mut Vec<R>) -> Result<(), Flaw> {
        place.clear();
        if self.cursor.peek() == Some(b'[') {
            *place = list(self.cursor)?;
            return Ok(());
        }
        self.skip()
    }

    /// Skips the value.
    #[inline]
    pub fn skip(self) -> Result<(), Flaw> {
        self.cursor.skip_value()
    }
}

/// An unchanged value, and the record read from it, if it is an object.
#[derive(Debug, Clone)]
pub struct Whole<'a, R> {
    /// The value.
    pub json: Json<'a>,
    /// The record.
    pub record: R,
}

/// A value of one of several types.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Shaped<'a, R> {
    /// An object.
    Record(R),
    /// An array, without the elements that are not objects.
    List(Vec<R>),
    /// A string.
    Text(Text<'a>),
    /// Anything else.
    #[default]
    Other,
}

/// Why text is not a record.
///
/// It is small and `Copy`, since every step through a record may return one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    /// It is JSON, but not an object.
    NotAnObject,
    /// It ends in the middle.
    Incomplete,
    /// It contains a number that is out of range.
    OutOfRange {
        /// The number of the byte, from 1.
        column: u32,
    },
    /// It is not JSON, from about this byte on.
    NotJson {
        /// The number of the byte, from 1.
        column: u32,
    },
}

/// Reads the object at the start of a text into a record; returns the object's text and the text
/// after it.
pub fn record<'a, R: Record<'a>>(text: &'a str, into: &mut R) -> Result<(&'a str, &'a str), Flaw> {
    let mut cursor = Cursor::new(text);
    if cursor.peek() != Some(b'{') {
        cursor.value()?;
        return Err(Flaw::NotAnObject);
    }
    fill(&mut cursor, into)?;
    text.split_at_checked(cursor.at()).ok_or(Flaw::Incomplete)
}

/// Reads a value as a record, if it is an object.
pub fn record_of<'a, R: Record<'a>>(value: &'a Json<'_>) -> Option<R> {
    let mut into = R::default();
    record(value.get(), &mut into).ok().map(|_| into)
}

/// Reads a value as a list of records, if it is an array; elements that are not objects are left
/// out.
pub fn records_of<'a, R: Record<'a>>(value: &'a Json<'_>) -> Option<Vec<R>> {
    let mut cursor = Cursor::new(value.get());
    if cursor.peek() == Some(b'[') { list(&mut cursor).ok() } else { None }
}

/// Like [`records_of`], but also keeps each element itself.
pub fn wholes_of<'a, R: Record<'a>>(value: &'a Json<'_>) -> Option<Vec<Whole<'a, R>>> {
    let mut cursor = Cursor::new(value.get());
    if cursor.peek() != Some(b'[') {
        return None;
    }
    let mut wholes = Vec::new();
    cursor.expect(b'[').ok()?;
    if cursor.peek() == Some(b']') {
        return Some(wholes);
    }
    loop {
        let mut whole = None;
        Field { cursor: &mut cursor }.whole(&mut whole).ok()?;
        wholes.extend(whole.filter(|whole: &Whole<'_, R>| whole.json.is_object()));
        if !cursor.continues(b']').ok()? {
            return Some(wholes);
        }
    }
}

/// Reads an object, field by field.
#[inline]
fn fill<'a, R: Record<'a>>(cursor: &mut Cursor<'a>, record: &mut R) -> Result<(), Flaw> {
    cursor.expect(b'{')?;
    if cursor.peek() == Some(b'}') {
        return cursor.expect(b'}');
    }
    loop {
        let name = cursor.name()?;
        if cursor.escaped() {
            record.field(&Text::of_literal_body(name), Field { cursor })?;
        } else {
            record.field(name, Field { cursor })?;
        }
        if !cursor.continues(b'}')? {
            return Ok(());
        }
    }
}

/// Reads an array; elements that are not objects are left out.
fn list<'a, R: Record<'a>>(cursor: &mut Cursor<'a>) -> Result<Vec<R>, Flaw> {
    let mut list = Vec::with_capacity(1);
    cursor.expect(b'[')?;
    if cursor.peek() == Some(b']') {
        cursor.expect(b']')?;
        return Ok(list);
    }
    loop {
        if cursor.peek() == Some(b'{') {
            list.push(R::default());
            if let Some(record) = list.last_mut() {
                fill(cursor, record)?;
            }
        } else {
            cursor.value()?;
        }
        if !cursor.continues(b']')? {
            return Ok(list);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq)]
    struct Item<'a> {
        ids: Vec<Text<'a>>,
        inner: Option<Box<Item<'a>>>,
    }

    impl<'a> Record<'a> for Item<'a> {
        fn field(&mut self, name: &str, value: Field<'_, 'a>) -> Result<(), Flaw> {
            match name {
                "id" => self.ids.extend(value.text()?),
                "inner" => {
                    let mut inner = None;
                    value.record(&mut inner)?;
                    self.inner = inner.map(Box::new);
                }
                _ => value.skip()?,
            }
            Ok(())
        }
    }

    #[test]
    fn a_repeated_key_is_passed_twice() {
        let mut item = Item::default();
        let (own, rest) =
            record(r#"{"id":"a","x":[1],"id":"b","inner":{"id":"c"}} tail"#, &mut item).unwrap();
        assert_eq!(item.ids, [Text::plain("a"), Text::plain("b")]);
        assert_eq!(item.inner.unwrap().ids, [Text::plain("c")]);
        assert!(own.ends_with('}'));
        assert_eq!(rest, " tail");
    }

    #[test]
    fn a_field_of_another_type_is_absent() {
        let mut item = Item::default();
        record(r#"{"id":7,"inner":"text"}"#, &mut item).unwrap();
        assert_eq!(item, Item::default());
    }

    #[test]
    fn elements_are_kept_as_they_are() {
        let list = Json::from_text(r#"[{"id":"a", "x":1},7,null, {"id":"b"}]"#.to_owned()).unwrap();
        let wholes = wholes_of::<Item<'_>>(&list).unwrap();
        let texts: Vec<_> = wholes.iter().map(|whole| whole.json.get()).collect();
        assert_eq!(texts, [r#"{"id":"a", "x":1}"#, r#"{"id":"b"}"#]);
        assert_eq!(wholes[1].record.ids, [Text::plain("b")]);
        assert!(wholes_of::<Item<'_>>(&Json::from_text("[ ]".to_owned()).unwrap()).is_some());
        assert!(wholes_of::<Item<'_>>(&Json::from_text("{}".to_owned()).unwrap()).is_none());
    }

    #[test]
    fn flaws_are_distinguished() {
        let flaw = |text| record(text, &mut Item::default()).unwrap_err();
        assert_eq!(flaw("[1]"), Flaw::NotAnObject);
        assert_eq!(flaw(r#"{"id":"#), Flaw::Incomplete);
        assert!(matches!(flaw("{no}"), Flaw::NotJson { .. }));
        assert_eq!(flaw(r#"{"id":1e999}"#), Flaw::OutOfRange { column: 7 });
    }
}
