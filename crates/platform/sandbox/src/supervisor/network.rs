//! Network of a namespace: the loopback interface, and listeners that the platform serves.

use std::{
    io,
    net::{IpAddr, TcpListener},
    os::fd::{AsFd, BorrowedFd},
};

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};

use crate::{descriptors, launch::NamespaceNetwork};

/// Kinds of netlink messages.
const NEW_LINK: u16 = 16;
const NEW_ADDRESS: u16 = 20;

/// Flags of a request that is to be acknowledged.
const REQUEST: u16 = 1 | 4;

/// Flags of a request that creates what does not exist.
const CREATE: u16 = 0x200 | 0x400;

/// Index of the loopback interface, the first one of a namespace.
const LOOPBACK: u32 = 1;

/// Sets up the network, and sends its listeners to the platform.
pub(super) fn set_up(network: &NamespaceNetwork) -> Result<(), String> {
    if network.listen.is_empty() {
        return Ok(());
    }
    // A new network namespace has only a loopback interface, and that is down.
    start_loopback().map_err(|error| format!("the loopback interface: {error}"))?;
    let mut listeners = Vec::new();
    for address in &network.listen {
        let failed = |error: io::Error| format!("{address}: {error}");
        // The platform's own address is given to the loopback interface, so its URL works inside.
        if !address.ip().is_loopback() {
            add_address(address.ip()).map_err(failed)?;
        }
        listeners.push(TcpListener::bind(address).map_err(failed)?);
    }
    let files: Vec<BorrowedFd<'_>> = listeners.iter().map(AsFd::as_fd).collect();
    // A socket belongs to the namespace in which it was made: the worker accepts on these from outside.
    descriptors::send(io::stdin(), &files).map_err(|error| format!("listeners: {error}"))
}

fn start_loopback() -> io::Result<()> {
    const UP: u32 = 1;
    let mut body = vec![0; 4];
    body.extend(LOOPBACK.to_ne_bytes());
    body.extend(UP.to_ne_bytes());
    body.extend(UP.to_ne_bytes());
    ask(NEW_LINK, REQUEST, &body)
}

/// Gives the loopback interface another address.
fn add_address(address: IpAddr) -> io::Result<()> {
    const V4: u8 = 2;
    const V6: u8 = 10;
    /// Kinds of attributes: the interface's address, and that of its network.
    // IFA_LOCAL and IFA_ADDRESS (rtnetlink(7)).
    const ATTRIBUTES: [u16; 2] = [2, 1];
    let (family, bytes) = match address {
        IpAddr::V4(address) => (V4, address.octets().to_vec()),
        IpAddr::V6(address) => (V6, address.octets().to_vec()),
    };
    let bits = u8::try_from(8 * bytes.len()).map_err(io::Error::other)?;
    let mut body = vec![family, bits, 0, 0];
    body.extend(LOOPBACK.to_ne_bytes());
    let length = u16::try_from(4 + bytes.len()).map_err(io::Error::other)?;
    for kind in ATTRIBUTES {
        body.extend(length.to_ne_bytes());
        body.extend(kind.to_ne_bytes());
        body.extend(&bytes);
    }
    ask(NEW_ADDRESS, REQUEST | CREATE, &body)
}

/// Sends a request to the kernel and reads its response.
fn ask(kind: u16, flags: u16, body: &[u8]) -> io::Result<()> {
    const HEADER: usize = 16;
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        None,
    )?;
    let length = u32::try_from(HEADER + body.len()).map_err(io::Error::other)?;
    let mut message = length.to_ne_bytes().to_vec();
    message.extend(kind.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    // Sequence number and sender.
    message.extend([0; 8]);
    message.extend(body);
    send(&socket, &message, SendFlags::empty())?;
    let mut response = [0; 256];
    recv(&socket, &mut response[..], RecvFlags::empty())?;
    // The response is an error whose number is zero on success.
    let number = response
        .get(HEADER..HEADER + 4)
        .and_then(|it| it.try_into().ok());
    match i32::from_ne_bytes(number.unwrap_or_default()) {
        0 => Ok(()),
        number => Err(io::Error::from_raw_os_error(-number)),
    }
}
