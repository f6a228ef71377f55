//! Contract of [`Idempotency`].

use std::cell::Cell;

use futures::future::join_all;
use labdata_domain::{
    catalog::TableIdentity,
    idempotency::{Fingerprint, StoredResponse},
    ids::{ApiKeyId, OrganizationId},
    storage::{BytesByKind, StoredKind},
};
use labdata_ports::{
    files::FileRepository,
    idempotency::{Begun, Idempotency, IdempotentRequest, OnceError},
};
use time::Duration;

use crate::{
    Itself, Subject,
    fixtures::Tenants,
    given::{self, at},
};

const fn fingerprint(body: u8) -> Fingerprint {
    Fingerprint {
        body: [body; 32],
        rights: [0; 32],
    }
}

pub(crate) fn request(organization: OrganizationId, key: &str) -> IdempotentRequest {
    IdempotentRequest {
        organization,
        api_key: ApiKeyId::new(given::uuid()),
        operation: "POST /api/v1/jobs".to_owned(),
        key: key.to_owned(),
        fingerprint: fingerprint(7),
        now: at(0),
    }
}

/// Outcome of a request.
#[derive(Debug, PartialEq, Eq)]
enum Once {
    Ran,
    Replayed(StoredResponse),
}

pub(crate) fn response(number: u8) -> StoredResponse {
    StoredResponse {
        status: 200,
        content_type: "application/json".to_owned(),
        body: vec![0, number, 255],
        tables: vec![
            TableIdentity::Organization(i64::from(number)),
            TableIdentity::Core("experiment".to_owned()),
        ],
    }
}

/// Runs a request whose effect counts its runs, and responds with their number.
async fn run(
    port: &dyn Idempotency,
    request: &IdempotentRequest,
    runs: &Cell<u8>,
) -> Result<Once, OnceError> {
    Ok(match port.begin(request).await? {
        Begun::New(unit) => {
            runs.set(runs.get() + 1);
            unit.commit(Some(&response(runs.get()))).await?;
            Once::Ran
        }
        Begun::Replayed(response) => Once::Replayed(response),
    })
}

