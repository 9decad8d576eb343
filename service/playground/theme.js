// Light or dark like the system, unless the visitor chooses. Not a module, because it runs before
// the first paint.
(() => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const KEY = "fillmask-theme";

  function stored() {
    try {
      return localStorage.getItem(KEY);
    } catch { // storage may be disabled
      return null;
    }
  }

  function store(theme) {
    try {
      if (theme) localStorage.setItem(KEY, theme);
      else localStorage.removeItem(KEY);
    } catch { /* the choice lasts as long as the page */ }
  }

  const ofSystem = () => (system.matches ? "dark" : "light");
  const shown = () => root.dataset.theme ?? ofSystem();
  const other = () => (shown() === "dark" ? "light" : "dark");

  function label() {
    document.getElementById("theme")?.setAttribute("aria-label", `Switch to the ${other()} theme`);
  }

  const chosen = stored();
  if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;
  system.addEventListener("change", label);
  document.addEventListener("DOMContentLoaded", () => {
    label();
    document.getElementById("theme").addEventListener("click", () => {
      const theme = other();
      // the system's theme is stored as no choice, so that the page follows it
      if (theme === ofSystem()) delete root.dataset.theme;
      else root.dataset.theme = theme;
      store(root.dataset.theme);
      label();
    });
  });
})();
