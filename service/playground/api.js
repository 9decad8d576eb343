// The service, asked once. Addresses are relative: the page may lie below a proxy's prefix.

/** An answer that is an error: its status, the service's own sentence, seconds until the next try. */
export class Refusal extends Error {
  constructor(status, sentence, retryAfterS) {
    super(sentence);
    this.status = status;
    this.retryAfterS = retryAfterS;
  }
}

/** No answer at all. */
export class Unreachable extends Error {}

/** The address of a path of the service, in full. */
export const address = (path) => new URL(path, document.baseURI.split("#")[0]).href;

/** What the service answers; a body makes it a POST. */
export async function ask(path, body, signal) {
  const post = {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  };
  let response;
  let text;
  try {
    response = await fetch(address(path), { ...(body && post), signal });
    text = await response.text();
  } catch (error) {
    signal?.throwIfAborted();
    throw new Unreachable(error.message);
  }
  const answer = parsed(text);
  if (response.ok && answer !== undefined) return answer;
  const retryAfterS = Number.parseInt(response.headers.get("Retry-After") ?? "", 10);
  throw new Refusal(
    response.status,
    answer?.error ?? `The answer has status ${response.status} and is not the service's own.`,
    Number.isNaN(retryAfterS) ? undefined : retryAfterS,
  );
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
