"""Train an embedder for memories, starting from a small encoder: e5-small, or MiniLM.

    python -m bench.training.train_embedder --smoke --start /path/e5-small
    python -m bench.training.train_embedder --start /path/e5-small --minutes 60 --out /path/run
    python -m bench.training.train_embedder --start /path/e5-small --out /path/run --resume
    python -m bench.quality.quality --full --only semantic fused --calibrate --model /path/run/model
    python -m bench.training.train_embedder --out /path/run --export pydriver/pgrecall/embedder

The data are those of train_reranker.py, written as in a bank: turns with their speakers, questions
without the names that prepare_recall() leaves out. Worlds of make.py are added, in the wording dev:
who reports to whom and what changed, asked in other words. The wordings held and third are left for
testing.

A step takes groups of one source, so that the negatives in a batch are of one kind. It lowers a
cross-entropy over all texts of the batch (Oord et al. 2018) and the divergence from the scores of
the packaged cross-encoder (Hinton et al. 2015). A text that the cross-encoder takes for an answer
is not a negative, because many answers are not marked. Vectors are compared after the mean of all
texts is subtracted, as in calibrated banks, so that questions and passages need not lie in one
narrow cone.

The learning rate falls with the minutes spent. --out holds the last state (last.pt, from which
--resume continues), the log, and the model as a sentence-transformers directory. Its weights are a
mean of the trained ones, with the share --mix, and those of the start, which forgets less (Wortsman
et al. 2022).
"""

from __future__ import annotations

import argparse
import json
import math
import random
import shutil
import time
import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np
import onnxruntime
import torch
from bench import harness
from bench.training import reranker_graph
from bench.training.train_reranker import (
    ANSWERS,
    FRIENDS,
    HELD_OUT,
    NAMES,
    SPEAKER,
    Group,
    Writer,
    key,
    quantised,
    rate,
    read,
    teacher_of,
)
from bench.worlds import make
from torch.nn import functional
from transformers import AutoModel, AutoTokenizer

from pgrecall.embedders import PACKAGED, SentenceTransformerEmbedder, packaged_model

TOKENS = 160
BATCH = 32  # groups in a step
TEXTS = 24  # of a forward pass, of similar length
TEMPERATURE = 0.05
CENTRE = 400  # texts that the mean is of
EXPORTED = 2000  # those that the mean of the exported model is of
LONGEST = 512  # tokens that the exported model reads
RECENTRED = 100  # steps
WORLDS = range(100, 140)  # seeds that bench/worlds/worlds.py does not use
ASKED = "one_relation consequence prevented latest now used_to first hub contradicted".split()
KEEP = {"squad-sent": 1.0, "squad-para": 0.6, "fairytale": 0.3, "friends": 4.0, "qmsum": 4.0}
KEEP["worlds"] = 2.0


def of_worlds() -> list[Group]:
    """Make groups of made worlds: a fact that answers, and others of the same world."""
    groups: list[Group] = []
    for seed in WORLDS:
        facts, questions = make.generate(seed)
        text_of = {fact["source_id"]: fact["text"] for fact in facts}
        dice = random.Random(seed)
        for question in questions:
            if question.kind in ASKED:
                fine = question.relevant | question.also
                others = [text for name, text in text_of.items() if name not in fine]
                answer = text_of[dice.choice(sorted(question.relevant))]
                texts = (answer, *dice.sample(others, 6))
                groups.append(Group("worlds", question.text, texts))
    return groups


class Memories(Writer):
    """Writes groups as a bank holds them and as the driver embeds a question."""

    def group(self, group: Group, negatives: int) -> tuple[str, list[str]]:
        """Return a question and its texts, the answering one first."""
        dice = self.random
        others = dice.sample(group.texts[1:], min(negatives, len(group.texts) - 1))
        texts, question = [group.texts[0], *others], group.question
        if group.source == "friends":
            names = {m[1] for text in texts if (m := SPEAKER.match(text))} | set(FRIENDS)
            if dice.random() < 0.7:
                question = " ".join(w for w in question.split() if w.strip("?,.'s") not in names)
            rename = self.renaming()
            texts, question = [rename(text) for text in texts], rename(question)
        elif group.source.startswith("squad") and dice.random() < 0.35:
            pair = dice.sample(NAMES, 2)
            texts = [f"{dice.choice(pair)}: {text}" for text in texts]
        return question, texts


