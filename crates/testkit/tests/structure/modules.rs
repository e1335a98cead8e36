//! Which top-level module of a crate names which other.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::{Item, Macro, UseTree, visit::Visit};

use crate::sources::{Crate, SourceFile, is_for_tests};

/// For each pair of modules, a file that makes the first depend on the second.
pub(crate) type Edges = BTreeMap<(String, String), String>;

/// Finds the edges between top-level modules. Re-exports in the root of the crate are followed.
pub(crate) fn edges(package: &Crate) -> Edges {
    let home = homes(package);
    let mut edges = Edges::new();
    for file in package.files.iter().filter(|file| !file.module.is_empty()) {
        let from = &file.module[0];
        for name in root_names(file) {
            match home.get(&name) {
                Some(to) if to != from => {
                    edges
                        .entry((from.clone(), to.clone()))
                        .or_insert_with(|| file.path.display().to_string());
                }
                _ => {}
            }
        }
    }
    edges
}

/// Returns the modules of one cycle, or `None` if there is none.
pub(crate) fn cycle(edges: &Edges) -> Option<Vec<String>> {
    let mut rest = edges.clone();
    // A module that no other depends on, or that depends on none, is in no cycle.
    loop {
        let tails: BTreeSet<_> = rest.keys().map(|(tail, _)| tail.clone()).collect();
        let heads: BTreeSet<_> = rest.keys().map(|(_, head)| head.clone()).collect();
        let before = rest.len();
        rest.retain(|(tail, head), _| heads.contains(tail) && tails.contains(head));
        if rest.is_empty() {
            return None;
        }
        if rest.len() == before {
            break;
        }
    }
    // Every module that is left has a successor: following them must come back.
    let next = |module: &String| {
        rest.keys()
            .find(|(tail, _)| tail == module)
            .map(|(_, head)| head.clone())
    };
    let mut path = vec![rest.keys().next().expect("not empty").0.clone()];
    loop {
        let successor =
            next(path.last().expect("not empty")).expect("every module left has a successor");
        if let Some(start) = path.iter().position(|module| *module == successor) {
            return Some(path.split_off(start));
        }
        path.push(successor);
    }
}

/// Maps each name in the root of a crate to the top-level module that it comes from.
fn homes(package: &Crate) -> BTreeMap<String, String> {
    let modules: BTreeSet<&String> = package
        .files
        .iter()
        .filter_map(|file| file.module.first())
        .collect();
    let mut home = BTreeMap::new();
    for root in package.files.iter().filter(|file| file.module.is_empty()) {
        for item in &root.syntax.items {
            let Item::Use(import) = item else { continue };
            for path in use_paths(&import.tree) {
                let start = usize::from(path[0] == "crate" || path[0] == "self");
                if let Some(module) = path.get(start).filter(|module| modules.contains(module)) {
                    home.insert(
                        path.last().expect("a path has a name").clone(),
                        module.clone(),
                    );
                }
            }
        }
    }
    home.extend(
        modules
            .into_iter()
            .map(|module| (module.clone(), module.clone())),
    );
    home
}

/// Returns every name that a file uses directly below the root of its crate.
fn root_names(file: &SourceFile) -> BTreeSet<String> {
    let mut names = RootNames {
        depth: file.module.len(),
        names: BTreeSet::new(),
    };
    for item in &file.syntax.items {
        names.visit_item(item);
    }
    names.names
}

struct RootNames {
    /// Number of modules around the current item.
    depth: usize,
    names: BTreeSet<String>,
}

impl RootNames {
    fn note(&mut self, path: &[String]) {
        let supers = path
            .iter()
            .take_while(|segment| *segment == "super")
            .count();
        let below = match path[0].as_str() {
            "crate" => 1,
            "super" if supers == self.depth => supers,
            _ => return,
        };
        if let Some(name) = path.get(below) {
            self.names.insert(name.clone());
        }
    }

    /// Notes the paths in the body of a macro, which is not parsed.
    fn note_tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => path.push(ident.to_string()),
                TokenTree::Punct(punct) if punct.as_char() == ':' => continue,
                TokenTree::Group(group) => self.note_tokens(group.stream()),
                _ => path.clear(),
            }
            if let Some(start) = path.iter().rposition(|segment| segment == "crate") {
                self.note(&path[start..]);
            }
        }
    }
}

impl Visit<'_> for RootNames {
    fn visit_item(&mut self, item: &Item) {
        let attributes = match item {
            Item::Fn(item) => &item.attrs,
            Item::Impl(item) => &item.attrs,
            Item::Mod(item) => &item.attrs,
            Item::Struct(item) => &item.attrs,
            Item::Use(item) => &item.attrs,
            _ => &Vec::new(),
        };
        if is_for_tests(attributes) {
            return;
        }
        let inside = usize::from(matches!(item, Item::Mod(_)));
        self.depth += inside;
        syn::visit::visit_item(self, item);
        self.depth -= inside;
    }

    fn visit_item_use(&mut self, import: &syn::ItemUse) {
        for path in use_paths(&import.tree) {
            self.note(&path);
        }
    }

    fn visit_path(&mut self, path: &syn::Path) {
        let segments: Vec<String> = path
            .segments
            .iter()
            .map(|segment| segment.ident.to_string())
            .collect();
        self.note(&segments);
        syn::visit::visit_path(self, path);
    }

    // `pub(in crate::module)` depends on nothing.
    fn visit_visibility(&mut self, _: &syn::Visibility) {}

    fn visit_macro(&mut self, call: &Macro) {
        self.note_tokens(call.tokens.clone());
    }
}

/// Returns the paths of a `use`, each as it is named here: `a::{B, c::D as E}` gives `a::B` and `a::c::E`.
fn use_paths(tree: &UseTree) -> Vec<Vec<String>> {
    match tree {
        UseTree::Path(path) => use_paths(&path.tree)
            .into_iter()
            .map(|rest| [vec![path.ident.to_string()], rest].concat())
            .collect(),
        UseTree::Name(name) => vec![vec![name.ident.to_string()]],
        UseTree::Rename(rename) => vec![vec![rename.rename.to_string()]],
        UseTree::Glob(_) => vec![vec!["*".to_owned()]],
        UseTree::Group(group) => group.items.iter().flat_map(use_paths).collect(),
    }
}
