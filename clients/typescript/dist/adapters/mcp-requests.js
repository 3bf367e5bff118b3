/** What a client of the Model Context Protocol has asked and not cancelled, until it is answered. */
import { randomUUID } from "node:crypto";
export class OpenRequests {
    client;
    #open = new Map();
    #connection = randomUUID();
    constructor(client) {
        this.client = client;
    }
    has(id) {
        return this.#open.has(id);
    }
    /** What names a call on all connections. */
    callId(id) {
        return `${this.#connection}-${id}`;
    }
    /** Returns what stops it when the client cancels it. */
    begin(id, tool) {
        const stop = new AbortController();
        this.#open.set(id, { tool, stop });
        return stop.signal;
    }
    end(id) {
        const request = this.#open.get(id);
        this.#open.delete(id);
        return request;
    }
    /** Ends a request with an error of the protocol. */
    fail(id, why) {
        this.end(id);
        return this.refuse(id, why);
    }
    refuse(id, why) {
        const refused = this.client.send({ jsonrpc: "2.0", id, error: { code: -32000, message: String(why) } });
        return refused.catch((error) => this.client.onerror?.(error));
    }
}
