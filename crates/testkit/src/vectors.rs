//! The vectors: decisions that must come out to the letter, in `crates/testkit/vectors` and
//! `crates/testkit/vectors-budgets`.

use std::fs;
use std::path::{Path, PathBuf};

/// One folder of vectors: a configuration, the requests put to it, and the decision on each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vector {
    /// The folder's name, such as `sliding-log`.
    pub name: String,
    /// The folder.
    pub folder: PathBuf,
    /// The configuration, as YAML text.
    pub config: String,
    /// The requests in order, each a JSON object.
    pub trace: Vec<String>,
    /// The decisions, one for each request, each a JSON object.
    pub expected: Vec<String>,
}

/// Reads every vector, in the order of their names.
///
/// # Panics
///
/// If the folder of vectors is missing or incomplete: it is checked in next to this source.
pub fn all() -> Vec<Vector> {
    in_folder("vectors")
}

/// Reads every vector of calendar windows and units, in the order of their names.
///
/// # Panics
///
/// Like [`all`].
pub fn budgets() -> Vec<Vector> {
    in_folder("vectors-budgets")
}

/// Reads every vector that a limiter decides: [`all`], and those of [`budgets`].
///
/// # Panics
///
/// Like [`all`].
pub fn decided() -> Vec<Vector> {
    let mut vectors = all();
    vectors.extend(budgets());
    vectors
}

fn in_folder(name: &str) -> Vec<Vector> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    let mut vectors: Vec<Vector> = fs::read_dir(root)
        .expect("the vectors are checked in")
        .map(|entry| entry.expect("the vectors can be listed").path())
        .filter(|path| path.is_dir())
        .map(|folder| read(&folder))
        .collect();
    vectors.sort_by(|a, b| a.name.cmp(&b.name));
    vectors
}

fn read(folder: &Path) -> Vector {
    let text = |file: &str| {
        fs::read_to_string(folder.join(file)).expect("each vector has its three files, in UTF-8")
    };
    let lines = |file: &str| text(file).lines().map(str::to_owned).collect();
    let name = folder.file_name().expect("a listed folder has a name");
    Vector {
        name: name.to_string_lossy().into_owned(),
        folder: folder.to_owned(),
        config: text("config.yaml"),
        trace: lines("trace.jsonl"),
        expected: lines("expected.jsonl"),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_request_has_its_decision() {
        let (vectors, budgets) = (super::all(), super::budgets());
        assert_eq!((vectors.len(), budgets.len()), (11, 10));
        for vector in vectors.into_iter().chain(budgets) {
            assert!(!vector.trace.is_empty(), "{} is empty", vector.name);
            assert_eq!(vector.trace.len(), vector.expected.len(), "{}", vector.name);
        }
    }
}
