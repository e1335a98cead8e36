//! `tls` of servers that Tidegate calls: the same fields and checks for Redis, upstreams and sources.

use crate::language::host::host_and_port;
use crate::language::reader::{ConfigReader, ConfigValue};
use crate::language::secret_setting::secret_file;
use crate::tables::tls::CLIENT_TLS;
use tidegate_policy::text::ConfigFault;
use tidegate_policy::tls::{ClientCertificate, ClientTls};

/// Reads certificate authorities, server name and client certificate. Reports a certificate without its key,
/// and a key without its certificate.
pub(crate) fn client_tls(reader: &mut ConfigReader<'_>, value: &ConfigValue<'_>) -> ClientTls {
    let Some(fields) = reader.fields(value, &CLIENT_TLS) else {
        return ClientTls::default();
    };
    let mut pem = |name| secret_file(reader, &fields.get(name)?);
    let (ca, cert, key) = (pem("ca"), pem("cert"), pem("key"));
    for (name, other) in [("cert", "key"), ("key", "cert")] {
        if let (Some(value), None) = (fields.get(name), fields.get(other)) {
            let fault = ConfigFault::new(format!("`{name}` needs `{other}`"));
            let help = "set both the certificate and its private key";
            reader.error(value.key_spot(), fault.help(help));
        }
    }
    ClientTls {
        ca,
        server_name: reader.setting(&fields, "server_name", server_name),
        identity: cert
            .zip(key)
            .map(|(cert, key)| ClientCertificate { cert, key }),
    }
}

fn server_name(text: &str) -> Result<String, ConfigFault> {
    match host_and_port(text) {
        Ok((host, None)) if !text.contains('_') => Ok(host),
        _ => Err(ConfigFault::new(format!(
            "{} cannot be the name of a server",
            ConfigFault::quote(text)
        ))
        .help("for example `orders.internal`: a host, without scheme, port or path")),
    }
}
