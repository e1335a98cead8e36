//! `tidegate schema`.

use super::print;
use clap::Args;
use tidegate_config::json_schema;
use tidegate_control::failure::Failure;

/// The arguments of `tidegate schema`: none.
#[derive(Args, Debug)]
#[command(after_help = "\
Example, for editors with a YAML language server:
  tidegate schema > tidegate.schema.json
and at the top of the configuration:
  # yaml-language-server: $schema=tidegate.schema.json")]
pub struct SchemaArgs {}

/// Prints the schema.
pub fn run(_args: &SchemaArgs) -> Result<(), Failure> {
    let schema = serde_json::to_string_pretty(&json_schema()).map_err(Failure::runtime)?;
    print::line(&schema)
}
