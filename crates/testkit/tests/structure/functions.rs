//! The functions of a file, and their lengths.

use syn::{Attribute, Block, ImplItemFn, Item, ItemFn, Signature, TraitItemFn, visit::Visit};

use crate::sources::{SourceFile, is_for_tests};

/// A function, from its `fn` to its closing brace.
pub(crate) struct FunctionSize {
    pub(crate) name: String,
    pub(crate) lines: usize,
}

/// Returns the functions and methods of a file. Those in tests are left out.
pub(crate) fn functions(file: &SourceFile) -> Vec<FunctionSize> {
    let mut found = Functions(Vec::new());
    found.visit_file(&file.syntax);
    found.0
}

struct Functions(Vec<FunctionSize>);

impl Functions {
    fn note(&mut self, attributes: &[Attribute], signature: &Signature, block: &Block) {
        if is_for_tests(attributes) {
            return;
        }
        let first = signature.fn_token.span.start().line;
        let last = block.brace_token.span.close().end().line;
        self.0.push(FunctionSize {
            name: signature.ident.to_string(),
            lines: last - first + 1,
        });
    }
}

impl Visit<'_> for Functions {
    fn visit_item(&mut self, item: &Item) {
        let attributes = match item {
            Item::Impl(item) => &item.attrs,
            Item::Mod(item) => &item.attrs,
            _ => &Vec::new(),
        };
        if !is_for_tests(attributes) {
            syn::visit::visit_item(self, item);
        }
    }

    fn visit_item_fn(&mut self, function: &ItemFn) {
        self.note(&function.attrs, &function.sig, &function.block);
        syn::visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &ImplItemFn) {
        self.note(&function.attrs, &function.sig, &function.block);
        syn::visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &TraitItemFn) {
        if let Some(block) = &function.default {
            self.note(&function.attrs, &function.sig, block);
        }
        syn::visit::visit_trait_item_fn(self, function);
    }
}
