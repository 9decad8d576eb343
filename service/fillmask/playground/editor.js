// The editor: the fields of the text, of a pair's second text and of the text to compare with, with the
// buttons that mask a word and take back an edit of the page.

import { byId, edit, setAttribute } from "./dom.js";
import { STRINGS } from "./strings.js";
import { TextField } from "./text_field.js";

const CALM_MS = 200; // from the last change until the button shows a word again
const MAC = /Mac|iPhone|iPad/.test(navigator.platform);
const TOUCH = "(hover: none), (pointer: coarse)";

export class Editor {
  main;
  second; // of a pair
  other; // to compare with
  #focused; // the field that was focused last
  #button = byId("mask");
  #undo = byId("undo");
  #edited = []; // the fields of the latest edits, all by the page
  #timer;

  /** Calls `onChange(typed)` with true for typing and false for other changes. */
  constructor(onChange) {
    const field = (id, isNumbered) => {
      const made = new TextField(id, isNumbered, (typed) => {
        this.#offer(typed ? [] : [...this.#edited, made]);
        onChange(typed);
      });
      made.area.addEventListener("focus", () => {
        this.#focused = made;
        this.#labelSoon();
      });
      return made;
    };
    this.main = this.#focused = field("text", true);
    this.second = field("second", false);
    this.other = field("other", true);
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
    this.#undo.addEventListener("click", () => {
      const [last, ...earlier] = this.#edited.toReversed();
      edit(last.area, "undo"); // counts as typing
      this.#offer(earlier.toReversed());
      if (this.#undo.hidden) last.area.focus();
    });
    byId("mask-key").textContent = MAC ? STRINGS.maskKeyOfMac : STRINGS.maskKey;
    if (!matchMedia(TOUCH).matches) return;
    byId("editor-hint").textContent = STRINGS.tap;
    byId("mask-key").hidden = true; // phones have no Alt key
  }

  get text() {
    return this.main.area.value;
  }

  /** Use a model. Its mask token replaces the previous mask token in the texts, which ends their undo. */
  use({ mask_token: token, pairs, tasks }) {
    const maskToken = tasks.includes("fill-mask") ? token : null;
    this.main.use({ isShown: true, maskToken });
    this.second.use({ isShown: pairs, maskToken });
    this.#button.hidden = byId("editor-hint").hidden = maskToken === null;
    byId("text-label").textContent = maskToken === null ? STRINGS.text : STRINGS.textWithMasks;
    this.#offer([]);
  }

  /** The field whose words the button masks. */
  get #current() {
    return this.#focused.isShown ? this.#focused : this.main;
  }

  /** Offer to take back edits of the page. */
  #offer(edited) {
    this.#edited = edited;
    this.#undo.hidden = !edited.length;
    this.#labelSoon();
  }

  #labelSoon() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#label(), CALM_MS);
  }

  #label() {
    const plan = this.#current.masking;
    byId("mask-label").textContent = !plan || plan.word ? STRINGS.mask : STRINGS.insertMask;
    byId("mask-word").textContent = plan?.word ? STRINGS.quoted(plan.word) : "";
    setAttribute(this.#button, "aria-disabled", plan ? null : "true");
  }
}
