//! Contract suite of the port, at each level of isolation.

use std::sync::Arc;

use labdata_port_contracts::{Harness, Subject, async_trait};
use labdata_ports::work::runner::JobRunner;
use labdata_sandbox::Isolation;

use crate::support::Lab;

macro_rules! harness {
    ($name:ident, $module:ident, $isolation:expr) => {
        struct $name(Lab);

        #[async_trait]
        impl Harness for $name {
            async fn fresh() -> Self {
                Self(Lab::new($isolation))
            }
        }

        impl Subject<dyn JobRunner> for $name {
            fn subject(&self) -> Arc<dyn JobRunner> {
                self.0.runner.clone()
            }
        }

        mod $module {
            use super::$name;
            labdata_port_contracts::runs!($name);
        }
    };
}

harness!(InNamespaces, in_namespaces, Isolation::Namespaces);
harness!(UnderLandlock, under_landlock, Isolation::Landlock);
harness!(WithNothing, with_nothing, Isolation::Nothing);
