//! The unpacked copy of the bundle while the daemon runs: what somebody has changed in it is said, and unpacked again.

use tokio::task::spawn_blocking;

use super::keeper::{BundleKeeper, CopyChanges};
use crate::{config::BundleInForce, telemetry::CopyChanged};

impl BundleKeeper {
    pub(in crate::daemon) fn copy_changes(&self) -> CopyChanges {
        self.changes.lock().clone()
    }

    /// Notes what was changed in a copy that was unpacked again when it was read.
    pub(super) fn note_restored(&self, found: &BundleInForce) {
        let why = found.found.as_ref().ok().and_then(|(kept, _)| kept.restored.as_ref());
        match why {
            Some(why) => self.note_change(why, None),
            None => self.changes.lock().fault = None,
        }
    }

    /// Unpacks the files again if somebody has changed them. Until then, no command of the bundle starts.
    pub(super) async fn mend_copy(&self) {
        let (Some(found), Some(store)) = (self.read.load_full(), self.store.clone()) else { return };
        let mended = spawn_blocking(move || {
            let (kept, hooks) = found.found.as_ref().ok()?;
            let why = hooks.check_copy().err()?;
            // Where another bundle was installed, this copy may be gone.
            if store.archive_in_force().as_ref() != Some(&kept.signed.statement.archive) {
                return None;
            }
            Some((why, store.restore(kept).err()))
        });
        // Fails only where the daemon ends.
        let Ok(mended) = mended.await else { return };
        match mended {
            Some((why, fault)) => self.note_change(&why, fault.map(|fault| fault.message)),
            None => self.changes.lock().fault = None,
        }
    }

    fn note_change(&self, why: &str, fault: Option<String>) {
        let mut changes = self.changes.lock();
        let is_known = fault.is_some() && changes.fault == fault;
        changes.fault.clone_from(&fault);
        if is_known {
            return;
        }
        changes.count += 1;
        changes.last = Some(why.to_owned());
        match fault {
            None => {
                CopyChanged::Restored.emit();
                tracing::error!(%why, "files of the bundle were changed on this disk, and are unpacked again");
            }
            Some(fault) => {
                CopyChanged::Failed.emit();
                tracing::error!(
                    %why, %fault,
                    "files of the bundle were changed on this disk and cannot be unpacked again; its commands do not start"
                );
            }
        }
    }
}
