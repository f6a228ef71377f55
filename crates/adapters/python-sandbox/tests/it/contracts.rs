//! The contract of the port.

use std::sync::Arc;

use labdata_domain::agent::PythonOutcome;
use labdata_port_contracts::{Harness, Subject, agent::python::Snippets, async_trait};
use labdata_ports::agent::PythonSandbox;

use crate::support::Lab;

#[async_trait]
impl Harness for Lab {
    async fn fresh() -> Self {
        Self::new()
    }
}

impl Subject<dyn PythonSandbox> for Lab {
    fn subject(&self) -> Arc<dyn PythonSandbox> {
        self.snippets.clone()
    }
}

#[async_trait]
impl Snippets for Lab {
    /// It really runs.
    async fn will_end(&self, _outcome: PythonOutcome) {}
}

labdata_port_contracts::python!(Lab);
