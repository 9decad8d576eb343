// One request at a time. A newer request replaces the older request, whose response the page ignores.

import { ask, Refusal, Unreachable } from "./api.js";
import { askForKey, currentKey, goOn } from "./key.js";

const POLL_MS = 1000;
const DEFAULT_RETRY_S = 1;

/**
 * A request with retries. During an overload there is one retry. While the service is starting or
 * unreachable, retries continue until the service responds. If the service requires an API key, the
 * page repeats the request with each key that the visitor enters.
 *
 * Each wait calls `on.waiting({kind, sentence, seconds})`, where `kind` is "busy", "starting",
 * "unreachable" or "key". A response calls `on.answer(answer, timing)`, where `timing` is a sentence
 * about the time until the response. An error response calls `on.refused(refusal)`. A cancelled
 * request calls no function.
 */
export class Question {
  #controller = new AbortController();
  #on;

  constructor(on) {
    this.#on = on;
  }

  /** Cancel the open request. */
  drop() {
    this.#controller.abort();
    this.#controller = new AbortController();
  }

  /** Cancel the open request, and send a new request after a delay. */
  async ask({ path, body }, delayMs = 0) {
    this.drop();
    const { signal } = this.#controller;
    try {
      await pause(delayMs, signal);
      const { answer, timing } = await this.#answer(path, body, signal);
      signal.throwIfAborted();
      this.#on.answer(answer, timing);
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof Refusal)) throw error;
      this.#on.refused(error);
    }
  }

  async #answer(path, body, signal) {
    let mayRetry = true;
    for (;;) {
      const key = currentKey();
      try {
        const response = await ask(path, body, signal);
        goOn();
        return response;
      } catch (error) {
        const { message: sentence, status, retryAfterS: seconds = DEFAULT_RETRY_S } = error;
        if (error instanceof Unreachable) {
          this.#on.waiting({ kind: "unreachable" });
          await this.#untilReady(signal);
        } else if (status === 503) {
          this.#on.waiting({ kind: "starting", sentence });
          await this.#untilReady(signal);
        } else if (status === 429 && mayRetry) {
          mayRetry = false;
          this.#on.waiting({ kind: "busy", sentence, seconds });
          await pause(seconds * 1000, signal);
        } else if (error.wantsKey) {
          if (currentKey() !== key) continue; // the visitor has entered another key
          this.#on.waiting({ kind: "key" });
          await askForKey(signal);
        } else {
          throw error;
        }
      }
    }
  }

  async #untilReady(signal) {
    for (;;) {
      await pause(POLL_MS, signal);
      try {
        await ask("health/ready", undefined, signal);
        return;
      } catch {
        signal.throwIfAborted();
      }
    }
  }
}

function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}
