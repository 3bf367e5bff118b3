/** Which outputs of tools the Claude Agent SDK must keep from the model, and what the model gets in their place. */

import type { Outcome } from "../outcome.js";
import { told } from "./shared.js";

/** What the SDK says of calls, as far as it is used here. */
export type Call = { session_id: string; tool_use_id: string; tool_response?: unknown };
type Batch = { session_id: string; tool_calls?: { tool_use_id: string; tool_response?: unknown }[] };

const UNFIT = "a hook changed the output into another form than the tool's own, which has other keys or types";

export class Outputs {
  /** What the model has to get in place of an output, by call. */
  readonly #withheld = new Map<string, string>();
  /** Why a session is over. Its history may have what the model must not get. */
  readonly #over = new Map<string, string>();

  /** Withholds an output, until hooks have judged it. */
  hold({ tool_use_id }: Call): void {
    this.#withheld.set(tool_use_id, "hookyard gave no verdict");
  }

  /** What the model gets in place of an output, or undefined: the output. */
  judged({ session_id, tool_use_id, tool_response }: Call, outcome: Outcome): unknown {
    const changed = outcome.patched?.tool_output;
    if (outcome.verdict === "halt") this.#over.set(session_id, told(outcome));
    if (outcome.proceeds && (changed === undefined || isAlike(tool_response, changed))) {
      this.#withheld.delete(tool_use_id);
      return changed;
    }
    const text = outcome.proceeds ? UNFIT : told(outcome);
    this.#withheld.set(tool_use_id, text);
    return tool_response === undefined ? undefined : standIn(tool_response, text);
  }

  /** Why the session is over, or undefined. The SDK does not say whether it took a replacement, but what the model gets. */
  over({ session_id, tool_calls = [] }: Batch): string | undefined {
    for (const { tool_use_id, tool_response } of tool_calls) {
      const text = this.#withheld.get(tool_use_id);
      if (text !== undefined && plain(tool_response) !== plain(text)) this.#over.set(session_id, text);
      this.#withheld.delete(tool_use_id);
    }
    return this.#over.get(session_id);
  }
}

/** A text in the form of the output of `Bash`, of `Read` or of a tool of MCP. Of other tools, the SDK takes none. */
function standIn(output: any, text: string): unknown {
  if (output?.stdout !== undefined) return { stdout: text, stderr: "", interrupted: false };
  if (output?.file === undefined) return text;
  return { type: "text", file: { filePath: "", content: text, numLines: 1, startLine: 1, totalLines: 1 } };
}

/** Whether the SDK takes an output in place of another: any of a tool of MCP, else one with the same keys and types. */
function isAlike(output: unknown, other: unknown): boolean {
  const form = (value: unknown) => JSON.stringify(value, (key, part) => (key === "type" || typeof part === "object" ? part : typeof part));
  return other !== null && (Array.isArray(output) || typeof output === "string" || form(output) === form(other));
}

/** Without the numbers of lines that `Read` puts before them. */
const plain = (text: unknown) => String(text).replace(/^ *\d+[\t→]/gm, "").trim();
