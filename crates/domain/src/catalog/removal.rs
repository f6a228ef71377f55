//! Removal of columns.

use super::{
    CatalogRefusal, Column, ColumnRef, ORDER_COLUMN, Origin, Table, column_role::ColumnRole,
};

impl Table {
    /// The column of that name, to be dropped; `None` if there is none.
    ///
    /// # Errors
    /// [`CatalogRefusal::PlatformColumn`] or [`CatalogRefusal::NeededColumn`].
    pub fn column_to_drop(&self, name: &str) -> Result<Option<&ColumnRef>, CatalogRefusal> {
        let mut system_columns = self.system_columns().iter();
        if system_columns.any(|system| system.name == name) {
            return Err(self.platform_column(name));
        }
        let Some(column) = self.column(name) else {
            return Ok(None);
        };
        if self.origin == Origin::Core {
            return Err(self.platform_column(name));
        }
        match self.role_of(column) {
            Some(role) => Err(self.needed(column, role)),
            None => Ok(Some(column)),
        }
    }

    /// Checks that a column of [`Self::column_to_drop`] can be dropped. `holds_values` tells whether
    /// a stored row or point has a value there; with `force` it may.
    ///
    /// # Errors
    /// [`CatalogRefusal::ColumnHoldsValues`]; [`CatalogRefusal::NeededColumn`] for a reference that
    /// points have.
    pub fn check_dropped_values(
        &self,
        column: &Column,
        holds_values: bool,
        force: bool,
    ) -> Result<(), CatalogRefusal> {
        // Even with force, because the points would belong to no row.
        if holds_values && self.is_raw() && column.references.is_some() {
            return Err(self.needed(column, ColumnRole::Owner));
        }
        if holds_values && !force {
            return Err(CatalogRefusal::ColumnHoldsValues {
                table: self.name.clone(),
                column: column.name.clone(),
            });
        }
        Ok(())
    }

    /// The role by which the table needs a column, empty or not.
    fn role_of(&self, column: &Column) -> Option<ColumnRole> {
        if column.is_primary_key {
            return Some(ColumnRole::PrimaryKey);
        }
        let mut groups = self.unique_together.iter();
        if let Some(group) = groups.find(|group| group.contains(&column.name)) {
            return Some(ColumnRole::UniqueTogether(group.clone()));
        }
        if !self.is_raw() {
            return None;
        }
        let order = self.order_column();
        if order.is_some_and(|order| order.name == column.name) {
            return Some(ColumnRole::Order);
        }
        let is_values =
            |column: &ColumnRef| column.references.is_none() && column.name != ORDER_COLUMN;
        let mut others = self
            .columns
            .iter()
            .filter(|other| other.name != column.name);
        if others.clone().all(|other| other.references.is_none()) {
            return Some(ColumnRole::OnlyReference);
        }
        (!others.any(is_values)).then_some(ColumnRole::OnlyValues)
    }

    fn platform_column(&self, column: &str) -> CatalogRefusal {
        CatalogRefusal::PlatformColumn {
            table: self.name.clone(),
            column: column.to_owned(),
        }
    }

    fn needed(&self, column: &Column, role: ColumnRole) -> CatalogRefusal {
        CatalogRefusal::NeededColumn {
            table: self.name.clone(),
            column: column.name.clone(),
            role,
        }
    }
}
