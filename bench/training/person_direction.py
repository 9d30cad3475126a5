"""Print the direction of names of people among embeddings, for sql/values/similarity.sql.

    pip install faker
    PYTHONHASHSEED=0 python -m bench.training.person_direction

A logistic regression tells names of people, full ones and parts, from other names: companies,
cities, streets, jobs and the like of the same 31 countries, the cities of the time zone database,
and words with a capital within general sentences. The package faker makes the names; none is of a
benchmark. Elements are rounded to a third of their standard deviation. Printed are the direction,
slope and offset of the log of the odds over the cosine, and the share of names held back on the
right side of even odds, of people and of others.
"""

from __future__ import annotations

import random
import re
from itertools import islice
from zoneinfo import available_timezones

import numpy as np
from bench import harness
from faker import Faker
from sklearn.linear_model import LogisticRegression

from pgrecall.embedders import DEFAULT_EMBEDDER, embed_as

LOCALES = (
    "az_AZ cs_CZ da_DK de_DE en_GB en_IN en_KE en_NG en_US es_ES es_MX et_EE fi_FI fil_PH fr_FR "
    "hr_HR hu_HU id_ID it_IT lt_LT lv_LV nl_NL no_NO pl_PL pt_BR ro_RO sk_SK sl_SI sv_SE tr_TR "
    "zu_ZA"
).split()
OTHER = (
    "city company country state bs catch_phrase job street_name color_name currency_name".split()
)
OF_EACH, SENTENCES, PEOPLE, OTHERS = 150, 60_000, 8_000, 10_000
LATIN = re.compile(r"[\x00-\u024f]+")
CAPITAL = re.compile(r"(?<=[a-z,] )[A-Z][a-z]+(?: [A-Z][a-z]+){0,2}")


def people_and_others(sentences: list[str]) -> tuple[list[str], list[str]]:
    """Make names; what is both is one of a person."""
    people: set[str] = set()
    others = {zone.rsplit("/", 1)[-1].replace("_", " ") for zone in available_timezones()}
    Faker.seed(5)
    for locale in LOCALES:
        maker = Faker(locale)
        for _ in range(OF_EACH):
            first, last = maker.first_name(), maker.last_name()
            people |= {first, last, f"{first} {last}"}
            others |= {str(getattr(maker, kind)()) for kind in OTHER if hasattr(maker, kind)}
    dice = random.Random(1)
    words = sorted({word for sentence in sentences for word in CAPITAL.findall(sentence)})
    others |= set(dice.sample(words, OTHERS // 2))
    chosen = []
    for names, count in ((people, PEOPLE), (others - people, OTHERS)):
        latin = sorted(name for name in names if LATIN.fullmatch(name))
        chosen.append(dice.sample(latin, min(count, len(latin))))
    return chosen[0], chosen[1]


def main() -> None:
    options = harness.arguments(__doc__, "sentences.txt.xz").parse_args()
    with harness.open_text(harness.require(options.data)) as file:
        sentences = list(islice(file, SENTENCES))
    people, others = people_and_others(sentences)
    vectors = np.array([[*one] for one in embed_as(DEFAULT_EMBEDDER, "document", people + others)])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    is_person = np.arange(len(vectors)) < len(people)
    is_kept = np.arange(len(vectors)) % 5 == 0

    model = LogisticRegression(C=30, max_iter=3000, class_weight="balanced")
    model.fit(vectors[~is_kept], is_person[~is_kept])
    weights = model.coef_[0]
    direction = np.round(3 * weights / weights.std())
    print(",".join(str(int(x)) for x in direction))
    slope, offset = np.linalg.norm(weights), model.intercept_[0]
    print(f"slope {slope:.1f}, offset {offset:.2f}")
    is_found = slope * (vectors @ (direction / np.linalg.norm(direction))) + offset > 0
    for group, share in ((is_person, 1), (~is_person, 0)):
        print(f"{(is_found[is_kept & group] == share).mean():.3f}")


if __name__ == "__main__":
    main()
