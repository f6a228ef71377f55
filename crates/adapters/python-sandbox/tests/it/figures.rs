//! Figures of snippets.

use labdata_domain::agent::{AttachmentType, MAX_ATTACHMENTS, PythonEnd, PythonFigure};
use serde_json::Value;

use crate::support::Lab;

#[tokio::test]
async fn a_plotly_figure_is_found_however_it_is_left() {
    let lab = Lab::new();
    for code in [
        "import plotly.express as px\npx.line(x=[1, 2], y=[3, 4], title='Growth')",
        "import plotly.express as px\nfigure = px.line(x=[1, 2], y=[3, 4], title='Growth')\nfigure.show()",
        "import plotly.express as px\nfigure = px.line(x=[1, 2], y=[3, 4], title='Growth')\nfigure",
    ] {
        let outcome = lab.run(code).await;
        assert_eq!(outcome.end, PythonEnd::Completed);
        let [figure] = &outcome.figures[..] else {
            panic!("{outcome:?}");
        };
        assert_eq!(
            (figure.name.as_str(), figure.kind),
            ("Growth", AttachmentType::Plotly)
        );
        let json: Value = serde_json::from_slice(&figure.content).unwrap();
        assert_eq!(json["data"][0]["type"], "scatter");
    }
}

#[tokio::test]
async fn an_image_whose_figure_is_closed_is_read_from_its_file() {
    let lab = Lab::new();
    let code =
        "import matplotlib.pyplot as plt\nplt.plot([1])\nplt.savefig('curve.png')\nplt.close()";
    let outcome = lab.run(code).await;
    let names: Vec<&str> = outcome
        .figures
        .iter()
        .map(|figure| figure.name.as_str())
        .collect();
    assert_eq!(names, ["curve.png"]);
    assert!(outcome.figures[0].is_valid());
}

#[tokio::test]
async fn figures_of_a_snippet_that_fails_are_kept() {
    let lab = Lab::new();
    let outcome = lab
        .run("import matplotlib.pyplot as plt\nplt.plot([1])\n1 / 0")
        .await;
    assert!(matches!(outcome.end, PythonEnd::Raised(_)));
    assert_eq!(outcome.figures.len(), 1);
}

#[tokio::test]
async fn a_thousand_figures_are_cut_off() {
    let lab = Lab::new();
    let code =
        "import matplotlib.pyplot as plt\nfor number in range(1000): plt.figure(figsize=(1, 1))";
    let outcome = lab.run(code).await;
    assert_eq!(outcome.end, PythonEnd::Completed);
    assert_eq!(outcome.figures.len(), MAX_ATTACHMENTS);
    assert!(
        outcome.omitted_figures[0].contains("at most 20 figures"),
        "{:?}",
        outcome.omitted_figures
    );
}

#[tokio::test]
async fn a_huge_figure_is_left_out_with_a_reason() {
    let lab = Lab::new();
    for (code, reason) in [
        (
            "import matplotlib.pyplot as plt\nplt.figure(figsize=(160, 160))",
            "pixels",
        ),
        (
            "import matplotlib.pyplot as plt, numpy\nplt.figure(figsize=(30, 30))\n\
             plt.imshow(numpy.random.rand(3000, 3000))",
            "KiB",
        ),
        (
            "import plotly.graph_objects as go, numpy\ngo.Figure(go.Scatter(y=numpy.random.rand(1 << 20)))",
            "KiB",
        ),
        (
            "open('huge.png', 'wb').write(b'\\x89PNG\\r\\n\\x1a\\n' + b'x' * (5 << 20)); None",
            "KiB",
        ),
    ] {
        let outcome = lab.run(code).await;
        assert_eq!(outcome.end, PythonEnd::Completed, "{code}");
        assert_eq!(outcome.figures, Vec::<PythonFigure>::new(), "{code}");
        assert!(
            outcome.omitted_figures[0].contains(reason),
            "{:?}",
            outcome.omitted_figures
        );
    }
}

#[tokio::test]
async fn matplotlib_finds_the_list_of_fonts_that_was_made_with_its_packages() {
    let lab = Lab::new();
    let code = "import io, logging, os\nlog = io.StringIO()\n\
        logging.basicConfig(stream=log, level=logging.INFO)\n\
        import matplotlib, matplotlib.pyplot as plt\nplt.plot([1], label='curve')\nplt.legend()\n\
        plt.savefig(io.BytesIO())\nplt.close()\nprint('generated' in log.getvalue())\n\
        made = [os.path.realpath(file) for file in os.scandir(matplotlib.get_cachedir())]\n\
        for path in made:\n    try: open(path, 'a')\n    except OSError: print('read-only')";
    assert_eq!(lab.output(code).await, "False\nread-only\n");
}
