//! Connecting to `MongoDB`.

use mongodb::Client;
use mongodb::options::ClientOptions;
use std::time::Duration;
use tidegate_policy::text::Secret;

/// Creates a client of the server at `url`. It does not connect yet.
pub(crate) async fn connect(url: &Secret, time_max: Duration) -> Result<Client, String> {
    let options = ClientOptions::parse(url.expose()).await;
    // The error for a URL may quote it, and so its password.
    let mut options = options.map_err(|_| "the MongoDB URL is invalid".to_owned())?;
    options
        .app_name
        .get_or_insert_with(|| "tidegate".to_owned());
    options.server_selection_timeout.get_or_insert(time_max);
    Client::with_options(options).map_err(shown)
}

/// Returns an error in one line.
#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
pub(crate) fn shown(error: mongodb::error::Error) -> String {
    error.kind.to_string()
}
