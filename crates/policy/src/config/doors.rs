//! Warnings about listeners that will probably not work as intended. They need both the listeners and
//! the store.

use super::fault::ConfigFault;
use super::listen::Listen;
use super::reader::{ConfigReader, ConfigValue};
use super::store::StoreSettings;
use super::syntax::NodeKind;
use std::time::Duration;

/// Envoy's default timeout for its rate limit service.
const ENVOY_WAITS: Duration = Duration::from_millis(20);

/// The longest store timeout that leaves time for a response, or for a decision without the store.
const IN_TIME: Duration = Duration::from_millis(10);

/// Warns about listeners under `listen` that will probably not work as intended.
pub(super) fn warn(
    reader: &mut ConfigReader<'_>,
    value: Option<&ConfigValue<'_>>,
    listen: &Listen,
    store: &StoreSettings,
) {
    let door = |name: &str| {
        let NodeKind::Map(entries) = &value?.node.kind else {
            return None;
        };
        let entry = entries.iter().find(|entry| entry.key.text == name)?;
        Some(value?.child(&entry.key, &entry.value))
    };
    if let (Some(value), Some(_), Some(_)) = (door("grpc"), &listen.grpc, store.target.redis())
        && store.timeout > IN_TIME
    {
        let fault = ConfigFault::new(format!(
            "Envoy waits {ENVOY_WAITS:?} for an answer unless told, and the store alone may take {:?}",
            store.timeout
        ));
        let help =
            "write `timeout: 10ms` or less in `store`, or let Envoy wait longer and leave this be";
        reader.warn(value.key_spot(), fault.help(help));
    }
    if let (Some(value), Some(resp)) = (door("resp"), &listen.resp) {
        let shows_certificate = resp.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some());
        let is_open = resp.token.is_none() && !shows_certificate;
        if is_open && !resp.address.is_local() {
            let fault = ConfigFault::new(format!(
                "whoever reaches {} may take from any limit: the door asks for no token",
                resp.address
            ));
            let help = "add `token_file`, or listen on 127.0.0.1";
            reader.warn(value.key_spot(), fault.help(help));
        }
    }
}
