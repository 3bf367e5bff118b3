//! What each step does. None is returned for one that cannot be.

use std::{collections::HashSet, sync::LazyLock, time::Duration};

use tokio::time::Instant;

use super::{Claims, Counted, Host, Mail, Node, Safeguard, Stage, State, Way, Write, Wrong};
use crate::store::{
    StoredRun,
    shared::claims::{
        message::{ClaimMessage, Fate, LastClaim},
        table::{ClaimTable, Settled, Taken},
    },
};

/// Time does not pass.
static NOW: LazyLock<Instant> = LazyLock::new(Instant::now);

fn counted(count: u8) -> StoredRun {
    StoredRun { stops_blocked: count, ..StoredRun::default() }
}

impl Node {
    pub(super) fn started(index: usize, crashes: u8, count: u8) -> Self {
        Self {
            instance: format!("{index}.{crashes}"),
            table: ClaimTable::default(),
            count,
            is_changed: false,
            mailbox: Vec::new(),
            host: Host::Silent,
            claiming: None,
            looks: false,
            publishing: None,
            unread: Vec::new(),
        }
    }

    fn write_mut(&mut self, way: Way) -> Option<&mut Write> {
        match way {
            Way::Claim => self.claiming.as_mut(),
            Way::State => self.publishing.as_mut().map(|(_, write)| write),
        }
    }
}

impl State {
    /// An event was answered with this.
    fn answer(&mut self, (count, life): Counted) {
        if life != self.life {
            return;
        }
        if self.answered.contains(&count) {
            self.wrong.get_or_insert(Wrong::Twice);
        }
        self.answered.push(count);
        self.answered.sort_unstable();
        self.look();
    }

    fn settle(&mut self, settled: Settled<Counted>) {
        for (counted, result) in settled.0 {
            if result == Ok(()) {
                self.answer(counted);
            }
        }
    }

    /// Looks whether the bucket has all that was answered.
    fn look(&mut self) {
        let state = self.last.as_ref().filter(|last| !last.is_over).and_then(|last| last.claim.as_ref().ok());
        let stored = state.map_or(0, |claim| claim.state.stops_blocked);
        if self.answered.last().is_some_and(|count| *count > stored) {
            self.wrong.get_or_insert(Wrong::Lost);
        }
    }

    /// The bucket takes a message in, or refuses it.
    fn apply(&mut self, write: &Write) -> Stage {
        let last = self.last.as_ref().map_or(0, |last| last.number);
        if write.is_fenced && write.after != last {
            return Stage::Refused;
        }
        let (number, is_over) = (last + 1, write.is_end);
        let message = LastClaim { number, is_over, claim: Ok(write.message.clone()) };
        self.nodes.iter_mut().for_each(|node| node.unread.push(message.clone()));
        self.last = Some(message);
        if is_over || write.is_anew {
            self.life += 1;
            self.answered.clear();
        }
        self.look();
        Stage::Written(number)
    }

    pub(super) fn act(&mut self, index: usize, model: &Claims) -> Option<()> {
        let life = self.life;
        let node = &mut self.nodes[index];
        if node.mailbox.is_empty() {
            return None;
        }
        match node.mailbox.remove(0) {
            Mail::Moved => (node.count, node.is_changed) = (0, false),
            Mail::Adopt(epoch, count) => {
                (node.count, node.is_changed) = (node.count.max(count), false);
                node.table.note(&model.key, counted(node.count));
                node.table.adopted(&model.key, epoch);
            }
            Mail::Dispatch => {
                let Host::Begun(epoch) = node.host else { return Some(()) };
                (node.count, node.is_changed) = (node.count + 1, true);
                node.host = Host::Counted(epoch, (node.count, life));
            }
        }
        Some(())
    }

    pub(super) fn finish(&mut self, index: usize, model: &Claims) -> Option<()> {
        let node = &mut self.nodes[index];
        let Host::Counted(epoch, counts) = node.host else { return None };
        node.host = Host::Silent;
        if std::mem::take(&mut node.is_changed) {
            node.table.note(&model.key, counted(node.count));
        }
        let waits = node.table.wait(&model.key, epoch, counts);
        if waits == Ok(false) || waits == Ok(true) && model.without == Some(Safeguard::Wait) {
            self.answer(counts);
        }
        Some(())
    }

