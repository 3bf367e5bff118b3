// Blocks commands that remove everything.
import { serve } from "../javascript/hookyard-worker.mjs";

await serve((envelope) => {
  const command = envelope.tool_input?.command ?? "";
  if (command.includes("rm -rf /")) return { decision: "block", reason: "this would remove everything" };
});
