/** Where the daemon's socket is, and whose it is. */
/** The path of the daemon's socket, as the daemon itself chooses it. */
export declare function defaultSocket(): string;
/** Throws a `Problem` if another user could have put the socket there: its daemon would decide in the place of ours. */
export declare function checkSocket(path: string): void;
