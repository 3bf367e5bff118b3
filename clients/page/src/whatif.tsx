// Which hooks an event would run, and why the others are left out. Nothing is run but rules.
import { useState } from "preact/hooks";
import { ask, type ApiError } from "./api";
import { Empty, Failure, Section } from "./parts";
import { asError, useAsked } from "./state";
import { Expressions } from "./trace";
import type { EventPlan, PlannedHook, Workspace } from "./types";

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

export function WhatIfPage() {
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
  return (
    <>
      <h1>What if</h1>
      <p>Which hooks an event would run, in which order, what rules make of it, and why the other hooks are left out. No hook is run.</p>
      <form class="search wide" onSubmit={submit}>
        <label class="event">
          Event, as JSON <textarea name="event" rows={10} defaultValue={EXAMPLE} spellcheck={false} required />
        </label>
        <label>
          Format <input name="dialect" defaultValue="canonical" autocomplete="off" spellcheck={false} />
        </label>
        <label>
          Workspace{" "}
          <select name="workspace">
            <option value="">that of the event</option>
            {(workspaces.value ?? []).map(({ id }) => (
              <option key={id}>{id}</option>
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
