//! What is looked up for an event: the paths that it names, those of the rules that judge it, and where they count from.

use std::{collections::HashMap, ops::ControlFlow, sync::Arc, time::Duration};

use tokio::{sync::oneshot, time::timeout};

use super::{
    crew::{self, CrewJob},
    look_up::{LinkTable, ReadLink, read_link},
};
use crate::{
    model::{DirectoryName, Draft, Hook, Json, KnownLinks, LinkGap, LinkNeeds, Target, Workspace},
    rule::named_paths,
};

/// How long an event waits for its links. Beyond it, rules about paths fail by their policies.
const LONGEST_WAIT: Duration = Duration::from_millis(250);

/// What is looked up for one event.
pub(crate) struct LinkQuery {
    input: Option<Json>,
    cwd: String,
    roots: Vec<String>,
    names: Vec<DirectoryName>,
    needs: Vec<Arc<LinkNeeds>>,
}

impl LinkQuery {
    /// Of an event as it is now, and the hooks that run for it.
    pub(crate) fn of<'h>(
        draft: &Draft,
        workspace: &Workspace,
        hooks: impl Iterator<Item = &'h Hook>,
    ) -> Self {
        let root = workspace.root.to_string_lossy();
        let cwd = draft.event().cwd.as_deref().filter(|cwd| cwd.starts_with('/'));
        let mut query = Self {
            input: draft.target(Target::ToolInput).cloned(),
            cwd: cwd.unwrap_or(&root).to_owned(),
            roots: Vec::new(),
            names: Vec::new(),
            needs: Vec::new(),
        };
        for hook in hooks {
            if let Some(needs) = hook.link_needs() {
                query.add(hook.subject(workspace), needs);
            }
        }
        query
    }

    fn add(&mut self, workspace: &Workspace, needs: Arc<LinkNeeds>) {
        let root = workspace.root.to_string_lossy().into_owned();
        if !self.roots.contains(&root) {
            self.roots.push(root);
            self.names.extend(workspace.names.iter().cloned());
        }
        self.needs.push(needs);
    }

    /// Looks everything up while the caller waits, in the same time.
    #[cfg(any(feature = "cli", feature = "daemon"))]
    pub(crate) fn run_here(self) -> KnownLinks {
        let (sender, answer) = std::sync::mpsc::channel();
        std::thread::spawn(move || drop(sender.send(self.run(read_link, &|| true))));
        answer.recv_timeout(LONGEST_WAIT).unwrap_or_else(|_| too_slow())
    }

    /// The links of everything that is named.
    fn run(&self, read: ReadLink, is_wanted: &dyn Fn() -> bool) -> KnownLinks {
        let mut table = LinkTable::new(&self.names, &self.cwd, read);
        let mut bases = vec![self.cwd.clone()];
        bases.extend(self.roots.iter().filter(|root| **root != self.cwd).cloned());
        let looked = self.visit_all(&bases, &mut |path, base| {
            if is_wanted() { table.visit(path, base) } else { ControlFlow::Break(LinkGap::TooSlow) }
        });
        let gap = match looked {
            ControlFlow::Break(gap) => gap,
            ControlFlow::Continue(()) if table.is_refused => LinkGap::Refused,
            ControlFlow::Continue(()) => LinkGap::NotNamed,
        };
        KnownLinks::new(table.entries, gap)
    }

    fn visit_all(
        &self,
        bases: &[String],
        visit: &mut dyn FnMut(&str, &str) -> ControlFlow<LinkGap>,
    ) -> ControlFlow<LinkGap> {
        for base in bases {
            visit(base, "/")?;
        }
        for name in &self.names {
            visit(&name.directory.to_string_lossy(), "/")?;
        }
        for constant in self.needs.iter().flat_map(|needs| &needs.constants) {
            for base in bases {
                visit(constant, base)?;
                // As in `workspace.root + "/secret"`.
                if let Some(below) = constant.strip_prefix('/') {
                    visit(below, base)?;
                }
            }
        }
        match &self.input {
            Some(input) => named_paths(input.as_str(), bases, visit),
            None => ControlFlow::Continue(()),
        }
    }
}