    /// A claim is sent: the first one without a look into the bucket.
    pub(super) fn claim(&mut self, index: usize, model: &Claims) -> Option<()> {
        let last = self.last.clone();
        let node = &mut self.nodes[index];
        let is_adopting = node.mailbox.iter().any(|mail| matches!(mail, Mail::Adopt(..)));
        let may = node.host == Host::Wants && node.claiming.is_none() && !is_adopting;
        if !may || node.table.held(&model.key).is_some() {
            return None;
        }
        let found = last.filter(|_| node.looks).map(|last| last.found(&model.key).expect("readable"));
        let found = found.unwrap_or_default();
        let after = found.number;
        let is_ending = node.table.is_ending(&model.key);
        let message = ClaimMessage::following(&model.key, found, &node.instance, is_ending)?;
        if model.without != Some(Safeguard::HeardMeanwhile) {
            node.table.begins(&model.key);
        }
        let is_fenced = model.without != Some(Safeguard::ClaimInPlace) || !node.looks;
        node.claiming =
            Some(Write { message, is_end: false, is_anew: is_ending, after, is_fenced, stage: Stage::Sent });
        node.looks = true;
        Some(())
    }

    pub(super) fn publish(&mut self, index: usize, model: &Claims) -> Option<()> {
        let node = &mut self.nodes[index];
        if node.publishing.is_some() {
            return None;
        }
        let change = node.table.uncommitted(&HashSet::new(), 1).pop()?;
        let message = ClaimMessage {
            key: model.key.clone(),
            epoch: change.epoch,
            instance: node.instance.clone(),
            state: change.state.clone().unwrap_or_default(),
        };
        let is_fenced = model.without != Some(Safeguard::Fence);
        let (is_end, after) = (change.state.is_none(), change.after);
        node.publishing =
            Some((change, Write { message, is_end, is_anew: false, after, is_fenced, stage: Stage::Sent }));
        Some(())
    }

    pub(super) fn apply_one(&mut self, index: usize, way: Way) -> Option<()> {
        let sent = self.nodes[index].write_mut(way).filter(|write| write.stage == Stage::Sent)?.clone();
        let stage = self.apply(&sent);
        self.nodes[index].write_mut(way)?.stage = stage;
        Some(())
    }

    pub(super) fn apply_late(&mut self, at: usize) -> Option<()> {
        if at >= self.late.len() {
            return None;
        }
        let write = self.late.remove(at);
        self.apply(&write);
        Some(())
    }

    pub(super) fn answer_one(&mut self, index: usize, way: Way, model: &Claims) -> Option<()> {
        let stage = self.nodes[index].write_mut(way)?.stage;
        match way {
            _ if stage == Stage::Sent => None,
            Way::Claim => self.answer_claim(index, stage, model),
            Way::State => self.answer_state(index, stage, model),
        }
    }

    fn answer_claim(&mut self, index: usize, stage: Stage, model: &Claims) -> Option<()> {
        let node = &mut self.nodes[index];
        let write = node.claiming.take()?;
        if let Stage::Written(number) = stage {
            let (settled, taken) = node.table.taken(&write.message, number, *NOW);
            node.table.ends(&model.key);
            if taken == Taken::Here {
                node.looks = false;
                node.adopt(&write, model.without == Some(Safeguard::Adoption), model);
            }
            self.settle(settled);
        } else {
            node.table.ends(&model.key);
        }
        Some(())
    }

    fn answer_state(&mut self, index: usize, stage: Stage, model: &Claims) -> Option<()> {
        let last = self.last.clone();
        let node = &mut self.nodes[index];
        let (change, mut write) = node.publishing.take()?;
        if let Some(Ok(found)) = last.as_ref().map(|last| &last.claim)
            && model.without == Some(Safeguard::Judgement)
        {
            write.message.state = found.state.clone();
        }
        let fate = if let Stage::Written(number) = stage {
            Fate::Committed(number)
        } else {
            write.message.judged(write.is_end, last.as_ref())
        };
        let settled = match fate {
            Fate::Committed(number) => node.table.committed(&change, number, *NOW),
            Fate::Moved => {
                let moved = node.lose(model, change.epoch);
                let failed = node.table.failed(&change);
                Settled(moved.0.into_iter().chain(failed.0).collect())
            }
            Fate::Earlier(number) => {
                node.table.found(&change.key, change.epoch, number);
                node.table.failed(&change)
            }
            Fate::Unknown => node.table.failed(&change),
        };
        self.settle(settled);
        Some(())
    }

