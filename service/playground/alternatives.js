// Alternatives to a token, which are fills of the text in which the token is masked.

import { el } from "./dom.js";
import { FillsView } from "./fills_view.js";
import { listsOf } from "./fills.js";
import { isPassing, showProblem, waitingSentence } from "./problem.js";
import { Question } from "./question.js";

export class Alternatives {
  #heading = el("h3", { id: "alternatives-title", tabindex: "-1" });
  #scale = el("p", { class: "quiet" });
  #problem = el("p", { class: "problem", role: "status", hidden: true }, el("span"));
  #again = el("button", { type: "button", class: "button", hidden: true }, "Try again");
  #question;
  #request;
  #current;

  /** Calls `on.choose(fill)` for a chosen fill and `on.settled(request)` after a response or an error. */
  constructor(on) {
    this.view = new FillsView({ choose: on.choose, point: () => {} });
    this.#problem.append(" ", this.#again);
    this.panel = el(
      "section",
      { id: "alternatives", class: "alternatives", "aria-labelledby": "alternatives-title", hidden: true },
      el("div", { class: "head" }, this.#heading, this.#scale),
      this.#problem,
      this.view.root,
    );
    this.#again.addEventListener("click", () => {
      this.#heading.focus(); // the response removes the button
      this.#question.ask(this.#request);
    });
    this.#question = new Question({
      waiting: (problem) => this.#tell(waitingSentence(problem), "notice"),
      refused: (refusal) => {
        this.#tell(refusal.message, "error", isPassing(refusal));
        on.settled(this.#request);
      },
      answer: (answer) => {
        this.#tell(null);
        const lists = listsOf(answer);
        this.#scale.textContent = this.view.render(lists, { current: this.#current });
        this.view.stale = false;
        on.settled(this.#request);
      },
    });
  }

  /** Request alternatives to a piece of the text. */
  open(piece, request) {
    this.#request = request;
    this.#current = piece.tokens.length === 1 ? piece.tokens[0].token : undefined;
    this.#heading.textContent = `Instead of “${piece.text}”`;
    if (this.panel.hidden) {
      this.view.render([]);
      this.#scale.textContent = "";
    }
    this.view.stale = true;
    this.panel.hidden = false;
    this.#tell(null);
    this.#question.ask(request);
  }

  /** Show the reason why a request is impossible. */
  refuse(sentence) {
    this.drop();
    this.#tell(sentence, "error");
  }

  /** Cancel the open request. */
  drop() {
    this.#question.drop();
    this.view.stale = true;
  }

  close() {
    this.drop();
    this.panel.hidden = true;
  }

  #tell(sentence, kind, again = false) {
    showProblem(this.#problem, sentence, kind);
    this.#again.hidden = !again;
  }
}