@dataclass(frozen=True)
class Batch:
    questions: list[str]
    texts: list[str]
    """The texts of all groups, the same number of each, the answer of a group first."""
    keys: list[str]
    """The texts before Memories wrote them; equal ones say the same."""
    taught: torch.Tensor
    """Logits of the teacher, shape (groups, texts of a group)."""
    is_closed: bool
    """The texts of one group are no negatives of another."""


class Batches:
    """Endless batches, each of one source; KEEP says how often a source is used."""

    def __init__(self, groups: Sequence[Group], negatives: int, writer: Memories) -> None:
        self._writer = writer
        self._negatives = negatives
        self._by_source: dict[str, list[Group]] = defaultdict(list)
        for group in groups:
            if len(group.texts) > negatives:
                self._by_source[group.source].append(group)
        self._queues: dict[str, list[Group]] = defaultdict(list)
        self._teacher = teacher_of(str(PACKAGED.with_name("reranker")), torch.device("cpu"))
        self._taught: dict[tuple[str, str], float] = {}

    def next(self) -> Batch:
        """Draw a batch."""
        dice = self._writer.random
        sources = sorted(self._by_source)
        weights = [KEEP[source] * len(self._by_source[source]) for source in sources]
        (source,) = dice.choices(sources, weights)
        queue = self._queues[source]
        drawn: list[Group] = []
        while len(drawn) < BATCH:
            if not queue:
                queue += self._by_source[source]
                dice.shuffle(queue)
            drawn.append(queue.pop())
        chosen = [
            Group(g.source, g.question, (g.texts[0], *dice.sample(g.texts[1:], self._negatives)))
            for g in drawn
        ]
        written = [self._writer.group(group, self._negatives) for group in chosen]
        return Batch(
            [question for question, _ in written],
            [text for _, texts in written for text in texts],
            [key(text) for group in chosen for text in group.texts],
            self._lessons(chosen),
            source == "worlds",
        )

    def _lessons(self, groups: Sequence[Group]) -> torch.Tensor:
        pairs = [(group.question, text) for group in groups for text in group.texts]
        new = [pair for pair in dict.fromkeys(pairs) if pair not in self._taught]
        if new:
            assert self._teacher is not None
            self._taught |= zip(new, self._teacher(new).tolist(), strict=True)
        return torch.tensor([self._taught[pair] for pair in pairs]).view(len(groups), -1)


class Encoder:
    """The model with its tokenizer and prompts: directions of texts from the mean of passages."""

    def __init__(self, path: str, device: torch.device) -> None:
        self.path = path
        self.model = AutoModel.from_pretrained(path, add_pooling_layer=False).to(device)
        self.model.embeddings.word_embeddings.requires_grad_(False)
        self._tokenizer = AutoTokenizer.from_pretrained(path)
        self._device = device
        prompts = SentenceTransformerEmbedder(path).prompts
        self._prompts = [prompts.get(role, "") for role in ("query", "document")]
        self._mean = torch.zeros(self.model.config.hidden_size, device=device)

    def questions(self, texts: Sequence[str]) -> torch.Tensor:
        return self._directions(self._prompts[0], texts)

    def passages(self, texts: Sequence[str]) -> torch.Tensor:
        return self._directions(self._prompts[1], texts)

    def recentre(self, texts: Sequence[str]) -> None:
        with torch.inference_mode():
            self._mean = self._units(self._prompts[1], texts).mean(0)
        self._mean = self._mean.clone()

    def _directions(self, prompt: str, texts: Sequence[str]) -> torch.Tensor:
        return functional.normalize(self._units(prompt, texts) - self._mean, dim=1)

    def _units(self, prompt: str, texts: Sequence[str]) -> torch.Tensor:
        encoded = self._tokenizer(
            [prompt + text for text in texts], truncation=True, max_length=TOKENS
        )
        order = sorted(range(len(texts)), key=lambda i: len(encoded["input_ids"][i]))
        found = []
        for first in range(0, len(order), TEXTS):
            rows = order[first : first + TEXTS]
            batch = self._tokenizer.pad(
                {name: [column[i] for i in rows] for name, column in encoded.items()},
                return_tensors="pt",
            ).to(self._device)
            with torch.autocast(self._device.type, torch.bfloat16):
                states = self.model(**batch).last_hidden_state.float()
            seen = batch["attention_mask"].unsqueeze(-1)
            found.append((states * seen).sum(1) / seen.sum(1))
        back = torch.tensor(order, device=self._device).argsort()
        return functional.normalize(torch.cat(found)[back], dim=1)


