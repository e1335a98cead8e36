//! `admin`: the credentials that may read a server's state and change it.
//!
//! Without a credential there is no admin API. The configuration contains the hash of a token or of a client
//! certificate, never the token itself. Each credential has a role, and each hash may occur once, so that
//! the audit can name who made a change.

use crate::admin::{Admin, AdminCredential, Audit};
use crate::language::names::DistinctNames;
use crate::language::reader::{ConfigReader, ConfigValue};
use crate::language::scalar::whole;
use crate::language::table::Shape::{List, Map, Text, Whole, Word};
use crate::language::table::{FieldReader, FieldTable};
use crate::language::table::{optional, required};
use crate::language::words::ROLE;
use tidegate_policy::listen::Listen;
use tidegate_policy::store::StoreSettings;
use tidegate_policy::text::ConfigFault;
use tidegate_policy::text::Sha256;

/// The maximum number of tokens, and of certificates: each request is compared with all of them.
const KNOWN_MAX: usize = 1_000;

/// Words that no token may be. Tutorials contain hashes of these, and people copy them.
const GUESSED: [&str; 8] = [
    "", "abc", "admin", "foo", "password", "secret", "test", "token",
];

/// The fields of `admin`.
pub(crate) static ADMIN: FieldTable = FieldTable {
    what: "`admin`",
    fields: &[
        optional(
            "tokens",
            List(&Map(&TOKEN)),
            "Administrators that authenticate with a token. Create one with `tidegate token`. \
             Default: none.",
        ),
        optional(
            "certificates",
            List(&Map(&CERTIFICATE)),
            "Administrators that authenticate with a client certificate; requires \
             `listen.admin.tls.client_ca`. Default: none.",
        ),
        optional(
            "audit",
            Map(&AUDIT),
            "Audit log of changes, in addition to the log. Default: none.",
        ),
    ],
    exactly_one: &[],
};

/// The fields of an administrator's token.
static TOKEN: FieldTable = FieldTable {
    what: "token of an administrator",
    fields: &[
        required(
            "name",
            Text("ci"),
            "Name of the administrator in logs and in the audit log; unique.",
        ),
        required(
            "role",
            Word(&ROLE),
            "`read`: view. `operate`: also enable, disable, reset, ban and reload. `admin`: also \
             change the configuration.",
        ),
        required(
            "hash",
            Text("sha256:…"),
            "SHA-256 of the token, as printed by `tidegate token`.",
        ),
    ],
    exactly_one: &[],
};

/// The fields of an administrator's client certificate.
static CERTIFICATE: FieldTable = FieldTable {
    what: "certificate of an administrator",
    fields: &[
        required(
            "name",
            Text("ann"),
            "Name of the administrator in logs and in the audit log; unique.",
        ),
        required("role", Word(&ROLE), "Role, as for tokens."),
        required(
            "fingerprint",
            Text("sha256:…"),
            "SHA-256 fingerprint of the certificate, as printed by `openssl x509 -noout \
             -fingerprint -sha256`.",
        ),
    ],
    exactly_one: &[],
};

/// The fields of the log of changes.
static AUDIT: FieldTable = FieldTable {
    what: "`audit`",
    fields: &[
        optional(
            "file",
            Text("/var/log/tidegate/audit.jsonl"),
            "Regular file to which each change is appended as a line of JSON; created if missing. \
             Default: none.",
        ),
        optional(
            "stream",
            Text("tidegate:audit"),
            "Stream in the store's Redis to which each change is added. Default: none.",
        ),
        optional(
            "max",
            Whole(1, 100_000_000),
            "Approximate number of entries that the stream keeps. Default: 10000.",
        ),
    ],
    exactly_one: &[],
};

