//! Programs that are killed, stopped, and cut off from their database, while their clocks step.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use labdata_embedded_postgres::throwaway::ThrowawayServer;
use labdata_load::Random;

use super::{
    clock::{self, Clock},
    lab::Cluster,
    members::Member,
    network::Link,
};

/// Duration of the load in seconds: one round. The environment variable `CLUSTER_TEST_SECONDS` overrides it.
const SECONDS: u64 = 40;

/// Duration of a stop or an interruption, longer than a lease on work.
const SILENCE: Duration = Duration::from_secs(25);

/// Largest step of a clock in seconds, less than what storages accept in signatures.
const STEP: u64 = 300;

/// A number from the environment.
fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// A program with the network and the clock of its machine.
struct Machine {
    member: Member,
    link: Link,
    clock: Clock,
}

/// Number of faults by their kind.
#[derive(Debug, Default)]
struct Faults {
    killed_servers: usize,
    killed_workers: usize,
    stopped: usize,
    interrupted: usize,
    steps: usize,
}

/// Kills programs and starts them again until the time.
async fn kill(
    servers: &mut [Machine],
    workers: &mut [Machine],
    mut random: Random,
    until: Instant,
) -> Faults {
    let mut faults = Faults::default();
    while Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(500 + random.below(1500))).await;
        // Both kinds in turn: a load without any kill of a worker would show little.
        let of_kind = if faults.killed_servers == faults.killed_workers {
            faults.killed_servers += 1;
            &mut *servers
        } else {
            faults.killed_workers += 1;
            &mut *workers
        };
        let index = random.below(u64::try_from(of_kind.len()).unwrap());
        let member = &mut of_kind[usize::try_from(index).unwrap()].member;
        member.assert_alive();
        member.kill();
        tokio::time::sleep(Duration::from_millis(random.below(1000))).await;
        member.restart();
    }
    faults
}

/// Stops one program and cuts off the other.
async fn silence(stopped: &mut Machine, cut_off: &mut Machine, are_connections_lost: bool) {
    stopped.member.stop();
    cut_off.link.interrupt(SILENCE, are_connections_lost).await;
    stopped.member.resume();
    stopped.member.assert_alive();
    cut_off.member.assert_alive();
}

/// Everything that happens to the machines until the time.
async fn happen(
    servers: &mut [Machine],
    workers: &mut [Machine],
    seed: u64,
    until: Instant,
) -> Faults {
    let mut random = Random::new(seed);
    let mut all = Faults::default();
    // A round is complete, and the last one ends before the load.
    while Instant::now() + SILENCE < until {
        for machine in servers.iter().chain(workers.iter()) {
            let step = i64::try_from(random.below(2 * STEP)).unwrap();
            machine.clock.step(step - i64::try_from(STEP).unwrap());
            all.steps += 1;
        }
        let others = Random::new(random.below(u64::MAX));
        let (is_server_stopped, are_lost) = (random.below(2) == 0, random.below(2) == 0);
        servers.rotate_left(1);
        workers.rotate_left(1);
        let (server, servers) = servers.split_first_mut().unwrap();
        let (worker, workers) = workers.split_first_mut().unwrap();
        let (stopped, cut_off) = if is_server_stopped {
            (server, worker)
        } else {
            (worker, server)
        };
        let ends = Instant::now() + SILENCE;
        let (kills, ()) = tokio::join!(
            kill(servers, workers, others, ends),
            silence(stopped, cut_off, are_lost)
        );
        all.killed_servers += kills.killed_servers;
        all.killed_workers += kills.killed_workers;
        all.stopped += 1;
        all.interrupted += 1;
    }
    all
}

/// Links and clocks of that number of machines.
async fn surroundings(count: usize, database: &str, library: &Path) -> Vec<(Link, Clock)> {
    let mut all = Vec::new();
    for number in 0..count {
        let clock = Clock::new(library, &format!("clock-{number}"));
        all.push((Link::to(database).await, clock));
    }
    all
}

#[expect(
    clippy::print_stdout,
    reason = "shown with --nocapture, and when the test fails"
)]
#[tokio::test(flavor = "multi_thread")]
async fn nothing_acknowledged_is_lost_or_doubled_whatever_happens_to_programs_networks_and_clocks()
{
    const SERVERS: usize = 3;
    const WORKERS: usize = 3;
    let database = ThrowawayServer::start().await.unwrap();
    let (library, _directory) = clock::library();
    let around = surroundings(SERVERS + WORKERS, &database.url("labdata"), &library).await;
    let mut environments = around.iter().map(|(link, clock)| {
        let mut environment = clock.environment().to_vec();
        environment.push(("DATABASE_URL".to_owned(), link.url().to_owned()));
        environment
    });
    let own = || environments.next().unwrap();
    let mut cluster = Cluster::start_each(SERVERS, WORKERS, &[], own).await;
    let (seed, seconds) = (
        setting("CLUSTER_TEST_SEED", 20),
        setting("CLUSTER_TEST_SECONDS", SECONDS),
    );
    let load = cluster.load(seconds, seed).await;
    let until = Instant::now() + Duration::from_secs(seconds - 2);
    let machines = std::mem::take(&mut cluster.members).into_iter().zip(around);
    let mut servers: Vec<Machine> = machines
        .map(|(member, (link, clock))| Machine {
            member,
            link,
            clock,
        })
        .collect();
    let mut workers = servers.split_off(SERVERS);
    let faults = happen(&mut servers, &mut workers, seed, until).await;
    let report = load.await.unwrap().unwrap();

    println!("seed {seed}, {faults:?}\n{report}");
    assert!(report.problems().is_empty(), "{report}");
    assert_eq!(report.responses(500), 0, "{report}");
    assert!(report.acknowledged() > 100, "{report}");
    assert!(
        faults.killed_servers >= 3 && faults.killed_workers >= 3,
        "{faults:?}"
    );
    assert!(faults.stopped > 0 && faults.interrupted > 0, "{faults:?}");
    for machine in servers.iter_mut().chain(&mut workers) {
        machine.member.assert_alive();
    }
}
