//! Implementation of the predictor port.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use async_trait::async_trait;
use labdata_domain::models::{ModelFailure, PredictionDelay, Predictions};
use labdata_ports::models::{PredictError, PredictionRequest, Predictor, ServedModel};
use labdata_sandbox::Sandbox;
use tokio::{
    sync::{mpsc::error::TrySendError, oneshot},
    task::spawn_blocking,
    time::timeout,
};

use crate::{
    pool::Pool,
    request,
    session::{MAX_FRAME, Pending, Reply, SessionPhase},
    settings::PredictorSettings,
};

/// Maximum number of processes that a request waits for. Each but the last one ended before it was sent.
const ATTEMPTS: usize = 3;

/// Predicts with models in processes of this machine. The processes end with it.
#[derive(Debug)]
pub struct SandboxPredictor {
    pool: Arc<Pool>,
    /// Id of the next request.
    next: AtomicU64,
}

impl SandboxPredictor {
    /// Creates a predictor without processes.
    #[must_use]
    pub fn new(sandbox: Arc<Sandbox>, settings: PredictorSettings) -> Self {
        Self {
            pool: Arc::new(Pool::new(sandbox, settings)),
            next: AtomicU64::new(1),
        }
    }

    /// Sends a request to the model's process, and waits for its end.
    async fn try_predict(
        &self,
        model: &ServedModel,
        rows: usize,
        id: u64,
        body: Arc<Vec<u8>>,
    ) -> Reply {
        let (reply, mut response) = oneshot::channel();
        let size = body.len();
        let pending = Pending {
            id,
            rows,
            body,
            reply,
        };
        let delayed = |delay: PredictionDelay| Reply::Answered(Err(delay.into()));
        let mut lease = match self.pool.lease(model, size) {
            Ok(lease) => lease,
            Err(delay) => return delayed(delay),
        };
        match lease.requests.try_send(pending) {
            Ok(()) => {}
            // The process is ending; the next lease starts another.
            Err(TrySendError::Closed(_)) => return Reply::NotSent,
            Err(TrySendError::Full(_)) => return delayed(PredictionDelay::Busy),
        }
        let settings = self.pool.settings();
        let ready = timeout(
            settings.timeout,
            lease.phase.wait_for(|phase| *phase == SessionPhase::Ready),
        );
        tokio::select! {
            biased;
            response = &mut response => return response.unwrap_or(Reply::NotSent),
            ready = ready => if ready.is_err() {
                return delayed(PredictionDelay::Preparing);
            }
        }
        // Others may be answered before; a process that responds with nothing is ended much earlier.
        match timeout(2 * settings.response_limit, response).await {
            Ok(response) => response.unwrap_or(Reply::NotSent),
            Err(_) => delayed(PredictionDelay::Busy),
        }
    }
}

#[async_trait]
impl Predictor for SandboxPredictor {
    async fn predict(
        &self,
        model: &ServedModel,
        request: PredictionRequest,
    ) -> Result<Predictions, PredictError> {
        // Unique within this server: processes pair responses with requests by it, in any order.
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let body = request::encode(id, &request).map_err(PredictError::Refused)?;
        // The process would refuse the frame and end, taking the requests of others with it.
        if body.len() > MAX_FRAME {
            let megabytes = MAX_FRAME >> 20;
            let reason = format!("they have more than {megabytes} MiB; send fewer rows at once");
            return Err(PredictError::Refused(reason));
        }
        let body = Arc::new(body);
        let rows = request.input.rows;
        // Its values are in the body. They are freed while the process predicts.
        spawn_blocking(move || drop(request));
        // A request that never reached a process is safe to repeat: the process ended between lease and send.
        for _ in 0..ATTEMPTS {
            let reply = self.try_predict(model, rows, id, Arc::clone(&body));
            if let Reply::Answered(result) = reply.await {
                return result;
            }
        }
        Err(PredictionDelay::Failed(ModelFailure::Ended).into())
    }

    fn is_ready(&self, model: &ServedModel) -> bool {
        self.pool.is_ready(model)
    }

    fn prepare(&self, model: &ServedModel) {
        self.pool.prepare(model);
    }

    async fn close(&self) {
        self.pool.close().await;
    }
}
