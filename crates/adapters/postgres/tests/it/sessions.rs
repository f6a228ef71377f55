//! Sessions of one key that begin at the same time.

use labdata_domain::people::session::{MAX_SESSIONS_PER_KEY, PlainToken, Session};
use labdata_port_contracts::{
    Harness as _, Subject,
    fixtures::{ApiKeys as _, Tenants as _},
    given::at,
};
use labdata_ports::people::sessions::SessionRepository;

use crate::{contracts::Postgres, look_behind};

#[tokio::test]
async fn a_session_begins_while_another_sign_in_ends_the_oldest() {
    let harness = Postgres::fresh().await;
    let organization = harness.organization("lab").await.id;
    let user = harness.user(organization, "ada@example.org").await;
    let key = harness.api_key(&user).await;
    let sessions = Subject::<dyn SessionRepository>::subject(&harness);
    let begin = async |number: usize| {
        let number = u8::try_from(number).expect("few sessions");
        let token = PlainToken::from_random([number; 32]).hash();
        let session = Session::begin(token, organization, key.id, at(number.into()));
        sessions.add(&session).await
    };
    for number in 0..MAX_SESSIONS_PER_KEY {
        begin(number).await.expect("a session");
    }
    let mut other = look_behind(harness.url()).await;
    let ending = other.transaction().await.expect("a transaction");
    let oldest = "SELECT FROM labdata.session ORDER BY created_at LIMIT 1 FOR UPDATE";
    ending.execute(oldest, &[]).await.expect("a lock");
    // Who waits for the lock is refused after a while.
    begin(MAX_SESSIONS_PER_KEY).await.expect("a session");
    ending.commit().await.expect("the end of the lock");
    begin(MAX_SESSIONS_PER_KEY + 1).await.expect("a session");
    let all = "SELECT count(*) FROM labdata.session";
    let left: i64 = other.query_one(all, &[]).await.expect("a number").get(0);
    assert_eq!(usize::try_from(left), Ok(MAX_SESSIONS_PER_KEY));
}
