// Why events were answered as they were: the last decisions, and one of them as a timeline.
import { useState } from "preact/hooks";
import { getExact } from "./api";
import { changesByHook, difference } from "./diff";
import { prettyExact } from "./exact";
import { ago, count, duration, moment, plural } from "./format";
import { Copy, Difference, Empty, Failure, Section, Table, VerdictBadge, type Column } from "./parts";
import { address, useAsked, type Place } from "./state";
import { HookTraceView } from "./trace";
import { VERDICTS, type Decision, type DecisionDetails, type HookTrace, type Payload, type Right, type Stage } from "./types";

const SPANS: [string, string][] = [
  ["", "all that is kept"],
  ["5", "last 5 minutes"],
  ["60", "last hour"],
  ["1440", "last day"],
];

const COLUMNS: Column<Decision>[] = [
  {
    name: "Time",
    cell: (it) => (
      <>
        <a href={address(["why", it.decision_id])}>{moment(it.at)}</a>
        <span class="sub">{ago(Math.max(0, Date.now() - it.at))}</span>
      </>
    ),
  },
  { name: "Verdict", cell: (it) => <VerdictBadge verdict={it.verdict} /> },
  {
    name: "Event",
    cell: (it) => (
      <>
        {it.event}
        {it.tool && <span class="sub">{it.tool}</span>}
      </>
    ),
  },
  {
    name: "Why",
    cell: (it) => (
      <>
        {it.reason ? <span class="why">{it.reason}</span> : <span class="quiet">no reason given</span>}
        {it.by && <span class="sub">by {it.by}</span>}
        {it.failed > 0 && <span class="sub bad">✕ {plural(it.failed, "hook")} failed</span>}
        {it.changed && <span class="sub">payload changed</span>}
      </>
    ),
  },
  {
    name: "Run",
    cell: (it) => (
      <>
        {it.run_id}
        <span class="sub">{it.workspace_id}</span>
      </>
    ),
  },
  { name: "Took", number: true, cell: (it) => duration(it.duration_ms) },
];

/// The names of the search's fields, in the address of the page and in the API.
const FIELDS: [string, string][] = [
  ["workspace", "workspace_id"],
  ["run", "run_id"],
  ["tool", "tool"],
  ["hook", "hook"],
  ["verdict", "verdict"],
];

function query(search: URLSearchParams): string {
  const asked = new URLSearchParams({ limit: "500" });
  for (const [field, parameter] of FIELDS) {
    const value = search.get(field);
    if (value) asked.set(parameter, value);
  }
  if (search.get("failed")) asked.set("failed", "true");
  const minutes = Number(search.get("minutes"));
  // By the minute, so that the address does not change with each drawing.
  if (minutes > 0) asked.set("since", String(Math.floor(Date.now() / 60_000) * 60_000 - minutes * 60_000));
  return `/v1/decisions?${asked}`;
}

