"""How the worlds of worlds.py are worded: names, facts and questions to develop with.

Placeholders: {a} and {b} are the two ends of a relation, {x} is whom or what a question starts
from, others are named where they stand. Nothing but the form is shared with held.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Texts = tuple[str, ...]
Rivals = tuple[str, str, tuple[Texts, ...]]
"""What befalls {c}, its noun phrase, and for each company a chain of events of its own."""


def words(text: str) -> Texts:
    return tuple(text.split())


@dataclass(frozen=True)
class Wording:
    female: Texts
    male: Texts
    surnames: Texts
    cities: Texts
    countries: Texts
    teams: Texts
    projects: Texts
    things: Texts
    companies: Texts
    hub: str
    """The company that everybody works for."""
    jobs: Texts
    facts: Mapping[str, Texts]
    """By kind of relation."""
    phrases: Mapping[str, Texts]
    """A step as a noun phrase; those of ".f" and ".m" by the sex of whom they lead to."""
    asks: Mapping[str, Texts]
    """A step as a question; a step to a person is also asked with `who` and its phrase.

    "team lead" asks for the leader of somebody's team."""
    who: Texts
    stories: tuple[tuple[tuple[str, str], ...], ...]
    """Chains of four events, each with the noun phrase by which it is asked for."""
    cause: Texts
    root: Texts
    consequence: Texts
    prevented: tuple[tuple[str, str, str], ...]
    """What prevents, what does not happen, the noun phrase of the latter."""
    prevention: Texts
    failures: tuple[tuple[str, str, str], ...]
    """What failed, what is known of {code}, the question; they share nothing but {code}."""
    affected: tuple[tuple[str, Texts], ...]
    """A fault, and what that of {code} did to {c} in {city}."""
    others: Texts
    """Who else was affected by the fault {e} that {c} had."""
    topics: Texts
    decided: tuple[tuple[str, Texts], ...]
    """Decisions about {t}, each with values for {v}."""
    latest: Texts
    month: Texts
    moves: Mapping[str, Texts]
    """Facts about {a} and {b} of which the newest holds, by relation."""
    now: Mapping[str, Texts]
    still: Mapping[str, Texts]
    past: Mapping[str, Texts]
    first: Mapping[str, Texts]
    no_longer: Mapping[str, Texts]
    events: Texts
    week: Texts
    standing: Texts
    noise: Texts
    attributes: tuple[tuple[str, str], ...]
    """Facts about {hub} with their questions."""
    breakdowns: tuple[tuple[str, str], ...]
    """How {thing} broke down in {city}, and the question about its owner."""
    terms: tuple[tuple[str, Texts], ...]
    """Terms of the contract with {c}, each with values for {v}."""
    changed: Texts
    """What changed about {c} between {day1} and {day2}."""
    through: Texts
    contradictions: tuple[tuple[str, str, Texts, str], ...]
    """Two wordings of one statement about {x}, values for {v}, the question."""
    chained: Mapping[str, Texts] = field(default_factory=dict)
    """As `phrases`, where {x} is a clause that no "'s" may follow; nor is it asked for with one."""
    changing: tuple[tuple[Texts, Texts, Texts, Texts], ...] = ()
    """What changes about {a}, values for {v}, questions for what holds now, and for the latest."""
    rivals: tuple[Rivals, ...] = ()
    """The chain leads to what befalls {c}."""
    aftermaths: tuple[Rivals, ...] = ()
    """The chain follows from what befalls {c}."""
    batches: tuple[tuple[str, Texts, Texts, Texts], ...] = ()
    """What failed in {city}, with {code}; the questions; what is known of each {code}; a chain of
    causes of the same failure elsewhere."""


