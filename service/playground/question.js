// One request at a time: a newer one replaces an older one, whose response is never shown.

import { ask, Refusal, Unreachable } from "./api.js";
import { askForKey, currentKey, goOn } from "./key.js";

const POLL_MS = 1000;
const DEFAULT_RETRY_S = 1;

/**
 * Sends a request and retries it: once if the service is overloaded, until it responds if it is
 * starting or cannot be reached, and with each key that the visitor enters if it requires one.
 *
 * `on.waiting(problem)` is called with `{kind: "busy" | "starting" | "unreachable" | "key",
 * sentence, seconds}`, `on.answer(answer)` and `on.refused(refusal)` at the end. A dropped request
 * calls nothing.
 */
export class Question {
  #controller = new AbortController();
  #on;

  constructor(on) {
    this.#on = on;
  }

  /** Drop the open request, if any. */
  drop() {
    this.#controller.abort();
    this.#controller = new AbortController();
  }

  /** Send a request after a delay; drops the one before. */
  async ask({ path, body }, delayMs = 0) {
    this.drop();
    const { signal } = this.#controller;
    try {
      await pause(delayMs, signal);
      const answer = await this.#answer(path, body, signal);
      signal.throwIfAborted();
      this.#on.answer(answer);
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
        const answer = await ask(path, body, signal);
        goOn();
        return answer;
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
