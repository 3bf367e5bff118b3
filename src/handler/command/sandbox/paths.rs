//! What a hook in a sandbox may read and use of the system, so that interpreters run.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

/// Programs and libraries.
const PROGRAMS: [&str; 9] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store"];

/// What libraries and interpreters read when they start. Not all of `/etc`: it has keys and tokens.
const CONFIGURATION: [&str; 34] = [
    "/etc/alternatives",
    "/etc/bash.bashrc",
    "/etc/ca-certificates",
    "/etc/crypto-policies",
    "/etc/gai.conf",
    "/etc/gitconfig",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hostname",
    "/etc/hosts",
    "/etc/inputrc",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/ld.so.preload",
    "/etc/locale.alias",
    "/etc/locale.conf",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki/ca-trust",
    "/etc/pki/tls",
    "/etc/profile",
    "/etc/protocols",
    "/etc/python3",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl/cert.pem",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
    "/etc/timezone",
];

/// The state of the kernel and of processes. What `/proc` tells only those who may trace a process, such as its
/// environment, stays closed for all processes outside of the sandbox.
const KERNEL: [&str; 5] = [
    "/proc",
    "/run/systemd/resolve",
    "/sys/devices/system/cpu",
    "/sys/fs/cgroup",
    "/sys/kernel/mm/transparent_hugepage",
];

/// Devices without content of others.
pub(super) const DEVICES: [&str; 6] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// All that may be read in every sandbox.
pub(super) fn readable() -> impl Iterator<Item = &'static str> {
    PROGRAMS.into_iter().chain(CONFIGURATION).chain(KERNEL)
}

/// The directories of the hook's `PATH` that are not below those of the system, so that programs that a user installed
/// run. Not the home directory itself or one above it.
pub(super) fn readable_in_path(environment: &[(OsString, OsString)], root: &Path) -> Vec<PathBuf> {
    let value =
        |name: &str| environment.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value);
    let home = value("HOME").map(Path::new);
    let Some(path) = value("PATH") else { return Vec::new() };
    let is_extra = |directory: &PathBuf| {
        directory.is_absolute()
            && !PROGRAMS.iter().any(|known| directory.starts_with(known))
            && !directory.starts_with(root)
            && !root.starts_with(directory)
            && home.is_none_or(|home| !home.starts_with(directory))
    };
    env::split_paths(path).filter(is_extra).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_opens_neither_the_home_directory_nor_what_is_above_it() {
        let environment = [
            ("PATH".into(), "/usr/bin:/home/a/bin:/home/a:/home:/:rel:/srv/shop/bin:/srv:/snap/bin".into()),
            ("HOME".into(), "/home/a".into()),
        ];
        let found = readable_in_path(&environment, Path::new("/srv/shop"));
        assert_eq!(found, [Path::new("/home/a/bin"), Path::new("/snap/bin")]);
    }
}