crate::suite!(
    use idempotency;

    /// A replay returns the first response, byte by byte, with the tables that it shows.
    async fn the_same_request_again_gets_the_first_answer_and_runs_nothing(
        harness: &Itself<impl Tenants + Subject<dyn Idempotency>>,
    ) {
        let request = request(harness.organization("lab").await.id, "key");
        let (once, runs) = (harness.subject(), Cell::new(0));
        assert_eq!(run(&*once, &request, &runs).await.unwrap(), Once::Ran);
        for _ in 0..2 {
            let again = run(&*once, &request, &runs).await.unwrap();
            assert_eq!(again, Once::Replayed(response(1)));
        }
        assert_eq!(runs.get(), 1);
    }

    /// Their bodies are part of the usage of their organization alone.
    async fn stored_responses_are_counted(
        harness: &Itself<impl Tenants + Subject<dyn Idempotency> + Subject<dyn FileRepository>>,
    ) {
        let lab = harness.organization("lab").await.id;
        let other = harness.organization("other").await.id;
        let once = Subject::<dyn Idempotency>::subject(&**harness);
        let files = Subject::<dyn FileRepository>::subject(&**harness);
        run(&*once, &request(lab, "key"), &Cell::new(0))
            .await
            .unwrap();
        let usage = files.usage(lab).await.unwrap();
        assert_eq!(usage, BytesByKind::of([(StoredKind::Responses, 3)]));
        assert_eq!(files.usage(other).await.unwrap().total(), 0);
    }

    /// The look-up has the response that a replay would have, and the refusal of another body. It waits for
    /// no request that runs.
    async fn an_answer_can_be_looked_up_before_the_effect_runs(
        harness: &Itself<impl Tenants + Subject<dyn Idempotency>>,
    ) {
        let request = request(harness.organization("lab").await.id, "key");
        let once = harness.subject();
        assert_eq!(once.find_response(&request).await.unwrap(), None);
        let Begun::New(unit) = once.begin(&request).await.unwrap() else {
            panic!("it ran before");
        };
        assert_eq!(once.find_response(&request).await.unwrap(), None);
        unit.commit(Some(&response(1))).await.unwrap();
        let found = once.find_response(&request).await.unwrap();
        assert_eq!(found, Some(response(1)));
        let other_body = IdempotentRequest {
            fingerprint: fingerprint(8),
            ..request.clone()
        };
        let refused = once.find_response(&other_body).await;
        assert!(matches!(refused, Err(OnceError::Reused(_))), "{refused:?}");
        let later = IdempotentRequest {
            now: at(0) + Duration::days(2),
            ..request
        };
        assert_eq!(once.find_response(&later).await.unwrap(), None);
    }

    /// After its end a unit stores nothing more, and lets the next request begin.
    async fn a_unit_of_work_ends_once(harness: &Itself<impl Tenants + Subject<dyn Idempotency>>) {
        let request = request(harness.organization("lab").await.id, "key");
        let once = harness.subject();
        let Begun::New(unit) = once.begin(&request).await.unwrap() else {
            panic!("it ran before");
        };
        unit.roll_back().await;
        unit.roll_back().await;
        assert!(unit.commit(Some(&response(1))).await.is_err());
        assert_eq!(once.find_response(&request).await.unwrap(), None);
        // One that is dropped is rolled back as well.
        drop(unit);
        drop(once.begin(&request).await.unwrap());
        let again = once.begin(&request).await.unwrap();
        assert!(matches!(again, Begun::New(_)), "{again:?}");
    }

    /// The first request's response is still there after the refusal.
    async fn the_key_with_another_body_is_refused_and_runs_nothing(
        harness: &Itself<impl Tenants + Subject<dyn Idempotency>>,
    ) {
        let first = request(harness.organization("lab").await.id, "key");
        let other = IdempotentRequest {
            fingerprint: fingerprint(8),
            ..first.clone()
        };
        let (once, runs) = (harness.subject(), Cell::new(0));
        run(&*once, &first, &runs).await.unwrap();
        let refused = run(&*once, &other, &runs).await;
        assert!(matches!(refused, Err(OnceError::Reused(_))), "{refused:?}");
        let again = run(&*once, &first, &runs).await.unwrap();
        assert!(matches!(again, Once::Replayed(_)), "{again:?}");
        assert_eq!(runs.get(), 1);
    }

    /// Responses with 4xx and 5xx are not stored; a retry may have another body.
    async fn a_response_that_is_not_stored_lets_the_request_run_again(
        harness: &Itself<impl Tenants + Subject<dyn Idempotency>>,
    ) {
        let failing = request(harness.organization("lab").await.id, "key");
        let fixed = IdempotentRequest {
            fingerprint: fingerprint(8),
            ..failing.clone()
        };
        let (once, runs) = (harness.subject(), Cell::new(0));
        let Begun::New(failed) = once.begin(&failing).await.unwrap() else {
            panic!("it ran before");
        };
        failed.roll_back().await;
        drop(failed);
        let ran = run(&*once, &fixed, &runs).await.unwrap();
        assert_eq!((ran, runs.get()), (Once::Ran, 1));
    }

    /// The rest wait for it instead of being refused.
    async fn of_racing_requests_one_runs_and_the_rest_get_its_response(
        harness: &Itself<impl Tenants + Subject<dyn Idempotency>>,
    ) {
        let request = request(harness.organization("lab").await.id, "key");
        let (once, runs) = (harness.subject(), Cell::new(0));
        let all = join_all((0..5).map(|_| run(&*once, &request, &runs))).await;
        let ran = all
            .iter()
            .filter(|one| matches!(one, Ok(Once::Ran)))
            .count();
        let replayed = all
            .iter()
            .filter(|one| matches!(one, Ok(Once::Replayed(_))))
            .count();
        assert_eq!((ran, replayed, runs.get()), (1, 4, 1), "{all:?}");
    }

    /// Requests are distinguished by all three.
    async fn another_api_key_operation_or_key_is_another_request(
        harness: &Itself<impl Tenants + Subject<dyn Idempotency>>,
    ) {
        let first = request(harness.organization("lab").await.id, "key");
        let others = [
            IdempotentRequest {
                api_key: ApiKeyId::new(given::uuid()),
                ..first.clone()
            },
            IdempotentRequest {
                operation: "POST /api/v1/data/write".to_owned(),
                ..first.clone()
            },
            IdempotentRequest {
                key: "Key".to_owned(),
                ..first.clone()
            },
        ];
        let (once, runs) = (harness.subject(), Cell::new(0));
        run(&*once, &first, &runs).await.unwrap();
        for other in &others {
            let ran = run(&*once, other, &runs).await.unwrap();
            assert_eq!(ran, Once::Ran, "{other:?}");
        }
        assert_eq!(runs.get(), 4);
    }

    /// The key accepts any body again, and stores the new response.
    async fn after_a_day_the_request_runs_again(
        harness: &Itself<impl Tenants + Subject<dyn Idempotency>>,
    ) {
        let first = request(harness.organization("lab").await.id, "key");
        let nearly = IdempotentRequest {
            now: at(0) + Duration::hours(24) - Duration::seconds(1),
            ..first.clone()
        };
        let later = IdempotentRequest {
            now: at(0) + Duration::hours(24),
            fingerprint: fingerprint(8),
            ..first.clone()
        };
        let (once, runs) = (harness.subject(), Cell::new(0));
        run(&*once, &first, &runs).await.unwrap();
        let replayed = run(&*once, &nearly, &runs).await.unwrap();
        assert!(matches!(replayed, Once::Replayed(_)), "{replayed:?}");
        assert_eq!(run(&*once, &later, &runs).await.unwrap(), Once::Ran);
        let replayed = run(&*once, &later, &runs).await.unwrap();
        assert!(matches!(replayed, Once::Replayed(_)), "{replayed:?}");
        assert_eq!(runs.get(), 2);
    }

    /// Deletes at most `limit` per call.
    async fn only_expired_responses_are_deleted(
        harness: &Itself<impl Tenants + Subject<dyn Idempotency>>,
    ) {
        let lab = harness.organization("lab").await.id;
        let (once, runs) = (harness.subject(), Cell::new(0));
        for key in ["a", "b", "c"] {
            run(&*once, &request(lab, key), &runs).await.unwrap();
        }
        let young = IdempotentRequest {
            now: at(0) + Duration::hours(1),
            ..request(lab, "young")
        };
        run(&*once, &young, &runs).await.unwrap();
        let now = at(0) + Duration::hours(24);
        assert_eq!(once.forget_expired(now, 2).await.unwrap(), 2);
        assert_eq!(once.forget_expired(now, 2).await.unwrap(), 1);
        assert_eq!(once.forget_expired(now, 2).await.unwrap(), 0);
        let replayed = run(&*once, &young, &runs).await.unwrap();
        assert!(matches!(replayed, Once::Replayed(_)), "{replayed:?}");
    }
);
