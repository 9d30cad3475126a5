"""Train the reranker that comes with the driver: a cross-encoder made of the packaged MiniLM.

    python -m bench.training.train_reranker --smoke
    python -m bench.training.train_reranker --minutes 60 --out /path/run
    python -m bench.training.train_reranker --out /path/run --resume
    python -m bench.training.train_reranker --mine /path/mined.jsonl.xz
    python -m bench.training.train_reranker --data /path/mined.jsonl.xz --start /path/run/model
    python -m bench.training.train_reranker --out /path/run --export pydriver/pgrecall/reranker

The data are groups {src, q, pos, neg: [...]}: a question, a text that answers it, and hard
negatives. A step reads some groups with one positive and --negatives others each, and lowers a
list-wise cross-entropy plus half a binary one, which makes the scores comparable.

The driver's texts do not look like question answering data: they are turns of a conversation,
preceded by a date and followed by the turns around them. Therefore half of the groups get dates,
some of them with a question about the date. Texts without a speaker get one, and speakers get other
names. Where the neighbours of a text are known (sentences of a paragraph that is also in the data,
utterances of --dialogues, files in the format of FriendsQA), they become its context, of negatives
and positives alike, because a context would otherwise give the answer away.

--mine writes groups with harder negatives: what hybrid_recall() and the packaged reranker find for
a question among all texts of its source, except texts that the reranker takes for answers, because
an unmarked answer is not a negative. --worlds writes groups of what hybrid_recall() finds in made
worlds, in the wording dev and with other seeds than the benchmark's, as the driver shows it to the
reranker: with dates and paths. --more reads such files beside --data. --start continues from a
trained model, such as the packaged one; with fewer --layers it keeps the first and the last layer
and some between, at even distances. --teacher names trained models whose mean scores are also a
target (Hinton et al. 2015), except for worlds. All models may be directories of int8 ONNX models
that --export made, such as the packaged one. That was made by:

    python -m bench.training.train_reranker --start /path/to/e5-small --minutes 38 --out teacher
    python -m bench.training.train_reranker --worlds worlds.jsonl.xz
    python -m bench.training.train_reranker --minutes 44 --out student --more worlds.jsonl.xz \
        --start pydriver/pgrecall/reranker --teacher teacher/model

The learning rate falls with the minutes spent, not with the steps done, so that a run ends in time;
a pause of the process is not counted. --out holds the last state (last.pt), the log, and at the end
the model as a Hugging Face directory, which --export turns into the int8 ONNX model that comes with
the driver.
"""

from __future__ import annotations

import argparse
import json
import lzma
import math
import random
import re
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory
from typing import Any

import onnx
import onnx.numpy_helper
import torch
from bench import harness
from bench.training import reranker_graph
from bench.worlds import make
from torch.nn import functional
from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

from pgrecall import Hit, Recall
from pgrecall.asking.dated_text import written_date
from pgrecall.embedders import packaged_model
from pgrecall.inference.rerankers import OnnxReranker, in_context

TOKENS = 112  # of a pair: as good as more on LoCoMo, and better on BEAM
BATCH = 16  # groups in a step
PAIRS = 40  # of a forward pass, of similar length
# Dropout took a third of a step, and the backward pass of PyTorch's fused attention takes ten times
# as long on a CPU as three products.
AS_TRAINED = {
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "attn_implementation": "eager",
}
TAUGHT = 0.5  # the teachers' share of the target score of a pair
WARM_UP = 0.06
HELD_OUT = 40  # one group in so many
KEEP = {"squad-sent": 1.0, "squad-para": 0.8, "fairytale": 0.8, "friends": 3.0, "qmsum": 2.0}
KEEP["worlds"] = 1.0
WORLDS = range(100, 115)  # seeds that bench/worlds/worlds.py does not use
LONGEST = 100  # words of a positive: nothing can be learnt from words that are cut off
MINED = {"squad-sent": 0.45, "squad-para": 0.3, "fairytale": 0.4}  # share of questions; else all
FOUND = 16  # hits of a question that are read
ANSWERS = 0.9  # relevance from which on a text may be another answer
NAMES = (
    "Ada Alice Amir Anna Ben Carla Chloe Clara Daniel David Diego Elena Emma Eric Fatima Felix"
    " Grace Hana Hugo Ivan Jack Jane Julia Kevin Laura Leo Lucy Maria Mark Maya Mia Nina Noah"
    " Nora Omar Oscar Paul Priya Rosa Sam Sara Sofia Tara Theo Tom Victor Wendy Yara Yuki Zoe"
).split()
FRIENDS = ("Ross", "Rachel", "Monica", "Chandler", "Joey", "Phoebe")
PICTURES = (
    "a dog on a beach",
    "two people smiling at the camera",
    "a plate of food on a table",
    "a painting of a lake",
    "a book on a shelf",
    "a group of people in a park",
    "a handwritten note",
    "a mountain with snow",
)
SPEAKER = re.compile(r"^([A-Z][\w.']*)((?: [A-Z][\w.']*)*): ")
WH = re.compile(r"^(?:Where|Why|How) (?=did |does |was |were |is |has |will )")


