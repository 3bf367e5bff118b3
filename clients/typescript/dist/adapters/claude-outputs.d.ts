/** Which outputs of tools the Claude Agent SDK must keep from the model, and what the model gets in their place. */
import type { Outcome } from "../outcome.js";
/** What the SDK says of calls, as far as it is used here. */
export type Call = {
    session_id: string;
    tool_use_id: string;
    tool_response?: unknown;
};
type Batch = {
    session_id: string;
    tool_calls?: {
        tool_use_id: string;
        tool_response?: unknown;
    }[];
};
export declare class Outputs {
    #private;
    /** Withholds an output, until hooks have judged it. */
    hold({ tool_use_id }: Call): void;
    /** What the model gets in place of an output, or undefined: the output. */
    judged({ session_id, tool_use_id, tool_response }: Call, outcome: Outcome): unknown;
    /** Why the session is over, or undefined. The SDK does not say whether it took a replacement, but what the model gets. */
    over({ session_id, tool_calls }: Batch): string | undefined;
}
export {};
