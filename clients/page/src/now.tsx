// What hooks and runs do now.
import { useState } from "preact/hooks";
import { change, type ApiError } from "./api";
import { EventsChart } from "./chart";
import { ago, count, duration, longDuration, plural, rate } from "./format";
import { Empty, Failure, Section, Table, VerdictCounts, type Column, type Sorting } from "./parts";
import { address, stopped, useAsked, type Live } from "./state";
import type { HookNow, PoolNow, Right, Run, Runs, Status, WorkersNow } from "./types";

const HOOKS: Column<HookNow>[] = [
  {
    name: "Hook",
    cell: (hook) => (
      <>
        <a href={address(["why"], { hook: hook.hook, workspace: hook.workspace_id })}>{hook.hook}</a>
        <span class="sub">
          {hook.workspace_id} · {hook.handler}
        </span>
      </>
    ),
    order: (hook) => hook.hook,
  },
  { name: "Rate", number: true, cell: (hook) => rate(hook.rate), order: (hook) => hook.rate },
  { name: "p50", hint: "Half of the last minute's invocations took at most this", number: true, cell: (hook) => duration(hook.p50_ms), order: (hook) => hook.p50_ms ?? -1 },
  { name: "p99", hint: "99 of 100 invocations of the last minute took at most this", number: true, cell: (hook) => duration(hook.p99_ms), order: (hook) => hook.p99_ms ?? -1 },
  { name: "Wait p99", hint: "99 of 100 invocations waited at most this before they ran", number: true, cell: (hook) => duration(hook.wait_p99_ms), order: (hook) => hook.wait_p99_ms ?? -1 },
  { name: "Verdicts", cell: (hook) => <VerdictCounts verdicts={hook.verdicts} />, order: (hook) => hook.verdicts.block + hook.verdicts.halt },
  { name: "Failures", number: true, cell: (hook) => (hook.failures > 0 ? <strong class="bad">✕ {count(hook.failures)}</strong> : "0"), order: (hook) => hook.failures },
  {
    name: "Last failure",
    cell: (hook) =>
      hook.last_failure ? (
        <>
          <span class="why">{hook.last_failure.why}</span>
          <span class="sub">{ago(hook.last_failure.ago_ms)}</span>
        </>
      ) : (
        <span class="quiet">none</span>
      ),
    order: (hook) => -(hook.last_failure?.ago_ms ?? Number.MAX_SAFE_INTEGER),
  },
];

const POOLS: Column<PoolNow>[] = [
  { name: "Pool", cell: (pool) => pool.pool },
  {
    name: "Places in use",
    cell: (pool) => (
      <>
        <meter min={0} max={pool.places} value={Math.min(pool.used, pool.places)} high={pool.places * 0.9} aria-label={`${pool.pool}: places in use`} /> {count(pool.used)} of {count(pool.places)}
      </>
    ),
  },
  { name: "Waiting", number: true, cell: (pool) => count(pool.waiting) },
  { name: "Queue", hint: "How many may wait", number: true, cell: (pool) => (pool.queue === null ? "no limit" : count(pool.queue)) },
];

const WORKERS: Column<WorkersNow>[] = [
  {
    name: "Hook",
    cell: (it) => (
      <>
        <a href={address(["why"], { hook: it.hook, workspace: it.workspace_id })}>{it.hook}</a>
        <span class="sub">{it.workspace_id}</span>
      </>
    ),
  },
  { name: "Workers", hint: "How many there are, and how many there may be", number: true, cell: (it) => `${count(it.workers)} of ${count(it.most)}` },
  { name: "Busy", hint: "How many have an event", number: true, cell: (it) => count(it.busy) },
  {
    name: "Failed",
    hint: "How many said hello and then failed, or could not be started, since the hook is as it is",
    number: true,
    cell: (it) => (it.failed > 0 ? <strong class="bad">✕ {count(it.failed)}</strong> : "0"),
  },
  { name: "Serving", cell: (it) => (it.why === null ? <span class="quiet">yes</span> : <span class="bad">✕ no: {it.why}</span>) },
];

function waitsFor(run: Run): string {
  const under = run.under_way ?? [];
  const parts = under.slice(0, 3).map((event) => `${event.event} at ${event.hooks.join(", ") || "no hook"} for ${duration(event.since_ms)}`);
  if (under.length > 3) parts.push(`${under.length - 3} more events`);
  if (run.pending) parts.push(`${plural(run.pending, "event")} in line`);
  if (parts.length === 0) return run.phase === "active" ? `nothing, for ${duration(run.idle_ms)}` : "nothing";
  return parts.join("; ");
}

