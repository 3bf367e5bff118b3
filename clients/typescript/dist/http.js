/** The doors of HTTP: the daemon's Unix socket, or an address. Connections are kept for further events. */
import { isUtf8 } from "node:buffer";
import { once } from "node:events";
import http from "node:http";
import https from "node:https";
import { LONGEST_ANSWER } from "./door.js";
import { InexactNumber, parse } from "./json.js";
import { badAnswer, closed, daemonError, down, lost, Problem } from "./problem.js";
import { checkSocket } from "./socket.js";
/** How long a connection may rest, in milliseconds: the daemon ends it after `limits.idle_timeout`. */
const LONGEST_REST = 30_000;
/** Sends events over HTTP. */
export class HttpDoor {
    address;
    token;
    #agent;
    #isClosed = new AbortController();
    /** `address` is the path of a Unix socket or a URL, `token` that of `listen.token_file`. */
    constructor(address, token) {
        this.address = address;
        this.token = token;
        const { Agent } = this.#scheme();
        this.#agent = new Agent({ keepAlive: true, timeout: LONGEST_REST });
    }
    ask(event, traceparent, from) {
        const cancelled = new AbortController();
        const cancel = (reason) => cancelled.abort(reason);
        const answer = this.#post(event, traceparent, from, cancelled.signal).catch((error) => {
            throw cancelled.signal.aborted ? cancelled.signal.reason : this.#isClosed.signal.aborted ? closed() : error;
        });
        return { answer, cancel };
    }
    close() {
        this.#isClosed.abort();
        this.#agent.destroy();
    }
    async #post(event, traceparent, from, cancelled) {
        if (this.#isClosed.signal.aborted)
            throw closed();
        const request = this.#request(event, traceparent, from);
        let isConnected = false;
        request.on("error", () => { });
        request.on("socket", (socket) => {
            const ready = this.address instanceof URL && this.address.protocol === "https:" ? "secureConnect" : "connect";
            if (request.reusedSocket)
                isConnected = true;
            else
                socket.once(ready, () => (isConnected = true));
        });
        const stop = () => request.destroy();
        cancelled.addEventListener("abort", stop);
        try {
            request.end(event);
            const [response] = (await once(request, "response"));
            const { socket } = response;
            const text = await body(response);
            // The daemon may not have read all of the request, and closes the connection.
            if (response.statusCode !== 200)
                socket.destroy();
            return read(response, text);
        }
        catch (error) {
            if (error instanceof Problem)
                throw error;
            const { code, message } = error;
            throw isConnected ? lost(code ?? message) : down(String(this.address), code ?? message);
        }
    }
    #request(event, traceparent, from) {
        const headers = {
            "content-type": "application/json",
            "content-length": Buffer.byteLength(event),
            ...forBalancers(from),
        };
        if (traceparent !== undefined)
            headers["traceparent"] = traceparent;
        if (this.token)
            headers["authorization"] = `Bearer ${this.token().trim()}`;
        const options = { method: "POST", agent: this.#agent, headers };
        if (this.address instanceof URL) {
            return this.#scheme().request(`${this.address.href.replace(/\/$/, "")}/v1/events`, options);
        }
        checkSocket(this.address);
        return http.request({ ...options, socketPath: this.address, path: "/v1/events" });
    }
    #scheme() {
        return this.address instanceof URL && this.address.protocol === "https:" ? https : http;
    }
}
/** What a balancer must know of an event, and reads in no body: its run, and its id. */
function forBalancers({ run_id, event_id }) {
    const said = {};
    for (const [name, id] of [["x-hookyard-run", run_id], ["x-hookyard-event-id", event_id]]) {
        // The daemon refuses any other id.
        if (typeof id === "string" && !/[\uD800-\uDFFF]/u.test(id))
            said[name] = encodeURIComponent(id);
    }
    return said;
}
async function body(response) {
    const chunks = [];
    let bytes = 0;
    for await (const chunk of response) {
        chunks.push(chunk);
        bytes += chunk.length;
        if (bytes > LONGEST_ANSWER)
            throw badAnswer(`it is longer than ${LONGEST_ANSWER} bytes`);
    }
    if (!response.complete)
        throw lost("the answer is not whole");
    const whole = Buffer.concat(chunks);
    if (!isUtf8(whole))
        throw badAnswer("it is not UTF-8");
    return whole.toString();
}
function read({ statusCode, headers }, text) {
    let answer;
    try {
        answer = parse(text);
    }
    catch (error) {
        const why = error instanceof InexactNumber ? error.message : `status ${statusCode} without JSON`;
        throw badAnswer(why);
    }
    if (statusCode === 200)
        return answer;
    const { error } = (answer ?? {});
    throw daemonError(error, Number(headers["retry-after"]) || 0);
}
