//! Installing what a script declares.

use std::{
    fs,
    path::{Path, PathBuf},
};

use labdata_ports::runner::RunSpec;
use tokio::sync::watch;

use crate::{
    dependencies::{PASSED_TO_PREPARATION, environment_of},
    ground::{Ground, blocking, limits, text},
    places::{RunPlaces, make_for},
    step::{self, StepEnd, Wish},
    supervisor::{Cause, Exit},
};

/// What came of it.
pub(crate) enum Prepared {
    /// The script needs nothing but Python.
    Plain,
    /// It is there.
    Environment {
        /// The directory in which it is, which no script could have replaced by a link.
        cache: PathBuf,
        /// Its own directory.
        directory: PathBuf,
    },
    /// It could not be made; the text says why, and the end how, where something ran.
    Failed(Option<StepEnd>, String),
}

/// Makes sure that what the script declares is installed.
pub(crate) async fn prepare(
    ground: &Ground,
    places: &RunPlaces,
    spec: &RunSpec,
    wish: &mut watch::Receiver<Wish>,
    mut logged: impl FnMut(u64),
) -> Result<Prepared, String> {
    let name = match environment_of(&spec.script, &ground.python.version()) {
        Ok(None) => return Ok(Prepared::Plain),
        Ok(Some(name)) => name,
        Err(reason) => return Ok(Prepared::Failed(None, reason)),
    };
    let account = ground.account_of_cache(spec.organization);
    let failed = |error: std::io::Error| error.to_string();
    let cache = ground
        .places
        .cache(spec.organization, account)
        .map_err(failed)?;
    let ready = ground
        .places
        .ready(spec.organization, &name)
        .map_err(failed)?;
    let environment = cache.join("envs").join(&name);
    if ready.exists() && environment.is_dir() {
        return Ok(Prepared::Environment {
            cache,
            directory: environment,
        });
    }
    let uv = match ground.uv().await {
        Ok(uv) => uv.to_owned(),
        Err(reason) => return Ok(Prepared::Failed(None, reason)),
    };
    let end = install(
        ground,
        places,
        spec,
        &cache,
        &environment,
        &uv,
        wish,
        &mut logged,
    )
    .await?;
    // The script's log goes on behind all of this.
    logged(end.logged);
    if end.cause == Cause::Itself && end.exit == Exit::Code(0) {
        blocking(move || fs::write(ready, "").map_err(|error| error.to_string())).await?;
        Ok(Prepared::Environment {
            cache,
            directory: environment,
        })
    } else {
        let reason = end.tail.clone();
        Ok(Prepared::Failed(Some(end), reason))
    }
}

#[expect(
    clippy::too_many_arguments,
    reason = "all of them are parts of one order"
)]
async fn install(
    ground: &Ground,
    places: &RunPlaces,
    spec: &RunSpec,
    cache: &Path,
    environment: &Path,
    uv: &Path,
    wish: &mut watch::Receiver<Wish>,
    logged: impl FnMut(u64),
) -> Result<StepEnd, String> {
    let account = ground.account_of_cache(spec.organization);
    let limits = limits(&spec.limits, spec.limits.preparation);
    let mut order = ground.order(ground.isolation, places, Vec::new(), limits);
    order.account = account;
    order.command = [
        text(uv),
        "sync".to_owned(),
        "--script".to_owned(),
        text(&places.script().join("script.py")),
        "--active".to_owned(),
        "--python".to_owned(),
        text(&ground.python.program),
        "--no-config".to_owned(),
        "--no-progress".to_owned(),
    ]
    .into();
    let home = places.preparation();
    order.environment.extend(
        [
            ("UV_CACHE_DIR", cache.join("uv")),
            ("VIRTUAL_ENV", environment.to_owned()),
            ("HOME", home.clone()),
            ("TMPDIR", home.clone()),
        ]
        .map(|(name, path)| (name.to_owned(), text(&path))),
    );
    order.environment.extend(
        [("UV_PYTHON_DOWNLOADS", "never"), ("NO_COLOR", "1")]
            .map(|(name, value)| (name.to_owned(), value.to_owned())),
    );
    for name in PASSED_TO_PREPARATION {
        if let Ok(value) = std::env::var(name) {
            if name.starts_with("SSL_CERT") {
                order.readable.push(PathBuf::from(&value));
            }
            order.environment.push((name.to_owned(), value));
        }
    }
    // uv's own name for what pip calls this.
    if std::env::var_os("UV_DEFAULT_INDEX").is_none()
        && let Ok(index) = std::env::var("PIP_INDEX_URL")
    {
        order
            .environment
            .push(("UV_DEFAULT_INDEX".to_owned(), index));
    }
    order.readable.push(uv.to_owned());
    order.directory.clone_from(&home);
    order.temporary.clone_from(&home);
    order.writable = vec![cache.to_owned(), home.clone()];
    blocking(move || make_for(&home, account).map_err(|error| error.to_string())).await?;
    step::run(&ground.settings.supervisor, &order, wish, logged).await
}
