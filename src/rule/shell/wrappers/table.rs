//! The options of programs that run the command behind them.

/// Which options have a value in the next argument, and what else stands before the command.
#[derive(Debug)]
pub(super) struct Options {
    /// Short options with a value.
    pub(super) short: &'static str,
    /// Long options with a value, where it is not attached with `=`.
    pub(super) long: &'static [&'static str],
    /// How many operands stand before the command.
    pub(super) operands: usize,
    /// Whether `NAME=VALUE` stands before the command.
    pub(super) has_assignments: bool,
    /// Whether arguments are added to the command.
    pub(super) is_appended_to: bool,
}

impl Options {
    const fn new(short: &'static str, long: &'static [&'static str]) -> Self {
        Self { short, long, operands: 0, has_assignments: false, is_appended_to: false }
    }

    const fn operands(self, operands: usize) -> Self {
        Self { operands, ..self }
    }

    const fn assignments(self) -> Self {
        Self { has_assignments: true, ..self }
    }

    const fn appended_to(self) -> Self {
        Self { is_appended_to: true, ..self }
    }
}

/// Programs that run texts in the language of a shell.
pub(super) const SHELLS: [&str; 14] = [
    "bash", "sh", "zsh", "dash", "ksh", "fish", "ash", "mksh", "ksh93", "rbash", "csh", "tcsh", "yash", "osh",
];

/// Options of shells with a value.
pub(super) const SHELL: Options = Options::new(
    "oO",
    &["rcfile", "init-file", "emulate", "init-command", "profile", "features", "debug-output"],
);
pub(super) const ENV: Options = Options::new("uCa", &["unset", "chdir", "argv0"]).assignments();
pub(super) const SWITCH_USER: Options =
    Options::new("gGsuTwC", &["group", "supp-group", "shell", "user", "whitelist-environment"]);
pub(super) const SCRIPT: Options = Options::new(
    "EImBOTo",
    &["echo", "log-in", "log-out", "log-io", "log-timing", "output-limit", "logging-format"],
)
.operands(1);
pub(super) const FLOCK: Options = Options::new("wE", &["timeout", "wait", "conflict-exit-code"]).operands(1);
pub(super) const WATCH: Options = Options::new("nqs", &["interval", "equexit", "shotsdir"]);
pub(super) const SSH: Options = Options::new("BbcDEeFIiJLlmOoPpQRSWw", &[]).operands(1);
pub(super) const PARALLEL: Options = Options::new(
    "jPNnLsICadESM",
    &[
        "jobs",
        "max-procs",
        "max-args",
        "max-replace-args",
        "max-lines",
        "colsep",
        "arg-file",
        "delimiter",
        "delay",
        "timeout",
        "joblog",
        "results",
        "tmpdir",
        "sshlogin",
        "sshloginfile",
        "basefile",
        "return",
        "retries",
        "load",
        "memfree",
        "nice",
        "halt",
        "halt-on-error",
        "tagstring",
        "workdir",
        "wd",
        "env",
        "block",
        "recstart",
        "recend",
        "arg-sep",
        "arg-file-sep",
        "replace",
        "max-chars",
        "shuf-seed",
        "profile",
        "termseq",
    ],
);

/// The options of a program that runs the command behind them.
pub(super) fn options(name: &str) -> Option<&'static Options> {
    TABLE.iter().find(|(names, _)| names.contains(&name)).map(|(_, options)| options)
}

/// Programs that run the command behind their options.
static TABLE: [(&[&str], Options); 25] = [
    (
        &["sudo"],
        Options::new(
            "aCcDghpRrtTUu",
            &[
                "auth-type",
                "close-from",
                "login-class",
                "chdir",
                "group",
                "host",
                "prompt",
                "chroot",
                "role",
                "type",
                "command-timeout",
                "other-user",
                "user",
            ],
        )
        .assignments(),
    ),
    (&["doas"], Options::new("uCa", &[])),
    (&["pkexec"], Options::new("", &["user"])),
    (
        &[
            "nohup",
            "setsid",
            "builtin",
            "command",
            "noglob",
            "nocorrect",
            "busybox",
            "toybox",
            "fakeroot",
            "torsocks",
            "torify",
            "proxychains",
            "proxychains4",
            "dbus-run-session",
            "unbuffer",
            "rlwrap",
            "linux32",
            "linux64",
            "catchsegv",
            "firejail",
        ],
        Options::new("", &[]),
    ),
    (&["exec"], Options::new("a", &[])),
    (&["nice"], Options::new("n", &["adjustment"])),
    (&["ionice"], Options::new("cnpPu", &["class", "classdata", "pid", "pgid", "uid"])),
    (&["timeout", "gtimeout"], Options::new("ks", &["kill-after", "signal"]).operands(1)),
    (&["stdbuf", "gstdbuf"], Options::new("ioe", &["input", "output", "error"])),
    (&["time", "gtime"], Options::new("fo", &["format", "output"]).assignments()),
    (&["chroot"], Options::new("", &["userspec", "groups"]).operands(1)),
    (
        &["unshare"],
        Options::new(
            "SGRwl",
            &[
                "setuid",
                "setgid",
                "root",
                "wd",
                "map-user",
                "map-group",
                "map-users",
                "map-groups",
                "propagation",
                "setgroups",
                "monotonic",
                "boottime",
                "load-interp",
            ],
        ),
    ),
    (&["nsenter"], Options::new("tSGN", &["target", "setuid", "setgid"])),
    (
        &["strace", "ltrace"],
        Options::new(
            "abeEIoOpPsSuUXnl",
            &[
                "attach",
                "trace",
                "output",
                "string-limit",
                "user",
                "env",
                "columns",
                "interruptible",
                "trace-path",
                "summary-sort-by",
                "detach-on",
                "const-print-style",
                "summary-columns",
            ],
        ),
    ),
    (
        &["systemd-run"],
        Options::new(
            "HMuptE",
            &[
                "host",
                "machine",
                "unit",
                "property",
                "description",
                "slice",
                "service-type",
                "uid",
                "gid",
                "nice",
                "working-directory",
                "setenv",
                "on-active",
                "on-boot",
                "on-startup",
                "on-unit-active",
                "on-unit-inactive",
                "on-calendar",
                "path-property",
                "socket-property",
                "timer-property",
                "background",
                "job-mode",
            ],
        ),
    ),
    (&["systemd-inhibit"], Options::new("", &["what", "who", "why", "mode"])),
    (&["chrt"], Options::new("TPDp", &["sched-runtime", "sched-period", "sched-deadline"]).operands(1)),
    (&["taskset"], Options::new("", &[]).operands(1)),
    (&["setarch"], Options::new("", &[]).operands(1)),
    (
        &["setpriv"],
        Options::new(
            "",
            &[
                "ambient-caps",
                "inh-caps",
                "bounding-set",
                "ruid",
                "euid",
                "rgid",
                "egid",
                "reuid",
                "regid",
                "groups",
                "securebits",
                "pdeathsig",
                "selinux-label",
                "apparmor-profile",
            ],
        ),
    ),
    (&["caffeinate"], Options::new("tw", &[])),
    (&["arch"], Options::new("de", &[])),
    (&["valgrind"], Options::new("", &[])),
    (&["coproc"], Options::new("", &[])),
    (
        &["xargs", "gxargs"],
        Options::new(
            "adEILnPsJRS",
            &["arg-file", "delimiter", "max-args", "max-procs", "max-chars", "process-slot-var", "max-lines"],
        )
        .appended_to(),
    ),
];
