//! What `trust` shows of each hook: its definition, its files, what it gets, what it reaches, and what has changed.

use std::path::Path;

use super::super::{escape, screen::Screen, table::Page, wrap};
use crate::{
    config::{ReviewedHook, TrustRecord, TrustReview},
    model::TrustState,
};

/// The most lines of a difference that are shown for one file.
const MOST_LINES: usize = 200;

pub(super) fn page(review: &TrustReview, root: &Path, screen: &Screen) -> String {
    let mut page = Page::default();
    page.line(&format!("workspace {}", escape::path(root)));
    if review.hooks.is_empty() {
        page.line("\nno hook of this workspace needs trust");
    }
    for hook in &review.hooks {
        show(review, hook, &mut page, screen);
    }
    if !review.hooks.is_empty() {
        page.line(&format!("\ndigest {}", review.digest()));
    }
    page.into_text()
}

fn show(review: &TrustReview, hook: &ReviewedHook, page: &mut Page, screen: &Screen) {
    let name = screen.out.paint.bold(&escape::line(&hook.name));
    page.line(&format!("\n{name}  {}", hook.state()));
    match (&hook.before, &hook.now) {
        (_, Some(Err(why))) => fact("cannot be trusted", why, page, screen),
        (Some(before), None) => page.line(&format!("  gone: {}", escape::line(&before.file))),
        (None, None) => {}
        (Some(before), Some(Ok(now))) => {
            facts(now, page, screen);
            if hook.state() == TrustState::Modified {
                changes(review, before, now, page);
            }
        }
        (None, Some(Ok(now))) => {
            facts(now, page, screen);
            page.line(&format!("  defined in {}:", escape::line(&now.file)));
            page.line(&format!("    {}", escape::block(&now.definition, 4)));
        }
    }
}

/// A line about a hook, broken where the terminal ends.
fn fact(what: &str, text: &str, page: &mut Page, screen: &Screen) {
    let line = format!("  {what}: {}", escape::line(text));
    page.line(&wrap::hanging(&line, screen.table_width(), 4));
}

fn facts(record: &TrustRecord, page: &mut Page, screen: &Screen) {
    let files: Vec<&str> = record.tree.iter().map(|file| file.path.as_str()).collect();
    let grants = &record.grants;
    let place = if record.in_place { "runs in the workspace" } else { "runs from a private copy" };
    let listed = [
        ("files", &files.into_iter().map(str::to_owned).collect::<Vec<_>>()),
        ("environment", &grants.environment),
        ("secrets", &grants.secrets),
        ("connects to", &grants.hosts),
        ("models", &grants.models),
    ];
    for (what, values) in listed.into_iter().filter(|(_, values)| !values.is_empty()) {
        fact(what, &values.join(", "), page, screen);
    }
    if !record.tree.is_empty() {
        page.line(&format!("  {place}"));
    }
    for reached in &record.outside {
        fact("not covered by this trust", reached, page, screen);
    }
}

/// What is different from what was agreed to.
fn changes(review: &TrustReview, before: &TrustRecord, now: &TrustRecord, page: &mut Page) {
    for change in before.changes(now) {
        page.line(&format!("  changed: {}", escape::line(&change)));
    }
    difference(&now.file, &before.definition, &now.definition, page);
    for file in now.tree.iter() {
        let known = before.tree.iter().find(|known| known.path == file.path);
        if known.is_some_and(|known| known.sha256 == file.sha256) {
            continue;
        }
        let former = review.former_text(before, &file.path).unwrap_or_default();
        match TrustReview::current_text(now, file) {
            Some(current) => difference(&file.path, &former, &current, page),
            // What is there by now is not what would be agreed to.
            None => page.line(&format!(
                "  {} has changed while it was read; do not agree, and run `hookyard trust` again",
                escape::line(&file.path)
            )),
        }
    }
}

/// The lines of two texts that are not the same at their beginning and their end.
fn difference(path: &str, before: &str, now: &str, page: &mut Page) {
    if before == now {
        return;
    }
    let before: Vec<&str> = before.lines().collect();
    let now: Vec<&str> = now.lines().collect();
    let head = before.iter().zip(&now).take_while(|(one, other)| one == other).count();
    let most = before.len().min(now.len()) - head;
    let ends = before.iter().rev().zip(now.iter().rev());
    let tail = ends.take(most).take_while(|(one, other)| one == other).count();
    page.line(&format!("  {}, from line {}:", escape::line(path), head + 1));
    let removed = before[head..before.len() - tail].iter().map(|line| ('-', line));
    let added = now[head..now.len() - tail].iter().map(|line| ('+', line));
    let hidden = removed.len().saturating_sub(MOST_LINES) + added.len().saturating_sub(MOST_LINES);
    for (sign, line) in removed.take(MOST_LINES).chain(added.take(MOST_LINES)) {
        page.line(&format!("    {sign} {}", escape::line(line)));
    }
    if hidden > 0 {
        page.line(&format!("    {hidden} more changed lines are not shown: read the file before you agree"));
    }
}