/// Reads `admin`. `listen` and `store` are the sections that it is checked against.
pub(crate) fn read(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    listen: &Listen,
    store: &StoreSettings,
) -> Option<Admin> {
    let fields = reader.fields(value, &ADMIN)?;
    let mut people = AdminList {
        names: DistinctNames::new("administrators"),
        hashes: Vec::new(),
    };
    let tokens = people.read_all(reader, fields.get("tokens"), &TOKEN, "hash");
    let certificates = people.read_all(
        reader,
        fields.get("certificates"),
        &CERTIFICATE,
        "fingerprint",
    );
    let audit = fields
        .get("audit")
        .and_then(|value| audit(reader, &value, store));
    if fields.get("tokens").is_none() && fields.get("certificates").is_none() {
        let fault = ConfigFault::new(
            "the admin API has no administrators: `tokens` and `certificates` \
                are both missing",
        );
        let help = "create a token with `tidegate token` and write its hash here";
        reader.error(value.key_spot(), fault.help(help));
    }
    let tls = listen.admin.tls.as_ref();
    if let Some(value) = fields.get("certificates")
        && tls.is_none_or(|tls| tls.client_ca.is_none())
    {
        let fault = ConfigFault::new(
            "`certificates` has no effect: `listen.admin` does not \
            request client certificates",
        );
        let help = "write `tls: { cert: …, key: …, client_ca: … }` there";
        reader.error(value.key_spot(), fault.help(help));
    }
    if tls.is_none() && !listen.admin.address.is_local() {
        let fault = ConfigFault::new(format!(
            "tokens are sent to {} unencrypted",
            listen.admin.address
        ));
        let help = "write `tls` in `listen.admin`, or listen on 127.0.0.1";
        reader.warn(value.key_spot(), fault.help(help));
    }
    Some(Admin {
        tokens,
        certificates,
        audit: audit.unwrap_or_default(),
    })
}

/// The administrators read so far. Their names and hashes must all differ.
struct AdminList {
    names: DistinctNames,
    hashes: Vec<Sha256>,
}

impl AdminList {
    fn read_all(
        &mut self,
        reader: &mut ConfigReader<'_>,
        value: Option<ConfigValue<'_>>,
        table: &'static FieldTable,
        hash: &str,
    ) -> Vec<AdminCredential> {
        let Some(value) = value else {
            return Vec::new();
        };
        let items = reader.list(&value);
        if items.len() > KNOWN_MAX {
            let message = format!("{} items; at most {KNOWN_MAX} are supported", items.len());
            reader.error(value.key_spot(), ConfigFault::new(message));
        }
        let items = items.iter().take(KNOWN_MAX);
        items
            .filter_map(|item| {
                let fields = reader.fields(item, table)?;
                self.read(reader, &fields, hash)
            })
            .collect()
    }

    fn read(
        &mut self,
        reader: &mut ConfigReader<'_>,
        fields: &FieldReader<'_>,
        hash: &str,
    ) -> Option<AdminCredential> {
        let name = fields.get("name");
        let name = name.and_then(|value| self.names.read(reader, &value));
        let role = reader.setting(fields, "role", |word| ROLE.parse(word));
        let value = fields.get(hash);
        let hash = value.as_ref().and_then(|value| reader.parse(value, sha256));
        if let (Some(hash), Some(value)) = (hash, &value) {
            if self.hashes.contains(&hash) {
                let fault = ConfigFault::new("duplicate hash");
                reader.error(
                    value.spot(),
                    fault.help(
                        "use a different token or certificate for \
                    each administrator",
                    ),
                );
            }
            self.hashes.push(hash);
        }
        Some(AdminCredential {
            name: name?,
            role: role?,
            hash: hash?,
        })
    }
}

fn sha256(text: &str) -> Result<Sha256, ConfigFault> {
    // The message does not quote the text: it may be the token itself.
    let fault = || {
        ConfigFault::new(
            "this is not a SHA-256 hash; expected 64 hexadecimal digits \
        after `sha256:`",
        )
    };
    let hash = Sha256::parse(text)
        .ok_or_else(|| fault().help("`tidegate token` prints a token and its hash"))?;
    let mut guessed = GUESSED.iter();
    if guessed.any(|word| Sha256::of(word.as_bytes()) == hash) {
        let fault = ConfigFault::new("this is the hash of an easily guessed token");
        return Err(fault.help("create a token with `tidegate token` and write its hash here"));
    }
    Ok(hash)
}

fn audit(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    store: &StoreSettings,
) -> Option<Audit> {
    let fields = reader.fields(value, &AUDIT)?;
    let file = fields.get("file").and_then(|value| {
        let path = reader.text(&value)?;
        let fits = reader.environment_at(value.node.place).can_append(&path);
        let fits = fits.map_err(|why| {
            let message = format!("{} cannot be appended to: {why}", ConfigFault::quote(&path));
            ConfigFault::new(message).help("write the path of a regular file")
        });
        reader.accept(&value, fits.map(|()| path))
    });
    let stream = fields.get("stream");
    if let Some(value) = &stream
        && store.target.redis().is_none()
    {
        let fault = ConfigFault::new("`stream` needs Redis, but the store is `memory`");
        reader.error(value.key_spot(), fault.help("use `file` instead"));
    }
    let stream = stream.and_then(|value| reader.text(&value));
    let max = fields
        .get("max")
        .and_then(|value| reader.parse(&value, |text| whole(text, &(1..=100_000_000))));
    Some(Audit {
        file,
        stream,
        max: max.unwrap_or(Audit::default().max),
    })
}

