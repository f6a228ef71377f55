//! Servers and workers that are killed and started again at random.

use std::time::{Duration, Instant};

use labdata_embedded_postgres::throwaway::ThrowawayServer;
use labdata_load::Random;

use super::{lab::Cluster, members::Member};

/// Duration of the load in seconds.
const SECONDS: u64 = 20;

/// Seed of the load and of the kills; the environment variable overrides it.
fn seed() -> u64 {
    let seed = std::env::var("CLUSTER_TEST_SEED").ok();
    seed.map_or(20, |seed| seed.parse().unwrap())
}

/// Number of members that were killed.
#[derive(Debug, Default)]
struct Killed {
    servers: usize,
    workers: usize,
}

/// Kills members and starts them again until the time.
async fn kill_at_random(members: &mut [Member], seed: u64, until: Instant) -> Killed {
    let mut random = Random::new(seed);
    let mut killed = Killed::default();
    while Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(500 + random.below(1500))).await;
        // Both kinds in turn: a load without any kill of a worker would show little.
        let is_servers_turn = killed.servers == killed.workers;
        let of_kind = members
            .iter_mut()
            .filter(|member| member.url().is_some() == is_servers_turn);
        let mut of_kind: Vec<&mut Member> = of_kind.collect();
        let index = random.below(u64::try_from(of_kind.len()).unwrap());
        let member = of_kind.swap_remove(usize::try_from(index).unwrap());
        member.assert_alive();
        member.kill();
        if is_servers_turn {
            killed.servers += 1;
        } else {
            killed.workers += 1;
        }
        tokio::time::sleep(Duration::from_millis(random.below(1000))).await;
        member.restart();
    }
    killed
}

#[expect(
    clippy::print_stdout,
    reason = "shown with --nocapture, and when the test fails"
)]
#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_or_doubled_while_servers_and_workers_are_killed() {
    let database = ThrowawayServer::start().await.unwrap();
    let mut cluster = Cluster::start(3, 2, &database.url("labdata"), &[]).await;
    let seed = seed();
    let load = cluster.load(SECONDS, seed).await;
    let until = Instant::now() + Duration::from_secs(SECONDS - 2);
    let killed = kill_at_random(&mut cluster.members, seed, until).await;
    let report = load.await.unwrap().unwrap();

    println!("seed {seed}, {killed:?}\n{report}");
    assert!(report.problems().is_empty(), "{report}");
    assert_eq!(report.responses(500), 0, "{report}");
    assert!(report.acknowledged() > 100, "{report}");
    assert!(killed.servers >= 3 && killed.workers >= 3, "{killed:?}");
    cluster.assert_alive();
}
