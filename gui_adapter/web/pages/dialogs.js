// The dialogs: new game, load, save, token.

import { $, h } from "./dom.js";
import { capital, download } from "./words.js";


const option = (value, text) => h("option", { value }, text);

/** List who can play a side: a person, the engine's levels, and players that support the variant. */
function fill(select, variant, offer, chosen) {
  const levels = offer.levels.map((nodes, at) =>
    option(`level:${at}`, `Engine, level ${at}${at === 0 ? " (for beginners)" : nodes === null ? " (full strength)" : ""}`),
  );
  const players = offer.players
    .filter((player) => player.name !== "default" && variant.players.includes(player.name))
    .map((player) => option(`player:${player.name}`, player.elo ? `${player.name} (${player.elo})` : player.name));
  const auto = option("level:auto", "Engine, matched to your strength");
  select.replaceChildren(option("human", "You, or a friend"), auto, ...levels, ...players);
  select.value = chosen;
  if (!select.value) select.value = "level:3";
}

/** The dialog for a new game; `begin` receives the choice. */
export class NewGame {
  constructor(offer, begin) {
    this.offer = offer;
    this.begin = begin;
    this.variant = null;
    $("find").addEventListener("input", () => this.narrow());
    $("variants").addEventListener("click", (event) => {
      const row = event.target.closest("[data-name]");
      if (row) this.choose(row.dataset.name);
    });
    $("variants").addEventListener("keydown", (event) => this.key(event));
    $("find").addEventListener("keydown", (event) => this.key(event));
    $("new-dialog").addEventListener("close", () => {
      if ($("new-dialog").returnValue === "ok") this.done();
    });
  }

  open(variant, players) {
    this.players = players;
    $("find").value = "";
    this.list();
    $("begin").disabled = false;
    this.choose(variant.name, players);
    $("new-dialog").returnValue = "";
    $("new-dialog").showModal();
    $("begin").focus();
    $("variants").querySelector("[aria-selected=true]")?.scrollIntoView({ block: "center" });
  }

  rows() {
    const words = $("find").value.toLowerCase().split(/[\s x×]+/).filter(Boolean);
    const fits = (variant) => {
      const text = [variant.name, ...variant.aliases, variant.game, variant.files, variant.description].join(" ").toLowerCase();
      return words.every((word) => text.includes(word));
    };
    const place = (variant) => [variant.game !== "tafl", variant.files, variant.name];
    return this.offer.variants.filter(fits).sort((one, other) => {
      const [a, b] = [place(one), place(other)];
      return a[0] - b[0] || a[1] - b[1] || (a[2] < b[2] ? -1 : 1);
    });
  }

  list() {
    const rows = this.rows().map((variant) => {
      const [name, size] = [h("span", {}, variant.name), h("span", {}, `${variant.files} × ${variant.ranks}`)];
      const about = { id: `variant-${variant.name}`, role: "option", "data-name": variant.name, "aria-selected": String(variant === this.variant) };
      return h("div", about, name, size);
    });
    $("variants").replaceChildren(...rows);
  }

  /** Narrow the list; the chosen variant is always one that is listed. */
  narrow() {
    this.list();
    const rows = this.rows();
    $("begin").disabled = !rows.length;
    if (rows.length && !rows.includes(this.variant)) this.choose(rows[0].name);
  }

  choose(name, players = [$("who-a").value, $("who-d").value]) {
    const variant = this.offer.variants.find((known) => known.name === name);
    this.variant = variant;
    for (const row of $("variants").children) row.setAttribute("aria-selected", String(row.dataset.name === name));
    $("variants").setAttribute("aria-activedescendant", `variant-${name}`);
    const men = variant.men[0] ? ` ${variant.men[0]} against ${variant.men[1]}${variant.game === "tafl" ? " and the king" : ""}.` : "";
    $("about").textContent = `${variant.description}${men}`;
    variant.sides.forEach((side, at) => {
      $(`name-${"ad"[at]}`).textContent = capital(side);
      fill($(`who-${"ad"[at]}`), variant, this.offer, players[at]);
    });
  }

  key(event) {
    if (event.key === "Enter") {
      event.preventDefault(); // the form's first button, which Enter would press, is Cancel
      $("begin").click();
      return;
    }
    const rows = [...$("variants").children];
    const at = rows.findIndex((row) => row.dataset.name === this.variant?.name);
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || !rows.length) return;
    event.preventDefault();
    const row = rows[Math.max(0, Math.min(rows.length - 1, at + step))];
    this.choose(row.dataset.name);
    row.scrollIntoView({ block: "nearest" });
  }

  done() {
    const clock = /^(\d+)\+(\d+)$/.exec($("clock").value);
    const players = [$("who-a").value, $("who-d").value];
    // Without a person there are no results to match the level to.
    if (!players.includes("human")) players.forEach((who, at) => who === "level:auto" && (players[at] = "level:3"));
    this.begin({
      variant: this.variant,
      players,
      think: Number($("think").value),
      clock: clock && { seconds: Number(clock[1]), increment: Number(clock[2]) },
    });
  }
}

/** The load dialog: `take` receives the text and returns a promise; its rejection is shown as a sentence. */
export function loading(take) {
  const show = (text) => {
    $("load-error").textContent = text;
  };
  $("load").addEventListener("click", () => {
    show("");
    $("load-dialog").showModal();
    $("paste").focus();
  });
  $("file").addEventListener("change", async () => {
    const file = $("file").files[0];
    if (!file) return;
    if (file.size > 256 * 1024) show(`${file.name}: ${file.size} bytes: expected at most 262144`);
    else $("paste").value = await file.text();
    $("file").value = "";
  });
  $("load-go").addEventListener("click", async () => {
    show("");
    try {
      await take($("paste").value);
      $("load-dialog").close();
      $("paste").value = "";
    } catch (error) {
      show(error.message);
    }
  });
}

/** The save dialog: `give` returns a promise of {text, lost} for a format. */
export function saving(give) {
  const write = async () => {
    $("lost").textContent = "";
    try {
      const { text, lost } = await give($("format").value);
      $("text").value = text;
      $("lost").textContent = lost.length ? `This format cannot hold: ${lost.join(", ")}.` : "";
    } catch (error) {
      $("text").value = "";
      $("lost").textContent = error.message;
    }
  };
  $("save").addEventListener("click", async () => {
    $("save-dialog").showModal();
    await write();
  });
  $("format").addEventListener("change", write);
  $("download").addEventListener("click", () => {
    download(`game.${$("format").value}`, $("text").value);
  });
}

/** Ask for the server's token. */
export function askToken(then) {
  const dialog = $("token-dialog");
  dialog.addEventListener("close", () => then($("token").value), { once: true });
  $("token").value = "";
  dialog.showModal();
}
