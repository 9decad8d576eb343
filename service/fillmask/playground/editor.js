// The editor: the fields of the text, of a pair's second text and of the text to compare with, with the
// buttons that mask a word and take back an edit of the page.

import { byId, setAttribute } from "./dom.js";
import { STRINGS } from "./strings.js";
import { TextField } from "./text_field.js";

const MAX_STEPS = 100;
const TYPING_MS = 500; // from a key press until the button shows a word again
const MAC = /Mac|iPhone|iPad/.test(navigator.platform);
const TOUCH = "(hover: none), (pointer: coarse)";

export class Editor {
  #main;
  #second;
  #other;
  #focused; // the field that was focused last
  #button = byId("mask");
  #undo = byId("undo");
  #steps = []; // edits of the text by the page, as {before, after}
  #typedAt = -Infinity;
  #timer;

  /** Calls `onChange(typed)` with true for typing and false for other changes. */
  constructor(onChange) {
    const field = (id, isNumbered, more = {}) => {
      const made = new TextField(id, isNumbered, {
        changed: (typed) => {
          this.#changed(made, typed);
          onChange(typed);
        },
        ...more,
      });
      made.area.addEventListener("focus", () => {
        this.#focused = made;
        this.#labelSoon();
      });
      return made;
    };
    const inserted = (before) => {
      this.#steps = [...this.#steps.slice(1 - MAX_STEPS), { before, after: this.text }];
    };
    this.#main = this.#focused = field("text", true, { inserted });
    this.#second = field("second", false);
    this.#other = field("other", true);
    this.#label();
    document.addEventListener("selectionchange", () => this.#labelSoon());
    document.addEventListener("keydown", (event) => {
      if (!event.altKey || event.ctrlKey || event.metaKey) return;
      // on a Mac, Alt changes the character of a key
      if (event.key.toLowerCase() !== "m" && !(MAC && event.code === "KeyM")) return;
      event.preventDefault();
      this.#current.mask();
    });
    // the focus stays in the text, so that a phone's keyboard stays open
    this.#button.addEventListener("pointerdown", (event) => event.preventDefault());
    this.#button.addEventListener("click", () => this.#current.mask());
    this.#undo.addEventListener("click", () => this.#takeBack());
    byId("mask-key").textContent = MAC ? STRINGS.maskKeyOfMac : STRINGS.maskKey;
    if (matchMedia(TOUCH).matches) byId("editor-hint").textContent = STRINGS.tap;
  }

  get text() {
    return this.#main.area.value;
  }

  /** The field of the text. */
  get main() {
    return this.#main;
  }

  /** The field of the second text of a pair. */
  get second() {
    return this.#second;
  }

  /** The field of the text to compare with. */
  get other() {
    return this.#other;
  }

  /** Use a model. Its mask token replaces the previous mask token in the texts. */
  use({ mask_token: token, pairs, tasks }) {
    const maskToken = tasks.includes("fill-mask") ? token : null;
    const rewritten = (text) => this.#main.rewritten(text, maskToken);
    this.#steps = this.#steps.map(({ before, after }) => ({ before: rewritten(before), after: rewritten(after) }));
    this.#main.use({ isShown: true, maskToken });
    this.#second.use({ isShown: pairs, maskToken });
    this.#button.hidden = byId("editor-hint").hidden = maskToken === null;
    byId("text-label").textContent = maskToken === null ? STRINGS.text : STRINGS.textWithMasks;
    this.#changed(this.#main, false);
  }

  /** The field whose words the button masks. */
  get #current() {
    return this.#focused.isShown ? this.#focused : this.#main;
  }

  #takeBack() {
    const steps = this.#steps.slice(0, -1);
    this.#main.replace(this.#steps.at(-1).before);
    this.#steps = steps;
    this.#changed(this.#main, false);
    if (this.#undo.hidden) this.#main.area.focus();
  }

  #changed(field, typed) {
    if (typed && field === this.#main) {
      this.#typedAt = performance.now();
      this.#name(STRINGS.mask);
    }
    this.#undo.hidden = this.#steps.at(-1)?.after !== this.text;
    this.#labelSoon();
  }

  #labelSoon() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#label(), this.#typedAt + TYPING_MS - performance.now());
  }

  #label() {
    const plan = this.#current.masking;
    this.#name(!plan || plan.word ? STRINGS.mask : STRINGS.insertMask, plan?.word);
    setAttribute(this.#button, "aria-disabled", plan ? null : "true");
  }

  #name(label, word) {
    byId("mask-label").textContent = label;
    byId("mask-word").textContent = word ? STRINGS.quoted(word) : "";
  }
}
