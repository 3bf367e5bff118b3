// A plugin that asks hookyard about each tool call of OpenCode: copy it to ~/.config/opencode/plugins/ or .opencode/plugins/.
// If the daemon gives no answer, the tool does not run.
import { once } from "node:events";
import http from "node:http";
import { json } from "node:stream/consumers";

const directory = process.env.XDG_RUNTIME_DIR ?? `/tmp/hookyard-${process.getuid()}`;
const socketPath = process.env.HOOKYARD_LISTEN_SOCKET ?? `${directory}/hookyard.sock`;
const target = { socketPath, path: "/v1/events", method: "POST", headers: { "content-type": "application/json" } };

async function post(event) {
  const request = http.request(target).end(JSON.stringify(event));
  const [response] = await once(request, "response");
  const answer = await json(response);
  if (response.statusCode !== 200) throw new Error(answer.error.message);
  return answer;
}

async function ask(event) {
  let timer;
  const late = new Promise((_, reject) => (timer = setTimeout(reject, 590_000, new Error("none came within 590 s"))));
  const answer = Promise.race([post(event), late]).finally(() => clearTimeout(timer));
  return answer.catch((error) => { throw new Error(`hookyard has no answer (${socketPath}): ${error.message}`); });
}

// Why a tool must not run, or its output must not be read. Nobody can be asked from here.
function refusal({ verdict, reason = "blocked by a hook" }) {
  if (verdict === "proceed" || verdict === "allow") return undefined;
  return verdict === "ask" ? `a person has to be asked first: ${reason}` : reason;
}
const withContext = (text, { notes = [] }) =>
  [text, ...notes.filter((note) => note.kind === "additional_context").map((note) => note.text)].join("\n\n");

export const Hookyard = async ({ directory: cwd }) => {
  const event = (name, { sessionID, callID, tool }) =>
    ({ event: name, session_id: sessionID, run_id: sessionID, cwd, tool_name: tool, tool_call_id: callID });
  const contexts = new Map();
  return {
    "tool.execute.before": async (input, output) => {
      const outcome = await ask({ ...event("before_tool_dispatch", input), tool_input: output.args });
      const reason = refusal(outcome);
      if (reason !== undefined) throw new Error(withContext(reason, outcome));
      contexts.set(input.callID, outcome);
      const changed = outcome.patched?.tool_input;
      if (changed === undefined) return;
      // OpenCode goes on with the object that it passed.
      for (const name of Object.keys(output.args)) delete output.args[name];
      Object.assign(output.args, changed);
    },
    "tool.execute.after": async (input, output) => {
      const before = contexts.get(input.callID) ?? {};
      contexts.delete(input.callID);
      const outcome = await ask({ ...event("after_tool_dispatch", input), tool_input: input.args ?? {}, tool_output: output.output });
      const changed = outcome.patched?.tool_output;
      const text = changed === undefined || typeof changed === "string" ? changed : JSON.stringify(changed);
      output.output = withContext(withContext(refusal(outcome) ?? text ?? output.output, before), outcome);
    },
  };
};
