/** A proxy before a server of the Model Context Protocol that asks hookyard about each call of a tool. */

import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";

import type { Events, Place } from "../events.js";
import { Elicitation } from "./mcp-elicitation.js";
import { OpenRequests, type OpenRequest } from "./mcp-requests.js";
import { refusal } from "./shared.js";

const told = (text: string) => ({ content: [{ type: "text", text }], isError: true });

/** Passes messages between two transports that were not started, and asks about calls and results. Ends when one of them is closed. */
export async function bridge(yard: Events, place: Place, client: Transport, server: Transport): Promise<void> {
  const open = new OpenRequests(client);
  const person = new Elicitation(client);
  const lost = (error: Error) => client.onerror?.(error);
  const before = async (message: any, request: OpenRequest): Promise<void> => {
    // The result of a task would come past the hooks, so that no call is one.
    const { task: _, ...params } = message.params;
    const tool = (request.tool = { name: params.name, input: params.arguments ?? {}, id: request.callId });
    const { signal } = request.stop;
    const outcome = await yard.beforeToolDispatch({ ...place, tool }, { signal });
    const refused = refusal(outcome, outcome.verdict === "ask" && (await person.agrees(request.id, outcome.reason)));
    signal.throwIfAborted();
    if (refused !== undefined) return open.answer(request, { result: told(refused) });
    await server.send({ ...message, id: request.idAtServer, params: { ...params, arguments: (tool.input = outcome.payload) } });
  };
  const after = async (message: any, request: OpenRequest): Promise<void> => {
    const outcome = await yard.afterToolDispatch({ ...place, tool: request.tool!, output: message.result });
    const refused = refusal(outcome);
    if (!request.stop.signal.aborted) await open.answer(request, { ...message, result: refused === undefined ? outcome.payload : told(refused) });
  };
  client.onmessage = (message: any) => {
    const { id, method } = message;
    if (person.takes(message)) return;
    const passed = method === "notifications/cancelled" ? open.cancel(message) : message;
    if (method === undefined || id === undefined) return passed && server.send(passed).catch(lost);
    const request = open.begin(id);
    if (!request) return open.refuse(id, "the id is in use");
    const sent = method === "tools/call" ? before(message, request) : server.send({ ...message, id: request.idAtServer });
    // A halt, too, is an error of the protocol. hookyard refuses what the run calls after it.
    return sent.catch((error) => open.fail(request, error));
  };
  server.onmessage = (message: any) => {
    const { id, method, result } = message;
    if (method !== undefined) return client.send(message).catch(lost);
    // An answer to a call that was cancelled would come past the hooks.
    const request = open.answered(id);
    if (!request) return;
    if (!request.tool && result?.protocolVersion) server.setProtocolVersion?.(result.protocolVersion);
    delete result?.capabilities?.tasks;
    return (request.tool && result ? after(message, request) : open.answer(request, message)).catch((error) => open.fail(request, error));
  };
  const ended = new Promise<void>((resolve) => (client.onclose = server.onclose = resolve));
  await server.start();
  await client.start();
  await ended;
  await Promise.all([client.close(), server.close()]);
}
