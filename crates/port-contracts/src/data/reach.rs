//! Contract of [`labdata_ports::data::DataStore`]: deletes and reverts reach no table that the caller may not
//! write.

use labdata_domain::{
    data::{
        restore::OnConflict,
        write::{OutOfReach, TableWrite},
    },
    ids::ExecutionId,
};
use labdata_ports::data::{RevertError, WriteError};
use serde_json::json;

use crate::{
    Itself,
    data::{
        lab::{DataHarness, Lab, request, series},
        modify::{delete, lab_with_samples},
        restore::restoring,
    },
};

/// A lab of a caller who sees only the samples: sample `a` has a measurement, `b` a curve.
async fn narrow_lab(harness: &impl DataHarness) -> Lab {
    let mut lab = lab_with_samples(harness).await;
    lab.insert("measurement", json!([{"id": "m", "sample": "a"}]))
        .await;
    let curve = series("curve", json!("b"), json!({"time": [1, 2]}));
    lab.write(request([], [curve])).await.unwrap();
    lab.narrow("sample").await;
    lab
}

async fn counts(lab: &Lab) -> [usize; 3] {
    [
        lab.count("sample").await,
        lab.count("measurement").await,
        lab.count("curve").await,
    ]
}

/// The execution of a new sample, to which another one gives a curve.
async fn sample_with_a_curve_of_others(lab: &Lab) -> ExecutionId {
    let execution = lab
        .insert("sample", json!([{"id": "n", "name": "n"}]))
        .await;
    let curve = series("curve", json!("n"), json!({"time": [1]}));
    lab.write(request([], [curve])).await.unwrap();
    execution
}

crate::suite!(
    use data::reach as data_reach;

    /// A delete that would take rows or points of others' tables is refused, with cascade and without.
    async fn a_delete_reaches_no_table_of_others(harness: &Itself<impl DataHarness>) {
        let lab = narrow_lab(harness).await;
        let before = counts(&lab).await;
        for (id, cascade) in [("a", true), ("a", false), ("b", true), ("b", false)] {
            let deleted = TableWrite {
                cascade,
                ..delete("sample", json!([{"id": id}]))
            };
            let refused = lab.write(request([deleted], [])).await;
            assert!(
                matches!(refused, Err(WriteError::OutOfReach(OutOfReach::Hidden))),
                "{id} {cascade}: {refused:?}"
            );
            assert_eq!(counts(&lab).await, before);
        }
        let alone = delete("sample", json!([{"id": "c"}]));
        assert!(lab.write(request([alone], [])).await.is_ok());
    }

    /// A revert that would take points of others' tables, or is blocked by their rows, is refused without their names.
    async fn a_revert_reaches_no_table_of_others(harness: &Itself<impl DataHarness>) {
        let lab = narrow_lab(harness).await;
        let with_curve = sample_with_a_curve_of_others(&lab).await;
        let blocked = lab
            .insert("sample", json!([{"id": "o", "name": "o"}]))
            .await;
        lab.insert("measurement", json!([{"sample": "o"}])).await;
        let before = counts(&lab).await;
        for execution in [with_curve, blocked] {
            let refused = lab.revert(execution).await;
            assert!(
                matches!(refused, Err(RevertError::OutOfReach(OutOfReach::Hidden))),
                "{refused:?}"
            );
            assert_eq!(counts(&lab).await, before);
        }
    }

    /// A restore leaves a row with such points: it refuses, or warns without naming their table.
    async fn a_restore_leaves_rows_with_points_of_others(harness: &Itself<impl DataHarness>) {
        let lab = narrow_lab(harness).await;
        let execution = sample_with_a_curve_of_others(&lab).await;
        let before = counts(&lab).await;
        let left = "rows of a table that you may not change refer to them";
        let refusing = restoring(&lab, execution, OnConflict::Refuse);
        match lab.data.revert(lab.organization, &refusing).await {
            Err(RevertError::Conflicts(conflicts)) => assert_eq!(
                conflicts,
                [format!(
                    "1 rows of \"sample\" cannot be restored (n): {left}"
                )]
            ),
            other => panic!("{other:?}"),
        }
        let skipping = restoring(&lab, execution, OnConflict::Skip);
        let report = lab.data.revert(lab.organization, &skipping).await.unwrap();
        assert_eq!(
            report.warnings,
            [format!(
                "1 rows of \"sample\" were left as they are (n): {left}"
            )]
        );
        assert_eq!(counts(&lab).await, before);
    }
);
