//! The guard packs that the program has in it: the hook files of `config/packs`.

/// A pack: rules about one danger.
#[derive(Debug)]
pub(super) struct GuardPack {
    pub(super) name: &'static str,
    /// What it guards against, in one line.
    pub(super) about: &'static str,
    pub(super) files: &'static [PackFile],
}

/// A hook file of a pack.
#[derive(Debug)]
pub(super) struct PackFile {
    /// The name of the hook, and of the file without its ending.
    pub(super) hook: &'static str,
    pub(super) text: &'static str,
}

macro_rules! packs {
    ($($name:literal $about:literal [$($hook:literal)*];)*) => {
        /// Every pack.
        pub(super) static PACKS: &[GuardPack] = &[$(GuardPack {
            name: $name,
            about: $about,
            files: &[$(PackFile {
                hook: $hook,
                text: include_str!(concat!("../../../config/packs/", $name, "/", $hook, ".yaml")),
            }),*],
        }),*];
    };
}

packs! {
    "dangerous-commands" "commands that destroy a machine or its files, or hide what they run"
        ["dangerous-commands" "dangerous-deletions"];
    "git-safety" "lost work, rewritten history, checks left out, programs that git is made to run" ["git-safety"];
    "secrets" "keys and passwords in files, commands, prompts, outputs and requests to models"
        ["secrets-in-calls" "secrets-in-models" "secrets-in-outputs" "secrets-in-prompts"];
    "protected-paths" "settings with secrets, keys, what builds and what guards the project"
        ["protected-files" "protected-paths"];
    "network" "downloads that are run, doors into the machine, data that leaves it" ["cloud-metadata" "network"];
    "packages" "packages that are mistyped, from elsewhere, or run at once" ["packages"];
    "production" "deployments, databases, resources in a cloud" ["production"];
    "prompt-injection" "texts of tools that speak to the model: they are marked" ["prompt-injection"];
}

/// The pack of a name.
pub(super) fn pack(name: &str) -> Option<&'static GuardPack> {
    PACKS.iter().find(|pack| pack.name == name)
}
