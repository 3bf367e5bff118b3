/** Questions to the person at a client of the Model Context Protocol, if the client can ask one. */
import { randomUUID } from "node:crypto";
export class Elicitation {
    client;
    #open = new Map();
    #canAsk = false;
    constructor(client) {
        this.client = client;
    }
    /** Whether a message of the client is the answer to a question. */
    takes({ id, method, params, ...answer }) {
        if (method === "initialize")
            this.#canAsk = params?.capabilities?.elicitation !== undefined;
        const take = method === undefined ? this.#open.get(id) : undefined;
        take?.(answer);
        return take !== undefined;
    }
    /** Whether the person agrees to a call. */
    async agrees(relatedRequestId, message = "a hook wants a person to decide") {
        if (!this.#canAsk)
            return false;
        const id = `hookyard-${randomUUID()}`;
        const answer = new Promise((resolve) => this.#open.set(id, resolve));
        const params = { message, requestedSchema: { type: "object", properties: {} } };
        await this.client.send({ jsonrpc: "2.0", id, method: "elicitation/create", params }, { relatedRequestId });
        const { result } = await answer;
        this.#open.delete(id);
        return result?.action === "accept";
    }
}
