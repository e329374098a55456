"""The figures of the board in MEASUREMENTS.md: how fast 19 x 19 squares are set up and drawn, and frames while men
slide and are dragged.

PYTHONPATH=tests/support python tests/web/measure.py [--times 30] [--slow 4]
"""

from __future__ import annotations

import argparse
import statistics
from typing import TYPE_CHECKING, Any

from browser_parts import chromium, my_turn, square, web

if TYPE_CHECKING:
    from playwright.sync_api import Page

FRAME = 1000 / 60
LINK = "v=alea-evangelii"
"""19 x 19, 73 men."""
LATE = 1.5
"""Frames that take so many times their due are counted as late."""

# A board in the place of the page's, without network and rules, so that the browser's work alone is measured.
PREPARE = """async () => {
  const { Board } = await import(new URL("static/board.js", location.href));
  const { piecesOf, rowsOf } = await import(new URL("static/words.js", location.href));
  const letters = ["tcnm", "TCNMKG"];
  const start = rowsOf("%s");
  const moved = (row) => `t..${row.slice(3).replace("t", ".").replace("T", ".")}`;
  const other = start.map((row, at) => (at === 9 ? moved(row) : row));
  const pieces = piecesOf({ game: "tafl", letters, sides: ["attackers", "defenders"] });
  const letter = (file) => "abcdefghijklmnopqrs"[file];
  const squares = start.flatMap((row, at) => [...row].map((man, file) => [man, letter(file), 19 - at]));
  const legal = squares.filter(([man]) => man === "t").flatMap(([, file, rank]) =>
    Array.from({ length: 19 }, (_, to) => ({ m: `${file}${rank}${letter(to)}${rank}`, x: [] })));
  const frame = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
  const fresh = () => {
    const element = document.createElement("div");
    document.querySelector(".field .board").replaceWith(element);
    return new Board(element, { files: 19, ranks: 19, special: { j10: "throne" }, pieces });
  };
  window.bench = { frame, fresh, start, other, legal, board: null };
}"""

# The script with style and layout, by the browser's clock; and until the frame after it is on the screen.
SET_UP = """async (times) => {
  const found = [];
  for (let at = 0; at < times; at += 1) {
    await bench.frame();
    const began = performance.now();
    bench.board = bench.fresh();
    bench.board.setPosition(bench.start);
    bench.board.setLegal(bench.legal);
    bench.board.element.getBoundingClientRect();
    const done = performance.now();
    await bench.frame();
    found.push([done - began, performance.now() - began]);
  }
  return found;
}"""
MOVES = """async (times) => {
  const { board } = bench;
  const found = [];
  for (let at = 0; at < times; at += 1) {
    await bench.frame();
    const began = performance.now();
    const moved = at % 2 ? { m: "a10d10", x: [] } : { m: "d10a10", x: ["g10"] };
    board.setPosition(at % 2 ? bench.start : bench.other, moved);
    board.setLegal(bench.legal);
    board.mark({ last: ["a10", "d10"], taken: moved.x, arrows: [] });
    board.element.getBoundingClientRect();
    found.push([performance.now() - began]);
  }
  return found;
}"""
# Moves one after the other, a new one as soon as the last has slid, for so many frames.
SLIDES = """async (count) => {
  const { board } = bench;
  const times = [];
  let at = 0;
  for (let frame = 0; frame < count; frame += 1) {
    times.push(await new Promise(requestAnimationFrame));
    if (frame % 12) continue;
    at += 1;
    const next = at % 2 ? bench.other : bench.start;
    board.setPosition(next, at % 2 ? { m: "d10a10", x: ["g10"] } : { m: "a10d10", x: [] });
    board.setLegal(bench.legal);
    board.mark({ last: ["a10", "d10"], taken: [], arrows: [] });
  }
  return times.slice(1).map((time, index) => time - times[index]);
}"""
WATCH = """() => {
  window.frames60 = [];
  const each = (time) => { window.frames60.push(time); window.watching = requestAnimationFrame(each); };
  window.watching = requestAnimationFrame(each);
}"""
WATCHED = """() => {
  cancelAnimationFrame(window.watching);
  return window.frames60.slice(1).map((time, index) => time - window.frames60[index]);
}"""


