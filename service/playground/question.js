// One question at a time: a newer one takes the place of an older, whose answer is never shown.

import { ask, Refusal, Unreachable } from "./api.js";
import { askForKey, currentKey, goOn } from "./key.js";

const POLL_MS = 1000;
const DEFAULT_RETRY_S = 1;

/**
 * Asks and asks again: once when the service is overloaded, until it can answer when it is
 * starting or cannot be reached, and with each key that the visitor gives when it wants one.
 *
 * `on.waiting(problem)` is called with `{kind: "busy" | "starting" | "unreachable" | "key",
 * sentence, seconds}`, `on.answer(answer)` and `on.refused(refusal)` at the end. Of a question that
 * was dropped nothing is heard.
 */
export class Question {
  #controller = new AbortController();
  #on;

  constructor(on) {
    this.#on = on;
  }

  /** Drop the question that is open, if one is. */
  drop() {
    this.#controller.abort();
    this.#controller = new AbortController();
  }

  /** Ask, in a while; drops what was asked before. */
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
    let patient = true;
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
        } else if (status === 429 && patient) {
          patient = false;
          this.#on.waiting({ kind: "busy", sentence, seconds });
          await pause(seconds * 1000, signal);
        } else if (error.wantsKey) {
          if (currentKey() !== key) continue; // another one has been given meanwhile
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
