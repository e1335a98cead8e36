//! Warnings about listeners that will probably not work as intended. They need both the listeners and
//! the store.

use crate::language::reader::{ConfigReader, ConfigValue};
use crate::syntax::NodeKind;
use std::time::Duration;
use tidegate_policy::listen::Listen;
use tidegate_policy::store::StoreSettings;
use tidegate_policy::text::ConfigFault;

/// Envoy's default timeout for its rate limit service.
const ENVOY_WAITS: Duration = Duration::from_millis(20);

/// The longest store timeout that leaves time for a response, or for a decision without the store.
const IN_TIME: Duration = Duration::from_millis(10);

/// Warns about listeners under `listen` that will probably not work as intended.
pub(crate) fn warn(
    reader: &mut ConfigReader<'_>,
    value: Option<&ConfigValue<'_>>,
    listen: &Listen,
    store: &StoreSettings,
) {
    let listener = |name: &str| {
        let NodeKind::Map(entries) = &value?.node.kind else {
            return None;
        };
        let entry = entries.iter().find(|entry| entry.key.text == name)?;
        Some(value?.child(&entry.key, &entry.value))
    };
    if let (Some(value), Some(_), Some(_)) = (listener("grpc"), &listen.grpc, store.target.redis())
        && store.timeout > IN_TIME
    {
        let fault = ConfigFault::new(format!(
            "Envoy's default timeout is {ENVOY_WAITS:?}, but the store may take {:?}",
            store.timeout
        ));
        let help =
            "set `timeout: 10ms` or less in `store`; ignore this if Envoy's timeout is longer";
        reader.warn(value.key_spot(), fault.help(help));
    }
    if let (Some(value), Some(resp)) = (listener("resp"), &listen.resp) {
        let shows_certificate = resp.tls.as_ref().is_some_and(|tls| tls.client_ca.is_some());
        let is_open = resp.token.is_none() && !shows_certificate;
        if is_open && !resp.address.is_local() {
            let fault = ConfigFault::new(format!(
                "{} accepts requests without a token: any client that reaches it can use up any \
                 limit",
                resp.address
            ));
            let help = "add `token_file`, or listen on 127.0.0.1";
            reader.warn(value.key_spot(), fault.help(help));
        }
    }
}
