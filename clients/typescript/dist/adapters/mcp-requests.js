/** What a client of the Model Context Protocol has asked and not cancelled, until it is answered. */
import { randomUUID } from "node:crypto";
export class OpenRequests {
    client;
    #byClient = new Map();
    /** What the server may answer. Some servers answer to a number with a text. */
    #byServer = new Map();
    #last = -1;
    constructor(client) {
        this.client = client;
    }
    /** Undefined: the id is in use. */
    begin(id) {
        if (this.#byClient.has(id))
            return undefined;
        const request = { id, idAtServer: ++this.#last, callId: randomUUID(), stop: new AbortController() };
        this.#byClient.set(id, request);
        this.#byServer.set(String(request.idAtServer), request);
        return request;
    }
    /** Stops what the client cancels. Returns what to tell the server, if it is anything that was asked. */
    cancel({ params, ...message }) {
        const request = this.#byClient.get(params?.requestId);
        if (!request)
            return undefined;
        this.#end(request);
        request.stop.abort();
        return { ...message, params: { ...params, requestId: request.idAtServer } };
    }
    /** The request that the server answers, unless it was cancelled. */
    answered(id) {
        const request = this.#byServer.get(String(id));
        this.#byServer.delete(String(id));
        return request;
    }
    async answer(request, answer) {
        if (this.#end(request))
            await this.client.send({ ...answer, jsonrpc: "2.0", id: request.id });
    }
    /** Ends a request with an error of the protocol. */
    async fail(request, why) {
        if (this.#end(request))
            await this.refuse(request.id, why);
    }
    refuse(id, why) {
        const error = { code: -32000, message: String(why) };
        return this.client.send({ jsonrpc: "2.0", id, error }).catch((failure) => this.client.onerror?.(failure));
    }
    /** Returns whether an answer is its own: a request that was cancelled may have left its id to another. */
    #end(request) {
        this.#byServer.delete(String(request.idAtServer));
        if (this.#byClient.get(request.id) === request)
            this.#byClient.delete(request.id);
        return !this.#byClient.has(request.id);
    }
}
