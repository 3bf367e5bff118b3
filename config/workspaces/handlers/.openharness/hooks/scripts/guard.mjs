// Blocks commands that remove everything. Runs unchanged in every mode.
import { serve } from "./hookyard-worker.mjs";

await serve((envelope) => {
  const command = envelope.tool_input?.command ?? "";
  if (command.includes("rm -rf /")) return { decision: "block", reason: "this would remove everything" };
});
