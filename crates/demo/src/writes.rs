//! Request bodies of the story.

use serde_json::{Map, Value, json};

use crate::{gen5::KineticExport, growth::Growth};

/// Names and definitions of the tables of a lab that measures growth, referenced tables first.
pub(crate) fn definitions() -> [(&'static str, Value); 3] {
    let required = |name: &str, data_type: &str, description: &str| {
        json!({
            "name": name, "data_type": data_type, "description": description, "is_nullable": false,
        })
    };
    let sample = json!({
        "name": "sample", "data_type": "string", "references": "sample", "is_nullable": false,
        "description": "The sample that was measured.",
    });
    let sample_table = json!({
        "description": "A culture in a well of a plate.",
        "semantic_category": "curated",
        "columns": [
            {
                "name": "name", "data_type": "string", "is_nullable": false, "is_unique": true,
                "description": "Plate and well.",
            },
            required("well", "string", "The well, such as A1."),
            {
                "name": "plate", "data_type": "string", "references": "carrier",
                "description": "The plate.",
            },
        ],
        "unique_together": [["plate", "well"]],
    });
    let result_table = json!({
        "description": "Figures of a sample's growth curve.",
        "semantic_category": "curated",
        "columns": [
            sample,
            {"name": "start_od", "data_type": "float"},
            {"name": "max_od", "data_type": "float"},
            {"name": "max_od_per_h", "data_type": "float"},
        ],
    });
    let curve_table = json!({
        "description": "Optical density at 600 nm over time.",
        "semantic_category": "raw",
        "columns": [
            sample,
            required("order", "integer", "The number of the read, from 0."),
            required("time_h", "float", "Hours since the start."),
            {"name": "od600", "data_type": "float", "description": "Null where the reader gave none."},
        ],
    });
    [
        ("sample", sample_table),
        ("growth_result", result_table),
        ("growth_curve", curve_table),
    ]
}

/// Builds one write of the whole export: the plate, its samples, their results and their curves.
pub(crate) fn import(export: &KineticExport, plate: &str, execution: &str) -> Value {
    let metadata: Map<String, Value> = export
        .header
        .iter()
        .map(|(name, value)| (name.clone(), value.as_str().into()))
        .collect();
    let samples: Vec<Value> = export
        .wells
        .iter()
        .map(|well| {
            json!({
                "_ref": well.name,
                "name": format!("{plate} {}", well.name),
                "well": well.name,
                "plate": "@plate",
            })
        })
        .collect();
    let results: Vec<Value> = export
        .wells
        .iter()
        .map(|well| {
            let growth = Growth::of(well, &export.hours);
            json!({
                "sample": format!("@{}", well.name),
                "start_od": growth.start,
                "max_od": growth.max,
                "max_od_per_h": growth.max_rate,
            })
        })
        .collect();
    let series: Vec<Value> = export
        .wells
        .iter()
        .map(|well| {
            json!({
                "table": "growth_curve",
                "parent": format!("@{}", well.name),
                "columns": {"time_h": export.hours, "od600": well.values},
            })
        })
        .collect();
    json!({
        "job_execution_id": execution,
        "tables": [
            {
                "table": "carrier",
                "rows": [{
                    "_ref": "plate", "name": plate, "carrier_type": "plate", "metadata": metadata,
                }],
            },
            {"table": "sample", "rows": samples},
            {"table": "growth_result", "rows": results},
        ],
        "series": series,
    })
}

/// Builds a write to be reverted: a sample that does not exist, with a curve.
pub(crate) fn mistake(execution: &str) -> Value {
    json!({
        "job_execution_id": execution,
        "tables": [{
            "table": "sample",
            "rows": [{"_ref": "wrong", "name": "mistake", "well": "Z99"}],
        }],
        "series": [{
            "table": "growth_curve",
            "parent": "@wrong",
            "columns": {"time_h": [0, 1, 2], "od600": [9, 9, 9]},
        }],
    })
}
