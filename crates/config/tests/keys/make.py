#!/usr/bin/env python3
"""Makes the keys and tokens in this folder, with an implementation that is not ours.

Needs the package `cryptography`. The private keys are thrown away: whoever needs another token
makes all of them anew.
"""

import base64
import hmac
import json
from pathlib import Path

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa, utils

HERE = Path(__file__).parent
HASHES = {"256": hashes.SHA256(), "384": hashes.SHA384(), "512": hashes.SHA512()}
SECRET = b"an example of a secret that is long enough"


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def number(value: int, length: int | None = None) -> str:
    return b64(value.to_bytes(length or (value.bit_length() + 7) // 8, "big"))


def sign(algorithm: str, key, message: bytes) -> bytes:
    family, size = algorithm[:2], algorithm[2:]
    if family == "HS":
        return hmac.new(key, message, f"sha{size}").digest()
    if family == "RS":
        return key.sign(message, padding.PKCS1v15(), HASHES[size])
    if family == "PS":
        digest = HASHES[size]
        return key.sign(message, padding.PSS(padding.MGF1(digest), digest.digest_size), digest)
    if family == "ES":
        r, s = utils.decode_dss_signature(key.sign(message, ec.ECDSA(HASHES[size])))
        length = {"256": 32, "384": 48}[size]
        return r.to_bytes(length, "big") + s.to_bytes(length, "big")
    return key.sign(message)


def token(algorithm: str, key, claims, **head) -> str:
    head = {"alg": algorithm, "typ": "JWT", **head}
    message = f"{b64(json.dumps(head).encode())}.{b64(json.dumps(claims).encode())}"
    return f"{message}.{b64(sign(algorithm, key, message.encode()))}"


def pem(key, form=serialization.PublicFormat.SubjectPublicKeyInfo) -> str:
    return key.public_key().public_bytes(serialization.Encoding.PEM, form).decode()


def main() -> None:
    rsa_key = rsa.generate_private_key(65537, 2048)
    p256 = ec.generate_private_key(ec.SECP256R1())
    p384 = ec.generate_private_key(ec.SECP384R1())
    ed = ed25519.Ed25519PrivateKey.generate()
    files = {
        "rsa.pem": pem(rsa_key),
        "rsa-pkcs1.pem": pem(rsa_key, serialization.PublicFormat.PKCS1),
        "rsa-1024.pem": pem(rsa.generate_private_key(65537, 1024)),
        "p256.pem": pem(p256),
        "p384.pem": pem(p384),
        "secp256k1.pem": pem(ec.generate_private_key(ec.SECP256K1())),
        "ed25519.pem": pem(ed),
    }

    n, two, three = (key.public_key().public_numbers() for key in (rsa_key, p256, p384))
    raw = serialization.Encoding.Raw, serialization.PublicFormat.Raw
    rsa_jwk = {"kty": "RSA", "n": number(n.n), "e": number(n.e)}
    keys = [
        {**rsa_jwk, "kid": "rsa", "use": "sig", "alg": "RS256"},
        {"kty": "EC", "kid": "p256", "crv": "P-256", "x": number(two.x, 32), "y": number(two.y, 32)},
        {"kty": "EC", "kid": "p384", "crv": "P-384", "x": number(three.x, 48), "y": number(three.y, 48)},
        {"kty": "OKP", "kid": "ed25519", "crv": "Ed25519", "x": b64(ed.public_key().public_bytes(*raw))},
        {**rsa_jwk, "kid": "enc", "use": "enc"},
        {"kty": "oct", "kid": "shared", "k": b64(SECRET)},
        {"kty": "future", "kid": "later"},
    ]
    files["jwks.json"] = json.dumps({"keys": keys}, indent=1) + "\n"
    files["jwks-enc.json"] = json.dumps({"keys": keys[4:]}, indent=1) + "\n"

    claims = {
        "iss": "https://issuer.example", "aud": ["api", "other"], "sub": "ann", "azp": "shop",
        "nbf": 1_000_000_000, "exp": 2_000_000_000,
        "number": 42, "fraction": 1.5, "flag": True, "nothing": None, "list": ["a"],
        "realm": {"role": "admin", "team": {"name": "blue"}}, "a.b": "literal", "a": {"b": "path"},
        "blank": " ", "control": "a\nb",
    }  # fmt: skip
    tokens = {}
    for algorithm in ["HS256", "HS384", "HS512"]:
        tokens[algorithm] = token(algorithm, SECRET, claims)
    for algorithm in ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"]:
        tokens[algorithm] = token(algorithm, rsa_key, claims)
    tokens["ES256"] = token("ES256", p256, claims)
    tokens["ES384"] = token("ES384", p384, claims)
    tokens["EdDSA"] = token("EdDSA", ed, claims)
    tokens["kid-rsa"] = token("RS256", rsa_key, claims, kid="rsa")
    tokens["kid-p256"] = token("ES256", p256, claims, kid="p256")
    tokens["kid-p384"] = token("ES384", p384, claims, kid="p384")
    tokens["kid-ed25519"] = token("EdDSA", ed, claims, kid="ed25519")
    tokens["kid-rsa-as-PS256"] = token("PS256", rsa_key, claims, kid="rsa")
    tokens["kid-enc"] = token("RS256", rsa_key, claims, kid="enc")
    tokens["kid-unknown"] = token("RS256", rsa_key, claims, kid="nobody")
    tokens["kid-number"] = token("RS256", rsa_key, claims, kid=7)
    tokens["crit"] = token("RS256", rsa_key, claims, crit=["b64"], b64=False)
    # A public key taken for a secret: whoever believes `alg` verifies this.
    tokens["confused"] = token("HS256", files["rsa.pem"].encode(), claims)
    unsigned = b64(json.dumps({"alg": "none"}).encode())
    tokens["none"] = f"{unsigned}.{b64(json.dumps(claims).encode())}."
    for name, few in {
        "no-times": {"sub": "ann"},
        "exp-text": {"sub": "ann", "exp": "2000000000"},
        "exp-fraction": {"sub": "ann", "exp": 2000000000.5},
        "exp-negative": {"sub": "ann", "exp": -1},
        "exp-huge": {"sub": "ann", "exp": 1e300},
        "aud-text": {"sub": "ann", "aud": "api"},
        "no-map": ["ann"],
    }.items():
        tokens[name] = token("HS256", SECRET, few)
    files["tokens.json"] = json.dumps(tokens, indent=1) + "\n"

    for name, text in files.items():
        (HERE / name).write_text(text)


if __name__ == "__main__":
    main()
