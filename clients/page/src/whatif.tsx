// Which hooks an event would run, and why the others are left out; and what a rule would decide. Nothing is run but rules.
import { useState } from "preact/hooks";
import { ask, getExact, type ApiError } from "./api";
import { prettyExact } from "./exact";
import { moment } from "./format";
import { Empty, Failure, Section } from "./parts";
import { address, asError, useAsked, type Place } from "./state";
import { Expressions } from "./trace";
import { TryRule } from "./tryrule";
import type { Decision, DecisionEvent, EventGap, EventPlan, PlannedHook, Right, Workspace } from "./types";

const EXAMPLE = JSON.stringify({ event: "before_tool_dispatch", session_id: "s", run_id: "r", tool_name: "Bash", tool_input: { command: "git push --force" } }, undefined, 2);

function Planned({ it }: { it: PlannedHook }) {
  return (
    <li>
      <h4>{it.hook}</h4>
      <p class="sub">
        {it.handler}
        {!it.awaited && " · the host does not wait for it"}
      </p>
      {it.refused && (
        <p class="bad">
          <span aria-hidden="true">✕ </span>It would not run: {it.refused}
        </p>
      )}
      <Expressions of={it.hook} all={it.expressions} />
    </li>
  );
}

function Plan({ plan }: { plan: EventPlan }) {
  return (
    <>
      <Section title="What would run">
        <p>
          {plan.event}
          {plan.matched && `, ${plan.matched}`} in the workspace {plan.workspace_id}.
        </p>
        {plan.blocked && <p class="bad">Blocked, whatever hooks say: {plan.blocked}</p>}
        {plan.stages.length === 0 && <Empty>No hook would run: the host would get proceed at once.</Empty>}
        {plan.stages.map((stage, index) => (
          <div key={index}>
            <h3>
              Stage {index + 1}
              {stage.length > 1 && ": these at the same time"}
            </h3>
            <ol class="stages">
              {stage.map((it) => (
                <Planned key={it.hook} it={it} />
              ))}
            </ol>
          </div>
        ))}
      </Section>
      <Section title="What is left out">
        {plan.skipped.length === 0 ? (
          <Empty>Nothing: every hook of the workspace would run.</Empty>
        ) : (
          <dl class="facts">
            {plan.skipped.map((it) => (
              <div key={it.hook}>
                <dt>{it.hook}</dt>
                <dd>{it.why}</dd>
              </div>
            ))}
          </dl>
        )}
      </Section>
    </>
  );
}

const GAPS: Record<EventGap, string> = {
  payload: "Its payload is not kept: it was larger than 1 MiB, or is of before the daemon's start. Put it in, or rules that read it have no value.",
  agent: "It is shown in the canonical format, which does not say which agent it came from: hooks that the agent runs itself are not left to it here.",
  secrets: "Secrets of hooks in it are replaced by ***, so rules may come to something else.",
};

/// The last events, of which one can be picked.
function Picker({ decision }: { decision: string }) {
  const asked = useAsked<{ decisions: Decision[] }>("/v1/decisions?limit=50", 0);
  const kept = asked.value?.decisions ?? [];
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const picked = String(new FormData(event.currentTarget as HTMLFormElement).get("decision"));
    location.hash = address(["what-if"], { decision: picked });
  };
  if (asked.error) return asked.error.status === 401 ? null : <Failure error={asked.error} again={asked.again} />;
  if (kept.length === 0) return null;
  return (
    <form class="search" onSubmit={submit}>
      <label class="event">
        One of the last events{" "}
        <select name="decision" key={kept.length}>
          {kept.map((it) => (
            <option key={it.decision_id} value={it.decision_id} selected={it.decision_id === decision}>
              {moment(it.at)} · {it.verdict} · {it.event}
              {it.tool && ` · ${it.tool}`}
            </option>
          ))}
        </select>
      </label>
      <div class="buttons">
        <button type="submit">Use it</button>
        <a href={address(["why"])}>Find another</a>
      </div>
    </form>
  );
}

