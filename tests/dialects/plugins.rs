//! Hooks of plugins of Claude Code and of extensions of Gemini CLI: what runs, where, and with which authority.

use std::{fs, path::Path};

use hookyard::{
    Orchestrator,
    config::{Settings, TrustPolicy, load_workspace},
    model::{Event, EventKind, Json, RunId, SessionId, Severity, Target, Verdict},
};
use serde_json::{Value, json};

use crate::test_workspace::{TestWorkspace, messages};

/// A plugin, and where its marketplace has it.
struct Plugin {
    workspace: TestWorkspace,
}

fn command(event: &str, command: &str) -> Value {
    json!({ "hooks": { event: [{ "hooks": [{ "type": "command", "command": command }] }] } })
}

fn write(path: &Path, value: &Value) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, value.to_string()).unwrap();
}

impl Plugin {
    /// The plugin `guard` of the marketplace `market`, as Claude Code installs it for a user.
    fn installed() -> Self {
        let new = Self { workspace: TestWorkspace::new() };
        new.registers(&json!({ "scope": "user", "installPath": new.root() }));
        let known = json!({ "market": { "source": { "source": "github", "repo": "a/b" }, "installLocation": new.market() } });
        new.write("home/.claude/plugins/known_marketplaces.json", &known);
        new.catalogs(&json!({ "name": "guard", "source": { "source": "github", "repo": "a/c" } }));
        new.write(
            &format!("{CACHE}/.claude-plugin/plugin.json"),
            &json!({ "name": "guard", "version": "1.0.0" }),
        );
        let shows = "echo \"$CLAUDE_PLUGIN_ROOT|${CLAUDE_PLUGIN_DATA}\" >&2; exit 2";
        new.write(&format!("{CACHE}/hooks/hooks.json"), &command("PreToolUse", shows));
        new
    }

    fn root(&self) -> String {
        self.path(CACHE)
    }

    fn market(&self) -> String {
        self.path("home/.claude/plugins/marketplaces/market")
    }

    fn path(&self, below: &str) -> String {
        self.workspace.path(below).display().to_string()
    }

    fn write(&self, below: &str, value: &Value) {
        write(&self.workspace.path(below), value);
    }

    fn registers(&self, installation: &Value) {
        let registry = json!({ "version": 2, "plugins": { ID: [installation] } });
        self.write("home/.claude/plugins/installed_plugins.json", &registry);
    }

    fn catalogs(&self, entry: &Value) {
        let catalog = json!({ "name": "market", "owner": { "name": "me" }, "plugins": [entry] });
        self.write("home/.claude/plugins/marketplaces/market/.claude-plugin/marketplace.json", &catalog);
    }

    /// Enables or disables it in a settings file.
    fn enabled(self, file: &str, is_enabled: bool) -> Self {
        self.write(file, &json!({ "enabledPlugins": { ID: is_enabled } }));
        self
    }

    /// The hooks, each with its scope, and the diagnostics.
    fn load(&self) -> (Vec<String>, Vec<String>) {
        self.load_with(&self.workspace.settings())
    }

    fn load_with(&self, settings: &Settings) -> (Vec<String>, Vec<String>) {
        let loaded = load_workspace(&self.workspace.path("workspace"), None, settings, &|_| None);
        let enabled = loaded.hooks.iter().filter(|hook| hook.enabled);
        let hooks = enabled.map(|hook| format!("{} {}", hook.name, hook.trust.refusal().unwrap_or("runs")));
        let messages = messages(&loaded.diagnostics);
        (hooks.collect(), messages.iter().map(|message| self.workspace.with_placeholder(message)).collect())
    }

    /// What a tool call of Claude Code comes to.
    async fn call(&self) -> (Verdict, String) {
        outcome(&self.workspace.start().await, "call").await
    }
}

