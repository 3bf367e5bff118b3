/** Questions to the person at a client of the Model Context Protocol, if the client can ask one. */

import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { randomUUID } from "node:crypto";

export class Elicitation {
  readonly #open = new Map<unknown, (answer: any) => void>();
  #canAsk = false;

  constructor(private readonly client: Transport) {}

  /** Whether a message of the client is the answer to a question. */
  takes({ id, method, params, ...answer }: any): boolean {
    if (method === "initialize") this.#canAsk = params?.capabilities?.elicitation !== undefined;
    const take = method === undefined ? this.#open.get(id) : undefined;
    take?.(answer);
    return take !== undefined;
  }

  /** Whether the person agrees to a call. */
  async agrees(relatedRequestId: any, message = "a hook wants a person to decide"): Promise<boolean> {
    if (!this.#canAsk) return false;
    const id = `hookyard-${randomUUID()}`;
    const answer = new Promise<any>((resolve) => this.#open.set(id, resolve));
    const params = { message, requestedSchema: { type: "object", properties: {} } };
    await this.client.send({ jsonrpc: "2.0", id, method: "elicitation/create", params }, { relatedRequestId });
    const { result } = await answer;
    this.#open.delete(id);
    return result?.action === "accept";
  }
}
