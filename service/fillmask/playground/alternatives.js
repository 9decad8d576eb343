// Alternatives to a token, which are fills of the text in which the token is masked.

import { el } from "./dom.js";
import { FillsView, listsOf } from "./fills_view.js";
import { ceiling, fullBar } from "./numbers.js";
import { Problem, solutionOf, waitingSentence } from "./problem.js";
import { Question } from "./question.js";
import { STRINGS } from "./strings.js";

export class Alternatives {
  #heading;
  #scale = el("p", { class: "quiet" });
  #problem;
  #question;
  #request;
  #current;

  /**
   * Calls `on.choose(fill)` for a chosen fill and `on.settled(request)` after a response or an error.
   *
   * @param id id of the panel.
   */
  constructor(id, on) {
    this.view = new FillsView(on.choose);
    this.#heading = el("h3", { id: `${id}-title`, tabindex: "-1" });
    const problem = el("p", { class: "problem", role: "status", hidden: true }, el("span"));
    this.#problem = new Problem(problem, {
      [STRINGS.tryAgain]: () => {
        this.#heading.focus(); // the response removes the button
        this.#question.ask(this.#request);
      },
    });
    this.panel = el(
      "section",
      { id, class: "alternatives", "aria-labelledby": `${id}-title`, hidden: true },
      el("div", { class: "head" }, this.#heading, this.#scale),
      problem,
      this.view.root,
    );
    this.#question = new Question({
      waiting: (waiting) => this.#problem.show(waitingSentence(waiting), "notice"),
      refused: (refusal) => {
        this.#problem.show(refusal.message, "error", solutionOf(refusal, this.#request));
        this.#clear();
        on.settled(this.#request);
      },
      answer: (answer) => {
        this.#problem.show(null);
        const full = ceiling(this.view.render(listsOf(answer), { current: this.#current }));
        this.panel.style.setProperty("--full", full);
        this.#scale.textContent = fullBar(full);
        this.view.stale = false;
        on.settled(this.#request);
      },
    });
  }

  /** Request alternatives to a piece of the text. */
  open(piece, request) {
    this.#request = request;
    this.#current = piece.tokens.length === 1 ? piece.tokens[0].token : undefined;
    this.#show(piece);
    this.#problem.show(null);
    this.#question.ask(request);
  }

  /** Show the reason why a request for alternatives to a piece of the text is impossible. */
  refuse(piece, sentence) {
    this.drop();
    this.#show(piece);
    this.#problem.show(sentence, "error");
  }

  #show(piece) {
    this.#heading.textContent = STRINGS.insteadOf(piece.text);
    if (this.panel.hidden) this.#clear();
    this.view.stale = true;
    this.panel.hidden = false;
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

  #clear() {
    this.view.render([]);
    this.#scale.textContent = "";
  }
}
