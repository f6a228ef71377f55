//! Modules of the Python package.

/// Name and text of a module.
macro_rules! module {
    ($name:literal) => {
        (
            concat!("labdata_trainer.", $name),
            include_str!(concat!("../trainer/labdata_trainer/", $name, ".py")),
        )
    };
}

/// Names and texts of the package and all its modules.
pub(crate) const MODULES: &[(&str, &str)] = &[
    (
        "labdata_trainer",
        include_str!("../trainer/labdata_trainer/__init__.py"),
    ),
    module!("arrow_messages"),
    module!("artifact"),
    module!("callback"),
    module!("columns"),
    module!("dataset"),
    module!("entry"),
    module!("evaluation"),
    module!("events"),
    module!("failure"),
    module!("frames"),
    module!("images"),
    module!("masks"),
    module!("model"),
    module!("multimodal_model"),
    module!("numbers"),
    module!("predict"),
    module!("prediction_request"),
    module!("processes"),
    module!("report"),
    module!("run_directory"),
    module!("server"),
    module!("tabular_model"),
    module!("train"),
    module!("training"),
    module!("transfer"),
    module!("versions"),
];
