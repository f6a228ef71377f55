//! Contract suite of the port.

use std::sync::Arc;

use labdata_port_contracts::{Harness, Subject, async_trait};
use labdata_ports::work::runner::JobRunner;
use labdata_ray_runner::RayRunner;

use crate::cluster::shared_runner;

struct OnRay(Arc<RayRunner>);

#[async_trait]
impl Harness for OnRay {
    async fn fresh() -> Self {
        Self(Arc::new(shared_runner().await))
    }
}

impl Subject<dyn JobRunner> for OnRay {
    fn subject(&self) -> Arc<dyn JobRunner> {
        self.0.clone()
    }
}

labdata_port_contracts::runs!(OnRay);
