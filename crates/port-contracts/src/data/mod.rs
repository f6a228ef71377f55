//! All suites of [`labdata_ports::data::DataStore`] together.

pub mod attribution;
pub mod changes;
pub mod delete;
pub mod lab;
pub mod modify;
pub mod order;
pub mod pages;
pub mod races;
pub mod read;
pub mod read_series;
pub mod refusals;
pub mod revert;
pub mod series;
pub mod stream;
pub mod write;

/// Makes one test of each clause of [`crate::data::write`], [`crate::data::refusals`],
/// [`crate::data::attribution`], [`crate::data::series`], [`crate::data::modify`],
/// [`crate::data::delete`], [`crate::data::read`], [`crate::data::pages`],
/// [`crate::data::order`], [`crate::data::stream`], [`crate::data::revert`],
/// [`crate::data::changes`] and [`crate::data::races`].
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
        $crate::data_order_contract!($harness $(, $test)?);
        $crate::data_stream_contract!($harness $(, $test)?);
        $crate::data_revert_contract!($harness $(, $test)?);
        $crate::data_changes_contract!($harness $(, $test)?);
        $crate::data_races_contract!($harness $(, $test)?);
    };
}
