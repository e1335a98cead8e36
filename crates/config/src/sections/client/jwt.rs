//! `client.jwt`: the location of tokens with claims, and the rules to verify them.

use super::source::{IdentitySources, cookie_name};
use crate::language::reader::{ConfigReader, ConfigValue};
use crate::language::scalar::header_name;
use crate::language::secret_setting::secret;
use crate::language::table::FieldReader;
use crate::language::words::{JWT_ALGORITHM, VERIFIED_BY};
use crate::tables::client::JWT;
use tidegate_policy::client::jwt::{
    Jwt, Proof, SignatureAlgorithm, TokenLocation, Validity, VerificationKey,
};
use tidegate_policy::text::ConfigFault;
use tidegate_policy::text::duration;

/// The longest leeway, in microseconds: an hour. A larger difference means that a clock is wrong.
const LEEWAY_MAX_US: u64 = 3_600_000_000;

/// The shortest shared secret, in bytes. A shorter one can be found by brute force from a token (RFC
/// 7518, 3.2).
const SECRET_BYTES: usize = 32;

/// Reads `jwt`. `sources` holds the identity sources that may need it.
pub(super) fn read(
    reader: &mut ConfigReader<'_>,
    client: &FieldReader<'_>,
    sources: &IdentitySources,
) -> Option<Jwt> {
    let Some(value) = client.get("jwt") else {
        for spot in &sources.claims {
            let fault = ConfigFault::new("`claim` needs `client.jwt`");
            let help = "add it, for example `jwt: { jwks_file: /etc/tidegate/jwks.json }`";
            reader.error(spot.clone(), fault.help(help));
        }
        return None;
    };
    let fields = reader.fields(&value, &JWT)?;
    if sources.claims.is_empty() {
        let fault = ConfigFault::new("`jwt` has no effect: no identity uses a claim");
        let help = "use one, for example `user: { claim: sub }`, or remove `jwt`";
        reader.warn(value.key_spot(), fault.help(help));
    }
    let place = place(reader, &fields);
    let validity = validity(reader, &fields);
    let proof = proof(reader, &fields);
    Some(Jwt {
        place: place?,
        proof: proof?,
        validity,
    })
}

fn place(reader: &mut ConfigReader<'_>, fields: &FieldReader<'_>) -> Option<TokenLocation> {
    if let (Some(_), Some(cookie)) = (fields.get("header"), fields.get("cookie")) {
        let fault = ConfigFault::new("`header` and `cookie` are both set");
        reader.error(cookie.key_spot(), fault.help("write one of the two"));
        return None;
    }
    if fields.get("cookie").is_some() {
        let cookie = reader.setting(fields, "cookie", cookie_name);
        return cookie.map(TokenLocation::Cookie);
    }
    match fields.get("header") {
        Some(value) => reader.parse(&value, header_name).map(TokenLocation::Header),
        None => Some(TokenLocation::Header("authorization".to_owned())),
    }
}

fn validity(reader: &mut ConfigReader<'_>, fields: &FieldReader<'_>) -> Validity {
    let default = Validity::default();
    let leeway = reader.setting(fields, "leeway", |text| match duration::parse(text)? {
        micros if micros <= LEEWAY_MAX_US => Ok(micros.div_ceil(1_000_000)),
        _ => Err(
            ConfigFault::new(format!("{} is too long", ConfigFault::quote(text)))
                .help("at most 1h; default: 60s"),
        ),
    });
    Validity {
        issuers: texts(reader, fields, "issuer"),
        audiences: texts(reader, fields, "audience"),
        leeway: leeway.unwrap_or(default.leeway),
    }
}

/// Reads a text or a list of texts, none of them empty.
fn texts(reader: &mut ConfigReader<'_>, fields: &FieldReader<'_>, name: &str) -> Vec<String> {
    let Some(value) = fields.get(name) else {
        return Vec::new();
    };
    let not_empty = |text: &str| match text {
        "" => Err(ConfigFault::new(format!("`{name}` is empty")).help("remove it to allow any")),
        text => Ok(text.to_owned()),
    };
    let items = reader.one_or_many(&value);
    items
        .iter()
        .filter_map(|item| reader.parse(item, not_empty))
        .collect()
}

