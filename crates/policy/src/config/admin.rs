//! `admin`: the credentials that may read a server's state and change it.

use super::fault::ConfigFault;
use super::fields::{optional, required};
use super::listen::Listen;
use super::policy::DistinctNames;
use super::reader::{ConfigReader, ConfigValue};
use super::scalar::whole;
use super::store::StoreSettings;
use super::table::Shape::{List, Map, Text, Whole, Word};
use super::table::{FieldReader, FieldTable};
use super::words::ROLE;
use crate::admin::{Admin, AdminCredential, Audit, Sha256};

/// The maximum number of tokens, and of certificates: each request is compared with all of them.
const KNOWN_MAX: usize = 1_000;

/// Words that no token may be. Tutorials contain hashes of these, and people copy them.
const GUESSED: [&str; 8] = [
    "", "abc", "admin", "foo", "password", "secret", "test", "token",
];

/// The fields of `admin`.
pub(super) static ADMIN: FieldTable = FieldTable {
    what: "`admin`",
    fields: &[
        optional(
            "tokens",
            List(&Map(&TOKEN)),
            "Who may come in by a token; `tidegate token` makes one.",
        ),
        optional(
            "certificates",
            List(&Map(&CERTIFICATE)),
            "Who may come in by the certificate of the connection; `listen.admin.tls.client_ca` says whose are believed.",
        ),
        optional(
            "audit",
            Map(&AUDIT),
            "Where changes are written down, beside the log.",
        ),
    ],
    exactly_one: &[],
};

/// The fields of an administrator's token.
static TOKEN: FieldTable = FieldTable {
    what: "token of an administrator",
    fields: &[
        required("name", Text("ci"), "What logs call whoever has it."),
        required(
            "role",
            Word(&ROLE),
            "`read` looks; `operate` also turns off and on, resets, bans and reloads; `admin` also changes.",
        ),
        required(
            "hash",
            Text("sha256:…"),
            "The SHA-256 of the token, as `tidegate token` prints it.",
        ),
    ],
    exactly_one: &[],
};

/// The fields of an administrator's client certificate.
static CERTIFICATE: FieldTable = FieldTable {
    what: "certificate of an administrator",
    fields: &[
        required("name", Text("ann"), "What logs call whoever has it."),
        required("role", Word(&ROLE), "What they may do, as for tokens."),
        required(
            "fingerprint",
            Text("sha256:…"),
            "The SHA-256 of the certificate, as `openssl x509 -noout -fingerprint -sha256` prints it.",
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
            "The file to which a line of JSON is added for each change.",
        ),
        optional(
            "stream",
            Text("tidegate:audit"),
            "The stream in the store's Redis to which each change is added.",
        ),
        optional(
            "max",
            Whole(1, 100_000_000),
            "About how many the stream keeps; 10000 unless told.",
        ),
    ],
    exactly_one: &[],
};

