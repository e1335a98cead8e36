//! Translations and messages, to the letter.
//!
//! `tests/import/LIMITER/good/NAME` is translated into `NAME.txt`, notes included, which must load
//! without a warning; of `bad/NAME`, `NAME.txt` has everything that is wrong. A folder is
//! several files, and one whose name begins with `merged` is told of with `--merge-domains`. After a
//! change, `TIDEGATE_BLESS=1 cargo test -p tidegate-policy` writes all of them anew; read the difference.

use super::meant;
use std::fs;
use std::path::{Path, PathBuf};
use tidegate_policy::import::{
    EnvoyOptions, Imported, SourceFile, collector, envoy, fluxgate, gateway, limitador,
    traefik_plugin,
};
use tidegate_policy::{ChargeTime, ConfigErrors};

#[test]
fn what_envoyproxy_ratelimit_accepts_is_translated() {
    good("envoy", from_envoy, 12);
}

#[test]
fn what_envoyproxy_ratelimit_refuses_is_refused_all_at_once() {
    bad("envoy", from_envoy, 20);
}

#[test]
fn what_limitador_accepts_is_translated() {
    good("limitador", from_limitador, 3);
}

#[test]
fn what_cannot_be_said_of_limitador_is_refused_all_at_once() {
    bad("limitador", from_limitador, 5);
}

#[test]
fn what_a_traefik_plugin_is_told_is_translated() {
    good("traefik-plugin", |path| traefik_plugin(&read(path)), 11);
}

#[test]
fn what_a_traefik_plugin_cannot_be_told_is_refused_all_at_once() {
    bad("traefik-plugin", |path| traefik_plugin(&read(path)), 8);
}

#[test]
fn rules_and_settings_of_fluxgate_are_translated() {
    good("fluxgate", |path| fluxgate(&files(path)), 7);
}

#[test]
fn what_fluxgate_cannot_mean_is_refused_all_at_once() {
    bad("fluxgate", |path| fluxgate(&files(path)), 4);
}

#[test]
fn settings_and_lists_of_a_gateway_are_translated() {
    good("gateway", |path| gateway(&files(path)), 5);
}

#[test]
fn what_a_gateway_cannot_mean_is_refused_all_at_once() {
    bad("gateway", |path| gateway(&files(path)), 3);
}

#[test]
fn variables_of_a_collector_are_translated() {
    good("collector", |path| collector(&read(path)), 3);
}

#[test]
fn what_a_collector_cannot_mean_is_refused_all_at_once() {
    bad("collector", |path| collector(&read(path)), 3);
}

#[test]
fn a_translation_that_reads_from_mongodb_says_so() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import");
    let uses = |file: &str| {
        let translated = collector(&read(&folder.join("collector/good").join(file)));
        translated.unwrap().uses_mongodb()
    };
    assert!(uses("whole.env"));
    assert!(!uses("documented.env"));
    let gateway = gateway(&files(&folder.join("gateway/good/all")));
    assert!(!gateway.unwrap().uses_mongodb());
}

#[test]
fn no_secret_is_in_any_translation_note_or_message() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import");
    for limiter in ["traefik-plugin", "fluxgate", "gateway", "collector"] {
        for kind in ["good", "bad"] {
            for path in entries(&folder.join(limiter).join(kind)) {
                if path.extension().is_some_and(|it| it == "txt") {
                    let text = fs::read_to_string(&path).unwrap();
                    for secret in ["hunter2", "Pas$w0rd", "fluxgate123"] {
                        assert!(!text.contains(secret), "{}", path.display());
                    }
                }
            }
        }
    }
}

type Import = fn(&Path) -> Result<Imported, ConfigErrors>;

fn from_envoy(path: &Path) -> Result<Imported, ConfigErrors> {
    let name = name(path);
    let files = files(path);
    let options = EnvoyOptions {
        merge_domains: name.starts_with("merged"),
        ..EnvoyOptions::default()
    };
    envoy(&name, &files, options)
}

/// A file, or all files of a folder.
fn files(path: &Path) -> Vec<SourceFile> {
    let mut files = vec![path.to_owned()];
    if path.is_dir() {
        files = entries(path);
    }
    files.iter().map(|file| read(file)).collect()
}

fn from_limitador(path: &Path) -> Result<Imported, ConfigErrors> {
    limitador(&read(path), ChargeTime::EvenIfRefused)
}

fn good(limiter: &str, import: Import, at_least: usize) {
    let translate = |path: &Path| {
        let imported = import(path).unwrap_or_else(|errors| panic!("{errors}"));
        let yaml = imported.to_yaml();
        let config = meant(&yaml);
        let warnings: String = config.warnings().iter().map(ToString::to_string).collect();
        assert_eq!(warnings, "", "{}", path.display());
        yaml
    };
    compare(&format!("{limiter}/good"), translate, at_least);
}

fn bad(limiter: &str, import: Import, at_least: usize) {
    let refuse = |path: &Path| match import(path) {
        Ok(_) => "nothing is wrong\n".to_owned(),
        Err(errors) => format!("{errors}\n"),
    };
    compare(&format!("{limiter}/bad"), refuse, at_least);
}

/// Compares what comes of each case with the file beside it.
fn compare(folder: &str, of: impl Fn(&Path) -> String, at_least: usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/import")
        .join(folder);
    let cases: Vec<PathBuf> = entries(&folder)
        .into_iter()
        .filter(|path| path.extension().is_none_or(|extension| extension != "txt"))
        .collect();
    assert!(cases.len() >= at_least, "only {} cases", cases.len());
    let mut wrong = Vec::new();
    for case in cases {
        let came = of(&case);
        let golden = case.with_extension("txt");
        if std::env::var_os("TIDEGATE_BLESS").is_some() {
            fs::write(&golden, &came).unwrap();
        }
        if fs::read_to_string(&golden).ok().as_ref() != Some(&came) {
            wrong.push(format!("{}:\n{came}", name(&case)));
        }
    }
    assert!(wrong.is_empty(), "not as in .txt:\n{}", wrong.join("\n"));
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    let mut entries: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    entries
}

fn read(path: &Path) -> SourceFile {
    SourceFile {
        name: name(path),
        text: fs::read_to_string(path).unwrap(),
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}
