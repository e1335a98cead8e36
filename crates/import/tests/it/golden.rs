//! Exact translations and messages.
//!
//! `tests/LIMITER/good/NAME` is translated into `NAME.txt`, including notes, which must load
//! without a warning; for `bad/NAME`, `NAME.txt` contains all errors. A folder is several files,
//! and one whose name begins with `merged` is imported with `--merge-domains`. After a change,
//! `TIDEGATE_BLESS=1 cargo test -p tidegate-policy` rewrites all of them; review the difference.

use super::meant;
use std::fs;
use std::path::{Path, PathBuf};
use tidegate_config::ConfigErrors;
use tidegate_import::{
    EnvoyOptions, ImportedConfig, SourceFile, collector, envoy, fluxgate, gateway, limitador,
    nginx, traefik_plugin, traefik_ratelimit,
};
use tidegate_policy::ChargeTime;

#[test]
fn valid_envoyproxy_ratelimit_files_are_translated() {
    good("envoy", from_envoy, 12);
}

#[test]
fn invalid_envoyproxy_ratelimit_files_report_all_errors() {
    bad("envoy", from_envoy, 20);
}

#[test]
fn valid_limitador_files_are_translated() {
    good("limitador", from_limitador, 3);
}

#[test]
fn untranslatable_limitador_files_report_all_errors() {
    bad("limitador", from_limitador, 5);
}

#[test]
fn valid_traefik_plugin_settings_are_translated() {
    good("traefik-plugin", |path| traefik_plugin(&read(path)), 11);
}

#[test]
fn invalid_traefik_plugin_settings_report_all_errors() {
    bad("traefik-plugin", |path| traefik_plugin(&read(path)), 8);
}

#[test]
fn rules_and_settings_of_fluxgate_are_translated() {
    good("fluxgate", |path| fluxgate(&files(path)), 7);
}

#[test]
fn invalid_fluxgate_files_report_all_errors() {
    bad("fluxgate", |path| fluxgate(&files(path)), 4);
}

#[test]
fn settings_and_lists_of_a_gateway_are_translated() {
    good("gateway", |path| gateway(&files(path)), 5);
}

#[test]
fn invalid_gateway_files_report_all_errors() {
    bad("gateway", |path| gateway(&files(path)), 3);
}

#[test]
fn variables_of_a_collector_are_translated() {
    good("collector", |path| collector(&read(path)), 3);
}

#[test]
fn invalid_collector_variables_report_all_errors() {
    bad("collector", |path| collector(&read(path)), 3);
}

#[test]
fn limits_of_nginx_are_translated() {
    good("nginx", from_nginx, 8);
}

#[test]
fn invalid_nginx_files_report_all_errors() {
    bad("nginx", from_nginx, 4);
}

#[test]
fn ratelimit_middlewares_of_traefik_are_translated() {
    good(
        "traefik-ratelimit",
        |path| traefik_ratelimit(&read(path)),
        5,
    );
}

#[test]
fn invalid_ratelimit_middlewares_report_all_errors() {
    bad(
        "traefik-ratelimit",
        |path| traefik_ratelimit(&read(path)),
        3,
    );
}

#[test]
fn a_translation_notes_that_it_reads_from_mongodb() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
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
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    for limiter in [
        "traefik-plugin",
        "traefik-ratelimit",
        "fluxgate",
        "gateway",
        "collector",
    ] {
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

type Import = fn(&Path) -> Result<ImportedConfig, ConfigErrors>;

fn from_envoy(path: &Path) -> Result<ImportedConfig, ConfigErrors> {
    let name = name(path);
    let files = files(path);
    let options = EnvoyOptions {
        merge_domains: name.starts_with("merged"),
        ..EnvoyOptions::default()
    };
    envoy(&name, &files, options)
}

/// Returns a file, or all files of a folder.
fn files(path: &Path) -> Vec<SourceFile> {
    let mut files = vec![path.to_owned()];
    if path.is_dir() {
        files = entries(path);
    }
    files.iter().map(|file| read(file)).collect()
}

/// Imports a file, or `nginx.conf` of a folder, which may include others of it.
fn from_nginx(path: &Path) -> Result<ImportedConfig, ConfigErrors> {
    let main = if path.is_dir() {
        path.join("nginx.conf")
    } else {
        path.to_owned()
    };
    nginx(&read(&main), &mut |pattern| {
        let Some(folder) = pattern.strip_suffix("/*.conf") else {
            return Err("there is no such file".to_owned());
        };
        Ok(files(&path.join(folder)))
    })
}

fn from_limitador(path: &Path) -> Result<ImportedConfig, ConfigErrors> {
    limitador(&read(path), ChargeTime::EvenIfRefused)
}

/// The warning about long windows in a memory store without a snapshot.
const MEMORY_WARNING: &str = "counts for longer than an hour in memory";

fn good(limiter: &str, import: Import, at_least: usize) {
    let translate = |path: &Path| {
        let imported = import(path).unwrap_or_else(|errors| panic!("{errors}"));
        let yaml = imported.to_yaml();
        let config = meant(&yaml);
        let warnings = config.warnings().iter().map(ToString::to_string);
        // A translation leaves the store, and so the file of its snapshot, to the user.
        let others: String = warnings.filter(|it| !it.contains(MEMORY_WARNING)).collect();
        assert_eq!(others, "", "{}", path.display());
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

/// Compares the result of each case with its golden file.
fn compare(folder: &str, of: impl Fn(&Path) -> String, at_least: usize) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
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
