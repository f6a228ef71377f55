//! Standalone reader, for the tests of this crate. With an argument it does what a file could make a reader do
//! that it has taken over.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "it stands for a program that does what it wants"
)]

use std::{
    env, fs, hint::black_box, io, net::TcpStream, process::Command, process::ExitCode,
    time::Duration,
};

use labdata_sandbox::confine_to_pipes;

/// Time that a test waits for the end of a reader that does nothing else.
const CPU_TIME: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    let Some(what) = env::args().nth(1) else {
        return labdata_table_reader::read_table();
    };
    io::copy(&mut io::stdin(), &mut io::sink()).unwrap();
    confine_to_pipes(labdata_table_reader::MAX_MEMORY, CPU_TIME).unwrap();
    match what.as_str() {
        "allocate" => {
            let mut blocks = Vec::new();
            while blocks.len() < 4096 {
                blocks.push(black_box(vec![1_u8; 1 << 20]));
            }
        }
        "spin" => loop {
            black_box(());
        },
        "reach" => {
            let tell = |name: &str, failed: bool| {
                println!("{name}: {}", if failed { "refused" } else { "done" });
            };
            tell("read", fs::read("/etc/hostname").is_err());
            tell(
                "write",
                fs::write("/tmp/labdata-table-reader", "x").is_err(),
            );
            tell(
                "connect",
                TcpStream::connect("127.0.0.1:1")
                    .is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied),
            );
            tell("run", Command::new("/bin/true").status().is_err());
            println!("environment: {}", env::vars_os().count());
        }
        _ => return ExitCode::FAILURE,
    }
    ExitCode::SUCCESS
}
