#!/usr/bin/env node
/** Starts a server of the Model Context Protocol, or connects to one, and asks hookyard about each call of a tool. */
export {};
