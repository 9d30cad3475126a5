"""Measure what the rules without a model extract.

    python -m bench.quality.extract --full

* names.precision, names.recall: of RuleExtractor on the paragraphs of MuSiQue, against the entities
  that a language model found in them (HippoRAG's OpenIE); equal but for case and punctuation, all
  paragraphs together. names.recall_without_digits: of those entities that are no dates and numbers,
  which the rules leave to the grammar of dates.
* speakers.recall, speakers.precision: LoCoMo. Of the turns that name one of the two speakers, how
  many have a fact that mentions that one; and of the facts that mention a speaker who does not say
  them, how many have the name in their text. Twenty messages are read at a time.
* speakers.own: of the turns that give a fact, how many mention who speaks.
* turns_without_fact: the share of turns that give none, being questions or a word or two.
* ms_per_1000_words: time on one processor.
"""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

from bench import harness

from pgrecall.extraction import RuleExtractor, talk


def plain(name: str) -> str:
    """Return a name without case and punctuation."""
    return re.sub(r"\W+", " ", name.casefold()).strip()


def names(path: Path) -> harness.Figures:
    """Compare names in paragraphs with those that a model found."""
    extract = RuleExtractor()
    right = found = known = known_words = right_words = words = 0
    start = time.process_time()
    pairs = []
    for fact in json.loads(path.read_text(encoding="utf-8"))["facts"]:
        words += len(fact["text"].split())
        pairs.append((fact.get("entities", []), extract.names_in(fact["text"])))
    seconds = time.process_time() - start
    for entities, extracted in pairs:
        gold, given = {plain(e) for e in entities}, {plain(e) for e in extracted}
        of_words = {name for name in gold if not re.search(r"\d", name)}
        right, found, known = right + len(gold & given), found + len(given), known + len(gold)
        right_words, known_words = right_words + len(of_words & given), known_words + len(of_words)
    return {
        "names.precision": right / found,
        "names.recall": right / known,
        "names.recall_without_digits": right_words / known_words,
        "names.gold": known,
        "ms_per_1000_words": 1e6 * seconds / words,
    }


def speakers(path: Path) -> harness.Figures:
    """Count turns whose speakers, and those they name, are among the entities of their facts."""
    extract = RuleExtractor()
    turns = without = own = named = named_found = mentions = mentions_right = 0
    for conversation in json.loads(path.read_text(encoding="utf-8")):
        both = conversation["speakers"]
        messages = [
            {
                "text": t["text"],
                "speaker": t["speaker"],
                "session": t["session"],
                "sent_at": t["at"],
            }
            for t in conversation["turns"]
        ]
        made: dict[int, list[dict[str, Any]]] = {}
        for first, batch in talk.batches(messages, talk.MESSAGES_AT_ONCE):
            for n, facts in enumerate(extract.by_message(batch)):
                made[first + n] = facts
        for n, turn in enumerate(conversation["turns"]):
            turns += 1
            facts = made[n]
            entities = {str(name) for fact in facts for name in fact["entities"]}
            without += not facts
            own += turn["speaker"] in entities
            (other,) = set(both) - {turn["speaker"]}
            said = " ".join(str(fact["text"]) for fact in facts)
            if re.search(rf"\b{other}\b", said):
                named += 1
                named_found += other in entities
            mentions += other in entities
            mentions_right += other in entities and other in said
    return {
        "speakers.own": own / (turns - without),
        "speakers.recall": named_found / named,
        "speakers.precision": mentions_right / max(mentions, 1),
        "speakers.named": named,
        "turns_without_fact": without / turns,
    }


def main() -> None:
    """Run the benchmark and print its figures."""
    parser = harness.arguments(__doc__, "musique_dev.json")
    parser.add_argument("--talk", type=Path, default=harness.DATA / "locomo_dev.json")
    options = parser.parse_args()
    if options.smoke and not options.data.exists():
        print(f"left out: there is no {options.data.name}")
        return
    figures = names(harness.require(options.data)) | speakers(harness.require(options.talk))
    harness.show(figures)
    harness.write(options, figures, {"talk": options.talk.name})


if __name__ == "__main__":
    main()
