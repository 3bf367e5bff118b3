//! Halts with `cluster.halts: strict`: what a host has received as `halt` is `halt` from then on, whichever daemon it asks.
//!
//! There is one run and one time. Time goes on by [`Step::Tick`], which stands for `cluster.stale_after`: what was before it is
//! old. A daemon that is stopped, cut off or slow is one whose steps come late, since any other step may come first. The bucket
//! keeps the last message of each subject, so a daemon that reads late misses what was written over.
//!
//! | step | in the program |
//! | --- | --- |
//! | `Beat`, `Read` | `watcher::beat`; `watcher::take_in`, `ClusterCore::hear_beat`, `Freshness::heard`, `HaltListener::halted` |
//! | `Halts` | `RunActor::halt`, `HaltTable::note` |
//! | `Put`, `Confirmed`, `Unconfirmed` | `publisher::write`: stored; confirmed; not confirmed in time, and written again |
//! | `Renew` | `ClusterCore::sweep`: a halt is written again before the bucket forgets it |
//! | `AskOthers`, `Knows`, `Settle` | `knowledge::known_by_all` and `knowledge::answer_one`; `HaltReceipt::settled` |
//! | `Event` | `Orchestrator::begin`: `Freshness::settled`, then `RunDirectory::halted` and its receipt |
//! | `Crash`, `Start` | `kill -9`; `RunDirectory::restore`, `ClusterCore::tell_own_halts` |

mod checked;

/// Old enough: `cluster.stale_after` has passed.
const OLD: u8 = 1;

const NODES: usize = 3;

/// What keeps the promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Safeguard {
    /// A daemon that is not fresh refuses events.
    Freshness,
    /// A halt is answered once the others know it.
    Question,
    /// One that does not say that it knows is waited for.
    Wait,
    /// A daemon asks the others before it answers a halt that it has heard of.
    QuestionOfReader,
    /// So does one that has the halt on its disk.
    QuestionAfterStart,
    /// A daemon answers that it knows a halt once it does.
    Knowledge,
    /// One that has missed messages lately waits: it may have heard nothing of a daemon.
    WaitAfterMiss,
    /// A beat shows that nothing is missed if it was sent after the last message that follows missed ones was read.
    BeatAfterMiss,
}

/// What may happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Tick,
    Beat(usize),
    Read(usize),
    Halts(usize),
    Put(usize),
    Confirmed(usize),
    Unconfirmed(usize),
    Renew(usize),
    AskOthers(usize),
    Knows(usize, usize),
    Settle(usize),
    Event(usize),
    Crash(usize),
    Start(usize),
}

/// A message of the bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Entry {
    what: What,
    /// Another one of its subject has taken its place.
    is_over: bool,
    /// It was written over: who has not read it never will.
    is_gone: bool,
    /// It is a beat, and its daemon has read since that it has missed messages.
    is_void: bool,
    /// How old the sender's clock says that it is.
    age: u8,
    /// Which daemons have read it.
    read: [bool; NODES],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum What {
    Beat(usize),
    /// One of a process that has died.
    LastBeat(usize),
    Halt(usize),
}

/// A daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
struct Node {
    is_up: bool,
    /// It has read a beat of its own since it was started.
    is_ready: bool,
    /// How old the last of its own beats is that it has read.
    heard: u8,
    /// When it last read a message that follows ones that it has missed.
    missed: u8,
    /// When it last heard each of the others, and one that has died.
    heard_of: [u8; NODES],
    heard_dead: u8,
    halt: Option<Halted>,
    /// Its own halt is on disk.
    is_saved: bool,
    put: Put,
    question: Option<Question>,
    /// A host waits for the halt.
    is_awaited: bool,
}

/// The run is halted here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Halted {
    /// It may be answered.
    is_settled: bool,
    /// The bucket has it, as far as is known here.
    is_shared: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Put {
    Nothing,
    Wanted,
    Stored,
}

/// The others are asked whether they know the halt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Question {
    age: u8,
    /// Who is asked and has not said so yet.
    asked: Option<[bool; NODES]>,
    /// Nobody can say so for all.
    waits: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct State {
    bucket: Vec<Entry>,
    nodes: Vec<Node>,
    crashes: u8,
    /// How often a message was written again.
    again: u8,
    /// Whether a host has received the halt, and what the daemon was that answered it first.
    received: Option<By>,
    is_wrong: bool,
}

