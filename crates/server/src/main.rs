//! The program `tidegate`.

use clap::Parser;
use std::process::ExitCode;
use tidegate_control::failure::Failure;
use tidegate_server::commands;
use tidegate_server::commands::cli::Cli;
use tidegate_server::styles;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match commands::run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        // The decision is printed.
        Err(failure @ Failure::Refused) => failure.exit_code(),
        Err(failure) => {
            anstream::eprintln!("{}", styles::failure(&failure.to_string()));
            failure.exit_code()
        }
    }
}
