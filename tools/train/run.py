"""A training, round by round: games, lessons, a test against the best so far.

    config.toml                 all that the results follow from
    log.jsonl                   one line for each finished round
    openings.txt                positions that games begin with, if a file or another training gave some
    best.safetensors            the strongest net so far, once one has passed its test
    losses.svg, strength.svg    how it went
    round-001/
        games-000000.npy …      positions, listed in shards.jsonl with their SHA-256
        epochs.jsonl            losses after each epoch
        checkpoint.safetensors  where the lessons stand
        net.safetensors         the candidate
        gate/                   its run in the arena

Each of these is written whole or not at all, and says by being there what is done: a training goes on wherever it was
ended. A log line makes its round count.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hnefi.engine import durable
from hnefi.engine.evaluators import NETWORKS, files
from hnefi.engine.evaluators import network as networks

from ..common import interrupts
from ..common.calibration import LOGIT, expected, loss, scale_of
from ..common.live import Live, Pace
from . import gate, inputs, shards
from .config import (
    BEST,
    CHECKPOINT,
    CONFIG,
    DEFAULTS,
    DIGESTS,
    EPOCHS,
    FORMAT,
    GATE,
    GROWS,
    LOG,
    NET,
    OPENINGS,
    TrainError,
    config_text,
    digests,
    expect_games,
    place_of,
    read_config,
    read_lines,
    read_log,
    rounds_of,
)
from .games import UNKNOWN, Series, play
from .learner import Learner, NumpyLessons, logits, quantised, restored, whole_logits

if TYPE_CHECKING:
    from hnefi.engine.games.tafl.variant import Variant

    from .inputs import Examples
    from .learner import Lessons

SHARD_GAMES = 50
FILE_CUT = 8
"""Plies that are taken from each recorded game, where those are the openings."""
FOLDER_PLY, FOLDER_LEFT = 10, 4
"""Where openings are taken from another training's games: the first ply, and the fewest plies to the end."""
EVALUATED = 4000
"""Held-out positions that the first evaluator is asked about, too."""


@dataclass(frozen=True, slots=True)
class Hands:
    """Who does the work: a backend of joblib, or none, and how many threads or processes; torch for the gradients."""

    backend: str = ""
    jobs: int = 1
    torch: bool = False