async fn outcome(orchestrator: &Orchestrator, run: &str) -> (Verdict, String) {
    let (session, run) = (SessionId::new("s").unwrap(), RunId::new(run).unwrap());
    let mut event = Event::new(EventKind::BeforeToolDispatch, session, run);
    event.attributes.tool_name = Some("Bash".into());
    event.targets.set(Target::ToolInput, Json::of(&json!({ "command": "ls" })).unwrap());
    let outcome = orchestrator.dispatch(event).await.unwrap();
    (outcome.verdict, outcome.reason.as_deref().unwrap_or_default().to_owned())
}

const ID: &str = "guard@market";
const CACHE: &str = "home/.claude/plugins/cache/market/guard/1.0.0";
const USER: &str = "home/.claude/settings.json";
const PROJECT: &str = "workspace/.claude/settings.json";
const RUNS: &str = "claude.user.guard_market.PreToolUse.1.1 runs";

#[tokio::test]
async fn the_hooks_of_an_enabled_plugin_run_with_its_variables() {
    let plugin = Plugin::installed().enabled(USER, true);
    let (hooks, messages) = plugin.load();
    assert_eq!((hooks, messages), (vec![RUNS.to_owned()], vec![]));
    let data = plugin.path("home/.claude/plugins/data/guard-market");
    assert_eq!(plugin.call().await, (Verdict::Block, format!("{}|{data}", plugin.root())));
}

#[tokio::test]
async fn plugins_that_nobody_enables_do_not_run() {
    assert_eq!(Plugin::installed().load(), (vec![], vec![]));
    assert_eq!(Plugin::installed().enabled(USER, false).load(), (vec![], vec![]));
    let managed = "system/claude-code/managed-settings.json";
    let plugin = Plugin::installed().enabled(USER, true).enabled(managed, false);
    assert_eq!(plugin.load(), (vec![], vec![]));
    let (hooks, _) = Plugin::installed().enabled(managed, true).enabled(USER, false).load();
    assert_eq!(hooks, ["claude.managed.guard_market.PreToolUse.1.1 runs"]);
}

#[tokio::test]
async fn a_workspace_cannot_switch_off_a_plugin_of_its_user() {
    let plugin = Plugin::installed().enabled(USER, true).enabled(PROJECT, false);
    let (hooks, messages) = plugin.load();
    assert_eq!(hooks, [RUNS]);
    let [message] = messages.as_slice() else { panic!("{messages:?}") };
    assert!(message.contains("cannot switch off 1 hook of a higher level"), "{message}");
    let mut settings = plugin.workspace.settings();
    settings.levels.allow_disable = vec!["claude.user.guard_market.PreToolUse.1.1".into()];
    assert_eq!(plugin.load_with(&settings).0, Vec::<String>::new());
}

#[tokio::test]
async fn what_a_workspace_enables_needs_the_trust_of_a_person() {
    let plugin = Plugin::installed().enabled(PROJECT, true);
    let settings = Settings { trust: TrustPolicy::Enforce, ..plugin.workspace.settings() };
    let (hooks, _) = plugin.load_with(&settings);
    let [hook] = hooks.as_slice() else { panic!("{hooks:?}") };
    assert!(hook.starts_with("claude.project.guard_market.PreToolUse.1.1 nobody has agreed to it"), "{hook}");
    let by_user = Plugin::installed().enabled(USER, true);
    let settings = Settings { trust: TrustPolicy::Enforce, ..by_user.workspace.settings() };
    assert_eq!(by_user.load_with(&settings).0, [RUNS]);
    // A plugin inside the workspace is the workspace's, whoever enabled it.
    let inside = Plugin::installed().enabled(USER, true);
    let root = inside.path("workspace/own");
    fs::rename(inside.root(), &root).unwrap();
    inside.registers(&json!({ "scope": "user", "installPath": root }));
    let settings = Settings { trust: TrustPolicy::Enforce, ..inside.workspace.settings() };
    assert!(inside.load_with(&settings).0[0].contains("nobody has agreed to it"));
}

