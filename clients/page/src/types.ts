// What the daemon's API answers; `GET /v1/openapi.json` describes it.

export type Verdict = "proceed" | "allow" | "ask" | "block" | "halt";
export const VERDICTS: Verdict[] = ["proceed", "allow", "ask", "block", "halt"];
export type Verdicts = Record<Verdict, number>;
export type Right = "read" | "control";

export interface Session {
  right: Right;
  lifetime_ms: number;
  token?: string;
}

export interface HookNow {
  workspace_id: string;
  hook: string;
  handler: string;
  invocations: number;
  rate: number;
  p50_ms: number | null;
  p99_ms: number | null;
  wait_p99_ms: number | null;
  verdicts: Verdicts;
  failures: number;
  last_failure: { ago_ms: number; why: string } | null;
}

export interface PoolNow {
  pool: string;
  used: number;
  places: number;
  waiting: number;
  queue: number | null;
}

export interface WorkersNow {
  workspace_id: string;
  hook: string;
  workers: number;
  busy: number;
  most: number;
  failed: number;
  why: string | null;
}

export interface Now {
  watched_ms: number;
  dropped: number;
  events: { total: number; rate: number; verdicts: Verdicts };
  hooks: HookNow[];
  pools: PoolNow[];
  workers: WorkersNow[];
  events_in_flight: number;
  runs: number;
  active_runs: number;
}

export interface Status {
  version: string;
  node: string;
  phase: string;
  uptime_ms: number;
  started_at: number;
  workspaces: number;
  hooks: number;
  watch: string;
  agents: { agent: string; events: number; last_at: number; last_event: string }[];
  broken: { id: string; errors: number; first: string }[];
  required_missing: { workspace: string; hook: string; why: string }[];
  powerless_switches: { id: string; switches: number; first: string }[];
  not_trusted: { workspace: string; hook: string; state: string }[];
  degraded_workers: { workspace: string; hook: string; reason: string; why: string }[];
  not_loaded: { id: string; root: string; why: string }[];
  token_errors: string[];
  bundle: { standing: string; name: string | null; version: number | null; error: string | null } | null;
  data: { error: string | null; undelivered: number; dead_letters: number } | null;
  audit: { to?: string } | null;
}

export interface Run {
  workspace_id: string;
  run_id: string;
  session_id?: string;
  phase: "active" | "passivated";
  halted?: { by?: string; reason?: string };
  age_ms: number;
  idle_ms: number;
  events: number;
  under_way?: { event: string; since_ms: number; hooks: string[] }[];
  pending?: number;
}

export interface Runs {
  runs: Run[];
  left_out: number;
}

export interface Decision {
  decision_id: string;
  at: number;
  workspace_id: string;
  session_id: string;
  run_id: string;
  event: string;
  tool: string | null;
  verdict: Verdict;
  by: string | null;
  reason: string | null;
  hooks: number;
  failed: number;
  changed: boolean;
  /// Of a daemon before this one.
  from_audit: boolean;
  duration_ms: number;
}

export interface Stage {
  hook: string;
  handler: string;
  ended: string;
  verdict: Verdict;
  started_ms?: number;
  queued_ms: number;
  duration_ms: number;
  policy: string | null;
  error: string | null;
  patched: string[];
  trust: string | null;
  content: string | null;
  warnings: string[];
  notes: string[];
  tokens: { input: number; output: number } | null;
}

export interface DecisionDetails extends Decision {
  dialect: string;
  event_id: string | null;
  tool_call_id: string | null;
  attributes: Record<string, string>;
  client: string | null;
  snapshot_version: number;
  snapshot: string | null;
  patched: string[];
  notes: string[];
  reports: Stage[];
}

export interface TracedExpression {
  rule?: string;
  key: string;
  expression: string;
  result: string;
  decides: boolean;
  values: { of: string; value: string }[];
}