interface Tile {
  name: string;
  value: string;
  tone?: "bad" | "warn";
}

function Tiles({ live }: { live: Live }) {
  const now = live.now;
  const failures = now?.hooks.reduce((sum, hook) => sum + hook.failures, 0) ?? 0;
  const tiles: Tile[] = [
    { name: "Events", value: now ? rate(now.events.rate) : "–" },
    { name: "In flight", value: now ? count(now.events_in_flight) : "–" },
    { name: "Blocked or halted", value: now ? count(stopped(now)) : "–" },
    { name: "Asked", value: now ? count(now.events.verdicts.ask) : "–" },
    { name: "Hook failures", value: now ? count(failures) : "–", ...(failures > 0 ? { tone: "bad" as const } : {}) },
    { name: "Active runs", value: now ? count(now.active_runs) : "–" },
  ];
  return (
    <dl class="tiles">
      {tiles.map((tile) => (
        <div key={tile.name} class={tile.tone ?? ""}>
          <dt>{tile.name}</dt>
          <dd>{tile.value}</dd>
        </div>
      ))}
    </dl>
  );
}

interface Problem {
  what: string;
  where: string;
  why: string;
}

function problems(status: Status): Problem[] {
  return [
    ...status.not_loaded.map((it) => ({ what: "Workspace not loaded", where: it.id, why: it.why })),
    ...status.required_missing.map((it) => ({ what: "Required hook missing", where: `${it.hook} in ${it.workspace}`, why: it.why })),
    ...status.broken.map((it) => ({ what: plural(it.errors, "error"), where: it.id, why: it.first })),
    ...status.not_trusted.map((it) => ({ what: "Hook does not run", where: `${it.hook} in ${it.workspace}`, why: `it is ${it.state}: look at it with \`hookyard trust\`` })),
    ...status.degraded_workers.map((it) => ({ what: "Workers do not serve", where: `${it.hook} in ${it.workspace}`, why: it.why })),
    ...status.token_errors.map((why) => ({ what: "Token", where: "listen", why })),
    ...(status.bundle && (status.bundle.standing !== "current" || status.bundle.error) ? [{ what: "Bundle", where: status.bundle.name ?? "none", why: status.bundle.error ?? status.bundle.standing }] : []),
    ...(status.data?.error ? [{ what: "State of runs", where: "data", why: status.data.error }] : []),
    ...(status.data?.dead_letters ? [{ what: "Dead letters", where: "outbox", why: `${plural(status.data.dead_letters, "event")} could not be delivered: see \`hookyard outbox\`` }] : []),
  ];
}

function Problems({ status }: { status: Status }) {
  const all = problems(status);
  if (all.length === 0) return null;
  return (
    <Section title="Needs attention">
      <ul class="problems">
        {all.slice(0, 20).map((it, index) => (
          <li key={index}>
            <strong>
              <span aria-hidden="true">⚠ </span>
              {it.what}
            </strong>
            : {it.where}
            <span class="sub">{it.why}</span>
          </li>
        ))}
      </ul>
      <p>
        {all.length > 20 && `and ${all.length - 20} more. `}
        <a href={address(["runs-what"])}>What runs</a> has the files.
      </p>
    </Section>
  );
}