/// However it comes to be inside: the agents' own files say so, which no workspace writes.
#[tokio::test]
async fn what_is_inside_the_workspace_needs_the_trust_of_a_person_whoever_enabled_it() {
    let enforced = |plugin: &Plugin| {
        let settings = Settings { trust: TrustPolicy::Enforce, ..plugin.workspace.settings() };
        plugin.load_with(&settings).0
    };
    // A marketplace in the repository.
    let plugin = Plugin::installed().enabled(USER, true);
    let market = plugin.path("workspace/market");
    let known = json!({ "market": { "source": { "source": "directory", "path": market }, "installLocation": market } });
    plugin.write("home/.claude/plugins/known_marketplaces.json", &known);
    let catalog = json!({ "name": "market", "plugins": [{ "name": "guard", "source": "./here" }] });
    plugin.write("workspace/market/.claude-plugin/marketplace.json", &catalog);
    plugin.write("workspace/market/here/hooks/hooks.json", &command("PreToolUse", "true"));
    let [hook] = &enforced(&plugin)[..] else { panic!("{:?}", enforced(&plugin)) };
    assert!(hook.contains("nobody has agreed to it"), "{hook}");
    // An installed plugin that is a link into it.
    let plugin = Plugin::installed().enabled(USER, true);
    fs::rename(plugin.root(), plugin.path("workspace/own")).unwrap();
    std::os::unix::fs::symlink(plugin.path("workspace/own"), plugin.root()).unwrap();
    let [hook] = &enforced(&plugin)[..] else { panic!("{:?}", enforced(&plugin)) };
    assert!(hook.contains("nobody has agreed to it"), "{hook}");
    // An extension of Gemini CLI that is linked.
    let plugin = Plugin { workspace: TestWorkspace::new() };
    let extension = "home/.gemini/extensions/fmt";
    plugin.write(&format!("{extension}/gemini-extension.json"), &json!({ "name": "fmt", "version": "1" }));
    plugin.write("workspace/source/hooks/hooks.json", &command("BeforeTool", "true"));
    let link = json!({ "type": "link", "source": plugin.path("workspace/source") });
    plugin.write(&format!("{extension}/.gemini-extension-install.json"), &link);
    let [hook] = &enforced(&plugin)[..] else { panic!("{:?}", enforced(&plugin)) };
    assert!(hook.contains("nobody has agreed to it"), "{hook}");
}

#[tokio::test]
async fn a_workspace_that_enables_many_plugins_pushes_out_none_of_a_higher_level() {
    let managed = "system/claude-code/managed-settings.json";
    for (file, scope) in [(USER, "user"), (managed, "managed")] {
        let plugin = Plugin::installed().enabled(file, true);
        let many: serde_json::Map<String, Value> =
            (0..200).map(|number| (format!("a{number}@market"), json!(true))).collect();
        plugin.write(PROJECT, &json!({ "enabledPlugins": many }));
        plugin.write("workspace/.claude/settings.local.json", &json!({ "enabledPlugins": many }));
        let (hooks, messages) = plugin.load();
        assert_eq!(hooks, [format!("claude.{scope}.guard_market.PreToolUse.1.1 runs")]);
        assert!(messages.iter().any(|message| message.contains("plugins are enabled")), "{messages:?}");
    }
}

#[tokio::test]
async fn a_plugin_of_another_project_does_not_run_here() {
    let plugin = Plugin::installed().enabled(PROJECT, true);
    let elsewhere = json!({ "scope": "project", "projectPath": "/elsewhere", "installPath": plugin.root() });
    plugin.registers(&elsewhere);
    let (hooks, messages) = plugin.load();
    assert_eq!(hooks, Vec::<String>::new());
    let why = "the hooks of the plugin `guard@market` do not run: it is not installed for this project";
    assert!(messages.len() == 1 && messages[0].contains(why), "{messages:?}");
    let here =
        json!({ "scope": "project", "projectPath": plugin.path("workspace"), "installPath": plugin.root() });
    plugin.registers(&here);
    assert_eq!(plugin.load().0, ["claude.project.guard_market.PreToolUse.1.1 runs"]);
}

