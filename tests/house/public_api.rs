//! The public API of the crate as text, so that a change of it is seen in review.
//!
//! It is read from the source, since rustdoc's JSON needs a nightly compiler: what the public modules define and
//! re-export, with public fields, methods and implemented traits. Types that a macro makes are shown by the macro's
//! invocation and the public lines of its definition.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    fs,
};

use syn::{
    Attribute, Fields, ImplItem, Item, ItemImpl, ItemMacro, TraitItem, Type, UseTree, Visibility,
    spanned::Spanned,
};

use crate::source::{root, sources};

/// Where the text is kept.
const SNAPSHOT: &str = "docs/public-api.txt";

/// Set this variable to write the text anew.
const UPDATE: &str = "UPDATE_PUBLIC_API";

/// How many changed lines a failure shows.
const MAX_SHOWN: usize = 40;

/// The crate's files by module path, without test code.
struct Crate {
    modules: BTreeMap<Vec<String>, Vec<Item>>,
}

/// Something that a public path leads to, and the module that defines it.
struct Definition<'a> {
    module: Vec<String>,
    item: &'a Item,
}

/// The text so far.
#[derive(Default)]
struct Listing {
    text: String,
    /// The first public path of each definition.
    shown: BTreeMap<(Vec<String>, String), String>,
}

#[test]
fn the_public_api_is_the_one_that_is_written_down() {
    let current = listing();
    let path = root().join(SNAPSHOT);
    if std::env::var_os(UPDATE).is_some() {
        fs::write(&path, current).expect("a writable snapshot");
        return;
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    let changes = changed_lines(&written, &current);
    assert!(
        changes.is_empty(),
        "the public API is not the one in {SNAPSHOT}. If that is meant, mention it in CHANGELOG.md and run\n  \
         {UPDATE}=1 cargo test --test house public_api\n{}",
        changes.join("\n")
    );
}

#[test]
fn an_api_that_changed_is_seen() {
    assert_eq!(changed_lines("a\nb\n", "a\nc\n"), ["-b", "+c"]);
    let text = listing();
    for expected in
        ["pub struct hookyard::Orchestrator", "pub enum hookyard::model::Verdict", "pub fn dispatch"]
    {
        assert!(text.contains(expected), "{expected} is missing");
    }
}

/// The lines that only one of two texts has, at most as many as can be read.
fn changed_lines(written: &str, current: &str) -> Vec<String> {
    let former: BTreeSet<&str> = written.lines().collect();
    let latter: BTreeSet<&str> = current.lines().collect();
    let gone = written.lines().filter(|line| !latter.contains(line)).map(|line| format!("-{line}"));
    let new = current.lines().filter(|line| !former.contains(line)).map(|line| format!("+{line}"));
    gone.chain(new).take(MAX_SHOWN).collect()
}

fn listing() -> String {
    let parsed = sources().iter().map(|source| {
        let file = syn::parse_file(&source.text).expect("a file that parses");
        let items = file.items.into_iter().filter(|item| !is_test(attributes(item))).collect();
        (source.module.clone(), items)
    });
    let source = Crate { modules: parsed.collect() };
    let mut listing = Listing::default();
    listing.module(&source, &[], "hookyard");
    listing.text
}

impl Crate {
    fn items(&self, module: &[String]) -> &[Item] {
        self.modules.get(module).map_or(&[], Vec::as_slice)
    }

    /// What a name in a module means: defined there, re-exported, or made by a macro.
    fn find(&self, module: &[String], name: &str) -> Option<Definition<'_>> {
        let items = self.items(module);
        if let Some(item) =
            items.iter().find(|item| defined_name(item).is_some_and(|defined| defined == name))
        {
            return Some(Definition { module: module.to_vec(), item });
        }
        let uses = items.iter().filter_map(|item| match item {
            Item::Use(item) => Some(&item.tree),
            _ => None,
        });
        let leaf = uses.flat_map(leaves).find(|leaf| leaf.last().is_some_and(|last| last == name));
        if let Some((name, path)) = leaf.as_deref().and_then(<[String]>::split_last) {
            let target = self.resolve(module, path)?;
            return (target != module).then(|| self.find(&target, name))?;
        }
        let invocations = items.iter().filter(|item| is_invocation(item));
        let mut made = invocations.filter(|item| {
            let Item::Macro(item) = item else { return false };
            has_word(&text(item), name) || self.macro_rules(item).is_some_and(|rules| has_word(&rules, name))
        });
        made.next().map(|item| Definition { module: module.to_vec(), item })
    }

    /// The module that a path of a `use` leads to; `None` if it is another crate's.
    fn resolve(&self, from: &[String], path: &[String]) -> Option<Vec<String>> {
        let (first, rest) = path.split_first().map_or(("self", path), |(first, rest)| (first.as_str(), rest));
        let start = match first {
            "crate" => Vec::new(),
            "self" => from.to_vec(),
            "super" => from.split_last()?.1.to_vec(),
            child => [from, &[child.to_owned()]].concat(),
        };
        let module = [start.as_slice(), rest].concat();
        self.modules.contains_key(&module).then_some(module)
    }

    /// The definition of the macro that is invoked.
    fn macro_rules(&self, invocation: &ItemMacro) -> Option<String> {
        let name = invocation.mac.path.segments.last()?.ident.to_string();
        let mut all = self.modules.values().flatten();
        all.find_map(|item| match item {
            Item::Macro(item) if item.ident.as_ref().is_some_and(|ident| *ident == name) => Some(text(item)),
            _ => None,
        })
    }

    /// The implementations for a type, those of a macro excepted.
    fn implementations(&self, name: &str) -> impl Iterator<Item = &ItemImpl> {
        self.modules.values().flatten().filter_map(move |item| match item {
            Item::Impl(item) if is_named(&item.self_ty, name) => Some(item),
            _ => None,
        })
    }
}