def described(values: list[float]) -> str:
    values = sorted(values)
    high = values[int(0.95 * (len(values) - 1))]
    return f"median {statistics.median(values):.1f} ms, 95 % {high:.1f} ms, worst {values[-1]:.1f} ms"


def frames(gaps: list[float]) -> str:
    late = sum(gap > LATE * FRAME for gap in gaps)
    return f"{1000 * len(gaps) / sum(gaps):.1f} frames a second, {late} of {len(gaps)} late, worst {max(gaps):.0f} ms"


def dragged(page: Page, count: int) -> list[float]:
    """The gaps between frames while a man is carried over the whole board."""
    page.reload()
    my_turn(page, "a6")
    boxes = [square(page, name).bounding_box() for name in ("a6", "a1", "s1", "s19", "a19", "j10")]
    points = [(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2) for box in boxes if box]
    page.mouse.move(*points[0])
    page.mouse.down()
    page.evaluate(WATCH)
    for point in points[1:]:
        page.mouse.move(*point, steps=count // (len(points) - 1))
    gaps: list[float] = page.evaluate(WATCHED)
    page.mouse.move(*points[0])
    page.mouse.up()
    return gaps


class Busy:
    """Seconds of the page's main thread by the processor's clock, which other programs do not lengthen."""

    def __init__(self, page: Page) -> None:
        self._devtools = page.context.new_cdp_session(page)
        self._devtools.send("Performance.enable", {"timeDomain": "threadTicks"})

    def milliseconds(self) -> float:
        found = self._devtools.send("Performance.getMetrics")["metrics"]
        return 1000 * next(one["value"] for one in found if one["name"] == "TaskDuration")


def measured(page: Page, times: int) -> None:
    busy = Busy(page)
    startpos = page.evaluate("() => document.querySelectorAll('#board .man').length")
    assert startpos == 73
    before = busy.milliseconds()
    set_up: Any = page.evaluate(SET_UP, times)
    spent = busy.milliseconds() - before
    print(f"  19 x 19 set up      {described([one for one, _ in set_up])}")
    print(f"    until it is shown {described([whole for _, whole in set_up])}")
    print(f"    processor time    {spent / times:.1f} ms each, painting included")
    before = busy.milliseconds()
    moves: Any = page.evaluate(MOVES, times)
    spent = busy.milliseconds() - before
    print(f"  a move drawn        {described([one for (one,) in moves])}")
    print(f"    processor time    {spent / times:.1f} ms each, painting included")
    page.evaluate(WATCH)
    page.wait_for_timeout(times * 100)
    print(f"  while nothing moves {frames(page.evaluate(WATCHED))}")
    print(f"  while men slide     {frames(page.evaluate(SLIDES, 20 * times))}")
    print(f"  while one drags     {frames(dragged(page, 20 * times))}")


def main() -> None:
    parser = argparse.ArgumentParser(description="The figures of the board in MEASUREMENTS.md.")
    parser.add_argument("--times", type=int, default=30, help="how often each is done (default 30)")
    parser.add_argument(
        "--slow", type=float, default=4.0, help="how much slower the slow processor is (default 4)"
    )
    arguments = parser.parse_args()
    from hnefi.engine.games import find

    with web() as url, chromium() as browser:
        for rate in (1.0, arguments.slow):
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.goto(f"{url}#{LINK}")
            my_turn(page, "a6")
            page.evaluate(PREPARE % find("alea-evangelii").startpos)
            page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": rate})
            print(f"processor slowed {rate:g} times:" if rate > 1 else "as it is:", flush=True)
            measured(page, arguments.times)
            page.close()


if __name__ == "__main__":
    main()