/// A daemon that answers the halt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum By {
    Owner,
    Reader,
    /// One that has started with it.
    Started,
}

struct Halts {
    nodes: usize,
    crashes: u8,
    /// How often a message is written again.
    again: u8,
    /// Whoever reads late misses nothing that was written over.
    keeps: bool,
    /// How many messages somebody may not have read yet when a beat is written.
    most: usize,
    without: Option<Safeguard>,
}

impl Node {
    fn started(is_saved: bool, is_settled: bool) -> Self {
        Self {
            is_up: true,
            is_ready: false,
            heard: OLD,
            // What it reads first is all that was not written over.
            missed: 0,
            heard_of: [OLD; NODES],
            heard_dead: OLD,
            halt: is_saved.then_some(Halted { is_settled, is_shared: false }),
            is_saved,
            put: Put::Nothing,
            question: None,
            is_awaited: false,
        }
    }

    fn asks(&mut self) {
        self.question = Some(Question { age: 0, asked: None, waits: false });
    }

    fn is_settled(&self) -> bool {
        self.question.is_some_and(|question| {
            let all_know = question.asked.is_some_and(|asked| asked == [false; NODES]);
            question.age == OLD || all_know && !question.waits
        })
    }
}

fn older(age: u8) -> u8 {
    (age + 1).min(OLD)
}

impl State {
    fn next_of(&self, node: usize) -> Option<usize> {
        self.bucket.iter().position(|entry| !entry.read[node] && !entry.is_gone)
    }

    /// A daemon reads a message, and none before it any more.
    fn miss_before(&mut self, next: usize, index: usize, without: Option<Safeguard>) {
        let before = &mut self.bucket[..next];
        if before.iter().all(|entry| entry.read[index]) {
            return;
        }
        for entry in before {
            entry.read[index] = true;
        }
        self.nodes[index].missed = 0;
        for beat in self.bucket.iter_mut().filter(|entry| entry.what == What::Beat(index)) {
            beat.is_void |= without != Some(Safeguard::BeatAfterMiss);
        }
    }

    fn needs_beat(&self, node: usize, most: usize) -> bool {
        let unread = self.bucket.iter().filter(|entry| self.misses(entry)).count();
        let last = self.bucket.iter().rfind(|entry| entry.what == What::Beat(node));
        unread < most && last.is_none_or(|beat| beat.read[node] || beat.age == OLD)
    }

    fn has_read_halt(&self, node: usize) -> bool {
        self.bucket
            .iter()
            .any(|entry| matches!(entry.what, What::Halt(_)) && !entry.is_over && entry.read[node])
    }

    /// Writes a message in place of the one of its subject.
    fn write(&mut self, what: What, keeps: bool) {
        let is_same = |entry: &What| match (entry, what) {
            (What::Halt(_), What::Halt(_)) => true,
            (What::Beat(one) | What::LastBeat(one), What::Beat(other)) => *one == other,
            _ => false,
        };
        for entry in self.bucket.iter_mut().filter(|entry| is_same(&entry.what)) {
            entry.is_over = true;
            entry.is_gone |= !keeps;
        }
        let new =
            Entry { what, is_over: false, is_gone: false, is_void: false, age: 0, read: [false; NODES] };
        self.bucket.push(new);
        self.tidy();
    }

    /// Whether somebody has not read it.
    fn misses(&self, entry: &Entry) -> bool {
        self.nodes.iter().zip(entry.read).any(|(node, read)| node.is_up && !read)
    }

    fn tidy(&mut self) {
        let mut bucket = std::mem::take(&mut self.bucket);
        bucket.retain(|entry| !entry.is_over || self.misses(entry));
        self.bucket = bucket;
    }

    fn tick(&mut self) {
        self.bucket.iter_mut().for_each(|entry| entry.age = older(entry.age));
        for node in &mut self.nodes {
            node.heard = older(node.heard);
            node.missed = older(node.missed);
            node.heard_of = node.heard_of.map(older);
            node.heard_dead = older(node.heard_dead);
            if let Some(question) = &mut node.question {
                question.age = older(question.age);
            }
        }
    }

