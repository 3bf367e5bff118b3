/** Hooks for the Claude Agent SDK that ask hookyard: `query({ prompt, options: { hooks: claudeHooks(yard) } })`. */
import type { Events } from "../events.js";
type Options = {
    signal: AbortSignal;
};
/** Asks before and after each tool, and about each prompt. The run of an event is the session. */
export declare function claudeHooks(yard: Events): {
    PreToolUse: {
        hooks: ((input: any, _: string | undefined, options: Options) => Promise<any>)[];
        timeout: number;
        onFailure: "block";
    }[];
    PostToolUse: {
        hooks: ((input: any, _: string | undefined, options: Options) => Promise<any>)[];
        timeout: number;
        onFailure: "block";
    }[];
    PostToolUseFailure: {
        hooks: ((input: any, _: string | undefined, options: Options) => Promise<any>)[];
        timeout: number;
        onFailure: "block";
    }[];
    PostToolBatch: {
        hooks: ((input: any, _: string | undefined, options: Options) => Promise<any>)[];
        timeout: number;
        onFailure: "block";
    }[];
    UserPromptSubmit: {
        hooks: ((input: any, _: string | undefined, options: Options) => Promise<any>)[];
        timeout: number;
        onFailure: "block";
    }[];
    PreCompact: {
        hooks: ((input: any, _: string | undefined, options: Options) => Promise<any>)[];
        timeout: number;
        onFailure: "block";
    }[];
};
export {};
