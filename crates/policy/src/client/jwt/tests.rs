//! The examples of the RFCs.

use super::key::signature_holds;
use super::{SignatureAlgorithm, VerificationKey};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The payload in the examples of RFC 7515.
const JOE: &str = "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";

fn holds(jwk: &str, algorithm: SignatureAlgorithm, message: &str, signature: &str) -> bool {
    let set = format!("{{\"keys\":[{jwk}]}}");
    let keys = VerificationKey::set_from_json(&set).unwrap();
    let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
    signature_holds(&keys[0], algorithm, message.as_bytes(), &signature)
}

#[test]
fn rfc_7515_a_2_rs256() {
    let jwk = r#"{"kty":"RSA","n":"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ","e":"AQAB"}"#;
    let message = format!("eyJhbGciOiJSUzI1NiJ9.{JOE}");
    let signature = "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw";
    assert!(holds(jwk, SignatureAlgorithm::Rs256, &message, signature));
    assert!(!holds(jwk, SignatureAlgorithm::Rs512, &message, signature));
    assert!(!holds(jwk, SignatureAlgorithm::Rs256, JOE, signature));
}

#[test]
fn rfc_7515_a_3_es256() {
    let jwk = r#"{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}"#;
    let message = format!("eyJhbGciOiJFUzI1NiJ9.{JOE}");
    let signature =
        "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
    assert!(holds(jwk, SignatureAlgorithm::Es256, &message, signature));
    assert!(!holds(jwk, SignatureAlgorithm::Es384, &message, signature));
    assert!(!holds(jwk, SignatureAlgorithm::Es256, JOE, signature));
}

#[test]
fn rfc_8037_a_4_ed25519() {
    let jwk = r#"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;
    let message = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc";
    let signature =
        "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";
    assert!(holds(jwk, SignatureAlgorithm::EdDsa, message, signature));
    assert!(!holds(jwk, SignatureAlgorithm::EdDsa, JOE, signature));
}

#[test]
fn an_invalid_verification_key_is_rejected() {
    let ed = |x: &str| format!(r#"{{"kty":"OKP","crv":"Ed25519","x":"{x}"}}"#);
    for (jwk, why) in [
        (ed("AAAA"), "keys[0]: `x` has 3 bytes; expected 32"),
        (ed("!"), "keys[0]: `x` is not base64url"),
        (r#"{"kty":"OKP","crv":"Ed25519"}"#.to_owned(), "keys[0]: `x` is missing"),
        ("{}".to_owned(), "keys[0]: `kty` is missing"),
        (r#"{"kty":"RSA","n":"AQAB","e":"AQAB"}"#.to_owned(), "keys[0]: the RSA key has 17 bits"),
        (r#"{"kty":"RSA","n":"AQAB","e":"AQAB","d":"AQAB"}"#.to_owned(), "keys[0]: is a private key"),
        (
            r#"{"kty":"EC","crv":"P-256","alg":"RS256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}"#.to_owned(),
            "keys[0]: `alg` does not fit a P-256 key",
        ),
        (r#"{"kty":"oct","k":"AQAB"}"#.to_owned(), "it has no key that verifies signatures; keys[0] is a shared secret"),
        (r#"{"kty":"EC","crv":"P-521"}"#.to_owned(), "it has no key that verifies"),
        (r#"{"kty":"RSA","alg":"RSA-OAEP"}"#.to_owned(), "it has no key that verifies"),
    ] {
        let error = VerificationKey::set_from_json(&format!("{{\"keys\":[{jwk}]}}")).unwrap_err();
        assert!(error.starts_with(why), "{jwk}: {error}");
    }
    let many = vec!["{}"; 65].join(",");
    let error = VerificationKey::set_from_json(&format!("{{\"keys\":[{many}]}}")).unwrap_err();
    assert!(error.contains("65 keys"), "{error}");
}
