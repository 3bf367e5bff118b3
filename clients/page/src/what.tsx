// What runs: the hooks of each workspace with their files, and what is wrong with these.
import { Fragment } from "preact";
import { useState } from "preact/hooks";
import { count, plural } from "./format";
import { Copy, Empty, Failure, Section, Table, type Column, type Sorting } from "./parts";
import { address, useAsked, type Place } from "./state";
import { TrustSection } from "./trust";
import type { Diagnostic, Hook, Right, Status, Workspace, WorkspaceDetails } from "./types";

function state(hook: Hook): { sign: string; text: string; tone: string } {
  if (!hook.enabled) return { sign: "○", text: hook.disabled_by ? `off: ${hook.disabled_by}` : "off", tone: "quiet" };
  if (hook.trust !== null && !["trusted", "managed"].includes(hook.trust)) return { sign: "✕", text: `does not run: ${hook.trust}`, tone: "bad" };
  return { sign: "●", text: hook.trust === null ? "runs" : `runs, ${hook.trust}`, tone: "good" };
}

/// A path as it is from a directory, if it is in there.
function within(root: string, path: string): string {
  return path.startsWith(`${root}/`) ? path.slice(root.length + 1) : path;
}

/// A path that breaks after a slash.
function breakable(path: string) {
  return path.split(/(?<=\/)/).map((part, index) => (
    <Fragment key={index}>
      {index > 0 && <wbr />}
      {part}
    </Fragment>
  ));
}

const columns = (root: string): Column<Hook>[] => [
  {
    name: "Hook",
    cell: (hook) => (
      <>
        <a href={address(["why"], { hook: hook.name, workspace: hook.workspace_id })}>{hook.name}</a>
        <span class="sub">
          {hook.dialect} · {hook.handler}
          {hook.mode ? ` · ${hook.mode}` : ""}
        </span>
      </>
    ),
    order: (hook) => hook.name,
  },
  {
    name: "State",
    cell: (hook) => {
      const { sign, text, tone } = state(hook);
      return (
        <span class={tone}>
          <span aria-hidden="true">{`${sign}\u00a0`}</span>
          {text}
        </span>
      );
    },
    order: (hook) => state(hook).text,
  },
  {
    name: "Level",
    cell: (hook) => (
      <>
        {hook.scope}
        {hook.bundle && (
          <span class="sub">
            bundle {hook.bundle.name} {hook.bundle.version}
          </span>
        )}
      </>
    ),
    order: (hook) => hook.scope,
  },
  {
    name: "Events",
    cell: (hook) => (
      <>
        {hook.host_event ?? hook.events.join(", ")}
        {hook.matcher !== null && (
          <span class="sub">
            matches <code>{hook.matcher}</code>
          </span>
        )}
      </>
    ),
  },
  {
    name: "Runs",
    cell: (hook) => (hook.command ? <code class="command">{typeof hook.command === "string" ? hook.command : hook.command.join(" ")}</code> : <span class="quiet">{hook.handler}</span>),
  },
  {
    name: "File",
    cell: (hook) => (
      <>
        <span class="path" title={hook.file ?? ""}>
          {hook.file ? breakable(`${within(root, hook.file)}:${hook.line}`) : "in the program"}
        </span>
        {hook.sha256 && (
          <span class="sub" title={hook.sha256}>
            content {hook.sha256.slice(0, 12)}
          </span>
        )}
        {hook.not_covered && hook.not_covered.length > 0 && <span class="sub bad">not covered by trust: {hook.not_covered.join(", ")}</span>}
      </>
    ),
    order: (hook) => hook.file ?? "",
  },
  { name: "Priority", number: true, cell: (hook) => String(hook.priority), order: (hook) => hook.priority },
];

function Diagnostics({ all }: { all: Diagnostic[] }) {
  return (
    <ul class="problems">
      {all.map((it, index) => (
        <li key={index} class={it.severity}>
          <strong>
            <span aria-hidden="true">{it.severity === "error" ? "✕ " : "⚠ "}</span>
            {it.severity} [{it.code}]
          </strong>
          : {it.message}
          <span class="path">
            {it.file}
            {it.line > 0 ? `:${it.line}:${it.column}` : ""}
          </span>
          {it.help && <span class="sub">help: {it.help}</span>}
          {it.skipped && <span class="sub">What it is about is not loaded.</span>}
        </li>
      ))}
    </ul>
  );
}

function WorkspaceFacts({ workspace }: { workspace: Workspace }) {
  return (
    <dl class="facts">
      <div>
        <dt>Directory</dt>
        <dd class="path">{workspace.root}</dd>
      </div>
      <div>
        <dt>Kind</dt>
        <dd>{workspace.kind === "chat" ? "chat: runs no hooks" : workspace.kind}</dd>
      </div>
      <div>
        <dt>Loaded</dt>
        <dd>
          version {count(workspace.version)}, content {workspace.content.slice(0, 12)}
        </dd>
      </div>
    </dl>
  );
}

