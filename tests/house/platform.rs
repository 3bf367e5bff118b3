//! What is one system's own stands in `src/platform`, in two forms with the same items.

use std::collections::BTreeSet;

use syn::{ImplItem, Item, Visibility};

use crate::{
    assert_none,
    source::{Source, sources, without_tests},
};

/// The form of Linux.
const LINUX: &str = "src/platform/linux/";

/// The form of every Unix.
pub(crate) const PORTABLE: &str = "src/platform/portable/";

/// What only Linux has, and what asks which system it is.
const OF_LINUX: [&str; 26] = [
    "/proc/",
    "/sys/",
    "CMSG_CLOEXEC",
    "MonotonicCoarse",
    "OFlags::PATH",
    "PeerCredentials",
    "PollFlags::RDHUP",
    "RawDir",
    "ResolveFlags",
    "SocketFlags::",
    "abstract_name",
    "cgroup.",
    "epoll",
    "eventfd",
    "fanotify",
    "hookyard_portable",
    "inotify::",
    "landlock::",
    "memfd",
    "openat2",
    "os::linux",
    "pidfd_",
    "prctl",
    "seccompiler",
    "set_child_subreaper",
    "target_os",
];

#[test]
fn what_is_linuxs_own_stands_in_one_place() {
    let mut wrong = Vec::new();
    for source in sources().iter().filter(|source| source.layer() != "platform") {
        for (number, line) in source.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            let named = OF_LINUX.iter().filter(|word| code.contains(**word));
            wrong.extend(named.map(|word| format!("{}:{}: {word}", source.path, number + 1)));
        }
    }
    assert_none("these belong into both forms of src/platform", &wrong);
}

#[test]
fn both_forms_have_the_same_items() {
    let (linux, portable) = (items_of(LINUX), items_of(PORTABLE));
    assert!(linux.len() > 30, "{linux:?}");
    let only = |one: &BTreeSet<String>, other: &BTreeSet<String>, form: &str| -> Vec<String> {
        one.difference(other).map(|item| format!("only {form}: {item}")).collect()
    };
    let wrong = [only(&linux, &portable, "linux"), only(&portable, &linux, "portable")].concat();
    assert_none("each item of one form has its counterpart in the other", &wrong);
}

/// The items of a form that the rest of the crate can name, with their methods.
fn items_of(form: &str) -> BTreeSet<String> {
    let of_form = sources().iter().filter(|source| source.path.starts_with(form));
    of_form.flat_map(exported).collect()
}

fn exported(source: &Source) -> Vec<String> {
    let parsed = syn::parse_file(&source.text).expect("it was parsed before");
    let is_exported = |visibility: &Visibility| !matches!(visibility, Visibility::Inherited);
    let mut found = Vec::new();
    for item in without_tests(parsed.items) {
        match item {
            Item::Const(item) if is_exported(&item.vis) => found.push(item.ident.to_string()),
            Item::Fn(item) if is_exported(&item.vis) => found.push(item.sig.ident.to_string()),
            Item::Struct(item) if is_exported(&item.vis) => found.push(item.ident.to_string()),
            Item::Enum(item) if is_exported(&item.vis) => found.push(item.ident.to_string()),
            Item::Impl(item) if item.trait_.is_none() => {
                let owner = match &*item.self_ty {
                    syn::Type::Path(path) => path.path.segments.last().expect("a name").ident.to_string(),
                    _ => continue,
                };
                let methods = item.items.iter().filter_map(|item| match item {
                    ImplItem::Fn(method) if is_exported(&method.vis) => Some(&method.sig.ident),
                    _ => None,
                });
                found.extend(methods.map(|method| format!("{owner}::{method}")));
            }
            _ => {}
        }
    }
    found
}

#[test]
fn the_compiler_of_the_portable_form_gets_every_variable() {
    let wrapper = concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/portable-rustc");
    // Cargo names each program of the crate in one, and some shells drop variables with a dash in their names.
    let variable = "CARGO_BIN_EXE_hookyard-relay";
    #[allow(clippy::disallowed_methods, reason = "it is run as Cargo runs it")]
    let mut command = std::process::Command::new(wrapper);
    let done = command.args(["bash", "-c", "env"]).env(variable, "here").output().unwrap();
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(text.lines().any(|line| line == format!("{variable}=here")), "{text}");
}
