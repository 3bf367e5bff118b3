//! The crate's source as the rules look at it: one parsed file for each module, without test code.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use syn::{Attribute, Item, Visibility};

use super::names::Names;

/// One file of `src`, and what the rules ask of it.
pub(crate) struct Source {
    /// Its path from the repository's root, such as `src/run/course.rs`.
    pub(crate) path: String,
    /// Its module path, such as `["run", "course"]`; empty for `lib.rs`.
    pub(crate) module: Vec<String>,
    /// Its text, test code included.
    pub(crate) text: String,
    /// The types in it that other files can name.
    pub(crate) shared_types: Vec<SharedType>,
    /// Its functions and methods.
    pub(crate) functions: Vec<FunctionLength>,
    /// The names it defines and the paths it writes.
    pub(crate) names: Names,
}

impl Source {
    /// The folder or file directly below `src` that it belongs to, such as `run`; empty for `lib.rs`.
    pub(crate) fn layer(&self) -> &str {
        self.module.first().map_or("", String::as_str)
    }

    /// The lines of the file before its own tests.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &str> {
        self.text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default().lines()
    }
}

/// The repository's root.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every Rust file below a folder of the repository, sorted.
pub(crate) fn rust_files(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    collect(&root().join(folder), &mut found);
    found
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).expect("a readable folder");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// A path as it is shown: from the repository's root.
pub(crate) fn shown(path: &Path) -> String {
    path.strip_prefix(root()).expect("below the root").display().to_string()
}

/// The files of the crate, read once. Those of the programs belong to no layer.
pub(crate) fn sources() -> &'static [Source] {
    static SOURCES: OnceLock<Vec<Source>> = OnceLock::new();
    SOURCES.get_or_init(|| {
        let is_program =
            |path: &PathBuf| path.ends_with("src/main.rs") || path.ends_with("src/relay_main.rs");
        let paths = rust_files("src").into_iter().filter(|path| !is_program(path));
        paths.map(|path| parse(&shown(&path), fs::read_to_string(&path).expect("a readable file"))).collect()
    })
}

/// One file, parsed.
pub(crate) fn parse(path: &str, text: String) -> Source {
    let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
    let items = without_tests(parsed.items);
    Source {
        path: path.to_owned(),
        module: module_path(path),
        shared_types: shared_types(&items),
        functions: functions(&items),
        names: Names::of(&items),
        text,
    }
}

fn module_path(path: &str) -> Vec<String> {
    let inner = path.trim_start_matches("src/").trim_end_matches(".rs");
    let mut module: Vec<String> = inner.split('/').map(str::to_owned).collect();
    if module.last().is_some_and(|last| last == "mod" || last == "lib") {
        module.pop();
    }
    module
}

/// The items of a file that are not for tests alone.
pub(crate) fn without_tests(items: Vec<Item>) -> Vec<Item> {
    items.into_iter().filter(|item| !attributes(item).iter().any(is_test_only)).collect()
}

fn is_test_only(attribute: &Attribute) -> bool {
    let Ok(list) = attribute.meta.require_list() else { return false };
    list.path.is_ident("cfg") && ["test", "doctest"].contains(&list.tokens.to_string().as_str())
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// A type that other files can name.
pub(crate) struct SharedType {
    /// Its name.
    pub(crate) name: String,
    /// The line of its name.
    pub(crate) line: usize,
}

/// The structs, enums, traits and aliases of a file that more than the file itself can name.
fn shared_types(items: &[Item]) -> Vec<SharedType> {
    let mut found = Vec::new();
    for item in items {
        let (visibility, ident) = match item {
            Item::Struct(item) => (&item.vis, &item.ident),
            Item::Enum(item) => (&item.vis, &item.ident),
            Item::Union(item) => (&item.vis, &item.ident),
            Item::Trait(item) => (&item.vis, &item.ident),
            Item::Type(item) => (&item.vis, &item.ident),
            Item::Mod(item) => {
                let inner = item.content.iter().flat_map(|(_, items)| shared_types(items));
                found.extend(inner);
                continue;
            }
            _ => continue,
        };
        if !matches!(visibility, Visibility::Inherited) {
            found.push(SharedType { name: ident.to_string(), line: ident.span().start().line });
        }
    }
    found
}

/// A function's name, its first line, and its number of lines.
pub(crate) struct FunctionLength {
    /// Its name.
    pub(crate) name: String,
    /// The line of its signature.
    pub(crate) line: usize,
    /// The lines from its signature to its closing brace.
    pub(crate) lines: usize,
}

/// The functions and methods of a file.
fn functions(items: &[Item]) -> Vec<FunctionLength> {
    struct Functions(Vec<FunctionLength>);

    impl Functions {
        fn add(&mut self, signature: &syn::Signature, body: &syn::Block) {
            let first = signature.fn_token.span.start().line;
            let last = body.brace_token.span.close().end().line;
            let name = signature.ident.to_string();
            self.0.push(FunctionLength { name, line: first, lines: last - first + 1 });
        }
    }

    impl<'ast> syn::visit::Visit<'ast> for Functions {
        fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
            self.add(&item.sig, &item.block);
            syn::visit::visit_item_fn(self, item);
        }

        fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
            self.add(&item.sig, &item.block);
            syn::visit::visit_impl_item_fn(self, item);
        }

        fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
            if let Some(body) = &item.default {
                self.add(&item.sig, body);
            }
            syn::visit::visit_trait_item_fn(self, item);
        }
    }

    let mut functions = Functions(Vec::new());
    for item in items {
        syn::visit::Visit::visit_item(&mut functions, item);
    }
    functions.0
}