export type TraceGap = "hook_changed" | "not_run" | "input_not_kept" | "payload_not_kept" | "too_large" | "differs";

export interface HookTrace {
  hook: string;
  changed_before: string[];
  told: unknown;
  expressions: TracedExpression[];
  gap: TraceGap | null;
}

export interface PlannedHook {
  hook: string;
  handler: string;
  awaited: boolean;
  refused: string | null;
  expressions: TracedExpression[];
}

export interface EventPlan {
  workspace_id: string;
  event: string;
  matched: string | null;
  blocked: string | null;
  stages: PlannedHook[][];
  skipped: { hook: string; why: string }[];
}

export type EventGap = "payload" | "agent" | "secrets";

export interface DecisionEvent {
  workspace_id: string;
  event: Record<string, unknown>;
  gaps: EventGap[];
}

export interface PlacedDiagnostic {
  severity: string;
  code: string;
  message: string;
  help: string | null;
  line: number;
  column: number;
  length: number;
}

export interface TriedVerdict {
  verdict: Verdict;
  by: string | null;
  reason: string | null;
}

/// As it was decided then, as it would be now, and as it would be with the rule that is tried.
export interface ChangedEvent extends Decision {
  now: TriedVerdict;
  tried: TriedVerdict;
  payload: boolean;
  unasked: string[];
}

export type TrialGap = "payload_not_kept" | "input_not_kept" | "not_asked";

export interface RuleTrial {
  events: number;
  not_reached: number;
  applies: number;
  applied: number;
  verdicts: { now: Verdict; tried: Verdict; events: number }[];
  left_out: Partial<Record<TrialGap, number>>;
  failed: number;
  failure: string | null;
  otherwise: number;
  counts: boolean;
  changes: ChangedEvent[];
  changes_left_out: number;
}

export interface TriedRule {
  diagnostics: PlacedDiagnostic[];
  trial: RuleTrial | null;
}

export interface Payload {
  sent: Record<string, unknown>;
  changed: Record<string, unknown>;
  /// In the order of the reports.
  by_hook: Record<string, unknown>[];
}

export interface Workspace {
  id: string;
  root: string;
  kind: string;
  version: number;
  content: string;
  hooks: number;
  errors: number;
  last_good: { file: string; policy: string; sha256: string | null; since: number | null }[];
}

export interface Diagnostic {
  severity: string;
  code: string;
  message: string;
  file: string;
  line: number;
  column: number;
  help?: string;
  skipped?: boolean;
}

export interface WorkspaceDetails extends Workspace {
  files: string[];
  diagnostics: Diagnostic[];
  trust: { hook: string; state: string | null; not_covered: string[]; reason: string | null }[];
}

export interface Setting {
  key: string;
  about: string;
  value: unknown;
  default: unknown;
  source: string | null;
  line: number | null;
}

export interface FileContent {
  sha256: string;
  executable: boolean;
  text: string | null;
  unshown: string | null;
}

export interface ReviewedFile {
  path: string;
  before: FileContent | null;
  now: FileContent | null;
}

export interface ReviewedRecord {
  terms: string[];
  definition: string;
}

export interface ReviewedHook {
  hook: string;
  state: string;
  problem: string | null;
  before: ReviewedRecord | null;
  now: ReviewedRecord | null;
  files: number[];
}

export interface TrustReview {
  digest: string;
  enforced: boolean;
  agreed: boolean;
  hooks: ReviewedHook[];
  files: ReviewedFile[];
}

export interface Hook {
  workspace_id: string;
  name: string;
  dialect: string;
  events: string[];
  host_event?: string;
  matcher: string | null;
  handler: string;
  mode: string | null;
  command?: string | string[];
  scope: string;
  bundle?: { name: string; version: number };
  trust: string | null;
  not_covered?: string[];
  priority: number;
  enabled: boolean;
  disabled_by?: string;
  run_by_agent?: boolean;
  sha256?: string;
  file: string | null;
  line: number;
}
