// Preferences, stored by the browser.

import { $ } from "./dom.js";

export function recall(key) {
  try {
    return localStorage.getItem(`hnefi-${key}`);
  } catch {
    return null; // a browser without storage
  }
}

export function remember(key, value) {
  try {
    localStorage.setItem(`hnefi-${key}`, value);
  } catch {
    // As above.
  }
}

/** Apply the theme and dark mode: the stored choice, or the system's preference. */
export function themes() {
  const root = document.documentElement.dataset;
  const asks = (what) => matchMedia(what).matches;
  const names = [...$("theme").options].map((option) => option.value);
  const [kept, light] = [recall("theme"), recall("light")];
  root.theme = names.includes(kept) ? kept : asks("(prefers-contrast: more)") ? "contrast" : "wood";
  root.light = light ?? (kept === "night" || asks("(prefers-color-scheme: dark)") ? "dark" : "light");
  const show = () => {
    $("theme").value = root.theme;
    $("dark").setAttribute("aria-pressed", String(root.light === "dark"));
    $("dark").disabled = root.theme === "contrast";
  };
  $("theme").addEventListener("change", () => {
    root.theme = $("theme").value;
    remember("theme", root.theme);
    show();
  });
  $("dark").addEventListener("click", () => {
    root.light = root.light === "dark" ? "light" : "dark";
    remember("light", root.light);
    show();
  });
  show();
}
