// The settings that the daemon runs with, and where each came from.
import { useState } from "preact/hooks";
import { count } from "./format";
import { Empty, Failure, Section, Table, type Column } from "./parts";
import { useAsked } from "./state";
import type { Right, Setting } from "./types";

function shown(value: unknown): string {
  if (typeof value === "string") return value;
  return JSON.stringify(value, undefined, typeof value === "object" && value !== null && Object.keys(value).length > 0 ? 2 : undefined);
}

const COLUMNS: Column<Setting>[] = [
  {
    name: "Setting",
    cell: (it) => (
      <>
        <code>{it.key}</code>
        <span class="sub">{it.about}</span>
      </>
    ),
  },
  {
    name: "Value",
    cell: (it) => (
      <>
        <code class="command">{shown(it.value)}</code>
        {it.source !== null && <span class="sub">default: {shown(it.default)}</span>}
      </>
    ),
  },
  {
    name: "From",
    cell: (it) => (it.source === null ? <span class="quiet">the default</span> : <span class="path">{it.line === null ? it.source : `${it.source}:${it.line}`}</span>),
  },
];

function Settings() {
  const asked = useAsked<{ known: boolean; settings: Setting[] }>("/v1/settings", 0);
  const [filter, setFilter] = useState("");
  const [all, setAll] = useState(false);
  const wanted = filter.toLowerCase();
  const found = (asked.value?.settings ?? []).filter((it) => (all || wanted !== "" || it.source !== null) && `${it.key} ${it.about} ${it.source ?? ""}`.toLowerCase().includes(wanted));
  const aside = (
    <div class="buttons">
      <label class="filter">
        Filter <input type="search" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} placeholder="key, text, file" />
      </label>
      <label>
        <input type="checkbox" checked={all} onChange={(event) => setAll(event.currentTarget.checked)} /> with all defaults
      </label>
    </div>
  );
  return (
    <Section title="In force since the start" aside={aside}>
      {asked.error && asked.error.status !== 401 && <Failure error={asked.error} again={asked.again} />}
      {asked.value && !asked.value.known && <Empty>A program has hookyard in it, and has set its settings: what it has set is not known here.</Empty>}
      {asked.value && found.length === 0 && <Empty>{wanted === "" ? "Nothing is set: all settings have their defaults." : `None of the ${count(asked.value.settings.length)} settings has “${filter}” in it.`}</Empty>}
      {found.length > 0 && <Table caption="settings" columns={COLUMNS} rows={found} id={(it) => it.key} most={200} />}
      <p class="quiet">Flags count before variables of the environment, and these before the settings file. A change counts after a restart.</p>
    </Section>
  );
}

export function SettingsPage({ right }: { right: Right }) {
  return (
    <>
      <h1>Settings</h1>
      {right === "control" ? (
        <Settings />
      ) : (
        <Empty>
          Settings name files and servers: they are shown to sessions that may control the daemon. Sign in with <code>hookyard ui --control</code>.
        </Empty>
      )}
    </>
  );
}
