//! Open files that the platform and a supervisor send each other.

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
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

/// Files are received such that programs do not inherit them, where the kernel can do that at once.
#[cfg(target_os = "linux")]
const RECEIVING: RecvFlags = RecvFlags::CMSG_CLOEXEC;
#[cfg(not(target_os = "linux"))]
const RECEIVING: RecvFlags = RecvFlags::empty();

/// Sends files over a Unix socket.
pub(crate) fn send(socket: impl AsFd, files: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MAX_FILES))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(files)) {
        return Err(io::Error::other("too many files"));
    }
    sendmsg(
        socket,
        &[IoSlice::new(b"f")],
        &mut control,
        SendFlags::empty(),
    )?;
    Ok(())
}

/// Receives the files of one message; none if the other side has closed the socket.
pub(crate) fn receive(socket: impl AsFd) -> io::Result<Vec<OwnedFd>> {
    let mut byte = [0];
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MAX_FILES))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut byte)],
        &mut control,
        RECEIVING,
    )?;
    let files: Vec<OwnedFd> = control
        .drain()
        .flat_map(|message| match message {
            RecvAncillaryMessage::ScmRights(files) => files.collect::<Vec<OwnedFd>>(),
            _ => Vec::new(),
        })
        .collect();
    // Elsewhere a process that is started between the two calls inherits them.
    #[cfg(not(target_os = "linux"))]
    for file in &files {
        rustix::io::fcntl_setfd(file, rustix::io::FdFlags::CLOEXEC)?;
    }
    Ok(files)
}