def loss_of(encoder: Encoder, batch: Batch) -> torch.Tensor:
    """Return the cross-entropy over the batch plus the divergence from the teacher."""
    groups = len(batch.questions)
    size = len(batch.texts) // groups
    logits = encoder.questions(batch.questions) @ encoder.passages(batch.texts).T / TEMPERATURE
    taught = batch.taught.to(logits.device)
    own = torch.arange(groups, device=logits.device)[:, None] * size + torch.arange(
        size, device=logits.device
    )
    answers = own[:, 0]
    is_out = torch.zeros_like(logits, dtype=torch.bool)
    if batch.is_closed:
        is_out[:] = True
        is_out.scatter_(1, own, value=False)
    else:
        same = defaultdict(list)
        for place, text in enumerate(batch.keys):
            same[text].append(place)
        for row, place in enumerate(answers.tolist()):
            is_out[row, same[batch.keys[place]]] = True
        is_out.scatter_(1, own, taught.sigmoid() >= ANSWERS)
    is_out[torch.arange(groups), answers] = False
    among_all = functional.cross_entropy(logits.masked_fill(is_out, -math.inf), answers)
    if batch.is_closed:
        return among_all
    its = logits.gather(1, own).log_softmax(1)
    return among_all + functional.kl_div(its, taught.softmax(1), reduction="batchmean")


def evaluate(encoder: Encoder, groups: Sequence[Group]) -> dict[str, float]:
    """Return nDCG@10 and recall@10 of the answer among the texts of all groups, and their mean."""
    encoder.model.eval()
    writer = Memories({}, 1)
    written = [writer.group(group, 6) for group in groups]
    texts = list(dict.fromkeys(text for _, its in written for text in its))
    place_of = {text: place for place, text in enumerate(texts)}
    with torch.inference_mode():
        encoder.recentre(texts[:CENTRE])
        scores = encoder.questions([q for q, _ in written]) @ encoder.passages(texts).T
    encoder.model.train()
    found = defaultdict(list)
    for group, (_, its), row in zip(groups, written, scores, strict=True):
        rank = 1 + int((row > row[place_of[its[0]]]).sum())
        for name in (group.source, "all"):
            found[f"{name}.ndcg10"].append(1 / math.log2(1 + rank) if rank <= 10 else 0.0)
            found[f"{name}.recall10"].append(float(rank <= 10))
    return {name: round(fmean(column), 4) for name, column in found.items()}


def save(encoder: Encoder, mix: float, directory: Path) -> None:
    """Write the model as a sentence-transformers directory, averaged with its start."""
    start = AutoModel.from_pretrained(encoder.path, add_pooling_layer=False).state_dict()
    trained = encoder.model.state_dict()
    mixed = AutoModel.from_pretrained(encoder.path, add_pooling_layer=False)
    mixed.load_state_dict(
        {
            name: torch.lerp(start[name], weights.cpu(), mix)
            if weights.is_floating_point()
            else weights
            for name, weights in trained.items()
        }
    )
    shutil.copytree(encoder.path, directory, dirs_exist_ok=True)
    mixed.save_pretrained(directory)


class Bare(torch.nn.Module):  # type: ignore[misc]
    """An encoder that returns its last layer, under the name that reranker_graph.py expects."""

    def __init__(self, bert: torch.nn.Module) -> None:
        super().__init__()
        self.bert = bert

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        states: torch.Tensor = self.bert(
            input_ids=input_ids, attention_mask=attention_mask
        ).last_hidden_state
        return states


def export(model: Path, texts: Sequence[str], directory: Path) -> None:
    """Write a model as int8 ONNX, with its tokenizer, for PackagedEmbedder.

    The mean of these texts, as passages, is subtracted.
    """
    loaded = AutoModel.from_pretrained(model, add_pooling_layer=False).eval()
    exported = quantised(Bare(loaded), ("input_ids", "attention_mask"), "states")
    directory.mkdir(parents=True, exist_ok=True)
    tokenizer = AutoTokenizer.from_pretrained(model).backend_tokenizer
    tokenizer.no_padding()
    tokenizer.enable_truncation(LONGEST)
    tokenizer.save(str(directory / "tokenizer.json"))
    prompt = SentenceTransformerEmbedder(model).prompts.get("document", "")
    mean = np.zeros(loaded.config.hidden_size)
    for _ in range(2):  # the first has no mean yet
        fused = reranker_graph.fused_embedder(exported, mean).SerializeToString()
        session = onnxruntime.InferenceSession(fused, providers=["CPUExecutionProvider"])
        (directory / "model.onnx").write_bytes(fused)
        if not mean.any():
            found = [
                session.run(None, {"input_ids": [tokenizer.encode(prompt + text).ids]})[0][0]
                for text in texts
            ]
            mean = np.mean(found, axis=0)


