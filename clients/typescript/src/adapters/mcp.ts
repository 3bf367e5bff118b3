/** A proxy before a server of the Model Context Protocol that asks hookyard about each call of a tool. */

import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";

import type { Events, Place, ToolCall } from "../events.js";
import { Elicitation } from "./mcp-elicitation.js";
import { OpenRequests } from "./mcp-requests.js";
import { refusal } from "./shared.js";

/** Passes messages between two transports that were not started, and asks about calls and results. Ends when one of them is closed. */
export async function bridge(yard: Events, place: Place, client: Transport, server: Transport): Promise<void> {
  const open = new OpenRequests(client);
  const person = new Elicitation(client);
  const lost = (error: Error) => client.onerror?.(error);
  const tell = (id: any, text: string) => client.send({ jsonrpc: "2.0", id, result: { content: [{ type: "text", text }], isError: true } });
  // A halt, too, is an error of the protocol. hookyard refuses what the run calls after it.
  const fail = (id: any) => (error: unknown) => open.fail(id, error);
  const before = async (message: any): Promise<void> => {
    // The result of a task would come past the hooks, so that no call is one.
    const { id, params: { task: _, ...params } } = message;
    const tool = { name: params.name, input: params.arguments ?? {}, id: open.callId(id) };
    const signal = open.begin(id, tool);
    const outcome = await yard.beforeToolDispatch({ ...place, tool }, { signal });
    const refused = refusal(outcome, outcome.verdict === "ask" && (await person.agrees(id, outcome.reason)));
    signal.throwIfAborted();
    if (refused === undefined) await server.send({ ...message, params: { ...params, arguments: (tool.input = outcome.payload) } });
    else await tell(id, refused).finally(() => open.end(id));
  };
  const after = async (message: any, tool: ToolCall): Promise<void> => {
    const outcome = await yard.afterToolDispatch({ ...place, tool, output: message.result });
    const refused = refusal(outcome);
    await (refused === undefined ? client.send({ ...message, result: outcome.payload }) : tell(message.id, refused));
  };
  client.onmessage = (message: any) => {
    const { id, method, params } = message;
    if (person.takes(message)) return;
    if (method === "notifications/cancelled") open.end(params?.requestId)?.stop.abort();
    const isRequest = method !== undefined && id !== undefined;
    if (isRequest && open.has(id)) return open.refuse(id, "the id is in use");
    if (method === "tools/call") return before(message).catch(fail(id));
    if (isRequest) open.begin(id);
    return server.send(message).catch(isRequest ? fail(id) : lost);
  };
  server.onmessage = (message: any) => {
    const { id, method, result } = message;
    const asked = method === undefined ? open.end(id) : undefined;
    // An answer to a call that was cancelled would come past the hooks.
    if (method === undefined && !asked) return;
    if (!asked?.tool && result?.protocolVersion) server.setProtocolVersion?.(result.protocolVersion);
    delete result?.capabilities?.tasks;
    return asked?.tool && result ? after(message, asked.tool).catch(fail(id)) : client.send(message).catch(lost);
  };
  const ended = new Promise<void>((resolve) => (client.onclose = server.onclose = resolve));
  await server.start();
  await client.start();
  await ended;
  await Promise.all([client.close(), server.close()]);
}