fn proof(reader: &mut ConfigReader<'_>, fields: &FieldReader<'_>) -> Option<Proof> {
    let verified_by = reader.setting(fields, "verified_by", |word| VERIFIED_BY.parse(word));
    let secret = secret(reader, fields, "secret", "secret_file");
    if let (Some(secret), Some(value)) =
        (&secret, fields.get("secret").or(fields.get("secret_file")))
        && secret.expose().len() < SECRET_BYTES
    {
        let fault = ConfigFault::new(format!("the secret has fewer than {SECRET_BYTES} bytes"));
        let help = "short secrets can be guessed from a token; create one with `openssl rand \
            -hex 32`";
        reader.warn(value.key_spot(), fault.help(help));
    }
    let from_pem = |text: &str| VerificationKey::from_pem(text).map(|key| vec![key]);
    let key_file = file(reader, fields.get("key_file"), from_pem);
    let jwks_file = file(
        reader,
        fields.get("jwks_file"),
        VerificationKey::set_from_json,
    );
    let written = fields.get("algorithms");
    let algorithms = written.as_ref().map(|value| algorithms(reader, value));
    if verified_by.is_some() {
        if let Some(value) = written {
            let fault = ConfigFault::new("`algorithms` has no effect: the proxy verifies tokens");
            reader.error(value.key_spot(), fault.help("remove `algorithms`"));
        }
        return Some(Proof::Proxy);
    }
    let secret = secret.map(|secret| vec![VerificationKey::secret(secret)]);
    let keys = secret.or(key_file).or(jwks_file)?;
    let algorithms = match algorithms {
        Some(named) => fitting(reader, &named, &keys),
        None => SignatureAlgorithm::ALL.to_vec(),
    };
    Some(Proof::Keys { keys, algorithms })
}

/// Reads the keys in a file.
fn file(
    reader: &mut ConfigReader<'_>,
    value: Option<ConfigValue<'_>>,
    parse: impl FnOnce(&str) -> Result<Vec<VerificationKey>, String>,
) -> Option<Vec<VerificationKey>> {
    let value = value?;
    let path = reader.text(&value)?;
    let text = reader.environment().file(&path).map_err(|why| {
        ConfigFault::new(format!(
            "{} cannot be read: {why}",
            ConfigFault::quote(&path)
        ))
    });
    let keys = text.and_then(|text| {
        parse(&text)
            .map_err(|why| ConfigFault::new(format!("{}: {why}", ConfigFault::quote(&path))))
    });
    reader.accept(&value, keys)
}

/// Reads the names of algorithms.
fn algorithms<'v>(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'v>,
) -> Vec<(ConfigValue<'v>, SignatureAlgorithm)> {
    let parse = |text: &str| match text {
        "none" => Err(ConfigFault::new(
            "`none` accepts tokens without a signature: anyone can \
            forge one",
        )
        .help("remove `none`; if a proxy verifies tokens, use `verified_by: proxy`")),
        text => JWT_ALGORITHM.parse(text),
    };
    let items = reader.one_or_many(value);
    items
        .into_iter()
        .filter_map(|item| {
            let algorithm = reader.parse(&item, parse)?;
            Some((item, algorithm))
        })
        .collect()
}

/// Returns the algorithms that a key fits and reports the others. Accepting another one would accept
/// tokens signed with a public key used as a shared secret.
fn fitting(
    reader: &mut ConfigReader<'_>,
    named: &[(ConfigValue<'_>, SignatureAlgorithm)],
    keys: &[VerificationKey],
) -> Vec<SignatureAlgorithm> {
    let mut fitting = Vec::new();
    for (value, algorithm) in named {
        if keys.iter().any(|key| key.fits(*algorithm)) {
            fitting.push(*algorithm);
            continue;
        }
        let mut kinds: Vec<&str> = keys.iter().map(VerificationKey::kind).collect();
        kinds.dedup();
        let fits = SignatureAlgorithm::ALL
            .iter()
            .filter(|one| keys.iter().any(|key| key.fits(**one)));
        let fits: Vec<String> = fits.map(ToString::to_string).collect();
        let fault = ConfigFault::new(format!("`{algorithm}` does not fit {}", kinds.join(" or ")));
        reader.error(
            value.spot(),
            fault.help(format!("expected {}", fits.join(", "))),
        );
    }
    fitting
}
