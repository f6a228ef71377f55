//! All suites of [`labdata_ports::data::DataStore`] together.

/// Makes one test of each clause of [`crate::data_write`], [`crate::data_refusals`],
/// [`crate::data_attribution`], [`crate::data_series`], [`crate::data_modify`], [`crate::data_delete`], [`crate::data_read`],
/// [`crate::data_pages`], [`crate::data_revert`] and [`crate::data_races`].
#[macro_export]
macro_rules! data_contract {
    ($harness:ty $(, $test:meta)?) => {
        $crate::data_write_contract!($harness $(, $test)?);
        $crate::data_refusals_contract!($harness $(, $test)?);
        $crate::data_attribution_contract!($harness $(, $test)?);
        $crate::data_series_contract!($harness $(, $test)?);
        $crate::data_read_series_contract!($harness $(, $test)?);
        $crate::data_modify_contract!($harness $(, $test)?);
        $crate::data_delete_contract!($harness $(, $test)?);
        $crate::data_read_contract!($harness $(, $test)?);
        $crate::data_pages_contract!($harness $(, $test)?);
        $crate::data_revert_contract!($harness $(, $test)?);
        $crate::data_races_contract!($harness $(, $test)?);
    };
}