@dataclass(frozen=True)
class Group:
    source: str
    question: str
    texts: tuple[str, ...]
    """The text that answers is first."""


def key(text: str) -> str:
    return re.sub(r"\W+", "", text).lower()


def read(path: Path) -> list[Group]:
    with harness.open_text(path) as lines:
        rows = [json.loads(line) for line in lines]
    return [Group(row["src"], row["q"], (row["pos"], *row["neg"])) for row in rows]


def neighbours(groups: Sequence[Group], dialogues: Sequence[Path]) -> dict[str, tuple[str, str]]:
    """Find the texts before and after each text, where they are known, by key()."""
    runs: list[list[str]] = []
    for group in groups:
        if group.source == "squad-para":
            runs += (re.split(r"(?<=[.!?]) (?=[A-Z])", text) for text in group.texts)
    for path in dialogues:
        for entry in json.loads(path.read_text(encoding="utf-8"))["data"]:
            for paragraph in entry["paragraphs"]:
                said = paragraph.get("utterances") or paragraph["utterances:"]
                runs.append([f"{speakers(u)}: {joined(u['utterance'])}" for u in said])
    found: dict[str, tuple[str, str]] = {}
    for run in runs:
        for before, text, after in zip(["", *run], run, [*run[1:], ""], strict=False):
            found.setdefault(key(text), (before, after))
    return found


def speakers(utterance: Mapping[str, Any]) -> str:
    return " and ".join(utterance["speakers"])


def joined(tokens: str) -> str:
    """Remove the spaces before punctuation that a tokenizer left."""
    text = re.sub(r" (n't|'\w+)\b", r"\1", tokens)
    return re.sub(r" ([.,!?;:)])", r"\1", text)


