// The editor of the text and the fields of other texts.

import { byId, insertInto, setAttribute } from "./dom.js";
import { Mirror } from "./mirror.js";
import { STRINGS } from "./strings.js";
import { TextField } from "./text_field.js";
import { difference, findMasks, maskingAt } from "./text.js";

const MAX_STEPS = 100;
const TYPING_MS = 500; // from a key press until the button shows a word again
const MAC = /Mac|iPhone|iPad/.test(navigator.platform);
const TOUCH = "(hover: none), (pointer: coarse)";

export class Editor {
  #area = byId("text");
  #mirror = new Mirror("mirror", true);
  #second;
  #other;
  #focused = null; // the field that was focused last, null for the text
  #button = byId("mask");
  #undo = byId("undo");
  #steps = []; // edits by the page, as {before, after}
  #maskToken = null; // null until the models are loaded
  #mayMask = false; // whether the model fills masks
  #isInserting = false;
  #typedAt = -Infinity;
  #timer;
  #onChange;

  /** Calls `onChange(typed)` with true for typing and false for other changes. */
  constructor(onChange) {
    this.#onChange = onChange;
    this.#area.addEventListener("focus", () => this.#focus(null));
    this.#second = this.#field("second", false);
    this.#other = this.#field("other", true);
    this.#label();
    this.#area.addEventListener("input", () => {
      if (!this.#isInserting) this.#changed(true);
    });
    this.#area.addEventListener("dblclick", () => this.#maskSelected());
    document.addEventListener("selectionchange", () => this.#labelSoon());
    document.addEventListener("keydown", (event) => {
      if (!event.altKey || event.ctrlKey || event.metaKey) return;
      // on a Mac, Alt changes the character of a key
      if (event.key.toLowerCase() !== "m" && !(MAC && event.code === "KeyM")) return;
      event.preventDefault();
      this.#mask();
    });
    // the focus stays in the text, so that a phone's keyboard stays open
    this.#button.addEventListener("pointerdown", (event) => event.preventDefault());
    this.#button.addEventListener("click", () => this.#mask());
    this.#undo.addEventListener("click", () => this.#takeBack());
    byId("mask-key").textContent = MAC ? STRINGS.maskKeyOfMac : STRINGS.maskKey;
    if (matchMedia(TOUCH).matches) byId("editor-hint").textContent = STRINGS.tap;
  }

  get text() {
    return this.#area.value;
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
  use({ mask_token: maskToken, pairs, tasks }) {
    this.#mayMask = tasks.includes("fill-mask");
    this.#second.use({ isShown: pairs, maskToken: this.#mayMask ? maskToken : null });
    this.#button.hidden = byId("editor-hint").hidden = !this.#mayMask;
    byId("text-label").textContent = this.#mayMask ? STRINGS.textWithMasks : STRINGS.text;
    const rewritten = (text) => (this.#maskToken ? text.replaceAll(this.#maskToken, maskToken) : text);
    if (rewritten(this.text) !== this.text) this.#area.value = rewritten(this.text);
    this.#steps = this.#steps.map(({ before, after }) => ({ before: rewritten(before), after: rewritten(after) }));
    this.#maskToken = maskToken;
    this.#draw();
  }

  /** Set the initial text. Undo does not remove this text. */
  start(text) {
    this.#area.value = text;
    this.#draw();
  }

  /** Replace the text and return the end of the change. The page's undo and the browser's undo revert the change. */
  replace(text) {
    const { start, end, inserted } = difference(this.text, text);
    this.#insert(start, end, inserted);
    return start + inserted.length;
  }

  /** Highlight a mask, or no mask if the index is null. */
  point(index) {
    this.#mirror.point(index);
  }

  /** Mark the text as invalid or valid. */
  set invalid(invalid) {
    setAttribute(this.#area, "aria-invalid", invalid ? "true" : null);
  }

  #field(id, isNumbered) {
    const field = new TextField(id, isNumbered, (typed) => {
      this.#labelSoon();
      this.#onChange(typed);
    });
    field.area.addEventListener("focus", () => this.#focus(field));
    return field;
  }

  #focus(field) {
    this.#focused = field;
    this.#labelSoon();
  }

  /** The field whose words the button masks, null for the text. */
  get #current() {
    return this.#focused?.isShown ? this.#focused : null;
  }

  #masking() {
    if (!this.#mayMask) return null;
    if (this.#current) return this.#current.masking;
    const { selectionStart, selectionEnd } = this.#area;
    return maskingAt(this.text, selectionStart, selectionEnd, this.#maskToken);
  }

  #mask() {
    if (this.#current) {
      this.#current.mask();
      return;
    }
    const plan = this.#masking();
    if (!plan) return;
    this.#insert(plan.start, plan.end, plan.inserted);
    this.#selectMask(plan.start);
  }

  /** Mask the word of a double click and select the mask, so that typing replaces the mask. */
  #maskSelected() {
    const { selectionStart: at, selectionEnd } = this.#area;
    if (!this.text.slice(at, selectionEnd).trim()) return;
    if (this.#masking()) this.#mask();
    else if (this.#mayMask) this.#selectMask(at);
  }

  /** Select the mask at an offset, or the first mask after the offset. */
  #selectMask(at) {
    const mask = findMasks(this.text, this.#maskToken).find(([, end]) => end > at);
    if (mask) this.#area.setSelectionRange(...mask);
  }

  #insert(start, end, inserted) {
    if (start === end && !inserted) return;
    const before = this.text;
    this.#isInserting = true;
    insertInto(this.#area, start, end, inserted);
    this.#isInserting = false;
    this.#steps = [...this.#steps.slice(1 - MAX_STEPS), { before, after: this.text }];
    this.#changed(false);
  }

  #takeBack() {
    const { before } = this.#steps.at(-1);
    const { start, end, inserted } = difference(this.text, before);
    const steps = this.#steps.slice(0, -1);
    this.#insert(start, end, inserted);
    this.#steps = steps;
    this.#draw();
    if (this.#undo.hidden) this.#area.focus();
  }

  #changed(typed) {
    if (typed) {
      this.#typedAt = performance.now();
      this.#name("Mask");
    }
    this.#draw();
    this.#onChange(typed);
  }

  #draw() {
    this.#mirror.draw(this.text, this.#maskToken);
    this.#undo.hidden = this.#steps.at(-1)?.after !== this.text;
    this.#labelSoon();
  }

  #labelSoon() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#label(), this.#typedAt + TYPING_MS - performance.now());
  }

  #label() {
    const plan = this.#masking();
    this.#name(!plan || plan.word ? STRINGS.mask : STRINGS.insertMask, plan?.word);
    setAttribute(this.#button, "aria-disabled", plan ? null : "true");
  }

  #name(label, word) {
    byId("mask-label").textContent = label;
    byId("mask-word").textContent = word ? STRINGS.quoted(word) : "";
  }
}
