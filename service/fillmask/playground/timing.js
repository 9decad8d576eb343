// The time until a response.

import { whole } from "./numbers.js";
import { STRINGS } from "./strings.js";

/**
 * Return the sentence about the time until a response. The header Server-Timing has the service's own
 * time, without the network. If a proxy removes the header, the sentence has the time that the page waited.
 */
export function timingSentence(headers, waitedMs) {
  const own = /\bapp;dur=([\d.]+)/.exec(headers.get("Server-Timing") ?? "");
  return own
    ? STRINGS.onServer(duration(Number(own[1])))
    : STRINGS.withNetwork(duration(waitedMs));
}

const duration = (ms) => STRINGS.milliseconds(ms < 10 ? ms.toFixed(1) : whole(Math.round(ms)));