class Training:
    """A training in its folder; TrainError unless the folder is new, or that of the same training."""

    def __init__(
        self, folder: Path, variant: Variant, word: str, values: Mapping[str, Any], live: Live
    ) -> None:
        self.folder, self.variant, self.word, self.live = folder, variant, word, live
        config = {"format": FORMAT, "variant": word, "rules_hash": variant.hash, **DEFAULTS, **values}
        self._also = [place for other in config["also"] for place in rounds_of(Path(other), variant)]
        for place in self._also:
            shards.check(place, variant.size)
        path = folder / CONFIG
        try:
            durable.make_folder(folder)
            config |= digests(config)
            if path.exists():
                stored = read_config(folder)
                self._expect_same(stored, config)
                if config["rounds"] < stored["rounds"]:
                    live.report(
                        [f"rounds: {stored['rounds']} as before, not {config['rounds']}: more can be added"]
                    )
                    config["rounds"] = stored["rounds"]
            self.log = read_log(folder)
            self._expect_games(config)
            self._openings = self._kept_openings(config["openings_file"])
            self._mend_best()
            durable.put(path, config_text(config).encode())
        except OSError as error:
            place = error.filename or folder
            raise TrainError(
                f"{place}: {error.strerror or error}: expected a file to read and to write"
            ) from None
        self.values: Mapping[str, Any] = config
        self.network = networks.parse(config["network"])
        self.encoding = inputs.Encoding(self.network, variant)

    def _expect_same(self, stored: Mapping[str, Any], config: Mapping[str, Any]) -> None:
        """TrainError unless a stored configuration is this one."""
        unlike = [
            f"{name} was {stored[name]!r}, is {config[name]!r}"
            for name in config
            if name not in (*GROWS, *DIGESTS.values()) and stored[name] != config[name]
        ]
        if unlike:
            raise TrainError(
                f"{self.folder}: the folder of another training: {'; '.join(unlike)}; expected the same options, or "
                "another --out"
            )
        for name, key in DIGESTS.items():
            # Trainings begun with hnefi 0.2.0 do not name them.
            if stored[key] and stored[key] != config[key]:
                raise TrainError(
                    f"{config[name]}: SHA-256 {config[key][:12]}…: expected {stored[key][:12]}…, as --{name} was when "
                    f"the training in {self.folder} began"
                )

    def _expect_games(self, config: Mapping[str, Any]) -> None:
        """TrainError unless what is there of the games of the next round's lessons is whole."""
        number = len(self.log) + 1
        if number > config["rounds"]:
            return
        finished = range(max(1, number - config["window"] + 1), number)
        expect_games(self.folder, finished, config["games"])
        for other in (*finished, number):
            shards.check(self.place(other), self.variant.size)

    def _mend_best(self) -> None:
        """Of the net that passed its test last there are two files; if one is missing or altered, the other one is
        copied. TrainError if both are."""
        number = self._best_round
        if not number:
            return
        places = (self.place(number) / NET, self.folder / BEST)
        whole = [place for place in places if self._is_net(place, number)]
        if not whole:
            raise TrainError(
                f"{places[0]}: missing or altered: expected the net that passed the test of round {number}, as "
                f"{LOG} says, here or in {BEST}"
            )
        data = whole[0].read_bytes()
        for place in places:
            if not place.exists() or place.read_bytes() != data:
                durable.make_folder(place.parent)
                durable.put(place, data)
                self.live.report([f"{place}: missing or altered: written again from {whole[0]}"])

    def _is_net(self, place: Path, number: int) -> bool:
        """Whether a file is the net of a round."""
        try:
            return files.load(place, self.variant).document.get("generation") == number
        except files.EvaluatorError:
            return False

    def _kept_openings(self, file: str) -> tuple[str, ...]:
        """The positions of a file, or of another training, as they were when this one began, as FENs."""
        if not file:
            return ()
        path = self.folder / OPENINGS
        # Until the configuration is there, such a file is what an interrupted beginning has left.
        if not (self.folder / CONFIG).exists():
            durable.put(path, "".join(f"{fen}\n" for fen in openings(file, self.variant)).encode())
        return tuple(openings(str(path), self.variant))

    def _is_held_out(self, rows: Any, place: Path) -> Any:
        """Which rows measure what was learned: none by other rules."""
        ours = place.parent == self.folder or read_config(place.parent)["rules_hash"] == self.variant.hash
        return inputs.held_out(rows) & ours

    @property
    def best(self) -> str:
        """The evaluator that plays the games of the next round: the net that passed its test last, else the teacher."""
        number = self._best_round
        return str((self.place(number) / NET).absolute() if number else self.values["teacher"])

    @property
    def _best_round(self) -> int:
        """The round whose net passed its test last; 0 if none has."""
        accepted = (entry["round"] for entry in self.log if entry["gate"]["verdict"] == gate.STRONGER)
        return max(accepted, default=0)

    def go_on(self, hands: Hands, drawn: Callable[[], None]) -> None:
        """Play, teach and test what is left of all rounds; `drawn` is called after each."""
        while len(self.log) < self.values["rounds"]:
            self._round(len(self.log) + 1, hands)
            drawn()

    def place(self, number: int) -> Path:
        """The folder of a round."""
        return place_of(self.folder, number)

    def _round(self, number: int, hands: Hands) -> None:
        folder = self.place(number)
        durable.make_folder(folder)
        by = Path(self.best)
        by_name = f"the net of {by.parent.name}" if by.name == NET else by.name
        self.live.heading(f"round {number} of {self.values['rounds']}, games by {by_name}")
        begun = time.process_time()
        self._games(number, folder, hands)
        found = self._lessons(number, folder, hands)
        # What was done by an earlier call is not counted.
        taught = round(time.process_time() - begun, 1)
        seed = int(self.values["seed"]) * 1000 + number
        verdict = gate.play(
            (folder / GATE).absolute(),
            self.word,
            str((folder / NET).absolute()),
            self.best,
            self.values,
            seed,
            (hands.backend, hands.jobs),
            self.live,
        )
        self.live.report(verdict.lines())
        if verdict.accepted:
            durable.put(self.folder / BEST, (folder / NET).read_bytes())
        entry = {"round": number, **found, "cpu_here": taught, "gate": verdict.as_json()}
        durable.append_line(self.folder / LOG, json.dumps(entry).encode())
        self.log.append(entry)

    # Games

    def _games(self, number: int, folder: Path, hands: Hands) -> None:
        from ..common.workers import in_threads, through_joblib

        best, usual = Path(self.best), self.values["nodes"]
        series = Series(
            self.variant,
            self.best,
            best.read_bytes() if best.suffix == ".safetensors" else b"",
            (tuple(self.values["nodes_a"] or usual), tuple(self.values["nodes_d"] or usual)),
            int(self.values["strays"]),
            f"{self.values['seed']} round {number}",
            self.values["tables"],
            self._openings,
        )
        known = shards.listed(folder)
        total = int(self.values["games"])
        todo = [first for first in range(0, total, SHARD_GAMES) if shards.name_of(first) not in known]
        if not todo:
            return
        sizes = [min(SHARD_GAMES, total - first) for first in todo]
        work = [partial(play, series, first, size) for first, size in zip(todo, sizes, strict=True)]
        results = (
            through_joblib(work, hands.backend, hands.jobs) if hands.backend else in_threads(work, hands.jobs)
        )
        pace = Pace(sum(sizes))
        for at, data in results:
            entry = shards.keep(folder, todo[at], sizes[at], data)
            pace.add(sizes[at])
            self._tell("games", pace, f"{entry['positions']} positions in the last {sizes[at]}")
        ends = list(shards.listed(folder).values())
        said = {
            key: sum(entry[key] for entry in ends) for key in ("attackers", "draws", "defenders", "positions")
        }
        line = f"games: {total}, {said['positions']:,} positions; attackers won {said['attackers']}, "
        self.live.report([f"{line}defenders {said['defenders']}, draws {said['draws']}"])

    # Lessons

    def _lessons(self, number: int, folder: Path, hands: Hands) -> dict[str, Any]:
        """Teach the candidate of a round; what is said about it."""
        first = max(1, number - int(self.values["window"]) + 1)
        own = [self.place(i) for i in range(first, number + 1)]
        places = [*self._also, *own]
        parts = [
            inputs.lessons_of(shards.read(place, self.variant.size), self.values["blend"]) for place in places
        ]
        kept, targets, search, scores, results = (
            np.concatenate(column) for column in zip(*parts, strict=True)
        )
        # Through all games: a round of fifty, with thousands of others', gave little more than half of the centipawns.
        slope, level = scale_of(scores, results)
        examples = self.encoding.examples(kept, targets)
        # Games of different rounds share numbers; the same ones are held out in each.
        held = np.concatenate(
            [self._is_held_out(part[0], place) for part, place in zip(parts, places, strict=True)]
        )
        asked = held & (kept["result"] != UNKNOWN)
        lessons, exam = examples.take(~held), examples.take(asked)
        if not len(lessons) or not len(exam):
            raise TrainError(
                f"{folder}: {len(lessons)} positions to learn from, {len(exam)} held out: expected some of both; begin "
                "another training with more --games, in another --out"
            )
        learner = self._learn(number, folder, lessons, exam, hands)
        arrays = quantised(learner.weights, self.encoding)
        found = self._examined(kept[asked], exam, learner, arrays, search[asked])
        found |= {
            "positions": len(lessons),
            "held_out": len(exam),
            "scale": [round(slope, 4), round(level, 4)],
        }
        if not (folder / NET).exists():
            self._save(folder / NET, number, arrays, slope, found)
        losses = found["results"]
        self.live.report(
            [
                f"lessons: {len(lessons):,} positions learned from, {len(exam):,} held out",
                f"  loss of their results: net {losses['net']:.4f}, in whole numbers {losses['whole']:.4f}",
                f"  {self.values['teacher']} {losses['teacher']:.4f}, nothing known {losses['none']:.4f}",
            ]
        )
        return found

    def _learn(self, number: int, folder: Path, lessons: Examples, exam: Examples, hands: Hands) -> Learner:
        from .learner import CheckpointError

        epochs = int(self.values["epochs"])
        by: type[Lessons] = NumpyLessons
        if hands.torch:
            from .on_torch import TorchLessons

            by = TorchLessons
        init = self.values["init"]
        first = restored(initial(init, self.variant).arrays, self.encoding) if init else None
        learner = Learner(
            self.encoding, f"{self.values['seed']} {number}", epochs, by, first, self.values["rate"]
        )
        path = folder / CHECKPOINT
        if path.exists():
            try:
                learner.load(path)
            except CheckpointError as error:
                raise TrainError(str(error)) from None
        known = read_lines(folder / EPOCHS)[: learner.epoch]
        durable.put(folder / EPOCHS, b"".join(json.dumps(line).encode() + b"\n" for line in known))
        pace = Pace(epochs - learner.epoch)
        while learner.epoch < epochs:
            losses = []
            for found in learner.learn(lessons):
                interrupts.check()
                losses.append(found)
            said = {
                "epoch": learner.epoch,
                "learned": float(np.mean([float(found) for found in losses])),
                "held_out": loss(logits(learner.weights, exam, self.encoding), exam.targets),
            }
            durable.append_line(folder / EPOCHS, json.dumps(said).encode())
            learner.save(path)
            pace.add()
            self._tell("lessons", pace, f"loss {said['learned']:.4f}, held out {said['held_out']:.4f}")
        return learner

    def _tell(self, what: str, pace: Pace, said: str) -> None:
        """How far a part of a round is."""
        line = f"{what}: {pace.done} of {pace.total}{pace.eta()}; {said}"
        self.live.step(lambda: line, last=pace.done == pace.total)

    def _examined(
        self, rows: Any, exam: Examples, learner: Learner, arrays: Any, search: Any
    ) -> dict[str, Any]:
        """Losses on held-out games: of the targets and of the results, by the side to move too; of the net, of the net
        in whole numbers, of what the searches said, of the first evaluator (its values fitted to the results), and of
        knowing nothing."""
        real = logits(learner.weights, exam, self.encoding)
        whole = whole_logits(arrays, exam, self.encoding)
        teacher, those = self._taught(rows)
        share = float(np.clip(exam.results.mean(), 1e-3, 1 - 1e-3))
        nothing = np.full(len(exam), np.log(share / (1 - share)))
        of_results = {
            "net": loss(real, exam.results),
            "whole": loss(whole, exam.results),
            "teacher": loss(teacher, exam.results[those]),
            "search": loss(search, exam.results),
            "none": loss(nothing, exam.results),
        }
        sides = {
            name: loss(whole[exam.sides == side], exam.results[exam.sides == side])
            for side, name in enumerate(("attackers_to_move", "defenders_to_move"))
            if (exam.sides == side).any()
        }
        return {
            "results": {name: round(value, 5) for name, value in (of_results | sides).items()},
            "targets": {
                "net": round(loss(real, exam.targets), 5),
                "whole": round(loss(whole, exam.targets), 5),
            },
        }

    def _taught(self, rows: Any) -> tuple[Any, Any]:
        """What the first evaluator says of held-out positions, as logits through the line that fits the results best,
        and which positions these are."""
        from hnefi.engine import evaluators
        from hnefi.engine.games import interface as verbs

        those = np.arange(len(rows))[:: max(1, len(rows) // EVALUATED)]
        name = self.values["teacher"]
        params = evaluators.parameters(name, self.variant)[0]
        said = np.zeros(len(those))
        for i, number in enumerate(those):
            row = rows[number]
            state = position_of(row, self.variant).new_record()[0]
            value = int(verbs.evaluate(params, state))
            said[i] = value if row["side"] == 0 else -value
        return expected(said, scale_of(said, rows["result"][those] / 2)), those

    def _save(self, path: Path, number: int, arrays: Any, slope: float, found: Mapping[str, Any]) -> None:
        document = {
            # Centipawns that are worth as much as those of the searches learned from.
            "output": {**self.network.output, "scale": LOGIT / slope},
            "trainer": {
                "name": "train",
                **{name: value for name, value in self.values.items() if name in DEFAULTS},
                # Names, not places: the file may be shared.
                "init": Path(self.values["init"]).name,
                "teacher": Path(self.values["teacher"]).name,
                "openings_file": Path(self.values["openings_file"]).name,
                "also": [Path(folder).name for folder in self.values["also"]],
            },
            "seed": int(self.values["seed"]),
            "generation": number,
            "opponents": [
                Path(self.values["teacher"]).name,
                *(f"round {entry['round']}" for entry in self.log),
            ],
            "results": {"held_out": found["results"], "positions": found["positions"]},
        }
        evaluator = files.Evaluator(
            self.network, self.variant.name, self.variant.hash, self.variant.game, arrays, document
        )
        try:
            files.save(path, evaluator)
        except files.EvaluatorError as error:
            raise TrainError(str(error)) from None


def initial(name: str, variant: Variant) -> files.Evaluator:
    """The network `name`, shipped or in a file, for these or other rules of the variant's board; EvaluatorError for
    anything else."""
    return files.load(NETWORKS.get(name, name), variant, any_rules=True)


def openings(source: str, variant: Variant) -> list[str]:
    """The positions of an openings file, as the arena reads it, or of the games of a training, as FENs; TrainError for
    what cannot be played."""
    from ..arena.openings import read_file
    from ..arena.options import ConfigError

    if Path(source).is_dir():
        return _openings_of_games(Path(source), variant)
    found = []
    try:
        for where, opening in read_file(Path(source), variant, FILE_CUT):
            try:
                position = opening.position(variant)
            except ValueError as error:
                raise TrainError(f"{where}: {error}") from None
            if position.outcome is not None or not position.legal_moves():
                raise TrainError(f"{where}: the game is over: expected a position to play on")
            found.append(position.fen())
    except ConfigError as error:
        raise TrainError(str(error)) from None
    if not found:
        raise TrainError(f"{source}: no openings: expected a FEN or moves in each line")
    return found


def _openings_of_games(folder: Path, variant: Variant) -> list[str]:
    """A random position of each game of a training, neither at its beginning nor at its very end, as FENs."""
    draw = random.Random(f"openings {variant.hash}")
    found = []
    for place in rounds_of(folder, variant):
        rows = shards.read(place, variant.size)
        # Strays, and what a search has decided, have no plies left.
        rows = rows[(rows["ply"] >= FOLDER_PLY) & (rows["left"] >= FOLDER_LEFT)]
        for of_game in np.split(rows, np.flatnonzero(np.diff(rows["game"])) + 1):
            if not len(of_game):
                continue
            position = position_of(of_game[draw.randrange(len(of_game))], variant)
            # The games may be by other rules, where they went on.
            if position.outcome is None and position.legal_moves():
                found.append(position.fen())
    if not found:
        raise TrainError(
            f"{folder}: no position fits: expected games of {FOLDER_PLY + FOLDER_LEFT} plies and more"
        )
    return found


def position_of(row: Any, variant: Variant) -> Any:
    """A stored position as one of the game."""
    from hnefi.engine.games import from_fen
    from hnefi.engine.games.tafl.codes import LETTERS

    size = variant.size
    board = row["board"].reshape(size, size)[::-1]
    ranks = []
    for rank in board:
        text, empty = "", 0
        for code in rank.tolist():
            if code == 0:
                empty += 1
                continue
            text += (str(empty) if empty else "") + LETTERS[code]
            empty = 0
        ranks.append(text + (str(empty) if empty else ""))
    return from_fen(variant, f"{'/'.join(ranks)} {'ad'[int(row['side'])]} 0 1")
