/**
 * A client of the Model Context Protocol that reaches its server through hookyard's proxy. hookyard stops `rm -rf /`.
 *
 *     HOOKYARD_LISTEN_SOCKET=… node mcp.js
 */

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { randomUUID } from "node:crypto";
import { z } from "zod";

import { bridge } from "hookyard-client/adapters/mcp";
import { showExample } from "./show.js";

/** A server with the tool `bash`. */
export function shellServer(runTool) {
  const server = new McpServer({ name: "shell", version: "1.0.0" });
  server.registerTool("bash", { inputSchema: { command: z.string() } }, async ({ command }) => ({
    content: [{ type: "text", text: await runTool(command) }],
  }));
  return server;
}

/** A client whose person agrees, does not, or is not there. */
export function personClient(approve) {
  const client = new Client({ name: "host", version: "1.0.0" }, { capabilities: approve === undefined ? {} : { elicitation: {} } });
  if (approve !== undefined) client.setRequestHandler(ElicitRequestSchema, () => ({ action: approve ? "accept" : "decline" }));
  return client;
}

/** Calls `bash` with the commands of each turn. Returns which ran, what the client was told, and the end. */
export async function play(yard, turns, { approve, runTool = (command) => `ran ${command}`, ...rest } = {}) {
  const place = rest.place ?? { run: randomUUID(), cwd: process.cwd() };
  const ran = [];
  const server = shellServer((command) => (ran.push(command), runTool(command)));
  const client = personClient(approve);
  const [atClient, toClient] = InMemoryTransport.createLinkedPair();
  const [toServer, atServer] = InMemoryTransport.createLinkedPair();
  await server.connect(atServer);
  const bridged = bridge(yard, place, toClient, toServer);
  await client.connect(atClient);
  const played = await callAll(client, turns);
  await client.close();
  await bridged;
  return { ran, ...played };
}

/** Calls `bash` until the run is halted. */
export async function callAll(client, turns) {
  const told = [];
  try {
    for (const commands of turns) {
      const results = commands.map((command) => client.callTool({ name: "bash", arguments: { command } }));
      for (const { content } of await Promise.all(results)) told.push(content[0].text);
    }
  } catch (error) {
    const halted = /Halted: (.*)/.exec(error.message);
    if (!halted) throw error;
    return { told, ended: `halted: ${halted[1]}` };
  }
  return { told, ended: "done" };
}

await showExample(import.meta, play);
