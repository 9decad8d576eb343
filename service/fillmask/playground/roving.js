// Keyboard navigation in a group of buttons, which is a single tab stop (roving tabindex).

/**
 * Let arrow keys move between the elements that match `selector`. Home and End move to the
 * first and the last element.
 *
 * Call `refresh` after adding or removing elements, so that one element remains a tab stop.
 */
export function roving(group, selector) {
  const elements = () => [...group.querySelectorAll(selector)];

  function rest(element) {
    for (const one of elements()) one.tabIndex = one === element ? 0 : -1;
  }

  group.addEventListener("focusin", ({ target }) => {
    if (target.matches(selector)) rest(target);
  });

  group.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const all = elements();
    const at = all.indexOf(event.target);
    if (at < 0) return;
    const to = {
      ArrowLeft: at - 1, ArrowUp: at - 1, ArrowRight: at + 1, ArrowDown: at + 1,
      Home: 0, End: all.length - 1,
    }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    all.at(to % all.length).focus();
  });

  return {
    refresh() {
      const all = elements();
      if (all.length && !all.some((one) => one.tabIndex === 0)) rest(all[0]);
    },
  };
}
