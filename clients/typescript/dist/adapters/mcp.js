/** A proxy before a server of the Model Context Protocol that asks hookyard about each call of a tool. */
import { randomUUID } from "node:crypto";
import { Elicitation } from "./mcp-elicitation.js";
import { refusal } from "./shared.js";
/** Passes messages between two transports that were not started, and asks about calls and results. Ends when one of them is closed. */
export async function bridge(yard, place, client, server) {
    const calls = new Map();
    const person = new Elicitation(client);
    const connection = randomUUID();
    const lost = (error) => client.onerror?.(error);
    const tell = (id, text) => client.send({ jsonrpc: "2.0", id, result: { content: [{ type: "text", text }], isError: true } });
    // A halt, too, is an error of the protocol. hookyard refuses what the run calls after it.
    const fail = (id) => (error) => client.send({ jsonrpc: "2.0", id, error: { code: -32000, message: String(error) } }).catch(lost);
    const before = async (message) => {
        // The result of a task would come past the hooks, so that no call is one.
        const { id, params: { task: _, ...params } } = message;
        const tool = { name: params.name, input: params.arguments ?? {}, id: `${connection}-${id}` };
        const stop = new AbortController();
        calls.set(id, { tool, stop });
        const outcome = await yard.beforeToolDispatch({ ...place, tool }, { signal: stop.signal });
        const refused = refusal(outcome, outcome.verdict === "ask" && (await person.agrees(id, outcome.reason)));
        stop.signal.throwIfAborted();
        if (refused === undefined)
            await server.send({ ...message, params: { ...params, arguments: (tool.input = outcome.payload) } });
        else
            await tell(id, refused).finally(() => calls.delete(id));
    };
    const after = async (message, tool) => {
        const outcome = await yard.afterToolDispatch({ ...place, tool, output: message.result });
        const refused = refusal(outcome);
        await (refused === undefined ? client.send({ ...message, result: outcome.payload }) : tell(message.id, refused));
    };
    client.onmessage = (message) => {
        const { id, method, params } = message;
        if (person.takes(message))
            return;
        if (method === "notifications/cancelled")
            calls.get(params?.requestId)?.stop.abort();
        if (method !== "tools/call")
            return server.send(message).catch(method === undefined || id === undefined ? lost : fail(id));
        return calls.has(id) ? fail(id)("the id is in use") : before(message).catch(fail(id));
    };
    server.onmessage = (message) => {
        const { id, method, result } = message;
        const call = method === undefined ? calls.get(id) : undefined;
        if (call)
            calls.delete(id);
        else if (result?.protocolVersion)
            server.setProtocolVersion?.(result.protocolVersion);
        delete result?.capabilities?.tasks;
        return call && result ? after(message, call.tool).catch(fail(id)) : client.send(message).catch(lost);
    };
    const ended = new Promise((resolve) => (client.onclose = server.onclose = resolve));
    await server.start();
    await client.start();
    await ended;
    await Promise.all([client.close(), server.close()]);
}
