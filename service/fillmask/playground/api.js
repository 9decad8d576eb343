// Requests to the service. URLs are relative, because a proxy may add a prefix.

import { currentKey } from "./key.js";
import { whole } from "./numbers.js";
import { STRINGS } from "./strings.js";

/**
 * An error response with its status, its message, the seconds until the next attempt, and whether
 * the service requires an API key.
 */
export class Refusal extends Error {
  constructor(status, sentence, { retryAfterS, wantsKey }) {
    super(sentence);
    this.status = status;
    this.retryAfterS = retryAfterS;
    this.wantsKey = wantsKey;
  }
}

/** An error for a request without a response. */
export class Unreachable extends Error {}

/** Return the absolute URL of a path of the service. */
export const address = (path) => new URL(path, document.baseURI.split("#")[0]).href;

/**
 * Send a request and return the parsed response as `answer`, with the sentence `timing` about the time
 * until the response. A request with a body is a POST.
 */
export async function ask(path, body, signal) {
  const key = currentKey();
  const headers = {
    ...(key !== null && { Authorization: `Bearer ${bytes(key)}` }),
    ...(body && { "Content-Type": "application/json" }),
  };
  const post = body && { method: "POST", body: JSON.stringify(body) };
  const sentAt = performance.now();
  let response;
  let text;
  try {
    response = await fetch(address(path), { ...post, headers, signal });
    text = await response.text();
  } catch (error) {
    signal?.throwIfAborted();
    throw new Unreachable(error.message);
  }
  const timing = timingSentence(response.headers, performance.now() - sentAt);
  const answer = parsed(text);
  if (response.ok && answer !== undefined) return { answer, timing };
  const retryAfterS = Number.parseInt(response.headers.get("Retry-After") ?? "", 10);
  // a proxy may require another authentication scheme
  const wantsKey = response.status === 401 && /^bearer/i.test(response.headers.get("WWW-Authenticate"));
  throw new Refusal(
    response.status,
    answer?.error ?? STRINGS.notFromService(response.status),
    { retryAfterS: Number.isNaN(retryAfterS) ? undefined : retryAfterS, wantsKey },
  );
}

/** Return the UTF-8 bytes of a text as characters, because header values contain bytes only. */
const bytes = (text) => String.fromCharCode(...new TextEncoder().encode(text));

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Return the sentence about the time until a response. The header Server-Timing has the service's own
 * time, without the network. If a proxy removes the header, the sentence has the time that the page waited.
 */
function timingSentence(headers, waitedMs) {
  const own = /\bapp;dur=([\d.]+)/.exec(headers.get("Server-Timing") ?? "");
  return own
    ? STRINGS.onServer(duration(Number(own[1])))
    : STRINGS.withNetwork(duration(waitedMs));
}

const duration = (ms) => STRINGS.milliseconds(ms < 10 ? ms.toFixed(1) : whole(Math.round(ms)));
