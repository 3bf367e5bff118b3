//! What is done to the daemon, in an order that the seed decides.

use std::{
    collections::BTreeMap,
    fmt, fs,
    os::unix::net::UnixStream,
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, prlimit};

use crate::{
    arena::Arena,
    clock::WallClock,
    random::Random,
    support::{daemon::Daemon, wait::wait_until},
    workspace,
};

/// Between two reloads.
const RELOAD_PAUSE: Duration = Duration::from_millis(100);

/// How many reloads there are for one in which a hook has changed.
const RELOADS_PER_CHANGE: u64 = 5;

/// One thing that is done to the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Disturbance {
    /// SIGKILL, and a new start.
    Kill,
    /// SIGTERM, and a new start.
    Terminate,
    /// Another daemon takes over.
    Replace,
    /// The file of a guard is broken for a while, also across a new start.
    BreakFile,
    /// SIGSTOP, and later SIGCONT.
    Freeze,
    /// No file may grow any more, as on a full disk.
    FullDisk,
    /// No descriptor may be opened any more.
    NoDescriptors,
    /// The wall clock is put forward or back by up to 30 hours, and at times put right a moment later.
    JumpClock,
}

/// Those after which the same process goes on.
const SURVIVED: [Disturbance; 4] =
    [Disturbance::Freeze, Disturbance::FullDisk, Disturbance::NoDescriptors, Disturbance::JumpClock];

const ALL: [Disturbance; 10] = [
    Disturbance::Kill,
    Disturbance::Kill,
    Disturbance::Terminate,
    Disturbance::Replace,
    Disturbance::Replace,
    Disturbance::BreakFile,
    Disturbance::Freeze,
    Disturbance::FullDisk,
    Disturbance::NoDescriptors,
    Disturbance::JumpClock,
];

/// Does things to the daemon.
pub(crate) struct Disturber {
    daemon: Option<Daemon>,
    clock: WallClock,
    random: Random,
    history: History,
}

/// What was done, with the milliseconds since the beginning.
#[derive(Debug, Clone)]
pub(crate) struct History {
    begun: Instant,
    done: Vec<(u128, Disturbance)>,
}

impl fmt::Display for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = self.done.iter().rev().take(60).rev();
        last.into_iter().try_for_each(|(at, disturbance)| writeln!(f, "{at:>9} ms {disturbance:?}"))
    }
}

impl History {
    pub(crate) fn summary(&self) -> String {
        let mut counts = BTreeMap::<_, usize>::new();
        for (_, disturbance) in &self.done {
            *counts.entry(disturbance).or_default() += 1;
        }
        let counts: Vec<_> =
            counts.into_iter().map(|(disturbance, count)| format!("{count} {disturbance:?}")).collect();
        counts.join(", ")
    }
}

impl Disturber {
    pub(crate) fn new(daemon: Daemon, clock: WallClock, seed: u64) -> Self {
        let history = History { begun: Instant::now(), done: Vec::new() };
        Self { daemon: Some(daemon), clock, random: Random::new(seed), history }
    }

    pub(crate) fn daemon(&self) -> &Daemon {
        self.daemon.as_ref().expect("a daemon")
    }

    pub(crate) fn history(&self) -> History {
        self.history.clone()
    }

    /// Does one thing after the other.
    pub(crate) fn disturb(&mut self, arena: &Arena, until: Instant) {
        self.disturb_by(&ALL, arena, until);
    }

    /// Does what the process survives.
    pub(crate) fn disturb_alive(&mut self, arena: &Arena, until: Instant) {
        self.disturb_by(&SURVIVED, arena, until);
    }

    fn disturb_by(&mut self, choices: &[Disturbance], arena: &Arena, until: Instant) {
        while Instant::now() < until && !arena.is_over() {
            thread::sleep(Duration::from_millis(self.random.below(700)));
            let disturbance = self.random.pick(choices);
            self.history.done.push((self.history.begun.elapsed().as_millis(), disturbance));
            let length = Duration::from_millis(100 + self.random.below(900));
            match disturbance {
                Disturbance::Kill => self.kill_and_start(arena),
                Disturbance::Terminate => self.terminate_and_start(),
                Disturbance::Replace => self.replace(),
                Disturbance::BreakFile => self.break_file(length, arena),
                Disturbance::Freeze => self.freeze(length),
                Disturbance::FullDisk => self.fill_disk(length),
                Disturbance::NoDescriptors => self.take_descriptors(length, arena),
                Disturbance::JumpClock => self.jump_clock(length),
            }
            assert!(
                !self.daemon.as_mut().expect("a daemon").has_ended(),
                "it has ended:\n{}",
                self.daemon().log()
            );
        }
    }