/// Reads `admin`. `listen` and `store` are the sections that it is checked against.
pub(super) fn read(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    listen: &Listen,
    store: &StoreSettings,
) -> Option<Admin> {
    let fields = reader.fields(value, &ADMIN)?;
    let mut people = People {
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
        let fault =
            ConfigFault::new("nobody could come in: there are neither `tokens` nor `certificates`");
        let help = "make a token with `tidegate token`, and write its hash here";
        reader.error(value.key_spot(), fault.help(help));
    }
    let tls = listen.admin.tls.as_ref();
    if let Some(value) = fields.get("certificates")
        && tls.is_none_or(|tls| tls.client_ca.is_none())
    {
        let fault = ConfigFault::new("nobody is asked for a certificate at `listen.admin`");
        let help = "write `tls: { cert: …, key: …, client_ca: … }` there";
        reader.error(value.key_spot(), fault.help(help));
    }
    if tls.is_none() && !listen.admin.address.is_local() {
        let fault = ConfigFault::new(format!(
            "tokens travel to {} in the clear",
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
struct People {
    names: DistinctNames,
    hashes: Vec<Sha256>,
}

impl People {
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
            let message = format!("these are {}; {KNOWN_MAX} is the most", items.len());
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
                let fault = ConfigFault::new("somebody else is known by the same");
                reader.error(value.spot(), fault.help("who did what could not be told"));
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
    let fault = || ConfigFault::new("this is no SHA-256: 64 hexadecimal digits after `sha256:`");
    let hash = Sha256::parse(text)
        .ok_or_else(|| fault().help("`tidegate token` prints a token and its hash"))?;
    let mut guessed = GUESSED.iter();
    if guessed.any(|word| Sha256::of(word.as_bytes()) == hash) {
        let fault = ConfigFault::new("this is the hash of a word that anybody would try first");
        return Err(fault.help("make a token with `tidegate token`, and write its hash here"));
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
        let fault = ConfigFault::new("the store is no Redis, so there is nowhere to keep a stream");
        reader.error(value.key_spot(), fault.help("write `file` instead"));
    }
    let stream = stream.and_then(|value| reader.text(&value));
    let max = fields
        .get("max")
        .and_then(|value| reader.parse(&value, |text| whole(text, &(1..=100_000_000))));
    Some(Audit { file, stream, max })
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use crate::admin::{AdminRole, Sha256};

    fn config(text: &str) -> Result<Config, String> {
        let policies = "policies: [{ name: api, limits: [{ name: all, rate: 1/s }] }]";
        Config::from_yaml(&format!("{text}\n{policies}")).map_err(|errors| errors.to_string())
    }

    #[test]
    fn administrators_are_known_by_hashes_and_have_roles() {
        let (one, two) = (Sha256::of(b"one"), Sha256::of(b"two"));
        let text = format!(
            "admin:
  tokens: [{{ name: ci, role: operate, hash: '{one}' }}, {{ name: ann, role: admin, hash: '{two}' }}]
  audit: {{ file: /tmp/audit.jsonl }}"
        );
        let admin = config(&text).unwrap().admin.unwrap();
        let told: Vec<_> = admin
            .tokens
            .iter()
            .map(|it| (&*it.name, it.role, it.hash))
            .collect();
        assert_eq!(
            told,
            [
                ("ci", AdminRole::Operate, one),
                ("ann", AdminRole::Admin, two)
            ]
        );
        assert_eq!(admin.audit.file.as_deref(), Some("/tmp/audit.jsonl"));
        assert_eq!(config("").unwrap().admin, None);
    }

    #[test]
    fn what_would_let_in_nobody_or_two_as_one_is_refused() {
        let one = Sha256::of(b"one");
        let token = |name: &str| format!("{{ name: {name}, role: read, hash: '{one}' }}");
        for (text, expected) in [
            ("admin: {}".to_owned(), "nobody could come in"),
            (
                format!("admin: {{ tokens: [{}, {}] }}", token("a"), token("b")),
                "somebody else is known by the same",
            ),
            (
                format!("admin: {{ tokens: [{}, {}] }}", token("a"), token("a")),
                "two administrators with the name `a`",
            ),
            (
                format!(
                    "admin: {{ certificates: [{{ name: a, role: read, fingerprint: '{one}' }}] }}"
                ),
                "nobody is asked for a certificate",
            ),
            (
                format!(
                    "admin: {{ tokens: [{}], audit: {{ stream: x }} }}",
                    token("a")
                ),
                "the store is no Redis",
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
    fn the_hash_of_a_word_that_anybody_would_try_lets_nobody_in() {
        for word in super::GUESSED {
            let hash = Sha256::of(word.as_bytes());
            let text = format!("admin: {{ tokens: [{{ name: a, role: read, hash: '{hash}' }}] }}");
            let errors = config(&text).unwrap_err();
            assert!(errors.contains("try first"), "{word}: {errors}");
            assert!(errors.contains("`tidegate token`"), "{word}: {errors}");
        }
    }

    #[test]
    fn a_token_in_the_place_of_its_hash_is_not_shown() {
        let errors = config("admin: { tokens: [{ name: a, role: read, hash: tga_hunter2 }] }");
        let errors = errors.unwrap_err();
        assert!(errors.contains("no SHA-256"), "{errors}");
        assert!(!errors.contains("hunter2"), "{errors}");
    }

    #[test]
    fn tokens_that_would_travel_in_the_clear_are_warned_of() {
        let hash = Sha256::of(b"one");
        let text = format!(
            "listen: {{ admin: '0.0.0.0:8090', http: '127.0.0.1:8080' }}
admin: {{ tokens: [{{ name: a, role: read, hash: '{hash}' }}] }}"
        );
        let warned = config(&text).unwrap();
        let warned = warned.warnings().iter().map(|it| it.message().to_owned());
        assert_eq!(
            warned.collect::<Vec<_>>(),
            ["tokens travel to 0.0.0.0:8090 in the clear"]
        );
    }
}
