// The light or dark theme, which follows the system unless the visitor chooses one. This script is
// not a module, because it runs before the first paint.
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
    } catch { /* the choice lasts until the page is closed */ }
  }

  const ofSystem = () => (system.matches ? "dark" : "light");
  const shown = () => root.dataset.theme ?? ofSystem();
  const other = () => (shown() === "dark" ? "light" : "dark");

  function label() {
    const button = document.getElementById("theme");
    button?.setAttribute("aria-label", button.dataset[other()] ?? "");
  }

  const chosen = stored();
  if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;
  system.addEventListener("change", label);
  document.addEventListener("DOMContentLoaded", () => {
    label();
    document.getElementById("theme").addEventListener("click", () => {
      const theme = other();
      // the theme of the system is not stored, so that the page keeps following the system
      if (theme === ofSystem()) delete root.dataset.theme;
      else root.dataset.theme = theme;
      store(root.dataset.theme);
      label();
    });
  });
})();