    /// Nobody waits for a message any more; what has not come to the bucket yet may do so later.
    pub(super) fn give_up(&mut self, index: usize, way: Way, model: &Claims) -> Option<()> {
        let node = &mut self.nodes[index];
        let write = match way {
            Way::Claim => {
                let write = node.claiming.take()?;
                node.table.ends(&model.key);
                write
            }
            Way::State => {
                let (change, write) = node.publishing.take()?;
                let settled = node.table.failed(&change);
                self.settle(settled);
                write
            }
        };
        self.late.extend(Some(write).filter(|write| write.stage == Stage::Sent));
        Some(())
    }

    pub(super) fn hear(&mut self, index: usize, model: &Claims) -> Option<()> {
        let node = &mut self.nodes[index];
        if node.unread.is_empty() {
            return None;
        }
        let message = node.unread.remove(0);
        if node.table.concerns(&model.key, message.number)
            && message.is_of_another(&node.instance)
            && let Some(epoch) = node.table.hear_of_another(&model.key, message.number)
        {
            let settled = node.lose(model, epoch);
            self.settle(settled);
        }
        Some(())
    }

    pub(super) fn renew(&mut self, index: usize, model: &Claims) -> Option<()> {
        let table = &mut self.nodes[index].table;
        table.held(&model.key)?;
        table.renew_old(Duration::ZERO, *NOW);
        Some(())
    }

    /// A run rests and is forgotten.
    pub(super) fn forget(&mut self, index: usize, model: &Claims) -> Option<()> {
        let node = &mut self.nodes[index];
        if node.host != Host::Silent || !node.mailbox.is_empty() || node.table.held(&model.key).is_none() {
            return None;
        }
        let settled = node.table.forget(&model.key);
        node.count = 0;
        self.settle(settled);
        Some(())
    }

    pub(super) fn end(&mut self, index: usize, model: &Claims) -> Option<()> {
        let node = &mut self.nodes[index];
        if node.host != Host::Silent || !node.mailbox.is_empty() || node.claiming.is_some() {
            return None;
        }
        if node.table.end(&model.key) {
            node.count = 0;
            return Some(());
        }
        let last = self.last.clone().filter(|last| !last.is_over)?;
        let message = ClaimMessage::end(&model.key, &last, &node.instance);
        let (after, stage) = (last.number, Stage::Sent);
        self.apply(&Write { message, is_end: true, is_anew: false, after, is_fenced: true, stage });
        Some(())
    }

    /// `kill -9` and the next start. It reads the whole bucket before it answers events.
    pub(super) fn crash(&mut self, index: usize) {
        let crashes = self.faults;
        let node = &mut self.nodes[index];
        let started = Node::started(index, crashes, node.count);
        let former = std::mem::replace(node, started);
        let writes = former.claiming.into_iter().chain(former.publishing.map(|(_, write)| write));
        self.late.extend(writes.filter(|write| write.stage == Stage::Sent));
    }
}

impl Node {
    /// The directory of runs takes over what a claim has brought.
    fn adopt(&mut self, write: &Write, at_once: bool, model: &Claims) {
        let (replaces, brought) = (write.after > 0, write.message.state.stops_blocked);
        if replaces {
            self.mailbox.push(Mail::Moved);
        }
        if brought > 0 || self.count > 0 && !replaces {
            self.mailbox.push(Mail::Adopt(write.message.epoch, brought));
        } else {
            self.table.adopted(&model.key, write.message.epoch);
        }
        if at_once {
            // What the actor had goes on.
            self.mailbox.clear();
            self.table.adopted(&model.key, write.message.epoch);
        }
    }

    /// Another daemon goes on with the run.
    fn lose(&mut self, model: &Claims, epoch: u64) -> Settled<Counted> {
        if !self.table.is_news(&model.key, epoch) {
            return Settled(Vec::new());
        }
        self.mailbox.push(Mail::Moved);
        self.table.lost(&model.key, epoch)
    }

    pub(super) fn begin(&mut self, model: &Claims) -> Option<()> {
        let epoch = self.table.held(&model.key).filter(|_| self.host == Host::Wants)?;
        self.host = Host::Begun(epoch);
        self.mailbox.push(Mail::Dispatch);
        Some(())
    }
}
