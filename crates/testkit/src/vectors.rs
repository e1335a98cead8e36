//! The vectors: decisions that must come out to the letter, in `crates/testkit/vectors`.

use std::fs;
use std::path::Path;

/// One folder of vectors: a configuration, the requests put to it, and the decision on each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vector {
    /// The folder's name, such as `sliding-log`.
    pub name: String,
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
/// If the folder of vectors is missing or incomplete: it is checked in beside this source.
pub fn all() -> Vec<Vector> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors");
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
        config: text("config.yaml"),
        trace: lines("trace.jsonl"),
        expected: lines("expected.jsonl"),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_request_has_its_decision() {
        let vectors = super::all();
        assert_eq!(vectors.len(), 11);
        for vector in vectors {
            assert!(!vector.trace.is_empty(), "{} is empty", vector.name);
            assert_eq!(vector.trace.len(), vector.expected.len(), "{}", vector.name);
        }
    }
}