impl Listing {
    fn line(&mut self, depth: usize, line: &str) {
        let indent = "    ".repeat(depth);
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{indent}{line}");
    }

    /// Everything that a public module shows, in the order of its names.
    fn module(&mut self, source: &Crate, module: &[String], path: &str) {
        let mut names: BTreeMap<String, (Option<Definition<'_>>, String)> = BTreeMap::new();
        let mut children = Vec::new();
        for item in source.items(module) {
            match item {
                Item::Mod(item) if is_public(&item.vis) => {
                    let child = item.ident.to_string();
                    children.push((child, features(&item.attrs)));
                }
                Item::Use(item) if is_public(&item.vis) => {
                    for leaf in leaves(&item.tree) {
                        let Some((name, parents)) = leaf.split_last() else { continue };
                        let target = source.resolve(module, parents);
                        let found = target.and_then(|target| source.find(&target, name));
                        names.insert(name.clone(), (found, features(&item.attrs)));
                    }
                }
                item => {
                    let Some(name) = defined_name(item).filter(|_| visibility(item).is_some_and(is_public))
                    else {
                        continue;
                    };
                    let found = Definition { module: module.to_vec(), item };
                    names.insert(name, (Some(found), features(attributes(item))));
                }
            }
        }
        self.line(0, &format!("mod {path}"));
        for (name, (definition, features)) in names {
            self.definition(source, &format!("{path}::{name}"), &name, definition.as_ref(), &features);
        }
        for (child, features) in children {
            self.line(0, "");
            if !features.is_empty() {
                self.line(0, &features);
            }
            self.module(
                source,
                &[module, std::slice::from_ref(&child)].concat(),
                &format!("{path}::{child}"),
            );
        }
    }

    fn definition(
        &mut self,
        source: &Crate,
        path: &str,
        name: &str,
        definition: Option<&Definition<'_>>,
        features: &str,
    ) {
        if !features.is_empty() {
            self.line(1, features);
        }
        let Some(Definition { module, item }) = definition else {
            return self.line(1, &format!("pub use {path}"));
        };
        let key = (module.clone(), name.to_owned());
        if let Some(first) = self.shown.get(&key) {
            let line = format!("pub use {first} as {path}");
            return self.line(1, &line);
        }
        self.shown.insert(key, path.to_owned());
        for attribute in attributes(item).iter().filter(|attribute| is_shown(attribute)) {
            self.line(1, &text(attribute));
        }
        self.item(source, path, item);
        if matches!(item, Item::Struct(_) | Item::Enum(_)) {
            for implementation in source.implementations(name) {
                self.implementation(implementation);
            }
        }
    }

    fn item(&mut self, source: &Crate, path: &str, item: &Item) {
        match item {
            Item::Struct(item) => {
                self.line(1, &format!("pub struct {path}{}", text(&item.generics)));
                self.fields(&item.fields);
            }
            Item::Enum(item) => {
                self.line(1, &format!("pub enum {path}{}", text(&item.generics)));
                for variant in &item.variants {
                    self.line(2, &format!("{}{}", variant.ident, variant_fields(&variant.fields)));
                }
            }
            Item::Trait(item) => {
                let supertraits = text(&item.supertraits);
                self.line(1, &format!("pub trait {path}: {supertraits}"));
                for inner in &item.items {
                    match inner {
                        TraitItem::Fn(function) => {
                            let default = if function.default.is_some() { " { .. }" } else { "" };
                            self.line(2, &format!("{}{default}", text(&function.sig)));
                        }
                        other => self.line(2, &text(other)),
                    }
                }
            }
            Item::Fn(item) => self.line(1, &format!("pub {} // {path}", text(&item.sig))),
            Item::Const(item) => self.line(1, &format!("pub const {path}: {}", text(&item.ty))),
            Item::Static(item) => self.line(1, &format!("pub static {path}: {}", text(&item.ty))),
            Item::Type(item) => self.line(1, &format!("pub type {path} = {}", text(&item.ty))),
            Item::Macro(item) => self.made_by_macro(source, path, item),
            other => self.line(1, &format!("{path}: {}", text(other))),
        }
    }

    fn made_by_macro(&mut self, source: &Crate, path: &str, invocation: &ItemMacro) {
        let name = text(&invocation.mac.path);
        self.line(1, &format!("{path} // made by {name}!"));
        for row in text(&invocation.mac.tokens).split(';').map(str::trim).filter(|row| !row.is_empty()) {
            self.line(2, row);
        }
        let rules = source.macro_rules(invocation).unwrap_or_default();
        for part in rules.split(['{', '}', ';']).map(str::trim) {
            if part.starts_with("pub ") || part.starts_with("impl ") {
                self.line(2, part);
            }
        }
    }

    fn fields(&mut self, fields: &Fields) {
        let public = fields.iter().filter(|field| is_public(&field.vis));
        for (position, field) in public.enumerate() {
            let name = field.ident.as_ref().map_or_else(|| position.to_string(), ToString::to_string);
            self.line(2, &format!("pub {name}: {}", text(&field.ty)));
        }
    }

    fn implementation(&mut self, item: &ItemImpl) {
        let of = text(&item.self_ty);
        let features = features(&item.attrs);
        if let Some((path, _)) = &item.trait_ {
            return self.line(2, format!("{features} impl {} for {of}", text(path)).trim());
        }
        for inner in &item.items {
            let line = match inner {
                ImplItem::Fn(function) if is_public(&function.vis) => text(&function.sig),
                ImplItem::Const(constant) if is_public(&constant.vis) => {
                    format!("const {}: {}", constant.ident, text(&constant.ty))
                }
                _ => continue,
            };
            self.line(2, &format!("pub {line}"));
        }
    }
}

/// The source text of a node on one line, without comments.
fn text(node: &impl Spanned) -> String {
    let source = node.span().source_text().unwrap_or_default();
    let code = source.lines().map(str::trim).filter(|line| !line.starts_with("//"));
    let line = code.collect::<Vec<_>>().join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
    line.replace("( ", "(").replace(", )", ")").replace(",)", ")").replace(" .", ".")
}

fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|part| part == word)
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn is_named(of: &Type, name: &str) -> bool {
    matches!(of, Type::Path(path) if path.path.segments.last().is_some_and(|last| last.ident == name))
}

