//! Any text as files of envoyproxy/ratelimit: translated or rejected, and nothing panics.
//!
//! How: the text is cut into files at lines of `=====`. A rejection must have a reason and a file.
//! A translation must be a configuration that loads unchanged, and decides requests with any
//! descriptor.

use tidegate_import::{EnvoyOptions, SourceFile, envoy};
use tidegate_policy::policy::Scratch;
use tidegate_config::Config;
use tidegate_policy::{Descriptor, DescriptorHits, Request};

fuzz_target!(|text: &str| {
    let files: Vec<SourceFile> = text
        .split("=====\n")
        .enumerate()
        .map(|(number, text)| SourceFile {
            name: format!("{number}.yaml"),
            text: text.to_owned(),
        })
        .collect();
    for merge_domains in [false, true] {
        let options = EnvoyOptions {
            merge_domains,
            each: text.len() % 2 == 0,
            ..EnvoyOptions::default()
        };
        match envoy("fuzz", &files, options) {
            Ok(imported) => {
                for note in imported.notes() {
                    assert!(note.line() > 0 && !note.text().is_empty());
                }
                check(&imported.to_yaml());
            }
            Err(errors) => {
                assert!(errors.count() > 0, "rejected without a reason");
                for problem in errors.problems() {
                    let is_known = files.iter().any(|file| file.name == problem.file());
                    assert!(is_known || problem.file() == "fuzz", "{problem}");
                    assert!(!problem.message().is_empty());
                }
            }
        }
    }
});

/// Checks that a translation loads, and decides requests with known and unknown descriptors.
fn check(yaml: &str) {
    let config = Config::from_yaml(yaml).unwrap_or_else(|errors| panic!("{errors}\nin\n{yaml}"));
    let rules = config.key_rules();
    let mut scratch = Scratch::default();
    for policy in &config.policies {
        for entries in [&[("a", "b")][..], &[("a", ""), ("b", "*")], &[]] {
            let descriptors = [Descriptor {
                entries,
                hits: DescriptorHits::AsRequest,
                limit: None,
            }];
            let mut request = Request::new();
            request.descriptors = &descriptors;
            let meeting = policy.meet(&request, &rules, &mut scratch);
            assert!(meeting.met.len() <= 1, "one place, one limit: {yaml}");
        }
    }
}
