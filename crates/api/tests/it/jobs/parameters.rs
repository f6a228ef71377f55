//! Definitions of parameters of jobs

use serde_json::json;

use super::given::{PATH, path_of};
use crate::server::TestServer;

#[tokio::test]
async fn parameters_read_back_as_they_are_defined() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let definitions = json!([
        {"widget_type": "slider", "parameter_name": "threshold", "label": "OD", "min": 0,
         "max": 1.5, "step": 0.1, "required": true, "default": 0.5},
        {"widget_type": "combobox", "parameter_name": "strain", "model_source": "sample"},
        {"widget_type": "region", "parameter_name": "well", "file_id_parameter": "image"},
        {"widget_type": "text", "parameter_name": "image", "file_id": "x"},
        {"widget_type": "date", "parameter_name": "day", "default": "2026-03-01"},
    ]);
    let body = json!({"name": "parse", "code": "", "parameter_definitions": definitions});
    let job = client.post(PATH, &body).await.json(200);
    for (stored, sent) in job["parameter_definitions"]
        .as_array()
        .unwrap()
        .iter()
        .zip(definitions.as_array().unwrap())
    {
        for (name, value) in sent.as_object().unwrap() {
            assert_eq!(stored[name], *value, "{name}");
        }
        assert_eq!(stored.as_object().unwrap().len(), 11);
    }
    let path = path_of(&job);
    let read = client.get(&path).await.json(200);
    assert_eq!(read["parameter_definitions"], job["parameter_definitions"]);
    let stored = client.patch(&path, &json!({"archived": false})).await;
    assert_eq!(
        stored.json(200)["parameter_definitions"],
        job["parameter_definitions"]
    );
    let none = json!({"parameter_definitions": []});
    let changed = client.patch(&path, &none).await.json(200);
    assert_eq!(changed["parameter_definitions"], json!([]));
}

#[tokio::test]
async fn parameters_that_make_no_sense_are_refused() {
    let server = TestServer::start().await;
    let client = server.admin().await;
    let body =
        |definitions| json!({"name": "parse", "code": "", "parameter_definitions": definitions});
    let shapeless = body(json!([{"widget_type": "knob", "min": "0"}]));
    assert_eq!(
        client.post(PATH, &shapeless).await.problems(),
        [
            (
                "enum".to_owned(),
                "body.parameter_definitions.0.widget_type".to_owned()
            ),
            (
                "missing".to_owned(),
                "body.parameter_definitions.0.parameter_name".to_owned()
            ),
            (
                "float_type".to_owned(),
                "body.parameter_definitions.0.min".to_owned()
            ),
        ]
    );
    let twice = json!({"widget_type": "text", "parameter_name": "a"});
    let refused = client.post(PATH, &body(json!([twice, twice]))).await;
    let detail = refused.json(400)["detail"].to_string();
    assert!(detail.contains("parameter_definitions[1]"), "{detail}");
}
