// Copying of texts. Browsers offer the clipboard API only for https and localhost.

import { el } from "./dom.js";
import { STRINGS } from "./strings.js";

const SAID_MS = 1600;

/** Copy a text and show the result on the button. */
export async function copy(text, button, say) {
  const done = (await byApi(text)) || byCommand(text);
  const label = button.dataset.label ?? button.textContent;
  button.dataset.label = label;
  button.textContent = done ? STRINGS.copied : STRINGS.notCopied;
  say(done ? STRINGS.saidCopied : STRINGS.saidNotCopied);
  clearTimeout(button.timer);
  button.timer = setTimeout(() => {
    button.textContent = label;
  }, SAID_MS);
}

async function byApi(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch { // the API is missing or forbidden
    return false;
  }
}

function byCommand(text) {
  const focused = document.activeElement;
  const area = el("textarea", { class: "unseen", "aria-hidden": "true", tabindex: "-1" });
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  focused?.focus();
  return done;
}
