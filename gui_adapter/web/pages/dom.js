// Making elements. Text is never parsed as HTML.

/** The element with an id. */
export const $ = (id) => document.getElementById(id);

/** An element with children. `props` are properties, or attributes if none match; `on…` adds a listener. */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

export function button(text, onclick, props = {}) {
  return h("button", { type: "button", onclick, ...props }, text);
}

/** A labelled drop-down list; `choices` are [value, text]. */
export function select(label, choices, onchange, props = {}) {
  const box = h("select", { onchange, "aria-label": label, ...props }, ...choices.map(([value, text]) => h("option", { value }, text)));
  return { box, row: h("label", { className: "wide" }, label, box) };
}
