use labdata_domain::models::FeatureColumn;
use time::macros::datetime;

use super::*;

fn stream(id: &str, columns: Vec<(&str, ArrayRef)>) -> Vec<u8> {
    let metadata = HashMap::from([(ID.to_owned(), id.to_owned())]);
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, array)| Field::new(*name, array.data_type().clone(), true))
        .collect();
    let schema = Arc::new(Schema::new_with_metadata(fields, metadata));
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    let batch = RecordBatch::try_new(Arc::clone(&schema), arrays).unwrap();
    let mut writer = StreamWriter::try_new(Vec::new(), &schema).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap()
}

fn floats(values: &[f64]) -> ArrayRef {
    Arc::new(Float64Array::from(values.to_vec()))
}

fn texts(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

#[test]
fn a_request_is_a_stream_of_its_columns() {
    let column = |name: &str, values| FeatureColumn {
        name: name.to_owned(),
        values,
    };
    let input = PredictionInput {
        rows: 2,
        columns: vec![
            column("ph", FeatureValues::Numbers(vec![Some(7.5), None])),
            column("clear", FeatureValues::Booleans(vec![None, Some(true)])),
            column(
                "name",
                FeatureValues::Texts(vec![Some("µ".to_owned()), None]),
            ),
            column(
                "at",
                FeatureValues::Times(vec![Some(datetime!(2026-03-01 00:00 UTC)), None]),
            ),
        ],
    };
    let body = encode(42, &input).unwrap();
    assert!(is_stream(&body));
    let mut reader = StreamReader::try_new(&*body, None).unwrap();
    assert_eq!(reader.schema().metadata()[ID], "42");
    let batch = reader.next().unwrap().unwrap();
    assert_eq!(
        batch
            .column(0)
            .as_primitive::<Float64Type>()
            .value(0)
            .to_bits(),
        7.5f64.to_bits()
    );
    assert!(batch.column(1).as_boolean().is_null(0));
    assert_eq!(batch.column(2).as_string::<i32>().value(0), "µ");
    let at = batch
        .column(3)
        .as_any()
        .downcast_ref::<TimestampMicrosecondArray>();
    assert_eq!(at.unwrap().value(0), 1_772_323_200_000_000);
}

#[test]
fn an_answer_has_values_and_a_probability_per_class() {
    let body = stream(
        "42",
        vec![
            ("prediction", texts(&["a", "b"])),
            ("probability.0", floats(&[0.75, 0.5])),
            ("probability.1", floats(&[0.25, 0.5])),
        ],
    );
    let (id, response) = decode(&body, 2).unwrap();
    assert_eq!(id, 42);
    let text = |text: &str| Some(Class::Text(text.to_owned()));
    assert_eq!(response.values, [text("a"), text("b")]);
    let columns = vec![vec![Some(0.75), Some(0.5)], vec![Some(0.25), Some(0.5)]];
    assert_eq!(response.probabilities, Some(columns));

    let body = stream("1", vec![("prediction", floats(&[1.5]))]);
    let (_, response) = decode(&body, 0).unwrap();
    assert_eq!(response.values, [Some(Class::Float(1.5))]);
    assert_eq!(response.probabilities, None);
}

#[test]
fn other_columns_ids_and_too_many_rows_are_refused() {
    let many = vec![0.5; MAX_PREDICTION_ROWS + 1];
    for (body, classes) in [
        (stream("x", vec![("prediction", floats(&[1.0]))]), 0),
        (stream("1", vec![("other", floats(&[1.0]))]), 0),
        (stream("1", vec![("prediction", floats(&[1.0]))]), 1),
        (stream("1", vec![("prediction", floats(&many))]), 0),
        (
            stream(
                "1",
                vec![
                    ("prediction", floats(&[1.0])),
                    ("probability.1", floats(&[1.0])),
                ],
            ),
            1,
        ),
        (
            stream(
                "1",
                vec![
                    ("prediction", floats(&[1.0])),
                    ("probability.0", texts(&["1"])),
                ],
            ),
            1,
        ),
    ] {
        assert!(decode(&body, classes).is_err());
    }
}

/// Every response with one byte replaced is read or refused, perhaps with a panic that a caller catches;
/// none makes this program abort or allocate without bound.
#[test]
fn a_malformed_answer_is_no_harm() {
    let body = stream(
        "42",
        vec![
            ("prediction", texts(&["a", "b"])),
            ("probability.0", floats(&[0.5, 0.5])),
        ],
    );
    let mut read = 0;
    for index in 0..body.len() {
        for byte in [0, 0x7f, 0xff] {
            let mut malformed = body.clone();
            malformed[index] = byte;
            let decoded = std::panic::catch_unwind(|| decode(&malformed, 1));
            if let Ok(Ok((_, response))) = decoded {
                assert!(response.values.len() <= MAX_PREDICTION_ROWS);
                read += 1;
            }
        }
    }
    assert!(read > 0);
}
