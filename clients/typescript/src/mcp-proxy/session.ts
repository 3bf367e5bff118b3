/** A session of a client of the Model Context Protocol over streamable HTTP: whatever the client asks has an answer, also at its end. */

import { StreamableHTTPServerTransport, type StreamableHTTPServerTransportOptions } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import type { IncomingMessage, ServerResponse } from "node:http";

export class Session extends StreamableHTTPServerTransport {
  readonly started: Promise<void>;
  ending = "the server has ended the session";
  usedAt = Date.now();
  /** The requests of HTTP that have no whole answer, and how many of them only listen. */
  inFlight = 0;
  #listening = 0;
  #start!: () => void;
  /** The calls without an answer, with what their progress is called by. */
  readonly #open = new Map<any, unknown>();

  constructor(options: StreamableHTTPServerTransportOptions) {
    super(options);
    this.started = new Promise((resolve) => (this.#start = resolve));
  }

  override async start(): Promise<void> {
    await super.start();
    this.#start();
  }

  override async handleRequest(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const listens = Number(request.method === "GET");
    this.inFlight += 1;
    this.#listening += listens;
    response.once("close", () => {
      this.inFlight -= 1;
      this.#listening -= listens;
      this.usedAt = Date.now();
    });
    await super.handleRequest(request, response);
  }

  override get onmessage(): ((message: any, extra?: any) => void) | undefined {
    return super.onmessage;
  }

  override set onmessage(handler: ((message: any, extra?: any) => void) | undefined) {
    super.onmessage = (message: any, extra) => {
      const { id, method, params } = message;
      if (method && id !== undefined) this.#open.set(id, params?._meta?.progressToken);
      handler?.(message, extra);
      // The client ignores the answer, which ends the stream of the call.
      if (method === "notifications/cancelled") void this.#fail(params?.requestId, "the client has cancelled the call");
    };
  }

  override async send(message: any, { relatedRequestId = this.#related(message) }: { relatedRequestId?: any } = {}): Promise<void> {
    // Nobody waits for the answer of a call that was cancelled.
    if (!message.method && !this.#open.delete(message.id)) return;
    await super.send(message, { relatedRequestId });
  }

  override async close(): Promise<void> {
    for (const id of [...this.#open.keys()]) await this.#fail(id, this.ending);
    await super.close();
  }

  async #fail(id: any, message: string): Promise<void> {
    await this.send({ jsonrpc: "2.0", id, error: { code: -32000, message } }).catch(() => {});
  }

  /** The call on whose stream the server speaks: the one whose progress it is, or any if the client listens to nothing else. */
  #related({ method, params }: any): unknown {
    const ofProgress = ([, token]: [any, unknown]) => token !== undefined && token === params?.progressToken;
    const call = method === "notifications/progress" ? [...this.#open].find(ofProgress) : undefined;
    return call ? call[0] : this.#listening > 0 ? undefined : [...this.#open.keys()].at(-1);
  }
}
