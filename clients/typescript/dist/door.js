/** How events get to a daemon. */
/** The longest answer, in bytes. */
export const LONGEST_ANSWER = 64 << 20;
