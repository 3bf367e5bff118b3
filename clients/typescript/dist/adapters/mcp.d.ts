/** A proxy before a server of the Model Context Protocol that asks hookyard about each call of a tool. */
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { Events, Place } from "../events.js";
/** Passes messages between two transports that were not started, and asks about calls and results. Ends when one of them is closed. */
export declare function bridge(yard: Events, place: Place, client: Transport, server: Transport): Promise<void>;
