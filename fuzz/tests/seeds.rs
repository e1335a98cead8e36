//! Every target holds for every seed. Long fuzzing is `scripts/soak`.

use std::fs;
use std::panic::catch_unwind;
use std::path::Path;

use tidegate_fuzz::TARGETS;

#[test]
fn every_target_holds_for_its_seeds() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut broken = Vec::new();
    for (name, run) in TARGETS {
        let folder = root.join("seeds").join(name);
        let mut count = 0;
        for entry in
            fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        {
            let path = entry.expect("a readable folder").path();
            let bytes = fs::read(&path).expect("a readable seed");
            count += 1;
            if catch_unwind(|| run(&bytes)).is_err() {
                broken.push(path);
            }
        }
        assert!(count > 0, "{name} has no seed");
    }
    assert!(broken.is_empty(), "panicked on {broken:#?}");
}

#[test]
fn every_target_runs_under_libfuzzer() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let manifest = fs::read_to_string(root.join("Cargo.toml")).expect("a manifest");
    for (name, _) in TARGETS {
        assert!(
            manifest.contains(&format!("path = \"targets/{name}.rs\"")),
            "{name} has no program"
        );
    }
    let programs = fs::read_dir(root.join("targets"))
        .expect("a folder")
        .count();
    assert_eq!(
        programs,
        TARGETS.len(),
        "each file in targets/ runs a target of the list"
    );
}