function RunsSection({ right }: { right: Right }) {
  const [limit, setLimit] = useState(100);
  const [filter, setFilter] = useState("");
  const [failed, setFailed] = useState<ApiError | undefined>();
  const [sure, setSure] = useState("");
  const asked = useAsked<Runs>(`/v1/runs?limit=${limit}`, limit > 1000 ? 5000 : 2000);
  const runs = asked.value?.runs ?? [];
  const key = (run: Run) => `${run.workspace_id} ${run.run_id}`;
  const found = filter === "" ? runs : runs.filter((run) => `${key(run)} ${run.session_id ?? ""} ${waitsFor(run)}`.includes(filter));
  const cancel = async (run: Run) => {
    if (sure !== key(run)) {
      setSure(key(run));
      return;
    }
    setSure("");
    setFailed(undefined);
    try {
      await change("DELETE", `/v1/runs/${encodeURIComponent(run.run_id)}?workspace_id=${encodeURIComponent(run.workspace_id)}`);
    } catch (error) {
      setFailed(error as ApiError);
    }
    asked.again();
  };
  const columns: Column<Run>[] = [
    {
      name: "Run",
      cell: (run) => (
        <>
          <a href={address(["why"], { run: run.run_id, workspace: run.workspace_id })}>{run.run_id}</a>
          <span class="sub">{run.workspace_id}</span>
        </>
      ),
    },
    { name: "State", cell: (run) => (run.halted ? <strong class="bad">■ halted</strong> : run.phase) },
    { name: "Waits for", cell: (run) => <span class="why">{run.halted?.reason ?? waitsFor(run)}</span> },
    { name: "Events", number: true, cell: (run) => count(run.events) },
    { name: "Age", number: true, cell: (run) => longDuration(run.age_ms) },
  ];
  if (right === "control") {
    columns.push({
      name: "Cancel",
      cell: (run) => (
        <button type="button" class={sure === key(run) ? "danger" : ""} onClick={() => cancel(run)} onBlur={() => setSure("")} aria-label={sure === key(run) ? `Confirm: cancel run ${run.run_id}` : `Cancel run ${run.run_id}`}>
          {sure === key(run) ? "Really cancel" : "Cancel"}
        </button>
      ),
    });
  }
  const left = asked.value?.left_out ?? 0;
  const aside = (
    <label class="filter">
      Filter <input type="search" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} placeholder="run, session, hook" />
    </label>
  );
  return (
    <Section title="Runs" aside={aside}>
      {failed && <Failure error={failed} />}
      {asked.error && asked.error.status !== 401 && <Failure error={asked.error} again={asked.again} />}
      {asked.value && runs.length === 0 && <Empty>No run has work in flight or had it recently. A run is listed from its first event that concerns a hook.</Empty>}
      {runs.length > 0 && found.length === 0 && <Empty>None of the {count(runs.length)} listed runs has “{filter}” in it.</Empty>}
      {found.length > 0 && <Table caption="runs" columns={columns} rows={found} id={key} />}
      {left > 0 && (
        <p>
          {plural(left, "more run")}, newer than these.{" "}
          <button type="button" onClick={() => setLimit(10_000)}>
            List up to 10,000
          </button>
        </p>
      )}
    </Section>
  );
}

export function NowPage({ live, status, right }: { live: Live; status: Status | undefined; right: Right }) {
  const [sorting, setSorting] = useState<Sorting>({ column: 1, down: true });
  const now = live.now;
  const pools = now?.pools.filter((pool) => pool.used > 0 || pool.waiting > 0 || now.hooks.some((hook) => hook.handler === pool.pool)) ?? [];
  return (
    <>
      <h1>Now</h1>
      <Tiles live={live} />
      <EventsChart history={live.history} />
      {now && (
        <p class="quiet">
          Counted for {longDuration(now.watched_ms)}, while somebody looks; rates and times cover the last minute.
          {now.dropped > 0 && ` ${plural(now.dropped, "notice")} came too fast and are not counted.`}
        </p>
      )}
      {status && <Problems status={status} />}
      <Section title="Hooks">
        {now && now.hooks.length === 0 ? (
          <Empty>
            No hook ran since somebody looks. Send an event, such as with <code>hookyard fire</code>, or connect an agent with <code>hookyard connect</code>.
          </Empty>
        ) : (
          <Table caption="hooks that ran" columns={HOOKS} rows={now?.hooks ?? []} id={(hook) => `${hook.workspace_id} ${hook.hook}`} sorting={sorting} onSort={setSorting} most={50} />
        )}
      </Section>
      <RunsSection right={right} />
      {now !== undefined && now.workers.length > 0 && (
        <Section title="Workers">
          <Table caption="workers of hooks" columns={WORKERS} rows={now.workers} id={(it) => `${it.workspace_id} ${it.hook}`} most={50} />
        </Section>
      )}
      <div class="columns">
        <Section title="Pools">
          {pools.length === 0 ? <Empty>No pool is in use. Each kind of handler has one; rules need none.</Empty> : <Table caption="pools of handlers" columns={POOLS} rows={pools} id={(pool) => pool.pool} />}
        </Section>
        <Section title="Agents">
          {status && status.agents.length === 0 && (
            <Empty>
              No agent has sent an event since the start. Connect one with <code>hookyard connect</code>.
            </Empty>
          )}
          {status && status.agents.length > 0 && (
            <Table
              caption="agents"
              columns={[
                { name: "Agent", cell: (agent) => agent.agent },
                { name: "Events", number: true, cell: (agent) => count(agent.events) },
                {
                  name: "Last event",
                  cell: (agent) => (
                    <>
                      {agent.last_event}
                      <span class="sub">{ago(Math.max(0, Date.now() - agent.last_at * 1000))}</span>
                    </>
                  ),
                },
              ]}
              rows={status.agents}
              id={(agent) => agent.agent}
            />
          )}
        </Section>
      </div>
    </>
  );
}
