//! Contents of entries of the trash.

use labdata_domain::{
    catalog::{Table, TableIdentity},
    files::File,
    instruments::images::Annotation,
    trash::TrashKind,
};

use super::{DroppedColumn, DroppedTable};

/// Deleted records of an entry.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    File(File, Vec<Annotation>),
    Table(DroppedTable),
    Column(DroppedColumn),
}

impl Content {
    pub(super) const fn kind(&self) -> TrashKind {
        match self {
            Self::File(..) => TrashKind::File,
            Self::Table(_) => TrashKind::Table,
            Self::Column(_) => TrashKind::Column,
        }
    }

    pub(super) fn name(&self) -> String {
        match self {
            Self::File(file, _) => file.path.as_str().to_owned(),
            Self::Table(dropped) => dropped.table.name.clone(),
            Self::Column(dropped) => dropped.name(),
        }
    }

    /// The table that it is.
    pub(crate) fn table_mut(&mut self) -> Option<&mut Table> {
        match self {
            Self::Table(dropped) => Some(&mut dropped.table),
            Self::File(..) | Self::Column(_) => None,
        }
    }

    /// The table that it was, or is a column of.
    pub(super) fn table(&self) -> Option<TableIdentity> {
        match self {
            Self::File(..) => None,
            Self::Table(dropped) => Some(dropped.table.identity()),
            Self::Column(dropped) => Some(TableIdentity::Organization(dropped.table)),
        }
    }

    pub(super) fn size(&self) -> u64 {
        match self {
            Self::File(file, annotations) => {
                let masks = annotations.iter().map(|annotation| annotation.size_bytes);
                file.state.bytes().map_or(0, |bytes| bytes.size) + masks.sum::<u64>()
            }
            Self::Table(dropped) => dropped.size(),
            Self::Column(dropped) => dropped.size(),
        }
    }
}
