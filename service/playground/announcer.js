// Sentences for those who do not see the page: the latest one, once nothing newer has come.

import { byId } from "./dom.js";

const CALM_MS = 700;
let timer;

export function say(sentence) {
  clearTimeout(timer);
  timer = setTimeout(() => {
    byId("announcer").textContent = sentence;
  }, CALM_MS);
}
