//! Open files that a supervisor sends to the platform.

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    net::TcpListener,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::{
    cmsg_space,
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
        SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
    },
};

/// Maximum number of files in a message.
const MAX_FILES: usize = 8;

/// Sends listeners over a Unix socket.
pub(crate) fn send(socket: impl AsFd, listeners: &[TcpListener]) -> io::Result<()> {
    let files: Vec<BorrowedFd<'_>> = listeners.iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MAX_FILES))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(&files)) {
        return Err(io::Error::other("too many listeners"));
    }
    sendmsg(
        socket,
        &[IoSlice::new(b"l")],
        &mut control,
        SendFlags::empty(),
    )?;
    Ok(())
}

/// Receives the listeners of one message; none if the other side has closed the socket.
pub(crate) fn receive(socket: impl AsFd) -> io::Result<Vec<TcpListener>> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MAX_FILES))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut byte)],
        &mut control,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    let files = control.drain().flat_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => files.collect::<Vec<OwnedFd>>(),
        _ => Vec::new(),
    });
    Ok(files.map(TcpListener::from).collect())
}
