// The service, asked once. Addresses are relative: the page may lie below a proxy's prefix.

import { currentKey } from "./key.js";

/**
 * An answer that is an error: its status, the service's own sentence, seconds until the next try,
 * whether an API key is wanted.
 */
export class Refusal extends Error {
  constructor(status, sentence, { retryAfterS, wantsKey }) {
    super(sentence);
    this.status = status;
    this.retryAfterS = retryAfterS;
    this.wantsKey = wantsKey;
  }
}

/** No answer at all. */
export class Unreachable extends Error {}

/** The address of a path of the service, in full. */
export const address = (path) => new URL(path, document.baseURI.split("#")[0]).href;

/** What the service answers; a body makes it a POST. */
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
  // a proxy may want something else
  const wantsKey = response.status === 401 && /^bearer/i.test(response.headers.get("WWW-Authenticate"));
  throw new Refusal(
    response.status,
    answer?.error ?? `The answer has status ${response.status} and is not the service's own.`,
    { retryAfterS: Number.isNaN(retryAfterS) ? undefined : retryAfterS, wantsKey },
  );
}

/** A text as its bytes, which is all that the value of a header can hold. */
const bytes = (text) => String.fromCharCode(...new TextEncoder().encode(text));

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
