//! Network access.

use std::net::{Ipv4Addr, TcpListener};

use labdata_sandbox::{
    Isolation::{self, Landlock, Namespaces},
    Network, NetworkSettings, Sandbox, Settings,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{Lab, data_directory, settings};

async fn connection(isolation: Isolation, network: Network) -> Option<String> {
    let lab = Lab::isolated(isolation).await?;
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = format!(
        "import socket\ntry:\n    socket.create_connection(('127.0.0.1', {port}), 5)\n    print('connected')\nexcept OSError:\n    print('denied')\n"
    );
    let (_, log) = lab.run(&script, network).await;
    Some(log)
}

#[tokio::test]
async fn the_network_of_the_host_can_be_reached_by_default() {
    for isolation in [Namespaces, Landlock] {
        if let Some(log) = connection(isolation, Network::Host).await {
            assert_eq!(log, "connected\n", "{isolation:?}");
        }
    }
}

#[tokio::test]
async fn a_denied_network_cannot_be_reached_in_namespaces() {
    if let Some(log) = connection(Namespaces, Network::Denied).await {
        assert_eq!(log, "denied\n");
    }
}

#[tokio::test]
async fn a_denied_network_cannot_be_reached_by_tcp_under_landlock() {
    if !landlock_limits_tcp() {
        return;
    }
    if let Some(log) = connection(Landlock, Network::Denied).await {
        assert_eq!(log, "denied\n");
    }
}

fn landlock_limits_tcp() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let numbers: Vec<u32> = release.split('.').map_while(|it| it.parse().ok()).collect();
    let limits = numbers >= vec![6, 7];
    if !limits {
        eprintln!("NOT TESTED: Landlock of Linux {release} does not restrict the network");
    }
    limits
}

/// Answers every connection with one line of HTTP, on a port of the loopback interface.
async fn web_server(text: &'static str) -> u16 {
    let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
    let listener = listener.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut request = [0; 4096];
            let _ = client.read(&mut request).await;
            let length = text.len();
            let response = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{text}");
            let _ = client.write_all(response.as_bytes()).await;
        }
    });
    port
}

/// A lab whose platform answers at `platform`, and the port that scripts must not reach.
async fn lab_with_network(
    isolation: Isolation,
    access: Network,
    platform: &str,
    allow: &[&str],
) -> Option<Lab> {
    let data = data_directory();
    let sandbox = Sandbox::new(Settings {
        network: NetworkSettings {
            access,
            platform: Some(platform.parse().unwrap()),
            allow: allow.iter().map(|it| it.parse().unwrap()).collect(),
        },
        ..settings(data.path(), isolation)
    });
    Lab::of(sandbox, data, isolation).await
}

/// Prints what each of the URLs in `URLS` answers, with the proxy of the environment and without, and
/// which addresses can be connected.
const PROBE: &str = r#"
import socket, sys, urllib.error, urllib.parse, urllib.request
direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
for url in sys.argv[1:] or URLS:
    for name, opener in [("proxy", urllib.request.build_opener()), ("direct", direct)]:
        try:
            print(name, url, opener.open(url, timeout=5).read().decode())
        except urllib.error.HTTPError as error:
            print(name, url, error.code)
        except OSError as error:
            print(name, url, "unreachable")
"#;

fn probe(urls: &[String]) -> String {
    format!("URLS = {urls:?}\n{PROBE}")
}

#[tokio::test]
async fn a_script_in_namespaces_reaches_the_platform_and_no_other_local_service() {
    let (platform, other) = (web_server("platform").await, web_server("other").await);
    let url = format!("http://127.0.0.1:{platform}");
    for access in [Network::Internet, Network::Platform] {
        let Some(lab) = lab_with_network(Namespaces, access, &url, &[]).await else {
            return;
        };
        let urls = [
            format!("{url}/a"),
            format!("http://127.0.0.1:{other}/"),
            format!("http://[::1]:{other}/"),
            "http://169.254.169.254/latest/meta-data/".to_owned(),
            "http://10.255.255.1/".to_owned(),
        ];
        let (outcome, log) = lab.run(&probe(&urls), access).await;
        let expected = [
            format!("proxy {url}/a platform\ndirect {url}/a platform\n"),
            // The addresses of the first are excepted from the proxy, as the platform's are.
            format!("proxy {0} unreachable\ndirect {0} unreachable\n", urls[1]),
        ];
        assert!(
            log.starts_with(&expected.concat()),
            "{access:?} {log} {outcome:?}"
        );
        assert_eq!(log.matches("direct").count(), 5, "{log}");
        assert_eq!(
            log.matches(" unreachable\n").count() + log.matches(" 403\n").count(),
            8,
            "{log}"
        );
        let refused = if access == Network::Internet { 3 } else { 0 };
        assert_eq!(log.matches(" 403\n").count(), refused, "{log}");
    }
}