function Search({ search }: { search: URLSearchParams }) {
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget as HTMLFormElement);
    const wanted: Record<string, string> = {};
    for (const [name, value] of fields) wanted[name] = String(value).trim();
    location.hash = address(["why"], wanted);
  };
  const text = (name: string, label: string, hint: string) => (
    <label>
      {label} <input name={name} defaultValue={search.get(name) ?? ""} placeholder={hint} autocomplete="off" spellcheck={false} />
    </label>
  );
  return (
    <form class="search" role="search" onSubmit={submit} key={search.toString()}>
      {text("run", "Run or session", "its whole id")}
      {text("tool", "Tool", "such as Bash")}
      {text("hook", "Hook", "its name")}
      {text("workspace", "Workspace", "its id")}
      <label>
        Verdict{" "}
        <select name="verdict" defaultValue={search.get("verdict") ?? ""}>
          <option value="">any</option>
          {VERDICTS.map((verdict) => (
            <option key={verdict}>{verdict}</option>
          ))}
        </select>
      </label>
      <label>
        Time{" "}
        <select name="minutes" defaultValue={search.get("minutes") ?? ""}>
          {SPANS.map(([value, name]) => (
            <option key={value} value={value}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <label class="check">
        <input type="checkbox" name="failed" value="1" defaultChecked={search.get("failed") !== null} /> only with a failed hook
      </label>
      <div class="buttons">
        <button type="submit" class="main">
          Search
        </button>
        <a href={address(["why"])}>Clear</a>
      </div>
    </form>
  );
}

function List({ search }: { search: URLSearchParams }) {
  const asked = useAsked<{ decisions: Decision[]; left_out: number }>(query(search), 5000);
  const found = asked.value?.decisions;
  return (
    <>
      <h1>Why</h1>
      <Search search={search} />
      {asked.error && asked.error.status !== 401 && <Failure error={asked.error} again={asked.again} />}
      {found && found.length === 0 && (
        <Empty>
          {search.size > 0
            ? "No decision that is kept fits this search. Ids and names have to be whole."
            : "No hook has judged an event since the daemon started. Send one, such as with hookyard fire, or connect an agent with hookyard connect."}{" "}
          The daemon keeps the last 2,000 that asked, blocked, halted or had a failed hook, and the last 2,000 others; the audit has all.
        </Empty>
      )}
      {found && found.length > 0 && <Table caption="decisions" columns={COLUMNS} rows={found} id={(it) => it.decision_id} most={50} />}
      {asked.value !== undefined && asked.value.left_out > 0 && <p class="quiet">{plural(asked.value.left_out, "older decision")} fit too: narrow the search.</p>}
    </>
  );
}

function Bars({ stage, whole }: { stage: Stage; whole: number }) {
  if (stage.started_ms === undefined || whole <= 0) return <span class="quiet">did not run</span>;
  const [from, wait, ran] = [stage.started_ms - stage.queued_ms, stage.queued_ms, stage.duration_ms].map((ms) => (100 * Math.max(0, ms)) / whole) as [number, number, number];
  const said = `waited ${duration(stage.queued_ms)}, ran ${duration(stage.duration_ms)}, from ${duration(stage.started_ms)}`;
  return (
    <svg class="bars" role="img" aria-label={said} viewBox="0 0 100 10" preserveAspectRatio="none">
      <rect class="ground" x="0" y="0" width="100" height="10" />
      <rect class="wait" x={from} y="3" width={wait} height="4" />
      <rect class={`ran ${stage.verdict}`} x={from + wait} y="1" width={Math.max(0.6, ran)} height="8" />
    </svg>
  );
}

function Stages({ details, traces }: { details: DecisionDetails; traces: HookTrace[] | undefined }) {
  const ends = details.reports.map((stage) => (stage.started_ms ?? 0) + stage.duration_ms);
  const whole = Math.max(details.duration_ms, ...ends);
  return (
    <ol class="stages">
      {details.reports.map((stage, index) => (
        <li key={index} class={stage.hook === details.by ? "decided" : ""}>
          <div class="stage-head">
            <h3>{stage.hook}</h3>
            <VerdictBadge verdict={stage.verdict} />
            {stage.ended !== "completed" && <strong class="bad">✕ {stage.ended.replaceAll("_", " ")}</strong>}
            {stage.hook === details.by && <strong>decided</strong>}
          </div>
          <Bars stage={stage} whole={whole} />
          <p class="sub">
            {stage.handler} · began at {duration(stage.started_ms ?? null)} · waited {duration(stage.queued_ms)} · ran {duration(stage.duration_ms)}
            {stage.patched.length > 0 && ` · changed ${stage.patched.join(", ")}`}
            {stage.trust && ` · ${stage.trust}`}
            {stage.content && ` · content ${stage.content.slice(0, 12)}`}
            {stage.tokens && ` · ${count(stage.tokens.input)} tokens in, ${count(stage.tokens.output)} out`}
          </p>
          {stage.error && <pre class="why" tabIndex={0}>{stage.error}</pre>}
          {stage.policy && <p class="sub">{stage.policy === "fail_open" ? "The failure was let pass, as the hook's policy says." : "The failure counted as the verdict above, as the hook's policy says."}</p>}
          {stage.warnings.map((warning, at) => (
            <p class="sub" key={at}>
              ⚠ {warning}
            </p>
          ))}
          {stage.notes.map((note, at) => (
            <pre key={at} class="why" tabIndex={0} aria-label={`${stage.hook}: note`}>
              {note}
            </pre>
          ))}
          {traces?.[index] && <HookTraceView trace={traces[index]} />}
        </li>
      ))}
    </ol>
  );
}

function HooksSection({ details, right }: { details: DecisionDetails; right: Right }) {
  const [shown, setShown] = useState(false);
  const asked = useAsked<{ hooks: HookTrace[] }>(shown ? `/v1/decisions/${encodeURIComponent(details.decision_id)}/trace` : undefined, 0, getExact);
  const aside = right === "control" && details.reports.length > 0 && !shown && (
    <button type="button" onClick={() => setShown(true)}>
      Show what each was told, and why rules decided
    </button>
  );
  return (
    <Section title="Hooks in order" aside={aside}>
      {asked.error && <Failure error={asked.error} again={asked.again} />}
      {details.reports.length > 0 ? <Stages details={details} traces={asked.value?.hooks} /> : <Empty>No hook ran: the run is halted or has ended.</Empty>}
    </Section>
  );
}

function Changes({ payload }: { payload: Payload }) {
  const targets = [...new Set([...Object.keys(payload.sent), ...Object.keys(payload.changed)])];
  if (targets.length === 0) return <Empty>The event has no payload, or one of more than 1 MiB or of before the daemon's start, which is not kept.</Empty>;
  return (
    <>
      {targets.map((target) => {
        const sent = prettyExact(payload.sent[target]);
        const isChanged = target in payload.changed;
        const lines = isChanged ? difference(sent, prettyExact(payload.changed[target])) : undefined;
        return (
          <div key={target}>
            <h3>
              {target} {isChanged ? "as hooks have changed it" : "as the host sent it"}
            </h3>
            {lines ? (
              <Difference label={`${target}: changes`} lines={lines} />
            ) : (
              <pre tabIndex={0} aria-label={target}>
                {isChanged ? prettyExact(payload.changed[target]) : sent}
              </pre>
            )}
          </div>
        );
      })}
    </>
  );
}

function ChangesByHook({ payload, details }: { payload: Payload; details: DecisionDetails }) {
  const changes = changesByHook(details, payload);
  // Of one change, the whole says all.
  if (changes.length < 2 && changes.every(({ target }) => target in payload.changed)) return null;
  return (
    <>
      {changes.map(({ hook, target, made, lines, isStopped }, index) => (
        <div key={index}>
          <h3>
            {hook} changed {target}
            {isStopped && ", which the host does not get: the event was stopped"}
          </h3>
          {lines ? (
            <Difference label={`${hook}: ${target}: changes`} lines={lines} />
          ) : made !== undefined ? (
            <pre tabIndex={0} aria-label={`${hook}: ${target}`}>
              {made}
            </pre>
          ) : (
            <p class="quiet">What it made of it is too large to be kept.</p>
          )}
        </div>
      ))}
    </>
  );
}

function PayloadSection({ details, right }: { details: DecisionDetails; right: Right }) {
  const [shown, setShown] = useState(false);
  const asked = useAsked<Payload>(shown ? `/v1/decisions/${encodeURIComponent(details.decision_id)}/payload` : undefined, 0, getExact);
  return (
    <Section title="Payload">
      {right !== "control" && (
        <Empty>
          What an event carries may be confidential: it is shown to sessions that may control the daemon. Sign in with <code>hookyard ui --control</code>.
        </Empty>
      )}
      {right === "control" && !shown && (
        <button type="button" onClick={() => setShown(true)}>
          Show the payload and what hooks changed in it
        </button>
      )}
      {asked.error && <Failure error={asked.error} again={asked.again} />}
      {asked.value && <Changes payload={asked.value} />}
      {asked.value && <ChangesByHook payload={asked.value} details={details} />}
    </Section>
  );
}

function Details({ id, right }: { id: string; right: Right }) {
  const asked = useAsked<DecisionDetails>(`/v1/decisions/${encodeURIComponent(id)}`, 0);
  const it = asked.value;
  const back = (
    <p>
      <a href={address(["why"])}>← All decisions</a>
    </p>
  );
  if (!it) {
    return (
      <>
        {back}
        <h1>Decision {id}</h1>
        {asked.error && asked.error.status !== 401 ? <Failure error={asked.error} again={asked.again} /> : <p>Loading…</p>}
      </>
    );
  }
  // Notes of hooks stand with them.
  const others = it.notes.filter((note) => !it.reports.some((stage) => stage.notes.includes(note)));
  const facts: [string, string | null][] = [
    ["Time", moment(it.at)],
    ["Workspace", it.workspace_id],
    ["Run", it.run_id],
    ["Session", it.session_id],
    ["Tool", it.tool],
    ["Format", it.dialect],
    ["Came through", it.client],
    ["Event id", it.event_id],
    ["Tool call", it.tool_call_id],
    ["Hooks", `version ${it.snapshot_version}${it.snapshot ? `, content ${it.snapshot.slice(0, 12)}` : ""}`],
    ["Took", duration(it.duration_ms)],
    ...Object.entries(it.attributes),
  ];
  return (
    <>
      {back}
      <h1>
        <VerdictBadge verdict={it.verdict} /> {it.event}
      </h1>
      {it.reason && <blockquote class="why" tabIndex={0}>{it.reason}</blockquote>}
      <p>
        {it.by ? `Decided by the hook ${it.by}.` : it.changed || it.reports.some((stage) => stage.patched.length > 0) ? "No hook stopped it; hooks changed its payload." : "No hook decided: none had an opinion."} <Copy label="Copy link" text={location.href} />
        <span class="sub">Decision {it.decision_id}. Whoever may sign in here can open the link while the decision is kept.{it.from_audit && " It is of before the daemon's start, and shown as the audit has it."}</span>
      </p>
      {right === "control" && (
        <p>
          <a href={address(["what-if"], { decision: it.decision_id })}>Try this event</a>, to see its plan by the hooks of now.
        </p>
      )}
      <HooksSection details={it} right={right} />
      {others.length > 0 && (
        <Section title="Notes">
          {others.map((note, index) => (
            <pre key={index} class="why" tabIndex={0}>
              {note}
            </pre>
          ))}
        </Section>
      )}
      <PayloadSection details={it} right={right} />
      <Section title="Event">
        <dl class="facts">
          {facts
            .filter(([, value]) => value)
            .map(([name, value]) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{value}</dd>
              </div>
            ))}
        </dl>
      </Section>
    </>
  );
}

export function WhyPage({ place, right }: { place: Place; right: Right }) {
  const id = place.path[1];
  return id === undefined ? <List search={place.query} /> : <Details key={id} id={id} right={right} />;
}
