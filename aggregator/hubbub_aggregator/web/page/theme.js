// Light, dark, or what the system says: remembered in this browser, told to nobody.

import { setText } from "./dom.js";

const THEMES = ["auto", "light", "dark"];

function set(button, theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  setText(button, `Theme: ${theme}`);
  try {
    localStorage.setItem("hubbub-theme", theme);
  } catch {
    // Storage is switched off: the choice lasts as long as the page.
  }
}

export function followTheme(button) {
  let theme = "auto";
  try {
    theme = localStorage.getItem("hubbub-theme") ?? "auto";
  } catch {
    // As above.
  }
  set(button, THEMES.includes(theme) ? theme : "auto");
  button.addEventListener("click", () => {
    const now = document.documentElement.dataset.theme ?? "auto";
    set(button, THEMES[(THEMES.indexOf(now) + 1) % THEMES.length]);
  });
}
