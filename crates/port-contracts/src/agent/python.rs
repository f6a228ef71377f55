//! Contract of [`PythonSandbox`].

use async_trait::async_trait;
use bytes::Bytes;
use labdata_domain::{
    agent::{AttachmentType, PythonEnd, PythonFigure, PythonOutcome, PythonOutput},
    ids::OrganizationId,
    scalar::DataType,
};
use labdata_ports::agent::{PythonContent, PythonInput, PythonSandbox, PythonSnippet};

use crate::{Itself, Subject, given};

/// A harness whose sandbox, if it runs nothing, ends snippets as it is reported.
#[async_trait]
pub trait Snippets: Subject<dyn PythonSandbox> {
    /// The next snippet ends like that.
    async fn will_end(&self, outcome: PythonOutcome);
}

/// The outcome of a snippet that prints this and has that value.
fn completed(stdout: &str, value: Option<&str>) -> PythonOutcome {
    PythonOutcome {
        end: PythonEnd::Completed,
        stdout: PythonOutput {
            start: stdout.to_owned(),
            ..PythonOutput::default()
        },
        stderr: String::new(),
        value: value.map(str::to_owned),
        figures: Vec::new(),
        omitted_figures: Vec::new(),
    }
}

async fn run<H: Snippets>(
    harness: &H,
    code: &str,
    inputs: Vec<PythonInput>,
    expected: &PythonOutcome,
) -> PythonOutcome {
    harness.will_end(expected.clone()).await;
    let snippet = PythonSnippet {
        organization: OrganizationId::new(given::uuid()),
        code: code.to_owned(),
        inputs,
    };
    harness.subject().run(snippet).await.unwrap()
}

crate::suite!(
    use agent::python;

    /// The value of the last expression is displayed as Python shows it.
    async fn a_snippet_prints_and_has_a_value(harness: &Itself<impl Snippets>) {
        let expected = completed("hällo\n", Some("[1, 'a']"));
        let outcome = run(
            &**harness,
            "print('hällo')\n[1, 'a']",
            Vec::new(),
            &expected,
        )
        .await;
        assert_eq!(outcome, expected);
    }

    /// The traceback shows lines of the snippet only; what it printed before is there.
    async fn an_exception_is_an_outcome(harness: &Itself<impl Snippets>) {
        let traceback = "Traceback (most recent call last):\n  File \"<snippet>\", line 2, in <module>\n    \
        1 / 0\n    ~~^~~\nZeroDivisionError: division by zero\n";
        let expected = PythonOutcome {
            end: PythonEnd::Raised(traceback.to_owned()),
            ..completed("before\n", None)
        };
        let outcome = run(&**harness, "print('before')\n1 / 0", Vec::new(), &expected).await;
        assert_eq!(outcome.stdout, expected.stdout);
        let PythonEnd::Raised(raised) = outcome.end else {
            panic!("{:?}", outcome.end);
        };
        assert!(
            raised.contains("line 2, in <module>\n    1 / 0\n"),
            "{raised}"
        );
        assert!(raised.ends_with("ZeroDivisionError: division by zero\n"));
        assert_eq!(raised.matches("File ").count(), 1, "{raised}");
    }

    /// Columns have the types of the platform, with nulls; names that occur twice are distinguished.
    async fn tables_are_data_frames_and_files_are_paths(harness: &Itself<impl Snippets>) {
        let columns = [
            ("n", DataType::Integer),
            ("n", DataType::Float),
            ("at", DataType::Datetime),
            ("ok", DataType::Boolean),
            ("text", DataType::Text),
        ];
        let rows = [
            r#"[1, 0.5, "2026-11-22T10:00:00Z", true, "ä"]"#,
            r#"[null, "NaN", "2026-11-22T10:00:00.5Z", null, null]"#,
        ];
        let inputs = vec![
            PythonInput {
                name: "rows".to_owned(),
                content: PythonContent::Table {
                    columns: columns.map(|(name, kind)| (name.to_owned(), kind)).to_vec(),
                    rows: rows.map(str::to_owned).to_vec(),
                },
            },
            PythonInput {
                name: "plate".to_owned(),
                content: PythonContent::File {
                    file_name: "plate 1.csv".to_owned(),
                    bytes: Bytes::from_static(b"a,b\n1,2\n"),
                },
            },
        ];
        let code = "import os\nrows = inputs['rows']\nprint(list(rows.columns))\n\
        print([str(kind) for kind in rows.dtypes])\n\
        print(rows['n'].sum(), rows['n_2'].sum(), rows['at'].diff().iloc[1].total_seconds())\n\
        print(os.path.basename(inputs['plate']), open(inputs['plate']).read())";
        let expected = completed(
            "['n', 'n_2', 'at', 'ok', 'text']\n\
         ['Int64', 'float64', 'datetime64[ns, UTC]', 'boolean', 'object']\n\
         1 0.5 0.5\nplate 1.csv a,b\n1,2\n\n",
            None,
        );
        let outcome = run(&**harness, code, inputs, &expected).await;
        assert_eq!(outcome, expected);
    }

    /// Figures are there without being saved or displayed.
    async fn open_figures_are_images_and_plotly_figures_are_json(harness: &Itself<impl Snippets>) {
        let code = "import matplotlib.pyplot as plt\nimport plotly.graph_objects as go\n\
        plt.plot([1, 2, 3])\nplt.figure('Second')\n\
        go.Figure(go.Scatter(y=[1, 2]), layout={'title': {'text': 'Curve'}}).show()\n";
        let figure = |name: &str, kind, content: &[u8]| PythonFigure {
            name: name.to_owned(),
            kind,
            content: content.to_vec(),
        };
        let image = b"\x89PNG\r\n\x1a\n";
        let expected = PythonOutcome {
            figures: vec![
                figure("Figure 1", AttachmentType::Png, image),
                figure("Second", AttachmentType::Png, image),
                figure("Curve", AttachmentType::Plotly, b"{\"data\": []}"),
            ],
            ..completed("", None)
        };
        let outcome = run(&**harness, code, Vec::new(), &expected).await;
        assert_eq!(
            (&outcome.end, outcome.stderr.as_str()),
            (&PythonEnd::Completed, "")
        );
        let described = |figures: &[PythonFigure]| -> Vec<(String, AttachmentType)> {
            let figures = figures.iter();
            figures
                .map(|figure| (figure.name.clone(), figure.kind))
                .collect()
        };
        assert_eq!(described(&outcome.figures), described(&expected.figures));
        assert!(outcome.figures.iter().all(PythonFigure::is_valid));
    }
);
