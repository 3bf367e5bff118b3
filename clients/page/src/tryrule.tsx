// What a rule would have decided about the last events, before it is saved. Nothing is saved here, and nothing runs but rules.
import { useRef, useState } from "preact/hooks";
import { change, type ApiError } from "./api";
import { count, moment, plural } from "./format";
import { Empty, Failure, Section, Table, VerdictBadge, type Column } from "./parts";
import { address, asError, useAsked } from "./state";
import { VERDICTS, type ChangedEvent, type Hook, type PlacedDiagnostic, type RuleTrial, type TrialGap, type TriedRule, type TriedVerdict, type Verdict, type Workspace } from "./types";

const NEW = `name: no-force-push
events: [before_tool_dispatch]
matcher: ^Bash$
on_error: deny
handler:
  type: rule
  deny: tool.input.command.contains("--force")
  reason: '"push without force"'
`;

const GAPS: Record<TrialGap, string> = {
  payload_not_kept: "their payload is not kept: it was larger than 1 MiB, or is of before the daemon's start",
  input_not_kept: "programs, servers or models had changed their payload, and what the rule would have been given is not kept",
  not_asked: "no hook was asked: their run was halted, or a required hook was missing",
};

function Chooser({ workspace, hook }: { workspace: string; hook: string }) {
  const workspaces = useAsked<Workspace[]>("/v1/workspaces", 0);
  const [chosen, setChosen] = useState(workspace);
  const current = chosen || workspaces.value?.[0]?.id || "";
  const hooks = useAsked<Hook[]>(current === "" ? undefined : `/v1/hooks?${new URLSearchParams({ workspace_id: current })}`, 0);
  const rules = (hooks.value ?? []).filter((it) => it.handler === "rule");
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget as HTMLFormElement);
    location.hash = address(["what-if", "rule"], { workspace: current, hook: String(fields.get("hook")) });
  };
  return (
    <form class="search" onSubmit={submit}>
      <label>
        Workspace{" "}
        <select name="workspace" value={current} onChange={(event) => setChosen(event.currentTarget.value)}>
          {(workspaces.value ?? []).map(({ id }) => (
            <option key={id}>{id}</option>
          ))}
        </select>
      </label>
      <label>
        Rule{" "}
        <select name="hook" key={`${current} ${rules.length}`}>
          <option value="">a new rule</option>
          {rules.map((it) => (
            <option key={it.name} selected={it.name === hook}>
              {it.name}
            </option>
          ))}
        </select>
      </label>
      <div class="buttons">
        <button type="submit" disabled={current === ""}>
          Edit it here
        </button>
      </div>
    </form>
  );
}

/// A diagnostic as `hookyard check` draws it.
function drawn(it: PlacedDiagnostic, text: string): string {
  const head = `${it.severity}[${it.code}]: ${it.message}`;
  const help = it.help === null ? [] : [`  help: ${it.help}`];
  const line = text.split("\n")[it.line - 1];
  if (it.line === 0 || line === undefined) return [head, ...help].join("\n");
  const number = String(it.line);
  const mark = " ".repeat(Math.max(0, it.column - 1)) + "^".repeat(Math.max(1, it.length));
  return [head, `  ${number} | ${line}`, `  ${" ".repeat(number.length)} | ${mark}`, ...help].join("\n");
}

/// Where a line and a column, in characters, are in a text.
function place(text: string, it: PlacedDiagnostic): [number, number] {
  const lines = text.split("\n");
  const before = lines.slice(0, it.line - 1).reduce((sum, line) => sum + line.length + 1, 0);
  const characters = [...(lines[it.line - 1] ?? "")];
  const from = before + characters.slice(0, it.column - 1).join("").length;
  return [from, from + characters.slice(it.column - 1, it.column - 1 + it.length).join("").length];
}

