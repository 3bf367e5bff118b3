/** What a client of the Model Context Protocol has asked and not cancelled, until it is answered. */

import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { randomUUID } from "node:crypto";

import type { ToolCall } from "../events.js";

export interface OpenRequest {
  readonly id: any;
  /** The server gets an id that was not used before: it may answer late to what was cancelled, and clients use ids again. */
  readonly idAtServer: number;
  /** What names it on all connections. */
  readonly callId: string;
  readonly stop: AbortController;
  tool?: ToolCall<any>;
}

export class OpenRequests {
  readonly #byClient = new Map<unknown, OpenRequest>();
  /** What the server may answer. Some servers answer to a number with a text. */
  readonly #byServer = new Map<string, OpenRequest>();
  #last = -1;

  constructor(private readonly client: Transport) {}

  /** Undefined: the id is in use. */
  begin(id: unknown): OpenRequest | undefined {
    if (this.#byClient.has(id)) return undefined;
    const request = { id, idAtServer: ++this.#last, callId: randomUUID(), stop: new AbortController() };
    this.#byClient.set(id, request);
    this.#byServer.set(String(request.idAtServer), request);
    return request;
  }

  /** Stops what the client cancels. Returns what to tell the server, if it is anything that was asked. */
  cancel({ params, ...message }: any): any {
    const request = this.#byClient.get(params?.requestId);
    if (!request) return undefined;
    this.#end(request);
    request.stop.abort();
    return { ...message, params: { ...params, requestId: request.idAtServer } };
  }

  /** The request that the server answers, unless it was cancelled. */
  answered(id: unknown): OpenRequest | undefined {
    const request = this.#byServer.get(String(id));
    this.#byServer.delete(String(id));
    return request;
  }

  async answer(request: OpenRequest, answer: object): Promise<void> {
    if (this.#end(request)) await this.client.send({ ...answer, jsonrpc: "2.0", id: request.id } as any);
  }

  /** Ends a request with an error of the protocol. */
  async fail(request: OpenRequest, why: unknown): Promise<void> {
    if (this.#end(request)) await this.refuse(request.id, why);
  }

  refuse(id: any, why: unknown): Promise<void> {
    const error = { code: -32000, message: String(why) };
    return this.client.send({ jsonrpc: "2.0", id, error }).catch((failure) => this.client.onerror?.(failure));
  }

  /** Returns whether an answer is its own: a request that was cancelled may have left its id to another. */
  #end(request: OpenRequest): boolean {
    this.#byServer.delete(String(request.idAtServer));
    if (this.#byClient.get(request.id) === request) this.#byClient.delete(request.id);
    return !this.#byClient.has(request.id);
  }
}
