//! The program `tidegate`.

use clap::Parser;
use std::process::ExitCode;
use tidegate_server::cli::Cli;
use tidegate_server::commands;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[expect(
    clippy::print_stderr,
    reason = "errors are for the person at the terminal"
)]
fn main() -> ExitCode {
    match commands::run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("tidegate: {failure}");
            failure.exit_code()
        }
    }
}
