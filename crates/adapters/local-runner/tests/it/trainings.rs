//! Runs of the platform's own scripts: their network, dependencies and resources.

use std::sync::Arc;

use labdata_local_runner::LocalRunner;
use labdata_port_contracts::work::{end_of, log_from, spec};
use labdata_ports::work::runner::{
    JobRunner, PackageOwner, RunNetwork, RunResources, RunSpec, RunnerError,
};
use labdata_sandbox::{
    Isolation::{Landlock, Namespaces},
    Network, NetworkSettings, Sandbox, Settings,
};

use crate::{
    packages::open_directory,
    support::{Lab, settings},
};

const DEPENDENCY: &str = "# /// script\n# dependencies = [\"six==1.16.0\"]\n# ///\n\
                          import six\nprint(six.__version__)\n";

#[tokio::test]
async fn a_platform_run_has_no_way_to_the_internet() {
    for isolation in [Namespaces, Landlock] {
        let data = open_directory();
        let sandbox = Sandbox::new(Settings {
            network: NetworkSettings {
                access: Network::Internet,
                ..NetworkSettings::default()
            },
            ..settings(data.path(), isolation)
        });
        let runner = LocalRunner::new(Arc::new(sandbox));
        let mut proxies = Vec::new();
        for network in [RunNetwork::Configured, RunNetwork::Platform] {
            let run = RunSpec {
                network,
                ..spec("import os\nprint('HTTPS_PROXY' in os.environ)\n")
            };
            runner.submit(&run).await.unwrap();
            assert!(end_of(&runner, run.run).await.succeeded());
            proxies.push(log_from(&runner, run.run, 0).await);
            runner.reap(run.run).await.unwrap();
        }
        assert_eq!(proxies, ["True\n", "False\n"], "{isolation:?}");
    }
}

#[tokio::test]
async fn organizations_share_the_dependencies_of_the_platform_only() {
    let lab = Lab::new(Namespaces);
    let platform = || RunSpec {
        packages: PackageOwner::Platform,
        network: RunNetwork::Platform,
        ..spec(DEPENDENCY)
    };
    let mut logs = Vec::new();
    for run in [platform(), platform(), spec(DEPENDENCY)] {
        let (end, log) = lab.run(&run).await;
        assert!(end.succeeded(), "this test installs a package: {end:?}");
        logs.push(log);
        lab.runner.reap(run.run).await.unwrap();
    }
    assert!(logs[0].len() > "1.16.0\n".len(), "{logs:?}");
    assert_eq!(logs[1], "1.16.0\n", "nothing was prepared");
    assert!(logs[2].len() > "1.16.0\n".len(), "{logs:?}");
}

#[tokio::test]
async fn gpus_are_refused() {
    let lab = Lab::new(Namespaces);
    let run = RunSpec {
        resources: RunResources {
            gpus: 1,
            ..RunResources::default()
        },
        ..spec("print('never')\n")
    };
    let refused = lab.runner.submit(&run).await.unwrap_err();
    assert!(matches!(refused, RunnerError::Refused(_)), "{refused:?}");
}
