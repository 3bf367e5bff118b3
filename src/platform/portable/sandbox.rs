//! Sandboxes, which not every Unix has.

use std::{env, fs::File, io::Read, path::Path};

use super::super::KernelSandbox;
use crate::model::{FilesystemAccess, NetworkAccess, Sandbox};

/// Programs and libraries.
pub(crate) const PROGRAM_DIRECTORIES: [&str; 8] =
    ["/usr", "/bin", "/sbin", "/lib", "/opt", "/System", "/Library", "/nix/store"];

/// Whether a file that begins so is a program of this machine.
pub(crate) fn is_program(head: &[u8]) -> bool {
    if cfg!(target_vendor = "apple") {
        return is_mach_o(head);
    }
    let mut own = [0; 20];
    let read = env::current_exe().and_then(File::open).and_then(|mut file| file.read_exact(&mut own));
    read.is_ok() && elf_machine(head).is_some() && elf_machine(head) == elf_machine(&own)
}

/// The machine that a program in ELF is for.
fn elf_machine(head: &[u8]) -> Option<&[u8]> {
    head.get(18..20).filter(|_| head.starts_with(b"\x7fELF"))
}

/// Whether it is a Mac's program. The system tells one for another machine from what is none.
fn is_mach_o(head: &[u8]) -> bool {
    const FOR_SEVERAL_MACHINES: [&[u8]; 2] = [b"\xca\xfe\xba\xbe", b"\xca\xfe\xba\xbf"];
    const FOR_ONE: [&[u8]; 2] = [b"\xcf\xfa\xed\xfe\x07\0\0\x01", b"\xcf\xfa\xed\xfe\x0c\0\0\x01"];
    FOR_SEVERAL_MACHINES.into_iter().chain(FOR_ONE).any(|format| head.starts_with(format))
}

/// What the kernel can restrict: nothing that every Unix can.
pub(crate) fn kernel_sandbox() -> KernelSandbox {
    KernelSandbox { files: false, truncation: false, tcp: false, border: false, sockets: false }
}

/// Restricts nothing.
///
/// Returns why a program must not run so: its sandbox is required, or is to have no network.
pub(crate) fn restrict_access(sandbox: &Sandbox, _: &Path) -> Result<(), String> {
    if sandbox.network == NetworkAccess::None {
        return Err("this system cannot enforce the sandbox: it cannot refuse sockets".to_owned());
    }
    if sandbox.require && sandbox.filesystem != FilesystemAccess::Any {
        return Err("this system cannot enforce the sandbox: it cannot restrict files".to_owned());
    }
    Ok(())
}

/// Refuses no calls.
#[allow(clippy::unnecessary_wraps, reason = "other systems may fail")]
pub(crate) fn restrict_calls(_: &Sandbox) -> Result<(), String> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_of_this_machine_is_told_from_others() {
        let mut head = [0; 20];
        File::open(env::current_exe().unwrap()).unwrap().read_exact(&mut head).unwrap();
        assert!(is_program(&head));
        assert!(!is_program(&head[..6]) && !is_program(b"exit 2") && !is_program(b""));
        head[18] ^= 1;
        assert!(!is_program(&head) || cfg!(target_vendor = "apple"));
    }

    #[test]
    fn programs_of_a_mac_are_known() {
        assert!(
            is_mach_o(b"\xcf\xfa\xed\xfe\x0c\0\0\x01\0\0\0\0") && is_mach_o(b"\xca\xfe\xba\xbe\0\0\0\x02")
        );
        assert!(!is_mach_o(b"\xcf\xfa\xed\xfe") && !is_mach_o(b"\x7fELF\x02") && !is_mach_o(b""));
    }
}