function Diagnostics({ all, text, go }: { all: PlacedDiagnostic[]; text: string; go: (range: [number, number]) => void }) {
  if (all.length === 0) return null;
  return (
    <Section title="What is wrong with it">
      <ul class="problems">
        {all.map((it, index) => (
          <li key={index} class={it.severity}>
            <pre tabIndex={0} aria-label={`${it.severity} in line ${it.line}`}>
              {drawn(it, text)}
            </pre>
            {it.line > 0 && (
              <button type="button" onClick={() => go(place(text, it))}>
                Go to line {it.line}
              </button>
            )}
          </li>
        ))}
      </ul>
    </Section>
  );
}

interface VerdictRow {
  verdict: Verdict;
  now: number;
  tried: number;
}

const VERDICT_COLUMNS: Column<VerdictRow>[] = [
  { name: "Verdict", cell: (it) => <VerdictBadge verdict={it.verdict} /> },
  { name: "Now", number: true, cell: (it) => count(it.now) },
  { name: "With this rule", number: true, cell: (it) => count(it.tried) },
];

function verdictRows(trial: RuleTrial): VerdictRow[] {
  const sum = (side: "now" | "tried", verdict: Verdict) => trial.verdicts.filter((it) => it[side] === verdict).reduce((sum, it) => sum + it.events, 0);
  const rows = VERDICTS.map((verdict) => ({ verdict, now: sum("now", verdict), tried: sum("tried", verdict) }));
  return rows.filter((it) => it.now > 0 || it.tried > 0);
}

function Tried({ it }: { it: TriedVerdict }) {
  return (
    <>
      <VerdictBadge verdict={it.verdict} />
      {it.by && <span class="sub">by {it.by}</span>}
      {it.reason && <span class="why sub">{it.reason}</span>}
    </>
  );
}

const CHANGE_COLUMNS: Column<ChangedEvent>[] = [
  { name: "Time", cell: (it) => <a href={address(["why", it.decision_id])}>{moment(it.at)}</a> },
  {
    name: "Event",
    cell: (it) => (
      <>
        {it.event}
        {it.tool && <span class="sub">{it.tool}</span>}
        <span class="sub">{it.run_id}</span>
      </>
    ),
  },
  { name: "Now", cell: (it) => <Tried it={it.now} /> },
  { name: "With this rule", cell: (it) => <Tried it={it.tried} /> },
  {
    name: "Remarks",
    cell: (it) => (
      <>
        {it.payload && <span class="sub">Its payload would be another one.</span>}
        {it.verdict !== it.now.verdict && <span class="sub">Then it was {it.verdict}.</span>}
        {it.unasked.length > 0 && <span class="sub">Not asked then, and taken to say nothing: {it.unasked.join(", ")}.</span>}
      </>
    ),
  },
];

function Trial({ trial, isNew }: { trial: RuleTrial; isNew: boolean }) {
  const rows = verdictRows(trial);
  const gaps = Object.entries(trial.left_out) as [TrialGap, number][];
  return (
    <>
      <Section title="What it would have decided">
        <p>
          Of the last {plural(trial.events, "event")} that the daemon keeps of this workspace, the rule applies to {count(trial.applies)}
          {!isNew && trial.applied !== trial.applies && `; as it is in force, to ${count(trial.applied)}`}.
          {trial.not_reached > 0 && ` There was no time for the newest ${count(trial.not_reached)}.`}
        </p>
        {trial.failed > 0 && (
          <p class="bad">
            <span aria-hidden="true">✕ </span>It has no value for {plural(trial.failed, "event")}: {trial.failure}
          </p>
        )}
        {gaps.map(([gap, events]) => (
          <p key={gap} class="sub">
            {plural(events, "event")} left out: {GAPS[gap] ?? gap}.
          </p>
        ))}
        {trial.otherwise > 0 && <p class="sub">{plural(trial.otherwise, "event")} had another verdict then than the hooks of now come to: hooks have changed since, or ask what is no longer so.</p>}
        {trial.counts && <p class="sub">The rule counts what a run does; counts begin with the first event of the run that is kept.</p>}
        {rows.length > 0 ? <Table caption="verdicts" columns={VERDICT_COLUMNS} rows={rows} id={(it) => it.verdict} /> : <Empty>None of these events shows what it does. The daemon keeps events for which a hook was asked.</Empty>}
      </Section>
      <Section title="Events that change">
        {trial.changes.length > 0 ? <Table caption="events that change" columns={CHANGE_COLUMNS} rows={trial.changes} id={(it) => it.decision_id} most={25} /> : <Empty>None: all of these events end as they do now.</Empty>}
        {trial.changes_left_out > 0 && <p class="quiet">{plural(trial.changes_left_out, "older event")} change too.</p>}
      </Section>
    </>
  );
}

