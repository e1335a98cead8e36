//! `tidegate token`.

use super::print;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use clap::Args;
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::json;
use tidegate_control::failure::Failure;
use tidegate_policy::text::Sha256;

/// The arguments of `tidegate token`.
#[derive(Args, Debug)]
#[command(after_help = "\
Clients of the admin API send the token: `Authorization: Bearer TOKEN`. It is
shown once and not stored. The hash goes into the configuration and is not a
secret:

  admin:
    tokens:
      - { name: ann, role: admin, hash: 'sha256:…' }

Roles: `read` views; `operate` also enables and disables limits, resets, bans
and reloads; `admin` also changes policies, guards and routes.")]
pub struct TokenArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// The prefix of tokens, by which people and secret scanners recognize one.
const PREFIX: &str = "tga_";

/// Creates a token of 256 random bits, and prints it and its hash.
pub fn run(args: &TokenArgs) -> Result<(), Failure> {
    let token = token()?;
    let hash = Sha256::of(token.as_bytes()).to_string();
    let text = if args.json {
        json!({ "token": token, "hash": hash }).to_string()
    } else {
        format!("token  {token}\nhash   {hash}")
    };
    print::line(&text)
}

fn token() -> Result<String, Failure> {
    let mut bits = [0; 32];
    let filled = SystemRandom::new().fill(&mut bits);
    filled.map_err(|_| Failure::runtime("the system has no random numbers"))?;
    Ok(format!("{PREFIX}{}", BASE64_URL_SAFE_NO_PAD.encode(bits)))
}

#[cfg(test)]
mod tests {
    use super::token;

    #[test]
    fn no_two_tokens_are_the_same_and_each_has_256_bits() {
        let (one, other) = (token().unwrap(), token().unwrap());
        assert_ne!(one, other);
        assert_eq!(one.len(), "tga_".len() + 43);
    }
}
