// What a person prefers, kept by the browser.

const $ = (id) => document.getElementById(id);

export function recall(key) {
  try {
    return localStorage.getItem(`hnefi-${key}`);
  } catch {
    return null; // a browser that keeps nothing
  }
}

export function remember(key, value) {
  try {
    localStorage.setItem(`hnefi-${key}`, value);
  } catch {
    // As above.
  }
}

/** The theme: what was chosen, at first what the system asks for. */
export function themes() {
  const names = [...$("theme").options].map((option) => option.value);
  const system = matchMedia("(prefers-contrast: more)").matches ? "contrast" : matchMedia("(prefers-color-scheme: dark)").matches ? "night" : "wood";
  const choose = (name) => {
    document.documentElement.dataset.theme = name;
    $("theme").value = name;
  };
  const kept = recall("theme");
  choose(names.includes(kept) ? kept : system);
  $("theme").addEventListener("change", () => {
    choose($("theme").value);
    remember("theme", $("theme").value);
  });
}