function EventForm({ start, workspace }: { start: string; workspace: string }) {
  const workspaces = useAsked<Workspace[]>("/v1/workspaces", 0);
  const [answer, setAnswer] = useState<{ plan?: EventPlan; error?: ApiError }>({});
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget as HTMLFormElement);
    const query = new URLSearchParams({ dialect: String(fields.get("dialect")).trim() || "canonical" });
    const workspace = String(fields.get("workspace"));
    if (workspace) query.set("workspace_id", workspace);
    try {
      setAnswer({ plan: await ask<EventPlan>(`/v1/explain?${query}`, String(fields.get("event"))) });
    } catch (error) {
      setAnswer({ error: asError(error) });
    }
  };
  const ids = (workspaces.value ?? []).map(({ id }) => id);
  return (
    <>
      <form class="search wide" onSubmit={submit}>
        <label class="event">
          Event, as JSON <textarea name="event" rows={10} defaultValue={start} spellcheck={false} required />
        </label>
        <label>
          Format <input name="dialect" defaultValue="canonical" autocomplete="off" spellcheck={false} />
        </label>
        <label>
          Workspace{" "}
          <select name="workspace" key={ids.length}>
            <option value="">that of the event</option>
            {ids.map((id) => (
              <option key={id} selected={id === workspace}>
                {id}
              </option>
            ))}
          </select>
        </label>
        <div class="buttons">
          <button type="submit" class="main">
            Show its plan
          </button>
        </div>
      </form>
      <div aria-live="polite">
        {answer.error && answer.error.status !== 401 && <Failure error={answer.error} />}
        {answer.plan && <Plan plan={answer.plan} />}
      </div>
    </>
  );
}

/// The event of a decision, as far as the daemon keeps it.
function KeptEvent({ decision }: { decision: string }) {
  const asked = useAsked<DecisionEvent>(`/v1/decisions/${encodeURIComponent(decision)}/event`, 0, getExact);
  if (asked.error) return asked.error.status === 401 ? null : <Failure error={asked.error} again={asked.again} />;
  if (!asked.value) return <p>Loading…</p>;
  const { event, gaps, workspace_id } = asked.value;
  return (
    <>
      <p>
        The event of <a href={address(["why", decision])}>the decision {decision}</a>.
      </p>
      {gaps.map((gap) => (
        <p key={gap} class="notice warn">
          {GAPS[gap] ?? gap}
        </p>
      ))}
      <EventForm start={prettyExact(event)} workspace={workspace_id} />
    </>
  );
}

function TryEvent({ decision, right }: { decision: string; right: Right }) {
  const isShown = right === "control";
  return (
    <>
      <p>Which hooks an event would run, in which order, what rules make of it, and why the other hooks are left out. No hook is run.</p>
      {isShown && <Picker decision={decision} />}
      {!isShown && decision !== "" && <NeedsControl>What an event carries may be confidential</NeedsControl>}
      {isShown && decision !== "" ? <KeptEvent key={decision} decision={decision} /> : <EventForm start={EXAMPLE} workspace="" />}
    </>
  );
}

function NeedsControl({ children }: { children: string }) {
  return (
    <Empty>
      {children}: it is for sessions that may control the daemon. Sign in with <code>hookyard ui --control</code>.
    </Empty>
  );
}

export function WhatIfPage({ place, right }: { place: Place; right: Right }) {
  const isRule = place.path[1] === "rule";
  const link = (path: string[], label: string, isCurrent: boolean) => (
    <a href={address(path)} {...(isCurrent ? { "aria-current": "page" as const } : {})}>
      {label}
    </a>
  );
  return (
    <>
      <h1>What if</h1>
      <nav class="choices" aria-label="What if">
        {link(["what-if"], "an event came", !isRule)}
        {link(["what-if", "rule"], "a rule were another", isRule)}
      </nav>
      {!isRule && <TryEvent decision={place.query.get("decision") ?? ""} right={right} />}
      {isRule && (right === "control" ? <TryRule query={place.query} /> : <NeedsControl>A rule can ask all that events carry</NeedsControl>)}
    </>
  );
}
