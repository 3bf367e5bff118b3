//! Ways to write `git push --force` and `rm -rf /` that a rule about texts would miss.

use crate::rule::shell::commands;

/// Each runs `git push --force`, and is known to.
const FORCED_PUSHES: &[&str] = &[
    "git push --force",
    "git   push\t--force",
    "git push \\\n--force",
    "git push '--force'",
    "git push --fo\"rc\"e",
    "g''it pu\\sh --force",
    "git push $'--force'",
    "git push $'\\x2d\\x2dforce'",
    "$'git' push --force",
    "/usr/bin/git push --force",
    "true; git push --force",
    "true && git push --force",
    "false || git push --force",
    "true | git push --force",
    "true & git push --force",
    "(git push --force)",
    "{ git push --force; }",
    "if true; then git push --force; fi",
    "for i in 1; do git push --force; done",
    "case a in a) git push --force;; esac",
    "f() { git push --force; }; f",
    "! git push --force",
    "time git push --force",
    "A=1 git push --force",
    "> f git push --force",
    "git push >f --force",
    "{git,push,--force}",
    "git push --{force,}",
    "a='push --force'; git $a",
    "g=git; $g push --force",
    "sudo git push --force",
    "env A=1 git push --force",
    "bash -c 'git push --force'",
    "eval git push --force",
    "eval 'git push' --force",
    "echo 'git push --force' | sh",
    "echo 'git push --force' | sh /dev/stdin",
    "echo 'git push --force' | bash /dev/fd/0",
    "sh <<< 'git push --force'",
    "sh <<E\ngit push --force\nE",
    "git${IFS}push${IFS}--force",
    "timeout 9 nice sudo -u a bash -lc \"exec git push --force\"",
];

/// Each runs it too, but more of the text is not known.
const IN_PART_UNKNOWN: &[&str] = &[
    "echo $(git push --force)",
    "echo `git push --force`",
    "echo \"$(git push --force)\"",
    "cat <(git push --force)",
    "x=${y:-$(git push --force)}; $x",
    "echo $(( $(git push --force) ))",
    "echo \"${x:-`git push --force`}\"",
    "echo $(echo $(echo $(git push --force)))",
    "cat <<E $x\n$(git push --force)\nE",
    "[[ $(git push --force) ]]",
    "curl u | sh; git push --force",
];

/// What is run cannot be told, and that is said.
const UNKNOWN: &[&str] = &[
    "$x",
    "git $x",
    "git push $x",
    "git push \"${f}\"",
    "git push --${f}",
    "git push -$(echo f)",
    "`echo git` push --force",
    "/usr/bin/g?t push --force",
    "/usr/bin/[g]it push --force",
    "x=(git push --force); \"${x[@]}\"",
    "x=--farce; git push ${x/a/o}",
    "set -- git push --force; \"$@\"",
    "echo Z2l0 | base64 -d | sh",
    "curl u | bash",
    "eval \"$(curl u)\"",
    "bash -c \"$x\"",
    "read x; $x",
    "x=a; eval 'x=b'; $x",
    "x=a; unset x; $x",
    "xargs git push",
    "git push 'a",
    "=git push --force",
];

#[test]
fn a_forced_push_is_found_however_it_is_written() {
    for text in FORCED_PUSHES {
        let found = commands(text);
        assert!(found.understood, "{text:?}: {found:#?}");
        assert!(has_forced_push(text), "{text:?}: {found:#?}");
    }
    for text in IN_PART_UNKNOWN {
        assert!(!commands(text).understood, "{text:?}");
        assert!(has_forced_push(text), "{text:?}: {:#?}", commands(text));
    }
}

#[test]
fn what_is_not_known_is_said() {
    for text in UNKNOWN {
        let found = commands(text);
        assert!(!found.understood, "{text:?}: {found:#?}");
    }
}

fn has_forced_push(text: &str) -> bool {
    let found = commands(text);
    found.commands.iter().any(|command| {
        command.name == "git" && command.operands().contains(&"push") && command.has_flag("force")
    })
}
