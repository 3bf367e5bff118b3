/** What a client of the Model Context Protocol has asked and not cancelled, until it is answered. */

import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { randomUUID } from "node:crypto";

import type { ToolCall } from "../events.js";

interface OpenRequest {
  tool?: ToolCall<any>;
  stop: AbortController;
}

export class OpenRequests {
  readonly #open = new Map<unknown, OpenRequest>();
  readonly #connection = randomUUID();

  constructor(private readonly client: Transport) {}

  has(id: unknown): boolean {
    return this.#open.has(id);
  }

  /** What names a call on all connections. */
  callId(id: unknown): string {
    return `${this.#connection}-${id}`;
  }

  /** Returns what stops it when the client cancels it. */
  begin(id: unknown, tool?: ToolCall<any>): AbortSignal {
    const stop = new AbortController();
    this.#open.set(id, { tool, stop });
    return stop.signal;
  }

  end(id: unknown): OpenRequest | undefined {
    const request = this.#open.get(id);
    this.#open.delete(id);
    return request;
  }

  /** Ends a request with an error of the protocol. */
  fail(id: any, why: unknown): Promise<void> {
    this.end(id);
    return this.refuse(id, why);
  }

  refuse(id: any, why: unknown): Promise<void> {
    const refused = this.client.send({ jsonrpc: "2.0", id, error: { code: -32000, message: String(why) } });
    return refused.catch((error) => this.client.onerror?.(error));
  }
}
