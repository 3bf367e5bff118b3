//! How rules depend on each other. Recursion is refused, as OPA does, and so are chains so long that the interpreter, which
//! follows them on the stack, could run out of it.

use std::collections::BTreeMap;

use super::{mistake::PolicyMistake, syntax::Mention};

/// How deep the longest chain of rules and expressions may be.
const DEEPEST: usize = 256;

/// The stack that the longest chain needs, in bytes. The interpreter takes up to 35 KiB for each level in a build without
/// optimisation, and 8 KiB with it.
pub(super) const STACK: usize = 16 << 20;

/// The most rules of one hook.
pub(super) const MOST_RULES: usize = 2_000;

/// The rules with one name, in all policies.
#[derive(Debug)]
pub(super) struct NamedRules {
    /// How deeply their expressions nest.
    pub(super) depth: usize,
    /// What they depend on: paths of rules, of which each also means all that are below it or above it.
    pub(super) needs: Vec<(Vec<String>, Mention)>,
}

/// The rules of all policies, by their paths.
pub(super) type RuleGraph = BTreeMap<Vec<String>, NamedRules>;

/// Returns what is wrong if rules depend on themselves, or a chain of them is too long.
pub(super) fn check(graph: &RuleGraph) -> Result<(), PolicyMistake> {
    let mut search = Search { graph, states: BTreeMap::new() };
    for path in graph.keys() {
        search.depth(path, 0)?;
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum SearchState {
    Entered,
    Found(usize),
}

struct Search<'g> {
    graph: &'g RuleGraph,
    states: BTreeMap<&'g [String], SearchState>,
}

impl<'g> Search<'g> {
    fn depth(&mut self, path: &'g [String], above: usize) -> Result<usize, PolicyMistake> {
        if let Some(SearchState::Found(depth)) = self.states.get(path) {
            return Ok(*depth);
        }
        let Some(rules) = self.graph.get(path) else { return Ok(0) };
        self.states.insert(path, SearchState::Entered);
        let own = rules.depth + 1;
        let mut below = 0;
        for (target, mention) in &rules.needs {
            for needed in self.meant(target) {
                if matches!(self.states.get(needed), Some(SearchState::Entered)) {
                    let message = format!("`{}` depends on itself", path.join("."));
                    let help = "remove the recursion; Rego has none";
                    return Err(PolicyMistake::new(message, help).at(mention.place.clone()));
                }
                if above + own > DEEPEST {
                    return Err(too_deep().at(mention.place.clone()));
                }
                below = below.max(self.depth(needed, above + own)?);
            }
        }
        let depth = own + below;
        if depth > DEEPEST {
            return Err(too_deep());
        }
        self.states.insert(path, SearchState::Found(depth));
        Ok(depth)
    }

    /// The rules that a path means: that of this name, those below it, and those that it is a part of the value of.
    fn meant(&self, target: &[String]) -> Vec<&'g [String]> {
        let graph = self.graph;
        let below = graph.range(target.to_vec()..).map(|(path, _)| path.as_slice());
        let below = below.take_while(|path| path.starts_with(target));
        let above = (1..target.len()).filter_map(|end| graph.get_key_value(&target[..end]));
        below.chain(above.map(|(path, _)| path.as_slice())).collect()
    }
}

fn too_deep() -> PolicyMistake {
    let message = format!("rules and expressions nest deeper than {DEEPEST} levels");
    PolicyMistake::new(message, "let rules depend on fewer others, one after the other")
}
