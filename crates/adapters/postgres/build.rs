//! Migrations are embedded at compile time: compile again when one is added or changed.

fn main() {
    // Cargo reads this instruction from the standard output.
    std::io::Write::write_all(
        &mut std::io::stdout(),
        b"cargo:rerun-if-changed=../../../migrations\n",
    )
    .unwrap_or_default();
}