def mine(groups: Sequence[Group], path: Path) -> None:
    """Write groups whose negatives hybrid_recall() and the packaged reranker put first."""
    by_source: dict[str, list[Group]] = defaultdict(list)
    for group in groups:
        by_source[group.source].append(group)
    dice = random.Random(7)
    with (
        harness.database() as dsn,
        Recall.connect(dsn) as recall,
        lzma.open(path, "wt", encoding="utf-8") as out,
    ):
        for source, its in by_source.items():
            texts = {key(text): text for group in its for text in group.texts}
            recall.create_bank(source)
            recall.retain_many(source, map(_fact, texts.values()))
            answers: dict[str, set[str]] = defaultdict(set)
            for group in its:
                answers[key(group.question)].add(key(group.texts[0]))
            for group in its:
                if dice.random() >= MINED.get(source, 1):
                    continue
                hits = recall.recall(
                    source,
                    group.question,
                    temporal=False,
                    top_k=FOUND,
                    candidates=FOUND,
                    rerank_seconds=60,
                )
                found = [
                    hit.text
                    for hit in hits
                    if (hit.rerank_score or 0) < ANSWERS
                    and key(hit.text) not in answers[key(group.question)]
                ]
                negatives = list(dict.fromkeys([*found, *group.texts[1:]]))
                row = {
                    "src": source,
                    "q": group.question,
                    "pos": group.texts[0],
                    "neg": negatives[: FOUND // 2],
                }
                print(json.dumps(row, ensure_ascii=False), file=out)
            print(f"{source}: {len(texts)} texts, {len(its)} questions", flush=True)


class Listener:
    """A reranker that keeps the texts that it gets."""

    def __init__(self) -> None:
        self.texts: Sequence[str] = ()

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        self.texts = texts
        return [0.5] * len(texts)


def ask_worlds(path: Path, seeds: Iterable[int]) -> None:
    """Write groups of what hybrid_recall() finds in made worlds, as the driver shows it.

    All answers are known there, so that everything else is a negative: dates, paths and changes,
    too.
    """
    dice = random.Random(7)
    listener = Listener()
    with (
        harness.database() as dsn,
        Recall.connect(dsn, reranker=listener) as recall,
        lzma.open(path, "wt", encoding="utf-8") as out,
    ):
        for seed in seeds:
            facts, questions = make.generate(seed)
            bank = f"world {seed}"
            recall.create_bank(bank)
            recall.retain(bank, facts)
            recall.refresh_statistics(bank)
            for question in questions:
                listener.texts = ()
                report = recall.recall_report(
                    bank,
                    question.text,
                    reference_time=question.asked_at,
                    top_k=2 * FOUND,
                    rerank=True,
                    candidates=2 * FOUND,
                )
                hits = sorted(report.hits, key=lambda hit: hit.fused_rank)
                # All were read, or none for a question that is only about a time.
                shown: list[tuple[Hit, str]] = [*zip(hits, listener.texts, strict=False)]
                right = [text for hit, text in shown if hit.source_id in question.relevant]
                passed = question.relevant | question.also
                wrong = [text for hit, text in shown if hit.source_id not in passed]
                if right and len(wrong) >= FOUND // 2:
                    row = {
                        "src": "worlds",
                        "q": question.text,
                        "pos": dice.choice(right),
                        "neg": wrong[:FOUND],
                    }
                    print(json.dumps(row, ensure_ascii=False), file=out)
            recall.drop_bank(bank)


def _fact(text: str) -> dict[str, Any]:
    speaker = SPEAKER.match(text)
    return {
        "text": text,
        "fact_type": "experience",
        "entities": [speaker[1]] if speaker else [],
    }


class Writer:
    """Writes groups as the driver shows them, with random variations."""

    def __init__(self, around: Mapping[str, tuple[str, str]], seed: int) -> None:
        self._around = around
        self._any = list(around.values()) or [("", "")]  # for a text whose neighbours are unknown
        self.random = random.Random(seed)

    def group(self, group: Group, negatives: int) -> tuple[str, list[str]]:
        """Return a question and its texts, the answering one first."""
        dice = self.random
        others = dice.sample(group.texts[1:], min(negatives, len(group.texts) - 1))
        texts = [group.texts[0], *others]
        if group.source == "worlds":
            return group.question, texts
        known = [self._around.get(key(text)) for text in texts]
        contexts = [""] * len(texts)
        if known[0] and dice.random() < 0.5:
            beside = dice.choice([text for text in known[0] if text] or [""])
            if beside and beside not in texts and dice.random() < 0.3:
                texts[-1], known[-1] = beside, self._around.get(key(beside))
            contexts = [" ".join(pair or dice.choice(self._any)).strip() for pair in known]
        question = group.question
        if group.source == "friends":
            rename = self.renaming()
            texts, contexts = [rename(t) for t in texts], [rename(c) for c in contexts]
            question = rename(question)
        elif group.source.startswith("squad") and dice.random() < 0.35:
            question, texts, contexts = self.spoken(question, texts, contexts)
        texts = [
            f"{text} [a photo of {dice.choice(PICTURES)}]" if dice.random() < 0.05 else text
            for text in texts
        ]
        texts = [in_context(text, context) for text, context in zip(texts, contexts, strict=True)]
        if dice.random() < 0.5:
            question, texts = self.dated(question, texts)
        return question, texts

    def renaming(self) -> Any:
        dice = self.random
        short = dice.random() < 0.8
        names = dict(zip(FRIENDS, dice.sample(NAMES, len(FRIENDS)), strict=True))
        if dice.random() < 0.4:
            names = {}
        pattern = re.compile("|".join(rf"\b{name}\b" for name in names) or r"(?!)")

        def rename(text: str) -> str:
            if short:
                text = SPEAKER.sub(r"\1: ", text)
            return pattern.sub(lambda match: names[match[0]], text)

        return rename

    def spoken(
        self, question: str, texts: Sequence[str], contexts: Sequence[str]
    ) -> tuple[str, list[str], list[str]]:
        """Let two people say the texts. Some of the questions name the speaker."""
        dice = self.random
        pair = dice.sample(NAMES, 2)
        by = [dice.choice(pair) for _ in texts]
        plain = question.rstrip(" ?.")
        draw = dice.random()
        if draw < 0.2:
            question = f"What did {by[0]} say: {question}"
        elif draw < 0.4:
            question = f"{plain} according to {by[0]}?"
        says = [f"{name}: {text}" for name, text in zip(by, texts, strict=True)]
        around = [f"{dice.choice(pair)}: {text}" if text else "" for text in contexts]
        return question, says, around

    def dated(self, question: str, texts: Sequence[str]) -> tuple[str, list[str]]:
        """Put a date before each text. Some of the questions ask when, or name the date."""
        dice = self.random
        base = date(2015, 1, 1) + timedelta(days=dice.randrange(3700))
        days = [base + timedelta(days=dice.randrange(1, 300)) for _ in texts]
        if dice.random() < 0.4:
            question = WH.sub("When ", question)
        elif dice.random() < 0.08:
            words = question.rstrip(" ?.")
            named = written_date(days[0])
            month, year = named.split()[0], named.split()[-1]
            question = dice.choice((f"{words} in {month} {year}?", f"{words} on {named}?"))
        return question, [
            f"[Date: {written_date(day)} ({day:%Y-%m-%d})] {text}"
            for day, text in zip(days, texts, strict=True)
        ]


class Stream:
    """Endless groups, in a new order each round; KEEP says how often a source is used."""

    def __init__(self, groups: Sequence[Group], dice: random.Random) -> None:
        self._groups = groups
        self._dice = dice
        self._queue: list[Group] = []

    def __iter__(self) -> Iterator[Group]:
        return self

    def __next__(self) -> Group:
        if not self._queue:
            for group in self._groups:
                share = KEEP[group.source]
                times = int(share) + (self._dice.random() < share % 1)
                self._queue += [group] * times
            self._dice.shuffle(self._queue)
        return self._queue.pop()


def dequantised(exported: Path) -> BertForSequenceClassification:
    """Return the model that export() wrote, with its rounded weights."""
    tensors = {
        tensor.name: torch.from_numpy(onnx.numpy_helper.to_array(tensor).copy())
        for tensor in onnx.load(exported).graph.initializer
    }
    weights: dict[str, torch.Tensor] = {}
    for name, tensor in tensors.items():
        place, _, part = name.rpartition(".")
        if part == "weight_quantized":
            scale, zero = (tensors[f"{place}.weight_{of}"] for of in ("scale", "zero_point"))
            weights[f"{place}.weight"] = (tensor.float() - zero.float()) * scale
        elif part in ("weight", "bias") and f"{place}.quantized" not in tensors:
            weights[name] = tensor
        elif part == "quantized":
            scale, zero, bias = (tensors[f"{place}.{of}"] for of in ("scale", "zero_point", "bias"))
            matrix = (tensor.float() - zero.float()) * scale
            for joined_name, rows, its_bias in _parted(place, matrix.T, bias):
                weights[f"{joined_name}.weight"] = rows.contiguous()
                weights[f"{joined_name}.bias"] = its_bias
    layers = sum(name.endswith(".intermediate.dense.weight") for name in weights)
    words, width = weights["bert.embeddings.word_embeddings.weight"].shape
    config = BertConfig(
        vocab_size=words,
        hidden_size=width,
        intermediate_size=weights["bert.encoder.layer.0.intermediate.dense.bias"].numel(),
        num_hidden_layers=layers,
        num_attention_heads=reranker_graph.HEADS,
        num_labels=1,
        **AS_TRAINED,
    )
    model = BertForSequenceClassification(config)
    missing, unexpected = model.load_state_dict(weights, strict=False)
    if missing or unexpected:
        raise ValueError(f"{exported} is none of ours: missing {missing}, unexpected {unexpected}")
    return model


def _parted(
    place: str, matrix: torch.Tensor, bias: torch.Tensor
) -> Iterator[tuple[str, torch.Tensor, torch.Tensor]]:
    """Split what reranker_graph.py joined: query, key and value, or key and value."""
    base, _, last = place.rpartition(".")
    names = [place]
    if ".self." in place and len(matrix) > matrix.shape[1]:
        all_of_them = ("query", "key", "value")
        names = [f"{base}.{name}" for name in all_of_them[all_of_them.index(last) :]]
    yield from zip(names, matrix.chunk(len(names)), bias.chunk(len(names)), strict=True)


class Scorer:
    """The model with its tokenizer: logits of pairs, in batches of similar length."""

    def __init__(self, path: str, layers: int | None, device: torch.device) -> None:
        exported = Path(path, "model.onnx")
        model = (
            dequantised(exported)
            if exported.exists()
            else BertForSequenceClassification.from_pretrained(path, num_labels=1, **AS_TRAINED)
        )
        if layers:
            stack = model.bert.encoder.layer
            step = (len(stack) - 1) / max(layers - 1, 1)
            kept = [stack[round(len(stack) - 1 - step * n)] for n in reversed(range(layers))]
            model.bert.encoder.layer = torch.nn.ModuleList(kept)
            model.config.num_hidden_layers = layers
        self.model = model.to(device).eval()
        self.model.bert.embeddings.word_embeddings.requires_grad_(False)
        self.tokenizer = BertTokenizerFast.from_pretrained(
            packaged_model() if exported.exists() else path
        )
        self._device = device

    def __call__(self, pairs: Sequence[tuple[str, str]]) -> torch.Tensor:
        encoded = self.tokenizer(list(pairs), truncation="longest_first", max_length=TOKENS)
        order = sorted(range(len(pairs)), key=lambda i: len(encoded["input_ids"][i]))
        logits: list[torch.Tensor] = []
        for first in range(0, len(order), PAIRS):
            rows = order[first : first + PAIRS]
            batch = self.tokenizer.pad(
                {name: [column[i] for i in rows] for name, column in encoded.items()},
                return_tensors="pt",
            ).to(self._device)
            with torch.autocast(self._device.type, torch.bfloat16):
                logits.append(self.model(**batch).logits[:, 0].float())
        back = torch.tensor(order, device=self._device).argsort()
        return torch.cat(logits)[back]


Scored = Callable[[Sequence[tuple[str, str]]], torch.Tensor]


def teacher_of(path: str, device: torch.device) -> Scored:
    """Return a function from pairs to the logits of a trained model."""
    if not Path(path, "model.onnx").exists():
        return Scorer(path, None, device)
    reader = OnnxReranker(path)  # half as long as the model in bf16

    def taught(pairs: Sequence[tuple[str, str]]) -> torch.Tensor:
        asked = [reader.submit(question, [text]) for question, text in pairs]
        scores = [score for answer in asked for score in answer.result().found]
        return torch.tensor(scores, device=device).logit(1e-6)

    return taught


def loss_of(
    logits: torch.Tensor, sizes: Sequence[int], lessons: Sequence[torch.Tensor | None]
) -> torch.Tensor:
    """Return the mean loss of groups; its lesson is the share TAUGHT of the target of a group."""
    losses = []
    for part, lesson in zip(logits.split(list(sizes)), lessons, strict=True):
        truth = torch.zeros_like(part)
        truth[0] = 1
        one_of_all, each = truth, truth
        if lesson is not None:
            one_of_all = truth.lerp(lesson.softmax(0), TAUGHT)
            each = truth.lerp(lesson.sigmoid(), TAUGHT)
        list_wise = functional.cross_entropy(part, one_of_all)
        losses.append(list_wise + 0.5 * functional.binary_cross_entropy_with_logits(part, each))
    return torch.stack(losses).mean()


def lessons_of(
    teachers: Sequence[Scored], groups: Sequence[Group], written: Sequence[tuple[str, list[str]]]
) -> list[torch.Tensor | None]:
    """Return the mean score of the teachers for each group; None for worlds."""
    is_taught = [bool(teachers) and group.source != "worlds" for group in groups]
    asked = [its for its, is_one in zip(written, is_taught, strict=True) if is_one]
    if not asked:
        return [None] * len(groups)
    pairs = [(question, text) for question, texts in asked for text in texts]
    with torch.inference_mode():
        found = torch.stack([teacher(pairs) for teacher in teachers]).mean(0)
    lessons = iter(found.clone().split([len(texts) for _, texts in asked]))
    return [next(lessons) if is_one else None for is_one in is_taught]


def evaluate(scorer: Scorer, groups: Sequence[Group], writer: Writer) -> dict[str, float]:
    """Return the mean reciprocal rank and nDCG of the positive among all texts of a group."""
    scorer.model.eval()
    ranks = defaultdict(list)
    for group in groups:
        question, texts = writer.group(group, 6)
        with torch.inference_mode():
            logits = scorer([(question, text) for text in texts])
        rank = 1 + int((logits[1:] >= logits[0]).sum())
        ranks[group.source].append(rank)
        ranks["all"].append(rank)
    scorer.model.train()
    return {
        f"{source}.{name}": round(fmean(f(rank) for rank in column), 4)
        for source, column in ranks.items()
        for name, f in (("mrr", lambda r: 1 / r), ("ndcg", lambda r: 1 / math.log2(1 + r)))
    }


def rate(spent: float) -> float:
    """Return the factor of the learning rate when this share of the time is spent."""
    return min(spent / WARM_UP, (1 - spent) / (1 - WARM_UP))


def export(model: Path, directory: Path) -> None:
    """Write a model as int8 ONNX, with its tokenizer, for OnnxReranker."""
    loaded = BertForSequenceClassification.from_pretrained(model).eval()
    names = ("input_ids", "attention_mask", "token_type_ids")
    directory.mkdir(parents=True, exist_ok=True)
    onnx.save(reranker_graph.fused(quantised(loaded, names, "logits")), directory / "model.onnx")
    tokenizer = BertTokenizerFast.from_pretrained(model).backend_tokenizer
    tokenizer.enable_truncation(TOKENS)
    tokenizer.save(str(directory / "tokenizer.json"))


def quantised(model: torch.nn.Module, inputs: Sequence[str], output: str) -> onnx.ModelProto:
    """Export a model with quantised weights and dynamically quantised activations.

    Weights are quantised per channel and to 7 bits, because sums of 8 bits overflow on processors
    without VNNI. reranker_graph.py then fuses operations.
    """
    from onnxruntime.quantization import QuantType, quantize_dynamic

    example = tuple(torch.ones((2, 8), dtype=torch.int64) for _ in inputs)
    with TemporaryDirectory() as scratch:
        plain = str(Path(scratch, "plain.onnx"))
        torch.onnx.export(
            model,
            example,
            plain,
            input_names=[*inputs],
            output_names=[output],
            dynamic_axes={name: {0: "batch", 1: "tokens"} for name in inputs}
            | {output: {0: "batch"}},
            opset_version=17,
            dynamo=False,
        )
        found = str(Path(scratch, "quantised.onnx"))
        quantize_dynamic(
            plain,
            found,
            weight_type=QuantType.QInt8,
            per_channel=True,
            reduce_range=True,
        )
        return onnx.load(found)


def main() -> None:
    parser = harness.arguments(__doc__, "rerank_train.jsonl.xz")
    parser.add_argument("--out", type=Path, default=Path("reranker-run"))
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--layers", type=int, help="how many layers of the encoder to keep")
    parser.add_argument("--negatives", type=int, default=4)
    parser.add_argument("--learning-rate", type=float, default=6e-5)
    parser.add_argument("--start", default=packaged_model(), help="the encoder to start from")
    parser.add_argument(
        "--teacher", nargs="*", default=[], help="models whose mean score is also a target"
    )
    parser.add_argument("--dialogues", type=Path, nargs="*", default=[])
    parser.add_argument("--more", type=Path, nargs="*", default=[], help="further groups")
    parser.add_argument("--worlds", type=Path, help="only write groups of made worlds")
    parser.add_argument("--mine", type=Path, help="only write groups with harder negatives")
    parser.add_argument("--resume", action="store_true", help="continue from last.pt in --out")
    parser.add_argument("--export", type=Path, help="only write the model of --out as int8 ONNX")
    options = parser.parse_args()
    if options.mine:
        groups = read(harness.require(options.data))
        mine(groups[:40] if options.smoke else groups, options.mine)
    elif options.worlds:
        ask_worlds(options.worlds, WORLDS[:1] if options.smoke else WORLDS)
    elif options.export:
        export(options.out / "model", options.export)
    else:
        train(options)


def train(options: argparse.Namespace) -> None:
    torch.manual_seed(7)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    paths = (harness.require(options.data), *options.more)
    groups = [group for path in paths for group in read(path)]
    around = neighbours(groups, options.dialogues)
    held_out = [g for g in groups if zlib.crc32(key(g.texts[0]).encode()) % HELD_OUT == 0]
    used = [
        group
        for group in groups
        if zlib.crc32(key(group.texts[0]).encode()) % HELD_OUT
        and len(group.texts[0].split()) <= LONGEST
    ]
    held_out = random.Random(7).sample(held_out, min(20 if options.smoke else 250, len(held_out)))
    minutes = 0.5 if options.smoke else options.minutes
    scorer = Scorer(options.start, options.layers, device)
    teachers = [teacher_of(path, device) for path in options.teacher]
    trained = [p for p in scorer.model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=options.learning_rate, weight_decay=0.01)
    writer = Writer(around, 7)
    options.out.mkdir(parents=True, exist_ok=True)
    step, seconds, saved = 0, 0.0, 0.0
    last = options.out / "last.pt"
    if options.resume:
        state = torch.load(last, map_location=device, weights_only=True)
        scorer.model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        step, seconds = state["step"], state["seconds"]
        saved = seconds
        writer.random.seed(step)
    stream = Stream(used, writer.random)
    log = (options.out / "log.jsonl").open("a", encoding="utf-8")

    def note(row: Mapping[str, Any]) -> None:
        print(json.dumps(row), file=log, flush=True)
        print(json.dumps(row), flush=True)

    note({"groups": len(used), "held_out": len(held_out), "neighbours": len(around)})
    scorer.model.train()
    losses: list[float] = []
    durations: list[float] = []
    while seconds < minutes * 60:
        begun = time.monotonic()
        for part in optimizer.param_groups:
            part["lr"] = options.learning_rate * rate(min(seconds / (minutes * 60), 1))
        drawn = [next(stream) for _ in range(BATCH)]
        written = [writer.group(group, options.negatives) for group in drawn]
        pairs = [(question, text) for question, texts in written for text in texts]
        lessons = lessons_of(teachers, drawn, written)
        loss = loss_of(scorer(pairs), [len(texts) for _, texts in written], lessons)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        step += 1
        losses.append(loss.item())
        durations.append(time.monotonic() - begun)
        seconds += min(durations[-1], 3 * median(durations[-50:]))  # a pause is not counted
        if step % 10 == 0:
            row = {"step": step, "seconds": round(seconds), "loss": round(fmean(losses), 4)}
            note(row)
            losses.clear()
        if seconds - saved > 300:
            state = {"model": scorer.model.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save({**state, "step": step, "seconds": seconds}, last.with_suffix(".new"))
            last.with_suffix(".new").replace(last)
            saved = seconds
        if step % 250 == 0:
            note({"step": step, **evaluate(scorer, held_out[:100], Writer(around, 1))})
    figures = evaluate(scorer, held_out, Writer(around, 1))
    note({"step": step, **figures})
    scorer.model.save_pretrained(options.out / "model")
    scorer.tokenizer.save_pretrained(options.out / "model")
    settings = {"minutes": minutes, "layers": len(scorer.model.bert.encoder.layer), "steps": step}
    harness.write(options, figures, settings)


if __name__ == "__main__":
    main()