DEV = Wording(
    female=words(
        "Ana Bettina Clara Dorothea Elif Frida Greta Hanna Imke Jelena Katrin Leonie Mona "
        "Nadine Olga Petra Ruth Sanna Tilda"
    ),
    male=words(
        "Anton Bjarne Carlos Dmitri Emil Felix Gustav Henrik Ivan Jakob Karim Luca Mikkel Nils "
        "Oskar Pavel Rafael Stefan Tomas"
    ),
    surnames=words(
        "Adler Brandt Castellan Dahl Eriksen Fontane Grimm Halvorsen Iversen Jansen Kowalski "
        "Lindgren Moreau Novak Oberlin Pavlov Quist Rossi Sandberg Thorsen Ullmann Vidal Wagner "
        "Zimmer Abel Borg Cerny Drexler Engel Falk Gerlach Hoffer Ibsen Jordan Keller Lorenz "
        "Maurer Nyman Olsen Petrov"
    ),
    cities=words(
        "Aarhus Bremen Cork Dresden Esbjerg Freiburg Gdansk Halle Innsbruck Jena Kiel Lucerne "
        "Malmo Nantes Odense Porto Rostock Salzburg Tampere Utrecht Verona Wismar Zwolle Bergen "
        "Turku"
    ),
    countries=words("Norland Ostria Vestland Sudmark Midia"),
    teams=("Harbour team", "Compass team", "Anvil team", "Lantern team", "Quarry team"),
    projects=(
        "Project Heron",
        "Project Basalt",
        "Project Tidewater",
        "Project Saffron",
        "Project Meridian",
        "Project Juniper",
        "Project Copperline",
    ),
    things=(
        "the van Bertha",
        "the sailing boat Marlin",
        "the forklift Bruno",
        "the drone Wasp",
        "the crane Goliath",
        "the press Vulcan",
        "the kiln Etna",
        "the lathe Orpheus",
        "the digger Mole",
        "the generator Thor",
    ),
    companies=(
        "Orlo Works",
        "Kestrel Foundry",
        "Bluefin Motors",
        "Tannberg",
        "Silex",
        "Marwick",
        "Delmar Foods",
        "Noor Textiles",
        "Castor Rail",
        "Pinewood Press",
    ),
    hub="Halden Industries",
    jobs=("electrician", "lawyer", "baker", "surveyor"),
    facts={
        "reports_to": (
            "{a} reports to {b}.",
            "In the org chart {a} sits right under {b}.",
            "{b} signs off whatever {a} does at the office.",
        ),
        "manages": ("{b} is managed by {a}.", "{a} manages {b} day to day."),
        "mentors": (
            "{a} mentors {b}.",
            "{b} has {a} as a mentor since the first week.",
            "Every other Friday {a} coaches {b} over lunch.",
        ),
        "works_on": ("{a} works on {b}.", "{b} takes up most of {a}'s time."),
        "member_of": ("{a} is a member of the {b}.", "{a} sits with the {b}."),
        "leads": ("{a} leads {b}.", "{b} is led by {a}."),
        "parent_of": ("{a} is the parent of {b}.", "{b} was raised by {a}."),
        "married_to": ("{a} is married to {b}.", "{a} and {b} wed in a small chapel."),
        "sibling_of": ("{a} and {b} are siblings.", "{a} grew up sharing a room with {b}."),
        "lives_in": (
            "{a} lives in {b}.",
            "{a} has a flat in {b} above a bakery.",
            "{a} shares a house with two cats in {b}.",
        ),
        "born_in": ("{a} was born in {b}.", "{a} came into the world in {b}."),
        "located_in": ("{a} is located in {b}.", "{a} lies in {b}."),
        "owns": ("{a} owns {b}.", "{b} belongs to {a}."),
        "made_by": ("{a} was made by {b}.", "{b} built {a}."),
        "knows": ("{a} knows {b} from the choir.", "{a} and {b} play chess together."),
    },
    phrases={
        "boss": (
            "{x}'s boss",
            "the boss of {x}",
            "{x}'s supervisor",
            "the manager of {x}",
            "the person {x} answers to",
            "the person {x} reports to",
        ),
        "mentor": ("{x}'s mentor", "the mentor of {x}", "{x}'s coach", "the one who mentors {x}"),
        "spouse.f": ("{x}'s wife", "the wife of {x}", "the woman {x} is married to"),
        "spouse.m": ("{x}'s husband", "the husband of {x}", "the man {x} is married to"),
        "parent.f": ("{x}'s mother", "the mother of {x}"),
        "parent.m": ("{x}'s father", "the father of {x}"),
        "child.f": ("{x}'s daughter", "the daughter of {x}"),
        "child.m": ("{x}'s son", "the son of {x}"),
        "sibling.f": ("{x}'s sister", "the sister of {x}"),
        "sibling.m": ("{x}'s brother", "the brother of {x}"),
        "team": ("{x}'s team", "the team of {x}", "the team {x} belongs to"),
        "project": ("{x}'s project", "the project {x} works on"),
        "lead": ("the leader of {x}", "the person who leads {x}"),
        "thing": ("{x}'s vehicle or machine", "what {x} owns"),
        "maker": ("the maker of {x}", "the company that made {x}"),
        "home": ("the town {x} lives in", "{x}'s home town"),
        "owner": ("{x}'s owner", "the owner of {x}"),
    },
    asks={
        "boss": ("Who does {x} report to?", "Whom does {x} answer to?", "Who manages {x}?"),
        "mentor": ("Who mentors {x}?", "By whom is {x} coached?"),
        "spouse": ("Who is {x} married to?", "To whom is {x} married?"),
        "parent": ("Who raised {x}?",),
        "child": ("Whose parent is {x}?",),
        "sibling": ("Who grew up with {x}?",),
        "team": (
            "What is the name of {x}'s team?",
            "Which team is {x} in?",
            "What team does {x} belong to?",
        ),
        "team lead": ("Whose team is {x} in?", "On whose team is {x}?"),
        "project": ("What does {x} work on?", "Which project keeps {x} busy?"),
        "lead": ("Who leads {x}?", "By whom is {x} led?"),
        "thing": ("What does {x} own?", "Which machine or vehicle belongs to {x}?"),
        "owner": ("Who owns {x}?", "Whose is {x}?", "To whom does {x} belong?"),
        "maker": ("Who made {x}?", "By which company was {x} built?"),
        "home": (
            "Where does {x} live?",
            "In which town is the home of {x}?",
            "What city does {x} live in?",
        ),
        "birthplace": ("Where was {x} born?", "What is the birthplace of {x}?"),
        "place": ("Where is {x} located?", "In which country is {x}?"),
    },
    who=("Who is {p}?", "What is the name of {p}?", "Do you know who {p} is?"),
    stories=(
        (
            ("A gull nested in the air intake of the boiler house in {city}.", "the gull's nest"),
            ("The burners of {company} ran without enough air for a day.", "the starved burners"),
            ("Four hundred tins left the line with soft lids.", "the soft lids"),
            ("The supermarket sent back a lorry of soup.", "the returned soup"),
        ),
        (
            ("{person} mistyped a figure in the tide table.", "the typing error"),
            ("The ferry sat on a sandbank off {city} for six hours.", "the stranded ferry"),
            ("The wedding guests slept in the gym.", "the night in the gym"),
            ("The town bought sixty folding beds.", "the purchase of folding beds"),
        ),
        (
            ("Frost cracked a water main under the market of {city}.", "the burst water main"),
            ("The cellar with the old ledgers was flooded.", "the flooded cellar"),
            ("{company} could not prove what it had paid.", "the missing proof of payment"),
            ("The tax office demanded two years again.", "the tax demand"),
        ),
        (
            ("A squirrel chewed the fibre behind {company}.", "the chewed cable"),
            ("Card readers all over {city} went dark.", "the dead card readers"),
            ("The street party took only coins.", "the coins-only party"),
            ("Two banks ran out of change by noon.", "the shortage of change"),
        ),
        (
            ("{person} planted mint beside the greenhouse drain.", "the planting of mint"),
            ("Roots blocked the outflow and the floor stood under water.", "the blocked outflow"),
            ("The tomato seedlings rotted within a week.", "the rotten seedlings"),
            ("The canteen of {company} served no salad all summer.", "the summer without salad"),
        ),
        (
            ("The sensor in the silo at {city} was mounted upside down.", "the upside-down sensor"),
            ("The grain was reported as dry when it was damp.", "the wrong moisture reading"),
            ("Mould got into nine wagons of barley.", "the mouldy barley"),
            ("{company} brewed no beer in autumn.", "the autumn without beer"),
        ),
    ),
    cause=(
        "What led to {e}?",
        "What was behind {e}?",
        "Why did we get {e}?",
        "Because of what did {e} come about?",
    ),
    root=(
        "What was the root cause of {e}?",
        "What ultimately caused {e}?",
        "Where did the trouble that ended in {e} start?",
    ),
    consequence=(
        "What followed from {e}?",
        "What were the consequences of {e}?",
        "What did {e} cause?",
    ),
    prevented=(
        (
            "{person} noticed the loose bolt on the evening round.",
            "The ski lift in {city} had been about to drop a cabin.",
            "the fall of the cabin",
        ),
        (
            "A second lock was put on the cage last spring.",
            "Thieves tried to take the copper from the yard in {city}.",
            "the theft of the copper",
        ),
    ),
    prevention=("What prevented {e}?", "What kept {e} from happening?"),
    failures=(
        (
            "The pump at the {city} pool broke; its bearing carried the number {code}.",
            "{company} warned that {code} cracks after ninety hours.",
            "Was there a warning about what went into the pump at the {city} pool?",
        ),
        (
            "Ticket {code} is about the doors of the {city} library that open by themselves.",
            "The fix for {code} is to swap the two grey wires.",
            "How do we mend the doors of the {city} library?",
        ),
        (
            "A lorry with the plate {code} scratched the gate in {city}.",
            "{code} is on hire to {company} until winter.",
            "Who had the lorry that scratched the gate in {city}?",
        ),
        (
            "The rash at the nursery in {city} came from paint of lot {code}.",
            "{company} mixed {code} on a night shift without a chemist.",
            "Who mixed the paint that gave the nursery in {city} a rash?",
        ),
    ),
    affected=(
        (
            "the bad yeast",
            (
                "{c} in {city} lost a day because of yeast from batch {code}.",
                "After using {code}, {c} threw away all its dough.",
                "Nothing rose at {c}: it was {code} again.",
            ),
        ),
        (
            "the leaking valve",
            (
                "A valve of series {code} leaked at {c} in {city}.",
                "{c} had water in the basement; the plumber pointed at {code}.",
                "{code} left {c} without heating for a night.",
            ),
        ),
        (
            "the fading ink",
            (
                "The ink {code} of {c} in {city} faded.",
                "{c} reprinted its menus due to {code}.",
                "Posters of {c} went blank, {code} had been used.",
            ),
        ),
    ),
    others=("Who else was affected by {e} that {c} had?", "Besides {c}, who suffered from {e}?"),
    topics=("the canteen", "the parking garage", "the night shift", "the website", "the archive"),
    decided=(
        ("It was decided that {t} will be run by {v}.", ("Orsted", "Pellum", "Gravis", "Tarn")),
        ("We decided on {v} for {t}.", ("Plan Blue", "Plan Amber", "Plan Grey", "Plan Rust")),
        ("The board settled on {v} for {t}.", ("lease", "purchase", "closure", "renewal")),
    ),
    latest=(
        "What was decided last about {t}?",
        "What is the latest decision on {t}?",
        "What did we settle on most recently for {t}?",
    ),
    month=("What was decided in {month}?", "Which decisions did we take in {month}?"),
    moves={
        "lives_in": ("{a} lives in {b}.", "{a} moved to {b}.", "{a} has taken a flat in {b}."),
        "works_on": ("{a} works on {b}.", "{a} was put on {b}.", "{a} joined {b}."),
    },
    now={
        "lives_in": ("Where does {x} live now?", "What is {x}'s current home town?"),
        "works_on": ("What is {x} working on now?", "Which project is {x} on at present?"),
    },
    still={
        "lives_in": ("Does {x} still live in {old}?",),
        "works_on": ("Is {x} still on {old}?",),
    },
    past={
        "lives_in": ("Where did {x} use to live?", "Where did {x} live before?"),
        "works_on": ("What did {x} use to work on?", "What did {x} work on before?"),
    },
    first={
        "lives_in": ("Where did {x} live first?", "Where did {x} live originally?"),
        "works_on": ("What did {x} work on at first?", "Which project was {x} on originally?"),
    },
    no_longer={
        "lives_in": ("Where does {x} no longer live?",),
        "works_on": ("Which projects is {x} no longer on?",),
    },
    events=(
        "{person} broke an ankle on the stairs.",
        "The auditors came to {city} for two days.",
        "A parcel of live eels arrived at the gate.",
        "{person} signed the lease for the loft.",
        "The fire drill emptied the building.",
        "{company} delivered the new looms.",
        "The choir sang in the foyer.",
        "{person} gave notice.",
        "A tree fell on the bike shed.",
    ),
    week=("What happened last week?", "What went on in the last week?", "Anything new last week?"),
    standing=(
        "{person} holds parking permit {n}.",
        "{person} has locker {n}.",
        "{person} rents desk {n} in {city}.",
        "{person} subscribes to the {city} Courier.",
        "{person} is insured with {company} under policy {n}.",
        "{person} is on rota {n}.",
    ),
    noise=(
        "{hub} keeps {n} chairs in {city}.",
        "{hub} paid invoice {n} to {company}.",
        "{hub} printed {n} leaflets for the fair in {city}.",
        "{hub} washed {n} windows.",
        "{person} wrote note {n} about {hub}.",
        "{hub} served {n} plates of stew.",
    ),
    attributes=(
        ("{hub} was founded by two lighthouse keepers.", "Who started {hub}?"),
        ("The mascot of {hub} is a stoat.", "Which animal stands for {hub}?"),
        (
            "{hub} closes its year on the last day of September.",
            "When does {hub} balance its books?",
        ),
        (
            "The telephone exchange of {hub} answers on 4471.",
            "What number do I dial to reach {hub}?",
        ),
    ),
    breakdowns=(
        ("In {city} {thing} broke down.", "Who owns what broke down in {city}?"),
        ("{thing} caught fire in {city}.", "Whose property caught fire in {city}?"),
        (
            "In {city} {thing} would not start.",
            "Who is the owner of what would not start in {city}?",
        ),
    ),
    terms=(
        ("The rent under the contract with {c} was set to {v} a month.", ("900", "1100", "1250")),
        ("{c} is now paid within {v} days.", ("14", "30", "60")),
        ("The contact at {c} became {v}.", ("the night desk", "the yard office", "the front desk")),
    ),
    changed=(
        "What changed about {c} between {day1} and {day2}?",
        "What was altered in our dealings with {c} from {day1} to {day2}?",
    ),
    through=(
        "Through whom does {a} know {b}?",
        "Who could introduce {a} to {b}?",
        "Which acquaintance do {a} and {b} have in common?",
    ),
    contradictions=(
        (
            "The code of {x}'s locker is {v}.",
            "{x}'s locker opens with {v}.",
            ("47", "90"),
            "Which code opens {x}'s locker?",
        ),
        (
            "{x} is allergic to {v}.",
            "{x} cannot eat {v}.",
            ("nuts", "shellfish"),
            "What should {x} not eat?",
        ),
        (
            "{x} plays the {v}.",
            "{x}'s instrument is the {v}.",
            ("cello", "oboe"),
            "Which instrument does {x} play?",
        ),
        (
            "{x} was hired in {v}.",
            "{x} has been here since {v}.",
            ("2017", "2019"),
            "In which year was {x} hired?",
        ),
    ),
)
