//! The names that a file defines, imports and writes.

use std::collections::HashSet;

use proc_macro2::{TokenStream, TokenTree};
use syn::{Item, UseTree, Visibility, visit::Visit};

/// A path of items, such as `["model", "Event"]`.
pub(crate) type ItemPath = Vec<String>;

/// A leaf of a `use` declaration.
pub(crate) struct Import {
    /// The name it brings in; `*` for a glob.
    pub(crate) name: String,
    /// Its path as written.
    pub(crate) path: ItemPath,
    /// Whether other files can reach the name through this one.
    pub(crate) is_re_export: bool,
}

/// The names of one file.
#[derive(Default)]
pub(crate) struct Names {
    /// Its items, those of inline modules aside.
    pub(crate) defined: HashSet<String>,
    /// What its `use` declarations bring in.
    pub(crate) imports: Vec<Import>,
    /// Every path that its code writes, also inside of macros.
    pub(crate) paths: Vec<ItemPath>,
}

impl Names {
    /// The names of a file with these items.
    pub(crate) fn of(items: &[Item]) -> Self {
        let mut names = Self::default();
        for item in items {
            if let Item::Use(item) = item {
                let is_re_export = !matches!(item.vis, Visibility::Inherited);
                let mut leaves = Vec::new();
                flatten(&item.tree, &mut Vec::new(), &mut leaves);
                let import = |(name, path)| Import { name, path, is_re_export };
                names.imports.extend(leaves.into_iter().map(import));
            } else {
                names.defined.extend(defined_name(item));
            }
        }
        let mut written = Paths::default();
        for item in items {
            written.visit_item(item);
        }
        names.paths = written.0;
        names
    }
}

fn defined_name(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

/// The leaves of a `use`: the name each brings in (`*` for a glob), and its path.
fn flatten(tree: &UseTree, before: &mut Vec<String>, leaves: &mut Vec<(String, Vec<String>)>) {
    match tree {
        UseTree::Path(path) => {
            before.push(path.ident.to_string());
            flatten(&path.tree, before, leaves);
            before.pop();
        }
        UseTree::Name(name) if name.ident == "self" => {
            leaves.push((before.last().cloned().unwrap_or_default(), before.clone()));
        }
        UseTree::Name(name) => {
            let name = name.ident.to_string();
            leaves.push((name.clone(), [before.as_slice(), &[name]].concat()));
        }
        UseTree::Rename(rename) => {
            let path = [before.as_slice(), &[rename.ident.to_string()]].concat();
            leaves.push((rename.rename.to_string(), path));
        }
        UseTree::Glob(_) => leaves.push(("*".to_owned(), before.clone())),
        UseTree::Group(group) => group.items.iter().for_each(|tree| flatten(tree, before, leaves)),
    }
}

/// Every path that code names, also inside of macros.
#[derive(Default)]
struct Paths(Vec<Vec<String>>);

impl<'ast> Visit<'ast> for Paths {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.0.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        syn::visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, invocation: &'ast syn::Macro) {
        self.in_tokens(invocation.tokens.clone());
        syn::visit::visit_macro(self, invocation);
    }

    fn visit_vis_restricted(&mut self, _: &'ast syn::VisRestricted) {
        // `pub(in crate::dialect)` names a module, and uses nothing of it.
    }
}

impl Paths {
    fn in_tokens(&mut self, tokens: TokenStream) {
        if matches!(tokens.clone().into_iter().next(), Some(TokenTree::Ident(first)) if first == "in") {
            // `pub(in crate::dialect)`, as above.
            return;
        }
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(ident) if path.is_empty() || colons == 2 => {
                    path.push(ident.to_string());
                    colons = 0;
                    continue;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' && !path.is_empty() && colons < 2 => {
                    colons += 1;
                    continue;
                }
                TokenTree::Ident(ident) => {
                    self.keep(&mut path);
                    path.push(ident.to_string());
                }
                TokenTree::Group(group) => {
                    self.keep(&mut path);
                    self.in_tokens(group.stream());
                }
                _ => self.keep(&mut path),
            }
            colons = 0;
        }
        self.keep(&mut path);
    }

    fn keep(&mut self, path: &mut Vec<String>) {
        if path.len() > 1 {
            self.0.push(std::mem::take(path));
        }
        path.clear();
    }
}
