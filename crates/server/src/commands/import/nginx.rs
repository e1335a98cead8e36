//! `tidegate import nginx`, and the files that a configuration of nginx includes.

use super::{read, show};
use clap::Args;
use std::fs;
use std::path::{Component, Path, PathBuf};
use tidegate_control::failure::Failure;
use tidegate_import::{SourceFile, nginx};

/// The most files that a pattern may stand for.
const FILES_MAX: usize = 1_000;

/// The arguments of `tidegate import nginx`.
#[derive(Args, Debug)]
#[command(after_help = "\
Reads limit_req_zone and limit_req with their servers and locations, and files
that `include` names, relative to the folder of FILE.")]
pub struct ImportNginxArgs {
    /// nginx.conf, or a file with the contents of an `http` block
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// Prints the translation.
pub(super) fn run(args: &ImportNginxArgs) -> Result<(), Failure> {
    let file = read(&args.file)?;
    let folder = args.file.parent().unwrap_or(Path::new(""));
    let imported = nginx(&file, &mut |pattern| included(folder, pattern));
    show(&imported.map_err(Failure::input)?, &[])
}

/// Reads the files of an `include`, by name.
fn included(folder: &Path, pattern: &str) -> Result<Vec<SourceFile>, String> {
    let is_pattern = pattern.contains(['*', '?']);
    let mut paths = matching(folder, pattern)?;
    if paths.is_empty() && !is_pattern {
        return Err("there is no such file".to_owned());
    }
    paths.sort();
    let files = paths.iter().map(|path| read(path));
    files
        .collect::<Result<Vec<_>, Failure>>()
        .map_err(|failure| failure.to_string())
}

/// Returns the paths that a pattern stands for.
fn matching(folder: &Path, pattern: &str) -> Result<Vec<PathBuf>, String> {
    let mut paths = vec![folder.to_owned()];
    for part in Path::new(pattern).components() {
        let Component::Normal(name) = part else {
            for path in &mut paths {
                path.push(part);
            }
            continue;
        };
        let name = name.to_string_lossy();
        if !name.contains(['*', '?']) {
            for path in &mut paths {
                path.push(&*name);
            }
            paths.retain(|path| path.exists());
            continue;
        }
        let mut found = Vec::new();
        for path in &paths {
            let path = if path.as_os_str().is_empty() {
                Path::new(".")
            } else {
                path
            };
            for entry in fs::read_dir(path).into_iter().flatten().flatten() {
                let file = entry.file_name();
                let file = file.to_string_lossy();
                // As in a shell, a pattern matches no hidden files.
                if !file.starts_with('.') && is_match(name.as_bytes(), file.as_bytes()) {
                    found.push(entry.path());
                }
            }
            if found.len() > FILES_MAX {
                return Err(format!("it stands for more than {FILES_MAX} files"));
            }
        }
        paths = found;
    }
    Ok(paths)
}

/// Returns true if a name matches a pattern with `*` and `?`.
fn is_match(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut from) = (0, 0);
    // Where the last `*` is, and the first byte after the text that it stands for.
    let mut star: Option<(usize, usize)> = None;
    while from < name.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(letter) if *letter == b'?' || Some(letter) == name.get(from) => {
                at += 1;
                from += 1;
            }
            _ => {
                let Some((place, end)) = star else {
                    return false;
                };
                star = Some((place, end + 1));
                at = place + 1;
                from = end + 1;
            }
        }
    }
    pattern
        .get(at..)
        .is_some_and(|rest| rest.iter().all(|it| *it == b'*'))
}

#[cfg(test)]
mod tests {
    use super::is_match;

    #[test]
    fn patterns_of_a_shell_match_names() {
        for (pattern, name, expected) in [
            ("*.conf", "a.conf", true),
            ("*.conf", "a.conf.bak", false),
            ("site-?.conf", "site-1.conf", true),
            ("*", "anything", true),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbYbZ", false),
        ] {
            assert_eq!(
                is_match(pattern.as_bytes(), name.as_bytes()),
                expected,
                "{pattern} {name}"
            );
        }
    }
}
