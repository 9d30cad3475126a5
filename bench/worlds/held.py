"""The wording of worlds.py that is held back: to tell kinds that are solved from templates.

Who develops arms, lexicons or rerankers measures with it and does not read it.
"""

from __future__ import annotations

from bench.worlds.wording import Wording, words

HELD = Wording(
    female=words(
        "Adaeze Brigid Chiara Delphine Esther Fatima Gwen Hilde Ines Josefa Kirsten Lucia Maeve "
        "Noor Oriana Pilar Rosa Shirin Vera"
    ),
    male=words(
        "Alasdair Benedikt Cormac Diego Edgar Farid Giles Hugo Idris Joaquin Kwame Leif Marco "
        "Noel Otto Piers Ravi Sven Viktor"
    ),
    surnames=words(
        "Achterberg Bellini Crowther Dunmore Ekberg Ferrante Gallagher Huxley Ishikawa Joubert "
        "Khoury Larkin Mbeki Nakamura Okafor Pereira Quigley Rahman Sorensen Tremblay Underhill "
        "Vasquez Whitlock Yilmaz Ashdown Bancroft Cardoso Devlin Elster Fairfax Gomez Harker "
        "Inoue Jessop Kettle Lovell Merrick Norwood Ortega Prentice"
    ),
    cities=words(
        "Albany Bristol Cadiz Dover Exeter Ferrara Galway Hobart Izmir Jaipur Kyoto Lagos "
        "Mendoza Naples Oviedo Perth Quito Rabat Seville Toledo Uppsala Vigo Whitby York Zagreb"
    ),
    countries=words("Arcadia Borealia Caledon Doria Elysia"),
    teams=("Falcon crew", "Granite crew", "Ember crew", "Willow crew", "Kelp crew"),
    projects=(
        "Operation Nightjar",
        "Operation Cobalt",
        "Operation Larch",
        "Operation Millstone",
        "Operation Zephyr",
        "Operation Paprika",
        "Operation Driftwood",
    ),
    things=(
        "the truck Daisy",
        "the canoe Otter",
        "the tractor Boris",
        "the kayak Plover",
        "the mixer Samson",
        "the welder Spark",
        "the harvester Ceres",
        "the barge Walrus",
        "the loader Ox",
        "the turbine Gale",
    ),
    companies=(
        "Ashgrove Metals",
        "Brightwater",
        "Corvus Cement",
        "Dunlin Glass",
        "Everly Paints",
        "Foxglove Dairy",
        "Grantham Locks",
        "Holloway Tyres",
        "Ironbridge Cables",
        "Juno Optics",
    ),
    hub="Merrow Holdings",
    jobs=("dentist", "carpenter", "pilot", "gardener"),
    facts={
        "reports_to": (
            "{a}'s line manager is {b}.",
            "{a} is on the staff of {b}.",
            "{a} takes instructions from {b}.",
        ),
        "manages": ("{a} is in charge of {b}.", "{a} heads the unit where {b} is."),
        "mentors": (
            "{a} acts as adviser to {b}.",
            "{a} shows {b} the ropes.",
            "{b} learns the trade from {a}.",
        ),
        "works_on": ("{a} has been assigned to {b}.", "{b} counts {a} among its engineers."),
        "member_of": ("{a} is one of the {b}.", "The {b} includes {a}."),
        "leads": ("{a} heads {b}.", "{b} is run by {a}."),
        "parent_of": ("{b} is a child of {a}.", "{a} had {b} at twenty-nine."),
        "married_to": ("{a} has been the spouse of {b} since June.", "{a} tied the knot with {b}."),
        "sibling_of": ("{a} and {b} have the same parents.", "{a} is the elder sibling of {b}."),
        "lives_in": (
            "{a}'s home is in {b}.",
            "{a} rents a cottage in {b}.",
            "{a} settled in {b} by the canal.",
        ),
        "born_in": ("{a} is a native of {b}.", "{b} is where {a} first saw the light of day."),
        "located_in": ("{a} is a town of {b}.", "{a} can be found in {b}."),
        "owns": ("{a} is the owner of {b}.", "{a} bought {b} at an auction."),
        "made_by": ("{a} was produced by {b}.", "{a} came out of the workshops of {b}."),
        "knows": ("{a} and {b} met at the rowing club.", "{a} is an old friend of {b}."),
    },
    phrases={
        "boss": (
            "{x}'s line manager",
            "the superior of {x}",
            "whoever {x} works under",
            "the one in charge of {x}",
            "the head of {x}",
            "{x}'s chief",
        ),
        "mentor": (
            "{x}'s adviser",
            "the tutor of {x}",
            "whoever mentors {x}",
            "the person who coaches {x}",
        ),
        "spouse.f": ("{x}'s spouse", "the partner of {x}", "{x}'s missus"),
        "spouse.m": ("{x}'s spouse", "the partner of {x}", "whom {x} married"),
        "parent.f": ("{x}'s mum", "the parent of {x}"),
        "parent.m": ("{x}'s dad", "the parent of {x}"),
        "child.f": ("{x}'s child", "the girl of {x}"),
        "child.m": ("{x}'s child", "the boy of {x}"),
        "sibling.f": ("{x}'s sibling", "the sis of {x}"),
        "sibling.m": ("{x}'s sibling", "the bro of {x}"),
        "team": ("{x}'s crew", "the group {x} is part of"),
        "project": ("{x}'s assignment", "the undertaking {x} is busy with"),
        "lead": ("the head of {x}", "whoever runs {x}"),
        "thing": ("{x}'s property", "the machine {x} possesses"),
        "maker": ("the manufacturer of {x}", "the firm that produced {x}"),
        "home": ("the place where {x} resides", "{x}'s city"),
        "owner": ("the proprietor of {x}", "whoever possesses {x}"),
    },
    asks={
        "boss": ("Under whom does {x} work?", "Who is in charge of {x}?", "Who supervises {x}?"),
        "mentor": ("Who advises {x}?", "Who teaches {x} the ropes?"),
        "spouse": ("Whom did {x} marry?", "Who is the other half of {x}?"),
        "parent": ("Whose child is {x}?",),
        "child": ("Whom did {x} raise?",),
        "sibling": ("With whom does {x} share parents?",),
        "team": ("Which crew is {x} part of?", "What group is {x} in?"),
        "team lead": ("Whose crew does {x} belong to?", "In whose crew is {x}?"),
        "project": ("What is {x} assigned to?", "On what is {x} engaged?"),
        "lead": ("Who is at the head of {x}?", "Who runs {x}?"),
        "thing": ("What is the property of {x}?", "Which machine is {x}'s?"),
        "owner": ("Who is the proprietor of {x}?", "Who possesses {x}?"),
        "maker": ("Who manufactured {x}?", "Which firm produced {x}?"),
        "home": ("Where does {x} reside?", "Where is the home of {x}?", "Where is {x} at home?"),
        "birthplace": ("Where does {x} come from originally?", "Of which town is {x} a native?"),
        "place": ("Which country is {x} in?", "Where can {x} be found?"),
    },
    who=("Name {p}.", "Tell me who {p} is.", "What is {p} called?"),
    stories=(
        (
            ("A fox dug under the fence of the hen farm at {city}.", "the digging fox"),
            ("The hens of {company} stopped laying from fright.", "the frightened hens"),
            ("The pastry shop ran out of custard.", "the lack of custard"),
            ("The mayor's birthday went by without tarts.", "the birthday without tarts"),
        ),
        (
            ("{person} left a magnet on the signal box.", "the forgotten magnet"),
            ("The points at {city} stuck to the left.", "the stuck points"),
            ("The orchestra arrived at the wrong terminus.", "the orchestra's detour"),
            ("The opening night was played by two pianists.", "the opening night on pianos"),
        ),
        (
            ("Lightning hit the weather mast above {city}.", "the lightning stroke"),
            ("The wind gauge showed calm during a gale.", "the false calm"),
            ("{company} lifted a roof beam and lost it.", "the lost beam"),
            ("The school moved its lessons into tents.", "the lessons in tents"),
        ),
        (
            ("A clerk of {company} swapped two labels.", "the swapped labels"),
            ("The swimming hall in {city} got blue dye for chlorine.", "the blue pool"),
            ("Thirty children went home with blue hair.", "the blue hair"),
            ("The barber on the corner gave a discount for a week.", "the barber's discount"),
        ),
        (
            ("{person} parked on top of the well cover.", "the car on the well"),
            ("The fire engine found no water.", "the dry fire hose"),
            ("The old mill burned to the beams.", "the burnt mill"),
            ("{company} had to buy its flour abroad.", "the imported flour"),
        ),
        (
            ("A worn tooth slipped in the town clock of {city}.", "the worn tooth"),
            ("The bells rang an hour early.", "the early bells"),
            ("The stalls were packed up before the buses came.", "the empty stalls"),
            ("{company} threw away a ton of cheese.", "the wasted cheese"),
        ),
    ),
    cause=(
        "How did {e} come about?",
        "What brought about {e}?",
        "Why was there {e}?",
        "What was the reason for {e}?",
    ),
    root=(
        "What was at the bottom of {e}?",
        "What originally set off {e}?",
        "What was the underlying cause of {e}?",
    ),
    consequence=(
        "What came of {e}?",
        "What was the effect of {e}?",
        "What did {e} lead to?",
        "What happened because of {e}?",
    ),
    prevented=(
        (
            "{person} smelled gas and opened every window.",
            "The bakery in {city} had come close to blowing up.",
            "the explosion",
        ),
        (
            "Sandbags had been stacked the night before.",
            "The river rose to the doorstep of the town hall in {city}.",
            "the flooding of the town hall",
        ),
    ),
    prevention=("What averted {e}?", "What stopped {e}?"),
    failures=(
        (
            "The lift of the {city} clinic got stuck; the rope on it is a {code}.",
            "{company} asks to return every {code}, strands come loose.",
            "Has the part that the lift of the {city} clinic hangs from been recalled?",
        ),
        (
            "Case {code} covers the radio mast at {city} that hums.",
            "To close {code}, tighten the third stay.",
            "What is the remedy for the mast at {city}?",
        ),
        (
            "Somebody in a van marked {code} took the bench from {city} park.",
            "{company} registered {code} in April.",
            "Whose van took the bench from {city} park?",
        ),
        (
            "The jam that upset stomachs at the fair in {city} was from lot {code}.",
            "{company} boiled {code} in a copper kettle with a crack.",
            "Where was the jam that upset stomachs at the fair in {city} boiled?",
        ),
    ),
    affected=(
        (
            "the sour milk",
            (
                "{c} in {city} poured away milk of delivery {code}.",
                "{code} spoiled every pudding of {c}.",
                "At {c} the coffee curdled, thanks to {code}.",
            ),
        ),
        (
            "the brittle screws",
            (
                "Screws of type {code} snapped at {c} in {city}.",
                "{c} took down its shelves when {code} gave way.",
                "{code} cost {c} a balcony.",
            ),
        ),
        (
            "the faulty update",
            (
                "{c} in {city} could not log in after update {code}.",
                "{code} wiped the tills of {c}.",
                "Since {code}, {c} writes its bills by hand.",
            ),
        ),
    ),
    others=("Who else was hit by {e} that {c} got?", "Apart from {c}, who had trouble with {e}?"),
    topics=("the reception", "the loading bay", "the pension fund", "the lobby", "the fleet"),
    decided=(
        ("The committee chose {v} for {t}.", ("Rowan", "Hazel", "Aspen", "Alder")),
        (
            "The vote on {t} went to {v}.",
            ("Option Left", "Option Right", "Option Top", "Option Low"),
        ),
        (
            "The partners agreed on {v} as regards {t}.",
            ("rebuilding", "selling", "renting", "waiting"),
        ),
    ),
    latest=(
        "What was the final decision about {t}?",
        "How was {t} decided most recently?",
        "What did we last agree on regarding {t}?",
    ),
    month=("Which decisions fell in {month}?", "What was agreed or chosen in {month}?"),
    moves={
        "lives_in": (
            "{a}'s home is in {b}.",
            "{a} relocated to {b}.",
            "{a} got an apartment in {b}.",
        ),
        "works_on": ("{a} is assigned to {b}.", "{a} took up {b}.", "{a} was moved to {b}."),
    },
    now={
        "lives_in": ("Where does {x} live these days?", "Where is {x} living currently?"),
        "works_on": ("What is {x} currently assigned to?", "What is {x} engaged on today?"),
    },
    still={
        "lives_in": ("Is {x} still at home in {old}?",),
        "works_on": ("Does {x} still belong to {old}?",),
    },
    past={
        "lives_in": ("Where did {x} live previously?", "What was {x}'s former home?"),
        "works_on": ("What was {x} previously assigned to?", "What did {x} formerly do?"),
    },
    first={
        "lives_in": ("Where did {x} live to begin with?", "What was the first home of {x}?"),
        "works_on": ("What was {x} assigned to initially?", "What was the first task of {x}?"),
    },
    no_longer={
        "lives_in": ("Where does {x} not live any more?",),
        "works_on": ("What is {x} not assigned to anymore?",),
    },
    events=(
        "{person} lost a wallet in the lift.",
        "The inspectors spent a day in {city}.",
        "A swarm of bees moved into the post room.",
        "{person} won the raffle.",
        "The boiler was exchanged.",
        "{company} brought the wrong carpets.",
        "A school class toured the plant.",
        "{person} asked for leave.",
        "The awning tore.",
    ),
    week=(
        "What took place last week?",
        "What was going on last week?",
        "What did last week bring?",
    ),
    standing=(
        "{person} has keycard {n}.",
        "{person} uses bicycle stand {n}.",
        "{person} leases garage {n} in {city}.",
        "{person} is a member of the {city} library.",
        "{person} pays into fund {n} with {company}.",
        "{person} is on telephone list {n}.",
    ),
    noise=(
        "{hub} stores {n} lamps in {city}.",
        "{hub} received receipt {n} from {company}.",
        "{hub} sent {n} calendars to {city}.",
        "{hub} polished {n} door handles.",
        "{person} filed memo {n} on {hub}.",
        "{hub} poured {n} cups of tea.",
    ),
    attributes=(
        ("{hub} goes back to a pair of bell founders.", "Who set up {hub}?"),
        ("A hedgehog is on the letterhead of {hub}.", "What animal is the emblem of {hub}?"),
        ("{hub} pays wages on the ninth.", "On which day do people at {hub} get their salary?"),
        ("The doors of {hub} open at half past six.", "From what hour can I get into {hub}?"),
    ),
    breakdowns=(
        ("In {city} {thing} stalled.", "Who is the proprietor of what stalled in {city}?"),
        ("{thing} sank to the axle in {city}.", "Whose machine got stuck in {city}?"),
        ("In {city} {thing} lost oil.", "To whom does the thing that lost oil in {city} belong?"),
    ),
    terms=(
        ("The discount from {c} was fixed at {v} percent.", ("3", "5", "8")),
        ("{c} now delivers every {v} days.", ("2", "7", "10")),
        ("Goods from {c} are now received at {v}.", ("gate one", "the ramp", "the rear yard")),
    ),
    changed=(
        "How did our terms with {c} change from {day1} to {day2}?",
        "What was new with {c} between {day1} and {day2}?",
    ),
    through=(
        "Who connects {a} with {b}?",
        "By way of whom is {a} acquainted with {b}?",
        "Who is a friend of both {a} and {b}?",
    ),
    contradictions=(
        (
            "{x}'s shoe size is {v}.",
            "{x} wears size {v}.",
            ("41", "43"),
            "What size are {x}'s feet?",
        ),
        (
            "{x} takes {v} in coffee.",
            "{x} drinks it with {v}.",
            ("oat milk", "cream"),
            "How does {x} like coffee?",
        ),
        (
            "{x} speaks {v} at home.",
            "{x}'s mother tongue is {v}.",
            ("Welsh", "Catalan"),
            "What is {x}'s native language?",
        ),
        (
            "{x} keeps a {v}.",
            "{x}'s pet is a {v}.",
            ("parrot", "ferret"),
            "Which animal does {x} have?",
        ),
    ),
)
