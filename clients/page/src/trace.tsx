// What a hook of a decision was told, and which expressions of its rules decided, from which values.
import { prettyExact } from "./exact";
import type { HookTrace, TraceGap, TracedExpression } from "./types";

const GAPS: Record<TraceGap, string> = {
  hook_changed: "The hook has changed since, or is gone: what it was told cannot be shown any more.",
  not_run: "It did not run, so it was told nothing.",
  input_not_kept: "Hooks before it had changed the payload, and what they made of it for this hook is not kept.",
  payload_not_kept: "The payload of this event is not kept: it is larger than 1 MiB, or of before the daemon's start.",
  too_large: "It is too large to be shown here.",
  differs: "Evaluated now, the rules come to something else: they count what a run does, or files or links that they ask about have changed.",
};

function Expression({ it }: { it: TracedExpression }) {
  return (
    <li class={it.decides ? "decides" : ""}>
      <p>
        {it.rule && <strong>{it.rule} </strong>}
        {it.key} is <code>{it.result}</code>
        {it.decides && <strong> · decided</strong>}
      </p>
      <code class="expression">{it.expression}</code>
      {it.values.length > 0 && (
        <dl class="values">
          {it.values.map((value, index) => (
            <div key={index}>
              <dt>{value.of}</dt>
              <dd>{value.value}</dd>
            </div>
          ))}
        </dl>
      )}
    </li>
  );
}

export function Expressions({ of, all }: { of: string; all: TracedExpression[] }) {
  if (all.length === 0) return null;
  return (
    <ol class="expressions" aria-label={`${of}: expressions`}>
      {all.map((it, index) => (
        <Expression key={index} it={it} />
      ))}
    </ol>
  );
}

export function HookTraceView({ trace }: { trace: HookTrace }) {
  return (
    <>
      {trace.changed_before.length > 0 && <p class="sub">Hooks before it had changed {trace.changed_before.join(", ")}.</p>}
      {trace.gap && <p class="sub">{GAPS[trace.gap] ?? trace.gap}</p>}
      <Expressions of={trace.hook} all={trace.expressions} />
      {trace.told !== null && (
        <details>
          <summary>What {trace.hook} was told</summary>
          <pre tabIndex={0} aria-label={`${trace.hook}: input`}>
            {prettyExact(trace.told)}
          </pre>
        </details>
      )}
    </>
  );
}