/// Looks up the links of an event, beside the actors and within a time. Where it takes longer, nothing is known.
pub(crate) async fn look_up(query: LinkQuery) -> KnownLinks {
    look_up_by(query, read_link).await
}

async fn look_up_by(query: LinkQuery, read: ReadLink) -> KnownLinks {
    let (sender, answer) = oneshot::channel();
    let is_taken = crew::submit(Box::new(LookUpJob { query, read, sender }));
    let known = if is_taken { timeout(LONGEST_WAIT, answer).await } else { return too_slow() };
    match known {
        Ok(Ok(known)) => known,
        // The worker died, which the panic in the log explains, or is still at it.
        Ok(Err(_)) | Err(_) => too_slow(),
    }
}

fn too_slow() -> KnownLinks {
    KnownLinks::new(HashMap::new(), LinkGap::TooSlow)
}

/// A query with whom it is answered to.
struct LookUpJob {
    query: LinkQuery,
    read: ReadLink,
    sender: oneshot::Sender<KnownLinks>,
}

impl CrewJob for LookUpJob {
    fn is_late(&self) -> bool {
        self.sender.is_closed()
    }

    fn run(self: Box<Self>) {
        let Self { query, read, sender } = *self;
        let known = query.run(read, &|| !sender.is_closed());
        drop(sender.send(known));
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        path::PathBuf,
        sync::atomic::{AtomicBool, Ordering},
        thread,
    };

    use super::*;
    use crate::model::PathEntry;

    static HANGS: AtomicBool = AtomicBool::new(true);

    fn hanging(path: &std::path::Path) -> io::Result<Option<PathBuf>> {
        while HANGS.load(Ordering::Acquire) {
            thread::sleep(Duration::from_millis(5));
        }
        read_link(path)
    }

    fn query() -> LinkQuery {
        LinkQuery {
            input: Some(Json::parse(r#"{"file_path":"a/b"}"#).unwrap()),
            cwd: "/srv/shop".to_owned(),
            roots: vec!["/srv/shop".to_owned()],
            names: Vec::new(),
            needs: Vec::new(),
        }
    }

    fn too_long(path: &std::path::Path) -> io::Result<Option<PathBuf>> {
        let is_long = path.as_os_str().len() >= 4_096 || path.iter().any(|name| name.len() > 255);
        if is_long { Err(io::ErrorKind::InvalidFilename.into()) } else { Ok(None) }
    }

    #[test]
    fn a_path_that_only_its_own_directory_opens_is_not_known() {
        let deep = format!("/{}", vec!["d".repeat(200); 20].join("/"));
        let mut query = LinkQuery { cwd: deep.clone(), ..query() };
        query.input = Some(Json::parse(&format!(r#"{{"file_path":"{}"}}"#, "e".repeat(90))).unwrap());
        let known = query.run(too_long, &|| true);
        assert_eq!(known.entry(&deep), Ok(&PathEntry::Plain));
        assert_eq!(known.entry(&format!("{deep}/{}", "e".repeat(90))), Err(LinkGap::Refused));
        let long_name = LinkQuery {
            input: Some(Json::parse(&format!(r#"{{"a":"{}"}}"#, "e".repeat(300))).unwrap()),
            ..self::query()
        };
        let known = long_name.run(too_long, &|| true);
        assert_eq!(known.entry(&format!("/srv/shop/{}", "e".repeat(300))), Ok(&PathEntry::Missing));
    }

    #[tokio::test]
    async fn a_disk_that_hangs_holds_no_event_up_and_is_asked_again_later() {
        // More events than there are threads, one after the other and at once.
        for _ in 0..3 {
            let known = futures_util::future::join_all((0..6).map(|_| look_up_by(query(), hanging))).await;
            for known in known {
                assert_eq!(known.entry("/srv/shop/a/b"), Err(LinkGap::TooSlow));
            }
        }
        HANGS.store(false, Ordering::Release);
        let begun = tokio::time::Instant::now();
        while look_up_by(query(), hanging).await.entry("/srv").is_err() {
            assert!(begun.elapsed() < Duration::from_mins(1), "it is not asked again");
        }
    }
}
