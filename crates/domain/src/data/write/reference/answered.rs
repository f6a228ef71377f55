//! The rows that references mean, once the store has answered.

use super::{
    super::{
        LookupResults, Questions, RowAddress, RowKey, RowMatch,
        problem::{Reason, quoted},
    },
    Asked, Reference,
};
use crate::{refusal::ErrorCode, scalar::KeyValue};

/// Responses to the questions of a write.
#[derive(Clone, Copy)]
pub(in crate::data::write) struct Answered<'a> {
    pub(in crate::data::write) questions: &'a Questions,
    pub(in crate::data::write) results: &'a LookupResults,
}

impl Answered<'_> {
    /// The key of the row that a reference means; `None` for null.
    pub(in crate::data::write) fn resolve(
        self,
        reference: &Reference,
        known_key: impl Fn(RowAddress) -> Option<KeyValue>,
    ) -> Result<Option<RowKey>, Reason> {
        match reference {
            Reference::None => Ok(None),
            Reference::Known(key) => Ok(Some(RowKey::Known(key.clone()))),
            Reference::Row(address) => Ok(Some(
                known_key(*address).map_or(RowKey::Late(*address), RowKey::Known),
            )),
            Reference::Id(asked) => self.existing(*asked).map(Some),
            Reference::Lookup(asked) => self.found(*asked).map(Some),
            Reference::Cell { key, value } => self.cell(key, *value).map(Some),
        }
    }

    /// The row that a cell of a file means. A cell that is the key of one row and the value of
    /// another is refused, since either could be meant.
    fn cell(self, key: &Reference, value: Asked) -> Result<RowKey, Reason> {
        let by_key = match key {
            Reference::Known(key) => Some(key.clone()),
            Reference::Id(asked) => match self.existing(*asked) {
                Ok(RowKey::Known(key)) => Some(key),
                _ => None,
            },
            _ => None,
        };
        let takes_key = !matches!(key, Reference::None);
        let Asked { question, index } = value;
        let found = self.results.lookups.get(question);
        let by_value = found.and_then(|found| found.get(index));
        let asked = self.questions.lookups.get(question);
        let table = asked.map_or("", |asked| asked.table.name.as_str());
        let wanted = asked.and_then(|asked| asked.columns.first());
        let column = wanted.map_or("", |(column, _)| column.name.as_str());
        let text = wanted.and_then(|(_, values)| values.key(index));
        let text = text
            .map(|value| quoted(&value.to_string()))
            .unwrap_or_default();
        match (by_key, by_value) {
            (Some(key), Some(RowMatch::One(other))) if key != *other => Err(Reason::new(
                ErrorCode::LookupAmbiguous,
                format!(
                    "\"{text}\" is the id of one row of \"{table}\" and the {column} of another; \
                     choose the column in \"lookups\""
                ),
            )),
            // Also where the key fits: which of the rows is meant is open.
            (_, Some(RowMatch::Several)) => Err(Reason::new(
                ErrorCode::LookupAmbiguous,
                format!("several rows of \"{table}\" have the {column} \"{text}\""),
            )),
            (Some(key), _) => Ok(RowKey::Known(key)),
            (None, Some(RowMatch::One(key))) => Ok(RowKey::Known(key.clone())),
            (None, _) => {
                let names = if takes_key {
                    format!("id or the {column}")
                } else {
                    column.to_owned()
                };
                Err(Reason::new(
                    ErrorCode::ReferenceNotFound,
                    format!("no row of \"{table}\" has the {names} \"{text}\""),
                ))
            }
        }
    }

    fn existing(self, Asked { question, index }: Asked) -> Result<RowKey, Reason> {
        let asked = self.questions.ids.get(question);
        let key = asked.and_then(|asked| asked.keys.get(index));
        let found = self.results.ids.get(question);
        let exists = found.and_then(|found| found.get(index)) == Some(&true);
        match key {
            Some(key) if exists => Ok(RowKey::Known(key.clone())),
            _ => Err(Reason::new(
                ErrorCode::ReferenceNotFound,
                format!(
                    "no row of \"{}\" has the id \"{}\"",
                    asked.map_or("", |asked| asked.table.name.as_str()),
                    key.map(|key| quoted(&key.to_string())).unwrap_or_default()
                ),
            )),
        }
    }

    fn found(self, Asked { question, index }: Asked) -> Result<RowKey, Reason> {
        let asked = self.questions.lookups.get(question);
        let table = asked.map_or("", |asked| asked.table.name.as_str());
        let found = self.results.lookups.get(question);
        match found.and_then(|found| found.get(index)) {
            Some(RowMatch::One(key)) => Ok(RowKey::Known(key.clone())),
            Some(RowMatch::Several) => Err(Reason::new(
                ErrorCode::LookupAmbiguous,
                format!(
                    "the lookup matches several rows of \"{table}\"; it must match exactly one"
                ),
            )),
            Some(RowMatch::None) | None => Err(Reason::new(
                ErrorCode::LookupNoMatch,
                format!("the lookup matches no row of \"{table}\" that existed before the request"),
            )),
        }
    }
}
