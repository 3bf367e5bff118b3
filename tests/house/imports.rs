//! Which file names which: paths of a file, followed through `use`, aliases and re-exports to the file that
//! defines the item.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::{names::ItemPath, source::Source};

/// A module as others see it: its own items, and where the names come from that it imports.
struct Module<'a> {
    file: usize,
    source: &'a Source,
    /// Names that a `use` brings in, also privately, and their paths from the crate's root.
    imported: HashMap<&'a str, ItemPath>,
    globs: Vec<ItemPath>,
}

/// The modules of the crate.
pub(crate) struct Imports<'a>(HashMap<&'a [String], Module<'a>>);

impl<'a> Imports<'a> {
    /// The modules of some files.
    pub(crate) fn new(sources: &'a [Source]) -> Self {
        let empty = |(file, source): (usize, &'a Source)| {
            let module = Module { file, source, imported: HashMap::new(), globs: Vec::new() };
            (source.module.as_slice(), module)
        };
        let mut imports = Self(sources.iter().enumerate().map(empty).collect());
        for source in sources {
            for import in &source.names.imports {
                let Some(path) = imports.absolute(&source.module, &import.path) else { continue };
                let Some(module) = imports.0.get_mut(source.module.as_slice()) else { continue };
                if import.name == "*" {
                    module.globs.push(path);
                } else {
                    module.imported.insert(&import.name, path);
                }
            }
        }
        imports
    }

    /// A path as a file writes it, counted from the crate's root; `None` for one of another crate.
    fn absolute(&self, module: &[String], path: &[String]) -> Option<ItemPath> {
        match path.first()?.as_str() {
            "crate" => Some(path[1..].to_vec()),
            "self" => Some([module, &path[1..]].concat()),
            "super" => {
                let ups = path.iter().take_while(|part| *part == "super").count();
                let above = module.len().checked_sub(ups)?;
                Some([&module[..above], &path[ups..]].concat())
            }
            _ => {
                let child = [module, &path[..1]].concat();
                self.0.contains_key(child.as_slice()).then(|| [&child, &path[1..]].concat())
            }
        }
    }

    /// The file that defines what a path names. A path that ends at a module names the module's file.
    fn defining_file(&self, path: &[String], seen: &mut HashSet<ItemPath>) -> Option<usize> {
        if !seen.insert(path.to_vec()) {
            return None;
        }
        let depth = (0..=path.len()).rev().find(|depth| self.0.contains_key(&path[..*depth]))?;
        let module = &self.0[&path[..depth]];
        let Some(name) = path.get(depth) else { return Some(module.file) };
        if module.source.names.defined.contains(name) {
            return Some(module.file);
        }
        if let Some(target) = module.imported.get(name.as_str()) {
            return self.defining_file(&[target, &path[depth + 1..]].concat(), seen);
        }
        let through =
            |glob: &ItemPath| self.defining_file(&[glob, &path[depth..]].concat(), &mut seen.clone());
        module.globs.iter().find_map(through)
    }

    /// The files that a file names, itself aside.
    pub(crate) fn named_by(&self, source: &Source) -> BTreeSet<usize> {
        let module = &self.0[source.module.as_slice()];
        let written = source.names.paths.iter().filter_map(|path| {
            let imported = module.imported.get(path[0].as_str());
            let absolute = imported.map(|target| [target, &path[1..]].concat());
            absolute.or_else(|| self.absolute(&source.module, path))
        });
        // What a file only passes on with `pub use` it does not use itself.
        let private = source.names.imports.iter().filter(|import| !import.is_re_export);
        let used = private.filter_map(|import| self.absolute(&source.module, &import.path));
        let files = written.chain(used).filter_map(|path| self.defining_file(&path, &mut HashSet::new()));
        files.filter(|file| *file != module.file).collect()
    }
}

/// The circles among files that name each other, each as the sorted files of one strongly connected part.
pub(crate) fn circles(edges: &[BTreeSet<usize>], among: &BTreeSet<usize>) -> Vec<Vec<usize>> {
    let reach: BTreeMap<usize, BTreeSet<usize>> =
        among.iter().map(|file| (*file, reachable(edges, among, *file))).collect();
    let mut found = BTreeSet::new();
    for file in among {
        let mutual: Vec<usize> =
            reach[file].iter().copied().filter(|other| reach[other].contains(file)).collect();
        if mutual.len() > 1 {
            found.insert(mutual);
        }
    }
    found.into_iter().collect()
}

fn reachable(edges: &[BTreeSet<usize>], among: &BTreeSet<usize>, from: usize) -> BTreeSet<usize> {
    let mut seen = BTreeSet::new();
    let mut open = vec![from];
    while let Some(file) = open.pop() {
        for next in edges[file].intersection(among) {
            if seen.insert(*next) {
                open.push(*next);
            }
        }
    }
    seen
}