#[tokio::test]
async fn the_metadata_address_and_names_of_private_addresses_are_refused_by_the_proxy() {
    let other = web_server("other").await;
    for isolation in [Namespaces, Landlock] {
        let url = "http://127.0.0.1:9";
        let Some(lab) = lab_with_network(isolation, Network::Internet, url, &[]).await else {
            continue;
        };
        let script = format!(
            "import os, socket, urllib.parse\nproxy = urllib.parse.urlsplit(os.environ['HTTP_PROXY'])\nfor target in ['169.254.169.254:80', 'localhost:{other}', '127.0.0.1:{other}', '0.0.0.0:{other}', '[::1]:{other}', '[::ffff:127.0.0.1]:{other}', '0x7f000001:{other}', '2130706433:{other}']:\n    s = socket.create_connection((proxy.hostname, proxy.port), 5)\n    s.sendall(f'CONNECT {{target}} HTTP/1.1\\r\\n\\r\\n'.encode())\n    print(s.recv(100).decode().split()[1])\n"
        );
        let (outcome, log) = lab.run(&script, Network::Internet).await;
        assert_eq!(log, "403\n".repeat(8), "{isolation:?} {outcome:?}");
    }
}

#[tokio::test]
async fn a_network_that_the_operator_allows_is_reached_through_the_proxy() {
    let other = web_server("instrument").await;
    let Some(lab) = lab_with_network(
        Namespaces,
        Network::Internet,
        "http://127.0.0.1:9",
        &["127.0.0.0/8"],
    )
    .await
    else {
        return;
    };
    let script = format!(
        "import os\nos.environ['NO_PROXY'] = os.environ['no_proxy'] = ''\n{}",
        probe(&[format!("http://127.0.0.1:{other}/")])
    );
    let (_, log) = lab.run(&script, Network::Internet).await;
    let expected = format!(
        "proxy http://127.0.0.1:{other}/ instrument\ndirect http://127.0.0.1:{other}/ unreachable\n"
    );
    assert_eq!(log, expected);
}

#[tokio::test]
async fn a_platform_with_a_name_or_another_address_is_reached_in_namespaces() {
    let platform = web_server("platform").await;
    let name = format!("http://localhost:{platform}");
    let Some(lab) = lab_with_network(Namespaces, Network::Platform, &name, &[]).await else {
        return;
    };
    let (_, log) = lab
        .run(&probe(std::slice::from_ref(&name)), Network::Platform)
        .await;
    assert_eq!(
        log,
        format!("proxy {name} platform\ndirect {name} platform\n")
    );
    // An address that is not of the loopback network is given to the interface of the namespace.
    let url = "http://192.0.2.99:8080";
    let lab = lab_with_network(Namespaces, Network::Platform, url, &[])
        .await
        .unwrap();
    let script =
        "import socket\ns = socket.create_connection(('192.0.2.99', 8080), 5)\nprint('accepted')\n";
    let (_, log) = lab.run(script, Network::Platform).await;
    assert_eq!(log, "accepted\n");
}

#[tokio::test]
async fn under_landlock_only_the_ports_of_the_platform_and_the_proxy_are_reached() {
    let (platform, other) = (web_server("platform").await, web_server("other").await);
    let url = format!("http://127.0.0.1:{platform}");
    let Some(lab) = lab_with_network(Landlock, Network::Internet, &url, &[]).await else {
        return;
    };
    if !landlock_limits_tcp() {
        return;
    }
    let urls = [format!("{url}/"), format!("http://127.0.0.1:{other}/")];
    let (_, log) = lab.run(&probe(&urls), Network::Internet).await;
    let expected = format!(
        "proxy {0} platform\ndirect {0} platform\nproxy {1} unreachable\ndirect {1} unreachable\n",
        urls[0], urls[1]
    );
    assert_eq!(log, expected);
}
