// One request to the service. URLs are relative, because a proxy may add a prefix.

import { currentKey } from "./key.js";

/**
 * An error response: status, the service's message, seconds until the next try, and whether the
 * service requires an API key.
 */
export class Refusal extends Error {
  constructor(status, sentence, { retryAfterS, wantsKey }) {
    super(sentence);
    this.status = status;
    this.retryAfterS = retryAfterS;
    this.wantsKey = wantsKey;
  }
}

/** The service did not respond. */
export class Unreachable extends Error {}

/** The absolute URL of a path of the service. */
export const address = (path) => new URL(path, document.baseURI.split("#")[0]).href;

/** The service's response; with a body the request is a POST. */
export async function ask(path, body, signal) {
  const key = currentKey();
  const headers = {
    ...(key !== null && { Authorization: `Bearer ${bytes(key)}` }),
    ...(body && { "Content-Type": "application/json" }),
  };
  const post = body && { method: "POST", body: JSON.stringify(body) };
  let response;
  let text;
  try {
    response = await fetch(address(path), { ...post, headers, signal });
    text = await response.text();
  } catch (error) {
    signal?.throwIfAborted();
    throw new Unreachable(error.message);
  }
  const answer = parsed(text);
  if (response.ok && answer !== undefined) return answer;
  const retryAfterS = Number.parseInt(response.headers.get("Retry-After") ?? "", 10);
  // a proxy may require another scheme
  const wantsKey = response.status === 401 && /^bearer/i.test(response.headers.get("WWW-Authenticate"));
  throw new Refusal(
    response.status,
    answer?.error ?? `The answer has status ${response.status} and is not the service's own.`,
    { retryAfterS: Number.isNaN(retryAfterS) ? undefined : retryAfterS, wantsKey },
  );
}

/** A text as a string of its UTF-8 bytes, because header values hold bytes only. */
const bytes = (text) => String.fromCharCode(...new TextEncoder().encode(text));

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
