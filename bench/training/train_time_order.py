"""Learn from embeddings whether a question asks for the latest state or for a former one.

    python -m bench.training.train_time_order --smoke
    python -m bench.training.train_time_order --out pydriver/pgrecall/embedder/time_order.json

A logistic regression over embeddings of the packaged embedder. It is fitted to questions of made
worlds in the wordings dev, held and third (with other seeds than the benchmark's), some general
sentences, and questions of the training data of the reranker, which ask for neither, except where
latest_or_former.py recognises one. The wording "fourth", LoCoMo, BEAM, FiQA and MuSiQue are left
for measuring. Names are removed from two fifths of the questions, as common names are when a bank
is asked.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import torch
from bench import harness
from bench.worlds.make import generate
from torch.nn import functional

from pgrecall.embedders import embed_as
from pgrecall.inference.embedders import SmallEmbedder
from pgrecall.inference.time_order import Direction
from pgrecall.temporal.latest_or_former import read_latest_or_former

Labelled = tuple[str, Direction | None]

KINDS: dict[str, Direction] = {
    **dict.fromkeys(("latest", "now", "still"), "latest"),
    **dict.fromkeys(("first", "used_to", "no_longer"), "former"),
}
SEEDS = range(100, 106)
OTHERS = 5000
GENERAL_WEIGHT = 20.0  # of the general sentences: there are few of them
RARE_WEIGHT = 3.0
DECAY = 1e-3
SCALE = 10.0  # of the embeddings; DECAY was chosen for it
GENERAL: dict[Direction | None, str] = {
    None: """
What was said about the plan?
Where does she live?
What is his job?
Which version is used?
What was decided about the price?
Who is in charge of it?
What is the address?
Which school does he go to?
What happened to the house?
When did she move there?
Why did they change it?
Who told him about the trip?
What does she think of the book?
How many people came to the party?
What did he buy for his sister?
Where was the meeting held?
Who is the mother of the boss?
Which city is the company in?
What did they do last week?
What was the cause of the delay?
How did it start?
What is her first name?
Did he like the film?
What does her brother do?""",
    "latest": """
What was the last thing said about the plan?
Where does she live now?
What is his current job?
Which version is used at present?
What was decided about the price most recently?
Who is in charge of it these days?
What is the newest address?
Which school does he go to today?
What is the latest on the house?
Where has she moved to by now?
What did they finally settle on?
What do we know about the trip as things stand?
What is the state of the matter at the moment?
After all the changes, how many people are coming?
Which decision is in force?
What did the last meeting conclude?
Who has the post now?
In the end, which city did the company choose?
Any news about it?
What is the most up-to-date figure?
Is it still the plan?
Does she still live there?
Does he still have that job?
Is that version still in use?
Does the price remain the same?
Is he in charge of it even today?
Would I reach her at that address now?
Does he go on attending that school?
Has anything changed about the house?
Can I rely on that to this day?""",
    "former": """
What was the very first plan?
Where did she live at first?
What was his earliest job?
Which version was used originally?
What was decided about the price to begin with?
Who was in charge of it before?
What was the former address?
Which school did he use to go to?
What was the house like in the early days?
Where did she live before she moved?
What had they planned initially?
What job has he given up?
Which company did she leave?
What does he no longer own?
Who held the post previously?
Which city did the company start out in?
What was the old figure, before it was changed?
What did the first meeting decide?
Whom was she married to in the past?
What did he stop doing?""",
}


def general() -> Iterator[Labelled]:
    for direction, sentences in GENERAL.items():
        for text in sentences.strip().splitlines():
            yield text, direction


def questions(seeds: range, others: int, path: Path) -> dict[str, Direction | None]:
    """Gather questions with what they ask for, each question once."""
    found: dict[str, Direction | None] = {}
    for templates in ("dev", "held", "third"):
        for seed in seeds:
            for question in generate(seed, templates, 0)[1]:
                found[question.text] = KINDS.get(question.kind)
    rows = [json.loads(line)["q"] for line in harness.lines(harness.require(path))]
    random.Random(0).shuffle(rows)
    for text in rows[:others]:
        if read_latest_or_former(text) in ("neither", None):
            found.setdefault(text, None)
    return found


def without_names(text: str) -> str:
    first, *others = text.split()
    return " ".join([first, *(word for word in others if not word[0].isupper())])


def fit(
    labelled: list[Labelled], weights: list[float]
) -> dict[Direction, tuple[float, list[float]]]:
    """Return bias and weights of the log odds of each direction against neither."""
    classes: list[Direction | None] = [None, "latest", "former"]
    vectors = torch.tensor(
        [[*map(float, v)] for v in embed_as(SmallEmbedder(), "query", [t for t, _ in labelled])]
    )
    wanted = torch.tensor([classes.index(direction) for _, direction in labelled])
    weight = torch.tensor(weights) * torch.where(wanted > 0, RARE_WEIGHT, 1.0)
    matrix = torch.zeros(vectors.shape[1], len(classes), requires_grad=True)
    bias = torch.zeros(len(classes), requires_grad=True)
    optimiser = torch.optim.LBFGS([matrix, bias], max_iter=300)

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        logits = SCALE * vectors @ matrix + bias
        losses = functional.cross_entropy(logits, wanted, reduction="none")
        total: torch.Tensor = (losses * weight).mean() + DECAY * (matrix**2).sum()
        total.backward()
        return total

    optimiser.step(loss)
    planes = (SCALE * (matrix - matrix[:, :1])).detach()
    biases = (bias - bias[0]).detach()
    return {
        direction: (round(float(biases[n]), 3), [round(float(w), 2) for w in planes[:, n]])
        for n, direction in enumerate(classes)
        if direction is not None
    }


def main() -> None:
    parser = harness.arguments(__doc__, "rerank_train.jsonl.xz")
    parser.add_argument("--out", type=Path, help="the file to write")
    options = parser.parse_args()
    seeds, others = (range(100, 101), 20) if options.smoke else (SEEDS, OTHERS)
    dice = random.Random(0)
    asked: list[Labelled] = [
        (text if dice.random() < 0.6 else without_names(text), direction)
        for text, direction in questions(seeds, others, options.data).items()
    ]
    sentences = [*general()]
    planes = fit(asked + sentences, [1.0] * len(asked) + [GENERAL_WEIGHT] * len(sentences))
    print(f"{len(asked)} questions and {len(sentences)} sentences")
    if options.out:
        options.out.write_text(json.dumps(planes) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