#[tokio::test]
async fn hooks_of_the_manifest_and_of_its_files_run_too() {
    let plugin = Plugin::installed().enabled(USER, true);
    let manifest = format!("{CACHE}/.claude-plugin/plugin.json");
    plugin.write(
        &manifest,
        &json!({ "name": "guard", "hooks": ["./more.json", "hooks/hooks.json", "../out.json", {}] }),
    );
    plugin.write(&format!("{CACHE}/more.json"), &command("PostToolUse", "true"));
    let (hooks, messages) = plugin.load();
    assert_eq!(hooks, [RUNS, "claude.user.guard_market.2.PostToolUse.1.1 runs"]);
    assert!(
        messages.iter().any(|message| message.contains("`../out.json`, which is outside of the plugin")),
        "{messages:?}"
    );
    assert!(messages.iter().any(|message| message.contains("1 of the sets of hooks")), "{messages:?}");
    let mut inline = command("Stop", "true");
    inline["name"] = json!("guard");
    plugin.write(&manifest, &inline);
    let (hooks, messages) = plugin.load();
    assert_eq!(hooks, [RUNS, "claude.user.guard_market.2.Stop.1.1 runs"]);
    assert_eq!(messages, Vec::<String>::new());
}

#[tokio::test]
async fn plugins_of_a_local_marketplace_are_read_where_they_are() {
    let plugin = Plugin::installed().enabled(USER, true);
    let market = plugin.path("market");
    let known = json!({ "market": { "source": { "source": "directory", "path": market }, "installLocation": market } });
    plugin.write("home/.claude/plugins/known_marketplaces.json", &known);
    let entry = json!({ "name": "guard", "source": "./here", "hooks": { "PostToolUse": [] } });
    plugin.write("market/.claude-plugin/marketplace.json", &json!({ "name": "market", "plugins": [entry] }));
    plugin.write("market/here/hooks/hooks.json", &command("PreToolUse", "echo local >&2; exit 2"));
    assert_eq!(plugin.call().await, (Verdict::Block, "local".to_owned()));
    let (_, messages) = plugin.load();
    assert!(
        messages.len() == 1 && messages[0].contains("the marketplace itself has for the plugin"),
        "{messages:?}"
    );
}

#[tokio::test]
async fn switches_in_a_plugin_are_none_and_its_links_lead_nowhere() {
    let plugin = Plugin::installed().enabled(USER, true);
    let mut hooks = command("PreToolUse", "${CLAUDE_PLUGIN_ROOT}/${user_config.name}");
    hooks["disableAllHooks"] = json!(true);
    let entries = hooks["hooks"]["PreToolUse"][0]["hooks"].as_array_mut().unwrap();
    entries.push(json!({ "type": "command", "command": "$CLAUDE_PLUGIN_ROOT/gone.sh" }));
    plugin.write(&format!("{CACHE}/hooks/hooks.json"), &hooks);
    let (names, messages) = plugin.load();
    assert_eq!(names, ["claude.user.guard_market.PreToolUse.1.2 runs"]);
    assert!(messages.iter().any(|message| message.contains("an option of its plugin")), "{messages:?}");
    assert!(messages.iter().any(|message| message.contains("gone.sh` does not exist")), "{messages:?}");
    let file = plugin.workspace.path(CACHE).join("hooks/hooks.json");
    fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", &file).unwrap();
    let loaded =
        load_workspace(&plugin.workspace.path("workspace"), None, &plugin.workspace.settings(), &|_| None);
    assert!(loaded.hooks.is_empty());
    assert!(
        loaded.diagnostics.iter().any(|found| found.severity == Severity::Error && found.file == file),
        "{:?}",
        loaded.diagnostics
    );
}