function WorkspaceView({ id, right }: { id: string; right: Right }) {
  const [sorting, setSorting] = useState<Sorting | undefined>();
  const query = new URLSearchParams({ workspace_id: id });
  const details = useAsked<WorkspaceDetails>(`/v1/workspaces/${encodeURIComponent(id)}`, 5000);
  const hooks = useAsked<Hook[]>(`/v1/hooks?${query}`, 5000);
  const it = details.value;
  const refused = it?.trust.filter((hook) => hook.reason !== null) ?? [];
  const command = it ? `hookyard trust --workspace ${quoted(it.root)}` : "";
  return (
    <>
      <p>
        <a href={address(["runs-what"])}>← All workspaces</a>
      </p>
      <h1>{id}</h1>
      {details.error && details.error.status !== 401 && <Failure error={details.error} again={details.again} />}
      {it && <WorkspaceFacts workspace={it} />}
      {it && it.diagnostics.length > 0 && (
        <Section title="Files with mistakes">
          <Diagnostics all={it.diagnostics} />
          {it.last_good.map((file) => (
            <p class="sub" key={file.file}>
              <span class="path">{file.file}</span>: {file.policy === "deny" ? "the events of its last good rules are blocked" : "its last good rules stay in force"}
              {file.sha256 && `, content ${file.sha256.slice(0, 12)}`}.
            </p>
          ))}
        </Section>
      )}
      {it && refused.length > 0 && (
        <Section title="Hooks that do not run">
          <ul class="problems">
            {refused.map((hook) => (
              <li key={hook.hook}>
                <strong>
                  <span aria-hidden="true">✕ </span>
                  {hook.hook}
                </strong>
                : {hook.reason}
              </li>
            ))}
          </ul>
          <p>
            In a terminal on that machine, this shows what they run, and asks whether you agree: <code>{command}</code> <Copy label="Copy command" text={command} />
            {right !== "control" && (
              <span class="sub">
                Signed in with <code>hookyard ui --control</code>, you see here what they run and what has changed, and can agree to it.
              </span>
            )}
          </p>
        </Section>
      )}
      {it && right === "control" && it.kind !== "chat" && (
        <TrustSection
          id={id}
          after={() => {
            details.again();
            hooks.again();
          }}
        />
      )}
      <Section title="Hooks in the order in which they run">
        {hooks.error && hooks.error.status !== 401 && <Failure error={hooks.error} again={hooks.again} />}
        {hooks.value && hooks.value.length === 0 && (
          <Empty>
            This workspace has no hooks. <code>hookyard new my-guard</code> makes one to start from; <code>hookyard add</code> adds a pack of guards.
          </Empty>
        )}
        {hooks.value && hooks.value.length > 0 && (
          <Table caption={`hooks of ${id}`} columns={columns(it?.root ?? "")} rows={hooks.value} id={(hook) => `${hook.name} ${hook.file} ${hook.line}`} onSort={setSorting} {...(sorting ? { sorting } : {})} />
        )}
      </Section>
      {it && (
        <details>
          <summary>Files that were read: {count(it.files.length)}</summary>
          <ul>
            {it.files.map((file) => (
              <li key={file} class="path">
                {breakable(file)}
              </li>
            ))}
          </ul>
        </details>
      )}
    </>
  );
}

/// A path as a shell takes it.
function quoted(path: string): string {
  return /^[\w/.:@+-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;
}

function List({ status }: { status: Status | undefined }) {
  const asked = useAsked<Workspace[]>("/v1/workspaces", 5000);
  const not_trusted = (id: string) => status?.not_trusted.filter((hook) => hook.workspace === id).length ?? 0;
  const columns: Column<Workspace>[] = [
    {
      name: "Workspace",
      cell: (it) => (
        <>
          <a href={address(["runs-what", it.id])}>{it.id}</a>
          <span class="sub path">{it.root}</span>
        </>
      ),
    },
    { name: "Hooks", number: true, cell: (it) => count(it.hooks) },
    { name: "Mistakes", cell: (it) => (it.errors > 0 ? <strong class="bad">✕ {plural(it.errors, "error")}</strong> : <span class="quiet">none</span>) },
    { name: "Trust", cell: (it) => (not_trusted(it.id) > 0 ? <strong class="bad">✕ {plural(not_trusted(it.id), "hook")} not trusted</strong> : <span class="quiet">nothing to do</span>) },
    { name: "Content", cell: (it) => <code>{it.content.slice(0, 12)}</code> },
  ];
  return (
    <>
      <h1>What runs</h1>
      {asked.error && asked.error.status !== 401 && <Failure error={asked.error} again={asked.again} />}
      {status && status.not_loaded.length > 0 && (
        <Section title="Workspaces that could not be loaded">
          <ul class="problems">
            {status.not_loaded.map((it) => (
              <li key={it.id}>
                <strong>
                  <span aria-hidden="true">✕ </span>
                  {it.id}
                </strong>
                : {it.why}
                <span class="path">{it.root}</span>
              </li>
            ))}
          </ul>
        </Section>
      )}
      {asked.value && asked.value.length === 0 && (
        <Empty>
          The daemon has no workspace. Name one with <code>workspaces</code> in its settings, or register one with <code>hookyard workspaces add</code>.
        </Empty>
      )}
      {asked.value && asked.value.length > 0 && <Table caption="workspaces" columns={columns} rows={asked.value} id={(it) => it.id} />}
    </>
  );
}

export function WhatPage({ place, status, right }: { place: Place; status: Status | undefined; right: Right }) {
  const id = place.path[1];
  return id === undefined ? <List status={status} /> : <WorkspaceView key={id} id={id} right={right} />;
}