fn is_invocation(item: &Item) -> bool {
    matches!(item, Item::Macro(item) if item.ident.is_none())
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| text(attribute) == "#[cfg(test)]")
}

/// Whether an attribute is a part of the API.
fn is_shown(attribute: &Attribute) -> bool {
    let path = attribute.path();
    ["derive", "non_exhaustive", "deprecated"].iter().any(|name| path.is_ident(name))
}

/// The features that an item needs.
fn features(attributes: &[Attribute]) -> String {
    attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("cfg"))
        .map(text)
        .collect::<Vec<_>>()
        .join(" ")
}

fn variant_fields(fields: &Fields) -> String {
    let named = |field: &syn::Field| match &field.ident {
        Some(name) => format!("{name}: {}", text(&field.ty)),
        None => text(&field.ty),
    };
    let all = fields.iter().map(named).collect::<Vec<_>>().join(", ");
    match fields {
        Fields::Named(_) => format!(" {{ {all} }}"),
        Fields::Unnamed(_) => format!("({all})"),
        Fields::Unit => String::new(),
    }
}

fn defined_name(item: &Item) -> Option<String> {
    let ident = match item {
        Item::Struct(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Const(item) => &item.ident,
        Item::Static(item) => &item.ident,
        Item::Type(item) => &item.ident,
        _ => return None,
    };
    Some(ident.to_string())
}

fn visibility(item: &Item) -> Option<&Visibility> {
    Some(match item {
        Item::Struct(item) => &item.vis,
        Item::Enum(item) => &item.vis,
        Item::Trait(item) => &item.vis,
        Item::Fn(item) => &item.vis,
        Item::Const(item) => &item.vis,
        Item::Static(item) => &item.vis,
        Item::Type(item) => &item.vis,
        _ => return None,
    })
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Struct(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Const(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        _ => &[],
    }
}

/// Every path of a `use`, the name last; a renamed one has its new name.
fn leaves(tree: &UseTree) -> Vec<Vec<String>> {
    match tree {
        UseTree::Path(path) => {
            let mut found = leaves(&path.tree);
            for leaf in &mut found {
                leaf.insert(0, path.ident.to_string());
            }
            found
        }
        UseTree::Name(name) => vec![vec![name.ident.to_string()]],
        UseTree::Rename(rename) => vec![vec![rename.rename.to_string()]],
        UseTree::Glob(_) => Vec::new(),
        UseTree::Group(group) => group.items.iter().flat_map(leaves).collect(),
    }
}