#[tokio::test]
async fn a_plugin_that_breaks_keeps_its_rules() {
    let plugin = Plugin::installed().enabled(USER, true);
    let orchestrator = plugin.workspace.start().await;
    assert_eq!(outcome(&orchestrator, "first").await.0, Verdict::Block);
    let plugins = "home/.claude/plugins";
    for broken in [
        &format!("{plugins}/installed_plugins.json"),
        &format!("{plugins}/known_marketplaces.json"),
        &format!("{CACHE}/hooks/hooks.json"),
    ] {
        let path = plugin.workspace.path(broken);
        let sound = fs::read(&path).unwrap();
        fs::write(&path, "{").unwrap();
        orchestrator.reload().await.unwrap();
        assert_eq!(outcome(&orchestrator, broken).await.0, Verdict::Block, "{broken}");
        fs::write(&path, sound).unwrap();
        orchestrator.reload().await.unwrap();
    }
    plugin.write(USER, &json!({}));
    orchestrator.reload().await.unwrap();
    assert_eq!(outcome(&orchestrator, "last").await.0, Verdict::Proceed);
}

#[tokio::test]
async fn settings_that_name_the_directory_of_a_plugin_are_warned_of() {
    let plugin = Plugin::installed();
    plugin.write(USER, &command("PreToolUse", "${CLAUDE_PLUGIN_ROOT}/check.sh"));
    let (hooks, messages) = plugin.load();
    assert_eq!(hooks, ["claude.user.PreToolUse.1.1 runs"]);
    assert!(
        messages.iter().any(|message| message.contains("is set for hooks of plugins only")),
        "{messages:?}"
    );
}

#[tokio::test]
async fn extensions_of_gemini_cli_run_unless_they_are_disabled_here() {
    let plugin = Plugin { workspace: TestWorkspace::new() };
    let extension = "home/.gemini/extensions/fmt";
    plugin.write(&format!("{extension}/gemini-extension.json"), &json!({ "name": "fmt", "version": "1" }));
    let shows = "echo '${extensionPath}${/}x ${workspacePath} ${other}' >&2; exit 2";
    plugin.write(&format!("{extension}/hooks/hooks.json"), &command("BeforeTool", shows));
    assert_eq!(plugin.load(), (vec!["gemini.user.fmt.BeforeTool.1.1 runs".to_owned()], vec![]));
    let (verdict, reason) = plugin.call().await;
    let expected = format!("{}/x {} ${{other}}", plugin.path(extension), plugin.path("workspace"));
    assert_eq!((verdict, reason), (Verdict::Block, expected));
    let rules = json!({ "fmt": { "overrides": [format!("!{}/*", plugin.path("workspace"))] } });
    plugin.write("home/.gemini/extensions/extension-enablement.json", &rules);
    let (hooks, messages) = plugin.load();
    assert_eq!(hooks, Vec::<String>::new());
    assert!(messages.len() == 1 && messages[0].contains("it is disabled here"), "{messages:?}");
    // A linked one is where its source is.
    plugin.write("home/.gemini/extensions/extension-enablement.json", &json!({}));
    let source = plugin.path("source");
    fs::rename(plugin.path(&format!("{extension}/hooks")), plugin.path(&format!("{extension}/old"))).unwrap();
    plugin.write("source/hooks/hooks.json", &command("BeforeTool", "echo linked >&2; exit 2"));
    plugin.write(
        &format!("{extension}/.gemini-extension-install.json"),
        &json!({ "type": "link", "source": source }),
    );
    assert_eq!(plugin.call().await.1, "linked");
    plugin.write("home/.gemini/settings.json", &json!({ "hooksConfig": { "enabled": false } }));
    assert_eq!(plugin.load().0, Vec::<String>::new());
}

#[test]
fn hooks_in_front_matter_of_a_plugin_are_found_and_not_run() {
    let agent = format!("{CACHE}/agents/reviewer.md");
    let plugin = Plugin::installed();
    let path = plugin.workspace.path(&agent);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, "---\nname: reviewer\nhooks:\n  PreToolUse: []\n---\nReview.\n").unwrap();
    assert_eq!(plugin.load().1, Vec::<String>::new(), "nobody enables it");
    let (hooks, messages) = plugin.enabled(USER, true).load();
    assert_eq!(hooks, [RUNS]);
    let [message] = messages.as_slice() else { panic!("{messages:?}") };
    assert!(
        message.contains(&agent) && message.contains("Claude Code ignores those of a plugin"),
        "{message}"
    );
}