function Editor({ workspace, hook, start }: { workspace: string; hook: string; start: string }) {
  const area = useRef<HTMLTextAreaElement>(null);
  const [answer, setAnswer] = useState<{ tried?: TriedRule; text?: string; error?: ApiError; busy?: boolean }>({});
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const text = area.current?.value ?? "";
    setAnswer((former) => ({ ...former, busy: true }));
    try {
      const body = hook === "" ? { text } : { text, hook };
      setAnswer({ tried: await change<TriedRule>("POST", `/v1/workspaces/${encodeURIComponent(workspace)}/rule-trial`, body), text });
    } catch (error) {
      setAnswer({ error: asError(error) });
    }
  };
  const go = ([from, to]: [number, number]) => {
    area.current?.focus();
    area.current?.setSelectionRange(from, to);
  };
  return (
    <>
      <form class="search wide" onSubmit={submit}>
        <label class="event">
          {hook === "" ? `A new rule of ${workspace}` : `${hook}, in ${workspace}`}, as its hook file <textarea ref={area} name="text" rows={16} defaultValue={start} spellcheck={false} required />
        </label>
        <div class="buttons">
          <button type="submit" class="main" disabled={answer.busy === true}>
            Try it
          </button>
          <span role="status">{answer.busy ? "Trying…" : answer.tried?.trial ? `${plural(answer.tried.trial.changes.length + answer.tried.trial.changes_left_out, "event")} would change` : ""}</span>
        </div>
      </form>
      {answer.error && answer.error.status !== 401 && <Failure error={answer.error} />}
      {answer.tried && <Diagnostics all={answer.tried.diagnostics} text={answer.text ?? ""} go={go} />}
      {answer.tried?.trial && <Trial trial={answer.tried.trial} isNew={hook === ""} />}
    </>
  );
}

function Loaded({ workspace, hook }: { workspace: string; hook: string }) {
  const asked = useAsked<{ text: string }>(`/v1/workspaces/${encodeURIComponent(workspace)}/rule-trial?${new URLSearchParams({ hook })}`, 0);
  if (asked.error) return asked.error.status === 401 ? null : <Failure error={asked.error} again={asked.again} />;
  if (!asked.value) return <p>Loading…</p>;
  return <Editor workspace={workspace} hook={hook} start={asked.value.text} />;
}

export function TryRule({ query }: { query: URLSearchParams }) {
  const [workspace, hook] = [query.get("workspace") ?? "", query.get("hook") ?? ""];
  const key = `${workspace}\n${hook}`;
  return (
    <>
      <p>
        Edit a rule, and see what it would have decided about the last 1,000 events that the daemon keeps of its workspace, before you save it. Nothing is saved here, and only rules are evaluated: other hooks say what they said then.
      </p>
      <Chooser key={key} workspace={workspace} hook={hook} />
      {workspace !== "" && (hook === "" ? <Editor key={key} workspace={workspace} hook="" start={NEW} /> : <Loaded key={key} workspace={workspace} hook={hook} />)}
    </>
  );
}
