// A guard: denies commands that delete everything. Exit code 2 denies, standard error says why.
import { readFileSync } from "node:fs";

const { tool_input } = JSON.parse(readFileSync(0, "utf8"));
if (/\brm\s+-\w*(rf|fr)\w*\s+\/(\s|$)/.test(tool_input.command ?? "")) {
  console.error("rm -rf / is not allowed here");
  process.exitCode = 2;
}
