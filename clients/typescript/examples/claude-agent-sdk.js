/**
 * An agent of the Claude Agent SDK, with a model that only repeats its script. hookyard stops `rm -rf /`.
 *
 *     HOOKYARD_LISTEN_SOCKET=… node claude-agent-sdk.js
 */

import { createSdkMcpServer, query, tool } from "@anthropic-ai/claude-agent-sdk";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { json } from "node:stream/consumers";
import { z } from "zod";

import { claudeHooks } from "hookyard-client/adapters/claude-agent-sdk";
import { showExample } from "./show.js";

/**
 * Lets the model call `bash` with the commands of each turn, or another tool with what is no command. Returns which commands ran, what
 * the model was told and asked, and the end. `more` are further prompts of the session.
 */
export async function play(yard, turns, { prompt = "go", more = [], approve, runTool = (command) => `ran ${command}`, place } = {}) {
  const ran = [];
  const bash = tool("bash", "Runs a command.", { command: z.string() }, async ({ command }) => {
    ran.push(command);
    return { content: [{ type: "text", text: runTool(command) }] };
  });
  const canUseTool = async (_, updatedInput) =>
    approve === false ? { behavior: "deny", message: "a person refused it" } : { behavior: "allow", updatedInput };
  const home = mkdtempSync(`${tmpdir()}/hookyard-claude-`);
  const model = await scriptedModel(turns);
  const hooks = claudeHooks(yard);
  const options = {
    hooks,
    canUseTool,
    mcpServers: { host: createSdkMcpServer({ name: "host", tools: [bash] }) },
    // Only hooks ask a person about it.
    allowedTools: ["mcp__host__bash"],
    settingSources: [],
    cwd: place?.cwd,
    env: { PATH: process.env.PATH, HOME: home, ANTHROPIC_BASE_URL: model.url, ANTHROPIC_API_KEY: "none", ...QUIET },
  };
  let answered, reason, ended;
  async function* prompts() {
    for (const content of [prompt, ...more]) {
      const answer = new Promise((resolve) => (answered = resolve));
      yield { type: "user", message: { role: "user", content }, parent_tool_use_id: null };
      await answer;
    }
  }
  try {
    for await (const message of query({ prompt: prompts(), options })) {
      if (message.subtype === "informational") reason = message.content.replace(/^.* says: /, "");
      if (message.type !== "result") continue;
      ended = message.terminal_reason === "hook_stopped" ? `halted: ${reason}` : message.result;
      answered();
    }
  } finally {
    model.close();
    rmSync(home, { recursive: true, force: true });
  }
  return { ran, told: told(model.requests), ended, asked: JSON.stringify(model.requests) };
}

const QUIET = { CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1", DISABLE_AUTOUPDATER: "1" };

/** A server in place of the Messages API, which keeps what it is asked. */
async function scriptedModel(turns) {
  const calls = turns.map((commands, turn) => commands.map((command, number) => {
    const call = typeof command === "string" ? { name: "mcp__host__bash", input: { command } } : command;
    return { type: "tool_use", id: `call-${turn}-${number}`, ...call };
  }));
  const requests = [];
  const server = createServer(async (request, response) => {
    const asked = request.method === "POST" ? await json(request) : {};
    if (asked.messages) requests.push(asked);
    // The SDK asks for other things, too, such as a summary.
    const parts = (asked.tools?.length > 0 && calls.shift()) || [{ type: "text", text: "done" }];
    const stop_reason = parts[0].type === "text" ? "end_turn" : "tool_use";
    const usage = { input_tokens: 1, output_tokens: 1 };
    const message = { id: crypto.randomUUID(), type: "message", role: "assistant", model: "script", content: [], stop_reason: null, usage };
    if (!asked.stream) return response.setHeader("content-type", "application/json").end(JSON.stringify({ ...message, content: parts, stop_reason }));
    response.setHeader("content-type", "text/event-stream");
    const say = (type, rest) => response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`);
    say("message_start", { message });
    for (const [index, { input, text, ...part }] of parts.entries()) {
      const delta = input ? { type: "input_json_delta", partial_json: JSON.stringify(input) } : { type: "text_delta", text };
      say("content_block_start", { index, content_block: { ...part, ...(input ? { input: {} } : { text: "" }) } });
      say("content_block_delta", { index, delta });
      say("content_block_stop", { index });
    }
    say("message_delta", { delta: { stop_reason }, usage });
    say("message_stop", {});
    response.end();
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { requests, url: `http://127.0.0.1:${server.address().port}`, close: () => (server.closeAllConnections(), server.close()) };
}

/** The results of tools in the last request, without what the SDK says beside them. */
function told(requests) {
  const parts = (requests.at(-1)?.messages ?? []).flatMap(({ content }) => (Array.isArray(content) ? content : []));
  const results = parts.filter(({ type }) => type === "tool_result").map(({ content }) => content);
  const texts = results.map((content) => (Array.isArray(content) ? content.map(({ text }) => text).join("\n") : content));
  return texts.map((text) => text.replace(/<system-reminder>[^]*?<\/system-reminder>/g, "").replace(/^PreToolUse:\S+ hook error: /, "").trim());
}

await showExample(import.meta, play);