    pub(crate) fn kill_and_start(&mut self, arena: &Arena) {
        let mut daemon = self.daemon.take().expect("a daemon");
        arena.killing(|| {
            daemon.signal(Signal::KILL);
            daemon.wait();
            // A child of it between fork and exec has its listeners as well, and resets their connections when it executes.
            wait_until("nobody listens in its place", || UnixStream::connect(daemon.socket()).is_err());
        });
        self.start_again(daemon);
    }

    fn start_again(&mut self, ended: Daemon) {
        let daemon = workspace::with_flags(ended.again()).serve();
        self.clock.assert_is_that_of(&daemon);
        self.daemon = Some(daemon);
    }

    fn terminate_and_start(&mut self) {
        let mut daemon = self.daemon.take().expect("a daemon");
        daemon.signal(Signal::TERM);
        assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
        self.start_again(daemon);
    }

    fn replace(&mut self) {
        let mut former = self.daemon.take().expect("a daemon");
        let successor = former.replace();
        assert_eq!(former.wait().code(), Some(0), "{}", former.log());
        wait_until("the successor serves", || successor.get("/v1/status")["pid"] == successor.pid());
        self.clock.assert_is_that_of(&successor);
        self.daemon = Some(successor);
    }

    fn break_file(&mut self, length: Duration, arena: &Arena) {
        let hooks = workspace::hooks_of(&self.daemon().path());
        let whole = fs::read_to_string(hooks.join("guard.yaml")).unwrap();
        workspace::put(&hooks, "guard.yaml", &whole[..whole.len() / 2]);
        if self.random.one_in(2) {
            self.kill_and_start(arena);
        }
        thread::sleep(length);
        workspace::put(&hooks, "guard.yaml", &whole);
    }

    fn freeze(&self, length: Duration) {
        self.daemon().signal(Signal::STOP);
        thread::sleep(length);
        self.daemon().signal(Signal::CONT);
    }

    fn jump_clock(&mut self, length: Duration) {
        self.clock.jump(&mut self.random);
        thread::sleep(length);
        // Else what comes next finds a daemon whose files are of the future or of yesterday.
        if self.random.one_in(2) {
            self.clock.put_right();
        }
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.daemon().pid().cast_signed()).expect("a process")
    }

    fn fill_disk(&self, length: Duration) {
        let former = self.limit(Resource::Fsize, 0);
        thread::sleep(length);
        prlimit(Some(self.pid()), Resource::Fsize, former).unwrap();
        // What was halted meanwhile is not on disk yet, as the documents say; a kill would forget it.
        wait_until("the halts are on disk", || self.daemon().get("/v1/status")["data"]["unsaved_halts"] == 0);
    }

    fn take_descriptors(&self, length: Duration, arena: &Arena) {
        arena.starving(|| {
            let open = fs::read_dir(format!("/proc/{}/fd", self.daemon().pid())).unwrap().count();
            let former = self.limit(Resource::Nofile, open as u64);
            thread::sleep(length);
            prlimit(Some(self.pid()), Resource::Nofile, former).unwrap();
        });
    }

    /// Lowers a limit of the daemon. Returns the former one.
    fn limit(&self, resource: Resource, current: u64) -> Rlimit {
        let Rlimit { maximum, .. } = getrlimit(resource);
        prlimit(Some(self.pid()), resource, Rlimit { current: Some(current), maximum }).unwrap()
    }

    /// Ends the daemon as its users do, and sees to it that nothing is left. Returns its log.
    pub(crate) fn finish(mut self) -> String {
        let daemon = self.daemon.take().expect("a daemon");
        let log = daemon.log();
        daemon.finish();
        log
    }
}

impl Drop for Disturber {
    fn drop(&mut self) {
        if thread::panicking() {
            println!("{}", self.history);
        }
    }
}

/// Reloads ten times a second, at times with a hook that has changed.
pub(crate) fn reload_again_and_again(arena: &Arena) {
    let socket = arena.control().socket().to_owned();
    let hooks = workspace::hooks_of(socket.parent().unwrap());
    for number in 0.. {
        if arena.is_over() {
            return;
        }
        let turn = arena.turn();
        if number % RELOADS_PER_CHANGE == 0 {
            workspace::put(&hooks, "bystander.yaml", &workspace::bystander(number));
        }
        let reloaded = arena.control().send("POST", "/v1/reload", None);
        if reloaded.is_ok_and(|reloaded| reloaded.status == 200) {
            arena.count("reloads");
        }
        drop(turn);
        thread::sleep(RELOAD_PAUSE);
    }
}