    fn read(&mut self, index: usize, without: Option<Safeguard>) -> Option<()> {
        let next = self.next_of(index)?;
        self.miss_before(next, index, without);
        self.bucket[next].read[index] = true;
        let Entry { what, age, is_void, .. } = self.bucket[next];
        let node = &mut self.nodes[index];
        match what {
            What::LastBeat(_) => node.heard_dead = 0,
            What::Beat(sender) if sender != index => node.heard_of[sender] = 0,
            What::Beat(_) if is_void => {}
            What::Beat(_) => {
                node.heard = node.heard.min(age);
                if !std::mem::replace(&mut node.is_ready, true)
                    && node.halt.is_some_and(|halt| !halt.is_shared)
                {
                    node.put = Put::Wanted;
                }
            }
            What::Halt(_) if node.put == Put::Nothing => {
                let is_settled = without == Some(Safeguard::QuestionOfReader);
                let halt = node.halt.get_or_insert(Halted { is_settled, is_shared: true });
                halt.is_shared = true;
                halt.is_settled |= is_settled;
            }
            What::Halt(_) => {}
        }
        self.tidy();
        Some(())
    }

    fn ask_others(&mut self, index: usize, without: Option<Safeguard>) -> Option<()> {
        let has_read = self.has_read_halt(index);
        let node = &mut self.nodes[index];
        let mut question = node.question.filter(|question| question.asked.is_none() && has_read)?;
        question.asked = Some(node.heard_of.map(|age| age < OLD));
        let has_missed = node.missed < OLD && without != Some(Safeguard::WaitAfterMiss);
        question.waits = node.heard_dead < OLD || has_missed;
        if without == Some(Safeguard::Wait) {
            question.asked = Some([false; NODES]);
            question.waits = false;
        }
        node.question = Some(question);
        Some(())
    }

    /// One that is asked says that it knows the halt.
    fn knows(&mut self, index: usize, other: usize, without: Option<Safeguard>) -> Option<()> {
        let answerer = &self.nodes[other];
        let knows = answerer.is_up && (answerer.halt.is_some() || without == Some(Safeguard::Knowledge));
        let asked = &mut self.nodes[index].question.as_mut()?.asked.as_mut()?[other];
        (knows && std::mem::replace(asked, false)).then_some(())
    }

    fn settle(&mut self, index: usize, without: Option<Safeguard>) -> Option<()> {
        let node = &mut self.nodes[index];
        let is_settled = node.is_settled() || node.question.is_some() && without == Some(Safeguard::Question);
        let halt = node.halt.as_mut().filter(|_| is_settled)?;
        halt.is_settled = true;
        node.question = None;
        if std::mem::take(&mut node.is_awaited) {
            self.received(index);
        }
        Some(())
    }

    fn received(&mut self, index: usize) {
        let by = match self.nodes[index].is_saved {
            false => By::Reader,
            true if self.crashes > 0 => By::Started,
            true => By::Owner,
        };
        self.received.get_or_insert(by);
    }

    /// An event that begins at this moment.
    fn event(&mut self, index: usize, without: Option<Safeguard>) -> Option<()> {
        let node = &mut self.nodes[index];
        if !node.is_up || node.heard == OLD && without != Some(Safeguard::Freshness) {
            return None;
        }
        match node.halt {
            None => self.is_wrong |= self.received.is_some(),
            Some(Halted { is_settled: true, .. }) => self.received(index),
            Some(_) => {
                node.is_awaited = true;
                if node.put == Put::Nothing && node.question.is_none() {
                    node.asks();
                }
            }
        }
        Some(())
    }

    fn crash(&mut self, index: usize) {
        self.crashes += 1;
        for entry in &mut self.bucket {
            if entry.what == What::Beat(index) {
                entry.what = What::LastBeat(index);
            }
        }
        for node in &mut self.nodes {
            node.heard_dead = node.heard_dead.min(node.heard_of[index]);
            node.heard_of[index] = OLD;
            if let Some(question) = &mut node.question
                && question.asked.is_some_and(|asked| asked[index])
            {
                question.waits = true;
            }
        }
        let is_saved = self.nodes[index].is_saved;
        self.nodes[index] = Node { is_up: false, ..Node::started(is_saved, false) };
        self.bucket.iter_mut().for_each(|entry| entry.read[index] = false);
        self.tidy();
    }
}
