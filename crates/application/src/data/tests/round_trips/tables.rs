//! Random tables.

use labdata_domain::scalar::{DataType, Scalar};
use time::{Date, OffsetDateTime};
use uuid::Uuid;

/// Parts of texts that readers have confused.
const TEXTS: [&str; 40] = [
    "a",
    "B 2",
    " x",
    "x ",
    "é",
    "µ",
    "μ",
    "ß",
    "漢字",
    "😀",
    "\"",
    "\"\"",
    "'",
    ",",
    ";",
    "\t",
    "|",
    "\n",
    "\r\n",
    "007",
    "1",
    "-1.5",
    "1,5",
    "1.234",
    "1,234.5",
    "1e5",
    "NA",
    "null",
    "true",
    "2024-01-02",
    "03.04.2024",
    "12:30",
    "=A1",
    "#N/A",
    "<0.01",
    "87 %",
    "sep=;",
    "(µl)",
    "\u{a0}",
    "\\",
];

/// Types of the columns.
const TYPES: [DataType; 8] = [
    DataType::String,
    DataType::Text,
    DataType::Integer,
    DataType::Float,
    DataType::Boolean,
    DataType::Date,
    DataType::Datetime,
    DataType::Uuid,
];

/// `SplitMix64`.
pub(super) struct Random(pub(super) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        let index = self.below(u64::try_from(all.len()).unwrap());
        all[usize::try_from(index).unwrap()]
    }

    fn text(&mut self) -> String {
        (0..=self.below(4)).map(|_| self.of(&TEXTS)).collect()
    }

    fn integer(&mut self) -> i64 {
        let any = i64::from_le_bytes(self.next().to_le_bytes());
        match self.below(6) {
            0 => any,
            1 => self.of(&[
                i64::MAX,
                i64::MIN,
                9_007_199_254_740_993,
                -9_007_199_254_740_993,
                0,
            ]),
            2 => any % 1_000_000_000_000,
            _ => any % 2_000,
        }
    }

    fn float(&mut self) -> f64 {
        let thousandths = self.integer() % 10_000_000;
        let number: f64 = format!("{thousandths}e-3").parse().unwrap();
        match self.below(6) {
            0 => self.of(&[
                1e300,
                -1e-300,
                0.1,
                1e21,
                123_456.789,
                f64::MIN_POSITIVE,
                1e5,
            ]),
            1 => number * 1e-9,
            _ => number,
        }
    }

    fn scalar(&mut self, data_type: DataType) -> Scalar {
        let day = || 2_415_080;
        match data_type {
            DataType::Integer => Scalar::Integer(self.integer()),
            DataType::Float => Scalar::Float(self.float()),
            DataType::Boolean => Scalar::Boolean(self.below(2) == 0),
            DataType::Date => {
                let days = i32::try_from(self.below(80_000)).unwrap();
                Scalar::Date(Date::from_julian_day(day() + days).unwrap())
            }
            DataType::Datetime => {
                let seconds = i64::try_from(self.below(4_000_000_000)).unwrap();
                let at = OffsetDateTime::from_unix_timestamp(seconds).unwrap();
                let micros = i64::try_from(self.below(3) * 250_000).unwrap();
                Scalar::Datetime(at + time::Duration::microseconds(micros))
            }
            DataType::Uuid => Scalar::Uuid(Uuid::from_u64_pair(self.next(), self.next())),
            _ => Scalar::Text(self.text()),
        }
    }

    pub(super) fn table(&mut self) -> Rows {
        let mut types = vec![DataType::String];
        types.extend((0..=self.below(5)).map(|_| self.of(&TYPES)));
        let rows = (0..=self.below(12)).map(|row| {
            let cells = types.iter().enumerate().map(|(column, data_type)| {
                if column == 0 {
                    return Some(Scalar::Text(format!("row {row}")));
                }
                (self.below(7) > 0).then(|| self.scalar(*data_type))
            });
            cells.collect()
        });
        let rows = rows.collect();
        Rows { types, rows }
    }
}

pub(super) struct Rows {
    pub(super) types: Vec<DataType>,
    pub(super) rows: Vec<Vec<Option<Scalar>>>,
}
