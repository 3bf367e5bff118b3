// Requests to the daemon. Each has the token of the session, which only pages of this origin know; the cookie alone is
// worth nothing.
import { parseExact } from "./exact";
import type { Session } from "./types";

const STORED = "hookyard-page-token";

/// How long a stream may be silent: the daemon sends something each second.
const MOST_SILENCE_MS = 10_000;

/// How long an answer may take.
const MOST_ANSWER_MS = 60_000;

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly hint: string,
  ) {
    super(message);
  }
}

let signedOut: () => void = () => {};

/// What is called once the session has ended.
export function onSignedOut(call: () => void): void {
  signedOut = call;
}

export function hasToken(): boolean {
  return localStorage.getItem(STORED) !== null;
}

async function failure(response: Response): Promise<ApiError> {
  try {
    const { error } = await response.json();
    return new ApiError(response.status, String(error.code), String(error.message), String(error.hint));
  } catch {
    return new ApiError(response.status, "unreadable", `the daemon answered with status ${response.status}`, "look at its log");
  }
}

function unreachable(): ApiError {
  return new ApiError(0, "unreachable", "the daemon does not answer", "it may be stopped, hang, or be replaced just now");
}

/// What `work` comes to with a signal that also gives up once `alive` was not called for so long: a daemon that hangs keeps its
/// connections, and what it sent last must not pass for news.
async function within<T>(limit: number, signal: AbortSignal | undefined, work: (signal: AbortSignal, alive: () => void) => Promise<T>): Promise<T> {
  const silent = new AbortController();
  let timer = 0;
  const alive = () => {
    clearTimeout(timer);
    timer = setTimeout(() => silent.abort(), limit);
  };
  alive();
  try {
    return await work(AbortSignal.any(signal ? [silent.signal, signal] : [silent.signal]), alive);
  } catch (error) {
    throw silent.signal.aborted && !signal?.aborted ? unreachable() : error;
  } finally {
    clearTimeout(timer);
  }
}

async function send(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  const token = localStorage.getItem(STORED);
  if (token !== null) headers.set("x-hookyard-page", token);
  const response = await fetch(path, { ...init, headers, credentials: "same-origin", cache: "no-store" }).catch((error) => {
    throw init.signal?.aborted ? error : unreachable();
  });
  if (response.ok) return response;
  const error = await failure(response);
  if (error.status === 401) {
    // Another tab may have signed in meanwhile: its token stays.
    if (localStorage.getItem(STORED) === token) localStorage.removeItem(STORED);
    signedOut();
  }
  throw error;
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return within(MOST_ANSWER_MS, signal, async (limited) => (await send(path, { signal: limited })).json());
}

/// The same with every digit of its numbers, for `prettyExact`.
export async function getExact<T>(path: string, signal?: AbortSignal): Promise<T> {
  return parseExact<T>(await within(MOST_ANSWER_MS, signal, async (limited) => (await send(path, { signal: limited })).text()));
}

/// Changes the daemon, and returns what it answers.
export async function change<T = void>(method: "POST" | "DELETE", path: string, body?: unknown): Promise<T> {
  const sent = body === undefined ? {} : { body: JSON.stringify(body), headers: { "content-type": "application/json" } };
  const text = await (await send(path, { method, ...sent })).text();
  return text === "" ? (undefined as T) : JSON.parse(text);
}

/// Asks about a text of JSON, which is sent as it is.
export async function ask<T>(path: string, json: string): Promise<T> {
  return (await send(path, { method: "POST", body: json, headers: { "content-type": "application/json" } })).json();
}

/// Signs in with the secret of a link.
export async function signIn(code: string): Promise<Session> {
  localStorage.removeItem(STORED);
  const body = JSON.stringify({ code });
  const response = await send("/v1/page/session", { method: "POST", body, headers: { "content-type": "application/json" } });
  const session: Session = await response.json();
  if (session.token) localStorage.setItem(STORED, session.token);
  return session;
}

export async function signOut(): Promise<void> {
  try {
    await send("/v1/page/session", { method: "DELETE" });
  } finally {
    localStorage.removeItem(STORED);
    signedOut();
  }
}

/// Another tab has signed in or out.
export function onOtherTab(call: () => void): void {
  addEventListener("storage", (event) => {
    if (event.key === STORED || event.key === null) call();
  });
}

/// Follows a stream of server-sent events until it ends, is silent for too long or is aborted.
export async function follow(path: string, event: string, take: (data: unknown) => void, signal: AbortSignal): Promise<void> {
  return within(MOST_SILENCE_MS, signal, async (limited, alive) => {
    const response = await send(path, { signal: limited });
    if (!response.body) return;
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let waiting = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      alive();
      waiting += value;
      for (let end = waiting.indexOf("\n\n"); end >= 0; end = waiting.indexOf("\n\n")) {
        const lines = waiting.slice(0, end).split("\n");
        waiting = waiting.slice(end + 2);
        if (lines.includes(`event: ${event}`)) {
          const data = lines.filter((line) => line.startsWith("data: ")).map((line) => line.slice(6));
          take(JSON.parse(data.join("\n")));
        }
      }
    }
  });
}
