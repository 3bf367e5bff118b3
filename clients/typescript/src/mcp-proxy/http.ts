/** A server of streamable HTTP that gives each session of a client a connection to a server of its own. */

import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { createHash, randomUUID, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";

import { Session } from "./session.js";

/** `run` connects a session to a server, and returns when that has ended. `end` tells the server that its client is done. */
export interface Connection {
  run(client: Transport, session: string): Promise<void>;
  end(): Promise<unknown>;
}

/** As large as an event. */
const MAX_BODY = 16 * 1024 * 1024;
const MAX_SESSIONS = 64;
const FULL = `all ${MAX_SESSIONS} sessions are in use`;
/** For clients that go without a word. One that listens is there. */
const MAX_IDLE_MS = 3_600_000;

/** Whether a host, with or without a port, is a name of this machine that nobody else can give to another. */
export const isLoopback = (host: string): boolean => /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?$/i.test(host);

/** Serves `/mcp` to whoever has the token, and without one under names of this machine only. */
export function httpServer(connect: () => Connection, token?: string): Server {
  const sessions = new Sessions(connect);
  const server = createServer(async (request, response) => {
    const id = request.headers["mcp-session-id"] as string | undefined;
    try {
      const [status, reason] = refusal(request, token) ?? [];
      if (status) return answer(response, status, reason);
      const session = id === undefined ? sessions.begin(response) : sessions.get(id);
      if (session) await session.handleRequest(request, response);
      else if (id === undefined) answer(response, 503, FULL);
      else answer(response, 404, "the session has ended: begin another");
    } catch (error) {
      answer(response, 500, String(error));
    }
  });
  const sweeper = setInterval(() => sessions.sweep(), 60_000).unref();
  return server.on("close", () => (clearInterval(sweeper), sessions.finish()));
}

class Sessions {
  readonly #all = new Map<string, { session: Session; connection: Connection }>();

  constructor(private readonly connect: () => Connection) {}

  get(id: string): Session | undefined {
    return this.#all.get(id)?.session;
  }

  /** A session that begins with what `response` answers, unless all are in use. */
  begin(response: ServerResponse): Session | undefined {
    if (this.#all.size - this.#idle().length >= MAX_SESSIONS) return undefined;
    const id = randomUUID();
    const connection = this.connect();
    const session: Session = new Session({
      sessionIdGenerator: () => id,
      maxRequestBodySize: MAX_BODY,
      onsessioninitialized: () => Promise.race([session.started, this.#run(id, session, connection)]),
      onsessionclosed: async () => void (await connection.end()),
    });
    this.#all.set(id, { session, connection });
    response.once("close", () => session.sessionId ?? this.#all.delete(id));
    return session;
  }

  async #run(id: string, session: Session, connection: Connection): Promise<void> {
    try {
      this.#makeRoom();
      await connection.run(session, id);
    } catch (error) {
      session.ending = `the server did not start: ${error}`;
      session.onmessage = () => void session.close();
    }
    this.#all.delete(id);
  }

  sweep(): void {
    for (const [id, { usedAt }] of this.#idle()) if (usedAt + MAX_IDLE_MS < Date.now()) this.finish(id);
  }

  /** Ends one session or all. */
  finish(only?: string): void {
    for (const [id, { session, connection }] of this.#all) {
      if (only !== undefined && only !== id) continue;
      this.#all.delete(id);
      void connection.end().finally(() => session.close());
    }
  }

  /** Ends the session that is idle for the longest, if one has begun that is too many. What only tries to begin one ends none. */
  #makeRoom(): void {
    const begun = [...this.#all.values()].filter(({ session }) => session.sessionId !== undefined).length;
    if (begun <= MAX_SESSIONS) return;
    const [oldest] = this.#idle().sort(([, a], [, b]) => a.usedAt - b.usedAt);
    if (!oldest) throw new Error(FULL);
    this.finish(oldest[0]);
  }

  #idle(): [string, Session][] {
    return [...this.#all].map(([id, { session }]): [string, Session] => [id, session]).filter(([, { inFlight }]) => inFlight === 0);
  }
}

function refusal({ headers: { host = "", origin, authorization, ...headers }, method, url = "" }: IncomingMessage, token?: string): [number, string] | undefined {
  if (token === undefined && !isLoopback(host)) return [403, `${host} is no name of this machine`];
  if (origin !== undefined && origin !== `http://${host}` && origin !== `https://${host}`) return [403, `pages of ${origin} may not ask`];
  if (token !== undefined && !isSame(authorization ?? "", `Bearer ${token}`)) return [401, "`authorization: Bearer …` with HOOKYARD_MCP_TOKEN is missing"];
  if (url.replace(/\?.*/, "") !== "/mcp") return [404, "the server is at /mcp"];
  if (headers["mcp-session-id"] === undefined && method !== "POST") return [method === "GET" || method === "DELETE" ? 400 : 405, "give an `mcp-session-id`, or POST `initialize`"];
  return undefined;
}

function isSame(given: string, expected: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(given), digest(expected));
}

function answer(response: ServerResponse, status: number, message = ""): void {
  if (response.headersSent) return void response.destroy();
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify({ jsonrpc: "2.0", id: null, error: { code: -32000, message } }));
}
