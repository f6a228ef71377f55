use super::*;

fn client(address: &str) -> RayClient {
    RayClient::new(&Access {
        address: address.to_owned(),
        ..Access::default()
    })
    .unwrap()
}

#[test]
fn only_plain_http_to_another_machine_sends_in_clear() {
    for (address, in_clear) in [
        ("http://ray.lab:8265", true),
        ("http://10.0.0.7:8265/", true),
        ("http://localhost:8265", false),
        ("http://127.0.0.2:8265", false),
        ("http://[::1]:8265", false),
    ] {
        assert_eq!(client(address).sends_in_clear(), in_clear);
    }
}

#[test]
fn other_addresses_than_of_http_are_refused_and_so_are_passwords_in_them() {
    for address in [
        "ftp://ray.lab",
        "ray.lab:8265",
        "/api",
        "http://",
        "https://user:password@ray.lab",
    ] {
        let refused = check_address(address);
        assert!(matches!(refused, Err(InvalidAddress::Form)), "{address}");
    }
}

#[test]
fn debug_omits_the_token() {
    let access = Access {
        address: "http://localhost:8265".to_owned(),
        token: Some("hunter2".to_owned()),
        ca_file: None,
    };
    let displayed = format!("{access:?} {:?}", RayClient::new(&access).unwrap());
    assert!(!displayed.contains("hunter2"), "{displayed}");
}
