//! The contract of predictors, with scripts instead of models.

use std::{sync::Arc, time::Duration};

use labdata_port_contracts::{Harness, Subject, async_trait, models::predictions::Predictors};
use labdata_ports::models::Predictor;

use crate::support::Lab;

/// Script that predicts the only number of each row.
const SUM: &str = "ready()\nwhile True:\n    request = receive()\n    \
    answer(request, request['columns']['x'])\n";

/// Predictor in the sandbox.
struct InSandbox(Lab);

#[async_trait]
impl Harness for InSandbox {
    async fn fresh() -> Self {
        Self(Lab::new(SUM))
    }
}

impl Subject<dyn Predictor> for InSandbox {
    fn subject(&self) -> Arc<dyn Predictor> {
        self.0.predictor.clone()
    }
}

#[async_trait]
impl Predictors for InSandbox {
    async fn pause(&self) {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

labdata_port_contracts::predictions!(InSandbox);