def main() -> None:
    parser = harness.arguments(__doc__, "rerank_train.jsonl.xz")
    parser.add_argument("--out", type=Path, default=Path("embedder-run"))
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--negatives", type=int, default=2)
    parser.add_argument("--learning-rate", type=float, default=3e-5)
    parser.add_argument("--start", default=str(packaged_model()), help="the encoder to start from")
    parser.add_argument("--mix", type=float, default=1.0, help="share of the trained weights")
    parser.add_argument("--resume", action="store_true", help="continue from last.pt in --out")
    parser.add_argument("--export", type=Path, help="only write the model of --out as int8 ONNX")
    options = parser.parse_args()
    if options.export:
        groups = random.Random(7).sample(read(harness.require(options.data)), EXPORTED)
        export(options.out / "model", [g.texts[0] for g in groups], options.export)
    else:
        train(options)


def train(options: argparse.Namespace) -> None:
    torch.manual_seed(7)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    groups = [*read(harness.require(options.data)), *of_worlds()]
    is_held = [zlib.crc32(key(g.texts[0]).encode()) % HELD_OUT == 0 for g in groups]
    held_out = [g for g, held in zip(groups, is_held, strict=True) if held]
    held_out = random.Random(7).sample(held_out, 20 if options.smoke else 160)
    used = [group for group, held in zip(groups, is_held, strict=True) if not held]
    seconds_given = 60 * (0.5 if options.smoke else options.minutes)
    encoder = Encoder(options.start, device)
    trained = [p for p in encoder.model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=options.learning_rate, weight_decay=0.01)
    writer = Memories({}, 7)
    options.out.mkdir(parents=True, exist_ok=True)
    last = options.out / "last.pt"
    step, seconds, saved = 0, 0.0, 0.0
    if options.resume:
        state = torch.load(last, map_location=device, weights_only=True)
        encoder.model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        step, seconds = state["step"], state["seconds"]
        saved = seconds
        writer.random.seed(step)
    batches = Batches(used, options.negatives, writer)
    log = (options.out / "log.jsonl").open("a", encoding="utf-8")

    def note(row: Mapping[str, Any]) -> None:
        print(json.dumps(row), file=log, flush=True)
        print(json.dumps(row), flush=True)

    note({"step": step, "groups": len(used), **evaluate(encoder, held_out)})
    losses: list[float] = []
    durations: list[float] = []
    while seconds < seconds_given:
        begun = time.monotonic()
        for part in optimizer.param_groups:
            part["lr"] = options.learning_rate * rate(seconds / seconds_given)
        if step % RECENTRED == 0:
            texts = [
                text
                for group in random.Random(step).sample(used, CENTRE)
                for text in group.texts[:1]
            ]
            encoder.recentre(texts)
        loss = loss_of(encoder, batches.next())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        step += 1
        losses.append(loss.item())
        durations.append(time.monotonic() - begun)
        seconds += min(durations[-1], 3 * median(durations[-50:]))  # a pause is not counted
        if step % 10 == 0:
            note({"step": step, "seconds": round(seconds), "loss": round(fmean(losses), 4)})
            losses.clear()
        if seconds - saved > 300:
            state = {"model": encoder.model.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save({**state, "step": step, "seconds": seconds}, last.with_suffix(".new"))
            last.with_suffix(".new").replace(last)
            saved = seconds
        if step % 300 == 0:
            note({"step": step, **evaluate(encoder, held_out)})
    figures = evaluate(encoder, held_out)
    note({"step": step, **figures})
    save(encoder, options.mix, options.out / "model")
    settings = {"start": Path(options.start).name, "minutes": options.minutes, "steps": step}
    harness.write(options, figures, settings)


if __name__ == "__main__":
    main()
