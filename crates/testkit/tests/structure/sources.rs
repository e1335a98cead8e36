//! Product code of the workspace, as the compiler sees it: files are found by following `mod` from the
//! root of each crate. Items below `#[cfg(test)]` are left out.

use std::{
    fs,
    path::{Path, PathBuf},
};

use syn::{Attribute, Item, ItemMod, Meta, spanned::Spanned};

/// One crate of the workspace.
pub(crate) struct Crate {
    pub(crate) name: String,
    pub(crate) files: Vec<SourceFile>,
}

/// One file of product code.
pub(crate) struct SourceFile {
    /// Path relative to the root of the workspace.
    pub(crate) path: PathBuf,
    /// Path of the module that the file holds. Empty for the root of the crate.
    pub(crate) module: Vec<String>,
    pub(crate) syntax: syn::File,
    pub(crate) text: String,
}

impl SourceFile {
    /// Returns the number of lines that are neither blank, nor a comment, nor in a module of tests.
    pub(crate) fn code_lines(&self) -> usize {
        let lines = self.product_lines();
        lines
            .filter(|line| !line.is_empty() && !line.starts_with("//"))
            .count()
    }

    /// Returns the number of lines of rustdoc that are not in a module of tests.
    pub(crate) fn rustdoc_lines(&self) -> usize {
        let lines = self.product_lines();
        lines
            .filter(|line| line.starts_with("///") || line.starts_with("//!"))
            .count()
    }

    /// Returns the lines that are not in a module of tests, without their indentation.
    fn product_lines(&self) -> impl Iterator<Item = &str> {
        let tests: Vec<_> = self
            .syntax
            .items
            .iter()
            .filter(|item| matches!(item, Item::Mod(module) if is_for_tests(&module.attrs)))
            .map(|item| item.span().start().line..=item.span().end().line)
            .collect();
        let lines = (1..).zip(self.text.lines().map(str::trim));
        lines
            .filter(move |(number, _)| !tests.iter().any(|range| range.contains(number)))
            .map(|(_, line)| line)
    }
}

/// Returns the root of the workspace.
pub(crate) fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the workspace is there")
}

/// Reads the product code of every crate.
pub(crate) fn read_workspace() -> Vec<Crate> {
    let mut folders: Vec<PathBuf> = fs::read_dir(root().join("crates"))
        .expect("the workspace has crates")
        .map(|entry| entry.expect("readable").path())
        .filter(|folder| folder.join("Cargo.toml").exists())
        .collect();
    folders.sort();
    folders.iter().map(|folder| read_crate(folder)).collect()
}

/// Reads the tests of every crate: its folder `tests`, and the modules of that name in its sources.
pub(crate) fn read_tests() -> Vec<SourceFile> {
    let mut files = Vec::new();
    read_tests_below(&root().join("crates"), false, &mut files);
    files
}

fn read_tests_below(folder: &Path, is_in_tests: bool, files: &mut Vec<SourceFile>) {
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .expect("a folder of the workspace")
        .map(|entry| entry.expect("readable").path())
        .collect();
    paths.sort();
    for path in paths {
        let is_test = is_in_tests || path.file_stem().is_some_and(|name| name == "tests");
        if path.is_dir() {
            read_tests_below(&path, is_test, files);
        } else if is_test && path.extension().is_some_and(|it| it == "rs") {
            files.push(parse(&path, &[]));
        }
    }
}

fn read_crate(folder: &Path) -> Crate {
    let mut files = Vec::new();
    for name in ["src/lib.rs", "src/main.rs"] {
        let path = folder.join(name);
        if path.exists() {
            let beside = folder.join("src");
            read_file(&path, &[], &beside, &mut files);
        }
    }
    let name = folder.file_name().expect("a folder has a name");
    Crate {
        name: name.to_string_lossy().into_owned(),
        files,
    }
}

/// Reads a file and the files of its modules, which are in `beside`.
fn read_file(path: &Path, module: &[String], beside: &Path, files: &mut Vec<SourceFile>) {
    let file = parse(path, module);
    let below: Vec<String> = file
        .syntax
        .items
        .iter()
        .filter_map(|item| match item {
            Item::Mod(ItemMod {
                content: None,
                attrs,
                ident,
                ..
            }) if !is_for_tests(attrs) => Some(ident.to_string()),
            _ => None,
        })
        .collect();
    files.push(file);
    for name in below {
        let folder = beside.join(&name);
        let in_folder = folder.join("mod.rs");
        let path = if in_folder.exists() {
            in_folder
        } else {
            beside.join(format!("{name}.rs"))
        };
        let mut module = module.to_vec();
        module.push(name);
        read_file(&path, &module, &folder, files);
    }
}

/// Parses a file, which holds this module.
fn parse(path: &Path, module: &[String]) -> SourceFile {
    let text =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let syntax =
        syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let relative = path.strip_prefix(root()).expect("inside the workspace");
    SourceFile {
        path: relative.to_path_buf(),
        module: module.to_vec(),
        syntax,
        text,
    }
}

/// Returns true if an item exists only in tests.
pub(crate) fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => {
            let condition = list.tokens.to_string();
            condition == "test" || (condition.starts_with("all") && condition.contains("test"))
        }
        _ => false,
    })
}
