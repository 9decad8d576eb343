// The light or dark theme, which follows the system unless the visitor chooses one. This script is
// not a module, because it runs before the first paint.
(() => {
  const { style } = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const KEY = "fillmask-theme";

  const ofSystem = () => (system.matches ? "dark" : "light");
  const other = () => ((style.colorScheme || ofSystem()) === "dark" ? "light" : "dark");

  function label() {
    const button = document.getElementById("theme");
    button?.setAttribute("aria-label", button.dataset[other()] ?? "");
  }

  function choose() {
    // the theme of the system is not stored, so that the page keeps following the system
    style.colorScheme = other() === ofSystem() ? "" : other();
    label();
    try {
      localStorage.setItem(KEY, style.colorScheme);
    } catch { /* the choice lasts until the page is closed */ }
  }

  try {
    style.colorScheme = localStorage.getItem(KEY) ?? "";
  } catch { /* storage may be disabled */ }
  system.addEventListener("change", label);
  document.addEventListener("DOMContentLoaded", () => {
    label();
    document.getElementById("theme").addEventListener("click", choose);
  });
})();