#[cfg(test)]
mod tests {
    use crate::admin::AdminRole;
    use crate::config::Config;
    use tidegate_policy::text::Sha256;

    fn config(text: &str) -> Result<Config, String> {
        let policies = "policies: [{ name: api, limits: [{ name: all, rate: 1/s }] }]";
        Config::from_yaml(&format!("{text}\n{policies}")).map_err(|errors| errors.to_string())
    }

    #[test]
    fn administrators_have_token_hashes_and_roles() {
        let (one, two) = (Sha256::of(b"one"), Sha256::of(b"two"));
        let text = format!(
            "admin:
  tokens: [{{ name: ci, role: operate, hash: '{one}' }}, {{ name: ann, role: admin, hash: '{two}' }}]
  audit: {{ file: /tmp/audit.jsonl }}"
        );
        let admin = config(&text).unwrap().admin.unwrap();
        let credentials: Vec<_> = admin
            .tokens
            .iter()
            .map(|it| (&*it.name, it.role, it.hash))
            .collect();
        assert_eq!(
            credentials,
            [
                ("ci", AdminRole::Operate, one),
                ("ann", AdminRole::Admin, two)
            ]
        );
        assert_eq!(admin.audit.file.as_deref(), Some("/tmp/audit.jsonl"));
        assert_eq!(config("").unwrap().admin, None);
    }

    #[test]
    fn unusable_and_duplicate_administrator_credentials_are_rejected() {
        let one = Sha256::of(b"one");
        let token = |name: &str| format!("{{ name: {name}, role: read, hash: '{one}' }}");
        for (text, expected) in [
            ("admin: {}".to_owned(), "has no administrators"),
            (
                format!("admin: {{ tokens: [{}, {}] }}", token("a"), token("b")),
                "duplicate hash",
            ),
            (
                format!("admin: {{ tokens: [{}, {}] }}", token("a"), token("a")),
                "two administrators are named `a`",
            ),
            (
                format!(
                    "admin: {{ certificates: [{{ name: a, role: read, fingerprint: '{one}' }}] }}"
                ),
                "does not request client certificates",
            ),
            (
                format!(
                    "admin: {{ tokens: [{}], audit: {{ stream: x }} }}",
                    token("a")
                ),
                "`stream` needs Redis",
            ),
            (
                "admin: { tokens: [{ name: a, role: root, hash: 12 }] }".to_owned(),
                "root",
            ),
        ] {
            let errors = config(&text).unwrap_err();
            assert!(errors.contains(expected), "{text}: {errors}");
        }
    }

    #[test]
    fn hashes_of_guessable_tokens_are_rejected() {
        for word in super::GUESSED {
            let hash = Sha256::of(word.as_bytes());
            let text = format!("admin: {{ tokens: [{{ name: a, role: read, hash: '{hash}' }}] }}");
            let errors = config(&text).unwrap_err();
            assert!(errors.contains("easily guessed"), "{word}: {errors}");
            assert!(errors.contains("`tidegate token`"), "{word}: {errors}");
        }
    }

    #[test]
    fn a_token_written_instead_of_its_hash_is_not_shown() {
        let errors = config("admin: { tokens: [{ name: a, role: read, hash: tga_hunter2 }] }");
        let errors = errors.unwrap_err();
        assert!(errors.contains("not a SHA-256"), "{errors}");
        assert!(!errors.contains("hunter2"), "{errors}");
    }

    #[test]
    fn tokens_over_plaintext_cause_a_warning() {
        let hash = Sha256::of(b"one");
        let text = format!(
            "listen: {{ admin: '0.0.0.0:8090', http: '127.0.0.1:8080' }}
admin: {{ tokens: [{{ name: a, role: read, hash: '{hash}' }}] }}"
        );
        let warned = config(&text).unwrap();
        let warned = warned.warnings().iter().map(|it| it.message().to_owned());
        assert_eq!(
            warned.collect::<Vec<_>>(),
            ["tokens are sent to 0.0.0.0:8090 unencrypted"]
        );
    }
}
