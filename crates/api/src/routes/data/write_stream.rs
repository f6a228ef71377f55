//! Reads a data write's body straight into columns: no tree of JSON values is built for its bulk.
//!
//! This reader stops at the first value that does not fit the shape; which problems a body has is
//! then found out by the slower reader of [`super::write_body`], which reports all of them.

use std::{borrow::Cow, fmt, marker::PhantomData};

use labdata_domain::data::write::{
    Mode, OnMatch, Rows, SeriesValues, SeriesWrite, TableWrite, WriteRequest, cell::Cell,
};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::{Map, Value};

use super::write_body::WriteBody;

/// Reads a whole body.
///
/// # Errors
/// When it is no JSON, or does not fit the shape.
pub(super) fn read(body: &[u8]) -> Result<WriteBody, serde_json::Error> {
    let Object(streamed): Object<StreamedBody> = serde_json::from_slice(body)?;
    Ok(WriteBody {
        request: WriteRequest {
            tables: streamed
                .tables
                .unwrap_or_default()
                .into_iter()
                .map(|table| table.0)
                .collect(),
            series: streamed
                .series
                .unwrap_or_default()
                .into_iter()
                .map(|series| series.0)
                .collect(),
            dry_run: streamed.dry_run,
            return_rows: streamed.return_rows,
        },
        job_execution_id: streamed.job_execution_id,
        job_name: streamed.job_name,
    })
}

/// A struct that is read from an object only: derived readers would take a list as well.
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
            type Value = T;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map))
            }
        }

        deserializer
            .deserialize_map(ObjectVisitor(PhantomData))
            .map(Self)
    }
}

#[derive(Deserialize)]
struct StreamedBody {
    #[serde(default)]
    tables: Option<Vec<StreamedTable>>,
    #[serde(default)]
    series: Option<Vec<StreamedSeries>>,
    #[serde(default)]
    job_execution_id: Option<String>,
    #[serde(default)]
    job_name: Option<String>,
    #[serde(default)]
    dry_run: bool,
    #[serde(default)]
    return_rows: bool,
}

struct StreamedTable(TableWrite);

impl<'de> Deserialize<'de> for StreamedTable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Fields {
            table: String,
            rows: StreamedRows,
            #[serde(default)]
            mode: Mode,
            #[serde(default)]
            key: Option<Vec<String>>,
            #[serde(default)]
            cascade: bool,
            #[serde(default)]
            on_match: OnMatch,
        }
        let Fields {
            table,
            rows,
            mode,
            key,
            cascade,
            on_match,
        } = Object::<Fields>::deserialize(deserializer)?.0;
        Ok(Self(TableWrite {
            table,
            rows: rows.0,
            mode,
            key,
            cascade,
            on_match,
        }))
    }
}

struct StreamedSeries(SeriesWrite);

impl<'de> Deserialize<'de> for StreamedSeries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Fields {
            table: String,
            parent: StreamedParent,
            columns: StreamedColumns,
            #[serde(default)]
            parent_column: Option<String>,
        }
        let Fields {
            table,
            parent,
            columns,
            parent_column,
        } = Object::<Fields>::deserialize(deserializer)?.0;
        Ok(Self(SeriesWrite {
            table,
            parent: parent.0,
            columns: columns.0,
            parent_column,
        }))
    }
}

/// An id (integers for tables with integer keys), an `@label` or a lookup.
struct StreamedParent(Cell);

impl<'de> Deserialize<'de> for StreamedParent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match deserializer.deserialize_any(CellVisitor)? {
            cell @ (Cell::Text(_) | Cell::Integer(_) | Cell::Object(_)) => Ok(Self(cell)),
            other => Err(D::Error::custom(format_args!(
                "no parent: {}",
                other.kind()
            ))),
        }
    }
}

struct StreamedRows(Rows);

impl<'de> Deserialize<'de> for StreamedRows {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RowsVisitor;

        impl<'de> Visitor<'de> for RowsVisitor {
            type Value = Rows;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of rows")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Rows, A::Error> {
                let mut rows = Rows::default();
                while seq.next_element_seed(RowSeed(&mut rows))?.is_some() {}
                Ok(rows)
            }
        }

        deserializer.deserialize_seq(RowsVisitor).map(Self)
    }
}

/// Reads one row into the columns.
struct RowSeed<'r>(&'r mut Rows);

impl<'de> DeserializeSeed<'de> for RowSeed<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for RowSeed<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of column names to values")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        self.0.begin_row();
        let mut position = 0;
        while let Some(Key(name)) = map.next_key()? {
            self.0.set(position, &name, map.next_value_seed(CellSeed)?);
            position += 1;
        }
        Ok(())
    }
}

/// A map's key, borrowed from the body unless it has escapes.
struct Key<'de>(Cow<'de, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;

        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(text.to_owned())))
            }
        }

        deserializer.deserialize_str(KeyVisitor)
    }
}

struct CellSeed;

impl<'de> DeserializeSeed<'de> for CellSeed {
    type Value = Cell;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Cell, D::Error> {
        deserializer.deserialize_any(CellVisitor)
    }
}

struct CellVisitor;

impl<'de> Visitor<'de> for CellVisitor {
    type Value = Cell;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Cell, E> {
        Ok(Cell::Null)
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Cell, E> {
        Ok(Cell::Boolean(flag))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Cell, E> {
        Ok(Cell::Integer(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Cell, E> {
        Ok(Cell::from(Value::from(number)))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Cell, E> {
        Ok(Cell::Float(number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Cell, E> {
        Ok(Cell::Text(text.to_owned()))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Cell, E> {
        Ok(Cell::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Cell, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = seq.next_element::<Value>()? {
            list.push(value);
        }
        Ok(Cell::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Cell, A::Error> {
        let mut map = Map::new();
        while let Some((key, value)) = access.next_entry::<String, Value>()? {
            map.insert(key, value);
        }
        Ok(Cell::Object(Box::new(map)))
    }
}

struct StreamedColumns(Vec<(String, SeriesValues)>);

impl<'de> Deserialize<'de> for StreamedColumns {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ColumnsVisitor;

        impl<'de> Visitor<'de> for ColumnsVisitor {
            type Value = Vec<(String, SeriesValues)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of column names to lists of values")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut columns: Vec<(String, SeriesValues)> = Vec::new();
                while let Some(Key(name)) = map.next_key()? {
                    let values = map.next_value_seed(ValuesSeed)?;
                    columns.retain(|(known, _)| *known != name);
                    columns.push((name.into_owned(), values));
                }
                Ok(columns)
            }
        }

        deserializer.deserialize_map(ColumnsVisitor).map(Self)
    }
}

struct ValuesSeed;

impl<'de> DeserializeSeed<'de> for ValuesSeed {
    type Value = SeriesValues;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<SeriesValues, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for ValuesSeed {
    type Value = SeriesValues;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of values")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<SeriesValues, A::Error> {
        let mut values = SeriesValues::default();
        while let Some(cell) = seq.next_element_seed(CellSeed)? {
            values.push(cell);
        }
        Ok(values)
    }
}
