//! Several PUTs to one signed URL at a time

use super::{Lab, id, signed_upload::assert_refused};

#[tokio::test]
async fn of_eight_racing_puts_one_is_stored() {
    let lab = Lab::start().await;
    let begun = lab.begin("a.csv").await;
    let puts = (0..8).map(|number: u8| lab.put(&begun, vec![number; 2_000_000]));
    let replies = futures::future::join_all(puts).await;
    let mut statuses: Vec<u16> = replies.iter().map(|reply| reply.status.as_u16()).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 412, 412, 412, 412, 412, 412, 412]);
    assert_eq!(lab.stored(), 1);
}

/// A body whose pieces are sent when the test does.
fn stepwise() -> (
    futures::channel::mpsc::UnboundedSender<Result<Vec<u8>, std::io::Error>>,
    reqwest::Body,
) {
    let (sender, receiver) = futures::channel::mpsc::unbounded();
    (sender, reqwest::Body::wrap_stream(receiver))
}

/// Waits until an upload has begun to write.
async fn until_one_is_under_way(lab: &Lab) {
    while lab.stored() == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_second_put_of_an_object_is_refused_while_the_first_is_under_way() {
    let lab = Lab::start().await;
    let begun = lab.begin("a.csv").await;
    let (chunks, body) = stepwise();
    let first = lab.put(&begun, body);
    let second = async {
        chunks.unbounded_send(Ok(vec![b'1'; 100])).unwrap();
        until_one_is_under_way(&lab).await;
        let refused = lab.put(&begun, "second").await;
        assert_refused(&refused, 409, "ConditionalRequestConflict");
        assert_eq!(lab.stored(), 1, "nothing of the second is stored");
        chunks.close_channel();
    };
    let (first, ()) = futures::join!(first, second);
    assert_eq!(first.status, 200, "{}", first.text);
    assert_refused(&lab.put(&begun, "third").await, 412, "PreconditionFailed");
    lab.confirm(&begun).await.json(200);
    assert_eq!(
        lab.content(&id(&begun)).await["text_preview"],
        "1".repeat(100)
    );
}

#[tokio::test]
async fn a_put_that_is_repeated_after_a_lost_connection_is_stored() {
    let lab = Lab::start().await;
    let begun = lab.begin("a.csv").await;
    let (chunks, body) = stepwise();
    let first = lab.put(&begun, body);
    let second = async {
        chunks.unbounded_send(Ok(vec![b'1'; 100])).unwrap();
        until_one_is_under_way(&lab).await;
        let cut = async {
            let broken = std::io::Error::other("the client left");
            chunks.unbounded_send(Err(broken)).unwrap();
        };
        let (stored, ()) = futures::join!(lab.put(&begun, "second"), cut);
        assert_eq!(stored.status, 200, "{}", stored.text);
    };
    // The first request fails in the client, which `put` does not expect.
    let first = std::panic::AssertUnwindSafe(first);
    let (first, ()) = futures::join!(futures::FutureExt::catch_unwind(first), second);
    assert!(first.is_err());
    assert_eq!(lab.stored(), 1);
}
