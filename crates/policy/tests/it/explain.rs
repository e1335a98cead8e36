//! What a configuration means, to the letter.

use crate::good::everything;
use std::fs;
use std::path::Path;
use tidegate_policy::config::explain;

/// `TIDEGATE_BLESS=1` writes `tests/good/everything.txt` anew; read the difference.
#[test]
fn everything_is_explained() {
    let words = explain(&everything());
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/good/everything.txt");
    if std::env::var_os("TIDEGATE_BLESS").is_some() {
        fs::write(&golden, &words).unwrap();
    }
    assert_eq!(fs::read_to_string(golden).unwrap(), words);
}
