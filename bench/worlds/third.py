"""A third wording of the worlds of worlds.py: people who talk to an assistant as they please.

Nothing but the form is shared with wording.py; relations often go without their word.
"""

from __future__ import annotations

from bench.worlds.wording import Wording, words

__all__ = ["THIRD"]

THIRD = Wording(
    female=words(
        "Abigail Beatrix Chiara Deirdre Eunice Fatima Gwen Harriet Ingrid Josephine Keiko "
        "Lucinda Maeve Noreen Ottilie Priya Rosalind Siobhan Theresa"
    ),
    male=words(
        "Alistair Benedict Callum Desmond Eamon Franklin Gareth Hamish Ignatius Joaquin Kwame "
        "Leopold Malcolm Nathaniel Orlando Percival Roderick Sanjay Thaddeus"
    ),
    surnames=words(
        "Ashworth Blackwood Carmody Donnelly Easton Fairbairn Galbraith Hathaway Ingleby Jessop "
        "Kirkbride Lockhart Mansfield Nakamura Okonkwo Penhaligon Quigley Ramanujan Stapleton "
        "Trevithick Underhill Venkataraman Whitlock Yardley Arbuthnot Birtwistle Copperfield "
        "Dunmore Ellsworth Fothergill Gillespie Heathcote Ibekwe Kingsley Lovelace Merriweather "
        "Nightingale Ormerod Pemberton Rutherford"
    ),
    cities=words(
        "Abilene Boise Chester Duluth Exeter Fresno Galway Hereford Inverness Juneau Kendal "
        "Lincoln Memphis Norwich Oxford Plymouth Quebec Reno Savannah Toledo Ventura Whitby "
        "Yuma Tacoma Perth"
    ),
    countries=words("Caldria Morwenia Tessaly Ravonia Elsmark"),
    teams=("Team Kingfisher", "Team Badger", "Team Otter", "Team Wren", "Team Hare"),
    projects=("Larkspur", "Windfall", "Sidecar", "Dovetail", "Ironbark", "Halfmoon", "Limelight"),
    things=(
        "the red tractor",
        "the old minibus",
        "the big bandsaw",
        "the pizza oven",
        "the speedboat",
        "the cherry picker",
        "the knitting machine",
        "the snow plough",
        "the espresso machine",
        "the motor scooter",
    ),
    companies=(
        "Bramble & Sons",
        "Quickstep Logistics",
        "Hollis Brewing",
        "Ferncliff Dairy",
        "Atlas Plumbing",
        "Tidmarsh Tools",
        "Sunny Side Bakery",
        "Ravensworth Glass",
        "Mistral Sails",
        "Copley Electric",
    ),
    hub="Wetherby Group",
    jobs=("welder", "dentist", "florist", "beekeeper"),
    facts={
        "reports_to": (
            "{a} takes orders from {b}.",
            "{a}'s line manager is {b}.",
            "{b} writes {a}'s appraisal every December.",
            "If {a} wants a day off, {b} has to say yes.",
        ),
        "manages": (
            "{a} is in charge of {b}.",
            "{b}'s gaffer is {a}.",
            "{a} hands {b} the jobs for the day.",
        ),
        "mentors": (
            "{a} has taken {b} under their wing.",
            "{a} is showing {b} the ropes.",
            "For career advice {b} turns to {a}.",
        ),
        "works_on": (
            "{a} is busy with {b}.",
            "{a} has been assigned to {b}.",
            "{a} books all hours to {b}.",
            "These days it is nothing but {b} for {a}.",
        ),
        "member_of": (
            "{a} is one of the people on {b}.",
            "{b} counts {a} among its people.",
            "{a} pulls shifts with {b}.",
        ),
        "leads": (
            "{a} runs {b}.",
            "{a} is at the helm of {b}.",
            "On {b}, {a} calls the shots.",
            "{b} is headed up by {a}.",
        ),
        "parent_of": (
            "{b} is {a}'s eldest.",
            "{a} brought {b} up single-handed.",
            "{a} has one child, {b}.",
        ),
        "married_to": (
            "{a} and {b} tied the knot in June.",
            "{a} and {b} exchanged rings at the registry office.",
            "{a}'s better half is called {b}.",
        ),
        "sibling_of": (
            "{a} and {b} have the same mum and dad.",
            "{a} and {b} are twins.",
            "{a} was the first baby of the house, {b} came two years later to the same parents.",
        ),
        "lives_in": (
            "{a} rents a place in {b}.",
            "{a} commutes in from {b} every morning.",
            "{a} bought a cottage in {b} and stays there all year.",
            "Home for {a} is {b}.",
        ),
        "born_in": (
            "{a} is {b} born and bred.",
            "{a} hails from {b} originally.",
            "{a}'s birth certificate was issued in {b}.",
        ),
        "located_in": (
            "You can find {a} in {b}.",
            "{b} is home to {a}.",
            "{a} is over in {b}.",
        ),
        "owns": (
            "{a} bought {b} at an auction.",
            "The papers for {b} are in {a}'s name.",
            "{a} inherited {b} from an uncle.",
        ),
        "made_by": (
            "{b} manufactured {a}.",
            "{a} came out of the workshops of {b}.",
            "{a} was put together at {b}.",
        ),
        "knows": (
            "{a} and {b} go way back.",
            "{a} is an old friend of {b}.",
            "{a} plays five-a-side with {b} on Tuesdays.",
        ),
    },
    phrases={
        "boss": (
            "{x}'s line manager",
            "{x}'s superior",
            "{x}'s gaffer",
            "{x}'s higher-up",
        ),
        "mentor": (
            "{x}'s adviser",
            "{x}'s workplace mentor",
            "{x}'s work guide",
        ),
        "spouse.f": (
            "{x}'s missus",
            "{x}'s other half",
        ),
        "spouse.m": (
            "{x}'s hubby",
            "{x}'s other half",
        ),
        "parent.f": ("{x}'s mum", "{x}'s mom"),
        "parent.m": ("{x}'s dad", "the dad of {x}"),
        "child.f": ("{x}'s kid", "{x}'s little girl", "the daughter that {x} brought up"),
        "child.m": ("{x}'s kid", "{x}'s boy", "the son that {x} brought up"),
        "sibling.f": ("{x}'s sis", "the sister that {x} has"),
        "sibling.m": ("{x}'s bro", "the brother that {x} has"),
        "team": (
            "{x}'s crew",
            "{x}'s bunch",
        ),
        "project": (
            "{x}'s assignment",
            "{x}'s current assignment",
        ),
        "lead": (
            "{x}'s chief",
            "{x}'s captain",
            "{x}'s head",
        ),
        "thing": ("the machine in {x}'s name", "the machine that {x} has got"),
        "maker": ("the manufacturer of {x}", "the firm that assembled {x}"),
        "home": (
            "the town {x} calls home",
            "{x}'s town of residence",
        ),
        "owner": (
            "{x}'s registered keeper",
            "{x}'s rightful keeper",
        ),
    },
    asks={
        "boss": (
            "Who does {x} take orders from?",
            "Who is {x} working under?",
            "Who gets to tell {x} what to do?",
        ),
        "mentor": (
            "Who has taken {x} under their wing?",
            "Who guides {x} at work?",
            "Who is {x} being mentored by?",
        ),
        "spouse": ("Who did {x} tie the knot with?", "Who did {x} marry?"),
        "parent": ("Who brought {x} up?", "Whose child is {x}?"),
        "child": ("Who did {x} bring up?", "Has {x} got a kid, and who is it?"),
        "sibling": ("Who has the same parents as {x}?", "Any brothers or sisters of {x}?"),
        "team": (
            "What crew is {x} part of?",
            "{x} is on what team again?",
            "Which lot does {x} work with?",
        ),
        "team lead": ("Whose crew is {x} on?", "Who runs the team that {x} is part of?"),
        "project": (
            "What has {x} been assigned to?",
            "What's keeping {x} occupied at work?",
            "What is {x} busy with?",
        ),
        "lead": ("Who runs {x}?", "Who's heading up {x}?", "Who is calling the shots on {x}?"),
        "thing": (
            "What machine has {x} got?",
            "What is registered in {x}'s name?",
            "What is {x} the proud owner of?",
        ),
        "owner": (
            "Who has got {x}?",
            "In whose name is {x} registered?",
            "Who is the proud owner of {x}?",
        ),
        "maker": (
            "Which firm assembled {x}?",
            "Who is the manufacturer of {x}?",
        ),
        "home": (
            "Where has {x} got a home?",
            "Whereabouts does {x} live?",
            "What place does {x} call home?",
        ),
        "birthplace": ("Where is {x} from originally?", "Where does {x} hail from?"),
        "place": ("Where would I find {x}?", "Whereabouts is {x}?"),
    },
    who=("Tell me who {p} is.", "{p}, who is that?", "Remind me of the name of {p}."),
    stories=(
        (
            ("{person} left a window of the paint shop in {city} open.", "the open window"),
            ("Rain ran into the drums of varnish.", "the watered-down varnish"),
            ("Thirty guitars at {company} came out cloudy.", "the cloudy guitars"),
            ("The music fair had to go on with an empty stand.", "the empty stand"),
        ),
        (
            ("A pigeon died in the server room fan at {city}.", "the dead pigeon"),
            ("The booking computer overheated on Saturday night.", "the overheated computer"),
            ("Two coach parties got the same hotel rooms.", "the double booking"),
            ("{company} handed out ninety vouchers for dinner.", "the vouchers"),
        ),
        (
            ("{person} lost the key to the feed store.", "the lost key"),
            ("The goats near {city} missed breakfast and jumped the fence.", "the goats' escape"),
            ("The prize roses of the mayor were eaten.", "the ruined roses"),
            ("{company} lost the permit for its summer fete.", "the withdrawn permit"),
        ),
        (
            ("A label printer at {company} skipped a line.", "the skipped line"),
            ("Decaf was shipped in bags marked as strong coffee.", "the mislabelled coffee"),
            ("The night nurses of {city} fell asleep in the lounge.", "the sleepy nurses"),
            ("The hospital put in a second alarm bell.", "the second alarm bell"),
        ),
        (
            ("Lightning hit the weather mast above {city}.", "the lightning strike"),
            ("The morning forecast was copied from last year.", "the stale forecast"),
            ("The balloon race took off in a gale.", "the ill-timed balloon race"),
            ("{company} spent a month picking silk from trees.", "the long clean-up"),
        ),
        (
            ("{person} ordered the bolts in inches, not millimetres.", "the wrong order of bolts"),
            ("The bleachers in {city} wobbled.", "the wobbly bleachers"),
            ("The cup final was moved to a school field.", "the change of venue"),
            ("{company} sold only half of its hot dogs.", "the unsold hot dogs"),
        ),
    ),
    cause=(
        "What brought about {e}?",
        "What was the reason for {e}?",
        "What's to blame for {e}?",
        "How come we had {e}?",
        "What triggered {e}?",
    ),
    root=(
        "What was at the bottom of {e}?",
        "If you trace {e} all the way back, what kicked it off?",
        "What was the very first thing that went wrong before {e}?",
    ),
    consequence=(
        "What came of {e}?",
        "What happened as a result of {e}?",
        "What knock-on effects did {e} have?",
    ),
    prevented=(
        (
            "{person} smelt gas and shut the main tap before lunch.",
            "The kitchen of the hostel in {city} could have gone up in flames.",
            "a fire at the hostel",
        ),
        (
            "Sandbags were stacked along the quay on Sunday.",
            "The river in {city} was about to spill into the museum.",
            "a flood in the museum",
        ),
    ),
    prevention=("Thanks to what was there never {e}?", "What saved us from {e}?"),
    failures=(
        (
            "The lift of the {city} town hall is stuck; the board says error {code}.",
            "Error {code} goes away after the drive is reset twice, says {company}.",
            "How can we get the lift of the {city} town hall going again?",
        ),
        (
            "Folks in {city} fell ill after eating cheese stamped {code}.",
            "{code} was ripened by {company} in a cellar without cooling.",
            "Who ripened the cheese that made folks ill in {city}?",
        ),
        (
            "The bench by the {city} bandstand collapsed; its planks were from order {code}.",
            "Order {code} was signed off by {company} although the wood was wet.",
            "Who signed off the planks of the bench by the {city} bandstand?",
        ),
        (
            "A suitcase with the tag {code} was left at {city} station.",
            "{code} was checked in by a trombone player from {company}.",
            "Whose suitcase was left at {city} station?",
        ),
    ),
    affected=(
        (
            "the brittle glue",
            (
                "At {c} in {city} the chairs fell apart: the glue was {code}.",
                "{c} recalled its bookshelves on account of {code}.",
                "{code} had {c} refund a whole staircase.",
            ),
        ),
        (
            "the faulty software update",
            (
                "The software update {code} froze the tills of {c} in {city}.",
                "Since {code} came in, {c} cannot print a receipt.",
                "{c} rolled {code} back after its gates jammed.",
            ),
        ),
        (
            "the contaminated flour",
            (
                "{c} in {city} found beetles in flour of lot {code}.",
                "{c} had to bin its pancakes, made with {code}.",
                "Lot {code} shut {c} down for a weekend.",
            ),
        ),
    ),
    others=(
        "Apart from {c}, which firms had trouble with {e}?",
        "{c} got hit by {e}. Who else did?",
    ),
    topics=(
        "the company cars",
        "the summer party",
        "the office dog",
        "the reception desk",
        "the pension scheme",
    ),
    decided=(
        (
            "We agreed to leave {t} to {v}.",
            ("Mrs Tully", "the works council", "an agency", "the interns"),
        ),
        ("The vote on {t} went to {v}.", ("option A", "option B", "option C", "option D")),
        (
            "Management made up its mind about {t}: {v} it is.",
            ("half the budget", "the full budget", "no budget", "a loan"),
        ),
    ),
    latest=(
        "Where do we stand on {t} after all the back and forth?",
        "What was the final word on {t}?",
        "What's the newest agreement about {t}?",
    ),
    month=(
        "What did we agree on in {month}?",
        "Back in {month}, what did we make up our minds about?",
    ),
    moves={
        "lives_in": (
            "{a} rents a place in {b}.",
            "{a} relocated to {b}.",
            "{a} got the keys to a house in {b}.",
        ),
        "works_on": (
            "{a} has been assigned to {b}.",
            "{a} started on {b}.",
            "{a} was switched over to {b}.",
        ),
    },
    now={
        "lives_in": ("Where is {x} living these days?", "What's {x}'s address at the moment?"),
        "works_on": ("What is {x} busy with these days?", "What's {x} assigned to right now?"),
    },
    still={
        "lives_in": ("Has {x} left {old}?", "Is {old} where {x} lives to this day?"),
        "works_on": ("Has {x} come off {old}?", "Is {x} busy with {old} to this day?"),
    },
    past={
        "lives_in": ("Which towns has {x} lived in previously?", "What are {x}'s old addresses?"),
        "works_on": (
            "What has {x} been assigned to in the past?",
            "What did {x} do at work prior to the current project?",
        ),
    },
    first={
        "lives_in": (
            "What was the very first town {x} had a home in?",
            "Where did {x} start out, home-wise?",
        ),
        "works_on": (
            "What was {x}'s very first project?",
            "Which project did {x} start out on?",
        ),
    },
    no_longer={
        "lives_in": ("Which towns has {x} moved away from?", "Where did {x} stop living?"),
        "works_on": ("Which projects has {x} left?", "What is {x} done with, project-wise?"),
    },
    events=(
        "{person} won the raffle.",
        "The photocopier on the second floor caught a virus.",
        "Inspectors from {city} measured the noise.",
        "{person} got engaged on the roof terrace.",
        "A swarm of bees settled in the mailroom.",
        "{company} dropped off forty umbrellas.",
        "The elevator music was switched off for good.",
        "{person} slipped on a wet floor and sprained a wrist.",
        "A film crew from {city} shot a commercial in the lobby.",
    ),
    week=(
        "Fill me in on last week.",
        "I was on leave last week, what did I miss?",
        "Give me a rundown of the past week.",
    ),
    standing=(
        "{person} carries key fob {n}.",
        "{person} gets the newsletter of the {city} Chamber of Trade.",
        "{person} has phone extension {n}.",
        "{person} is signed up for the gym in {city}.",
        "{person} drives company car {n}, leased from {company}.",
        "{person} pays into savings plan {n}.",
    ),
    noise=(
        "{hub} recycled {n} boxes.",
        "{hub} ordered {n} pencils from {company}.",
        "{hub} sent {n} postcards to customers in {city}.",
        "{person} filed form {n} for {hub}.",
        "{hub} planted {n} tulips outside the office in {city}.",
        "{hub} shredded {n} pages.",
    ),
    attributes=(
        ("{hub} goes back to a bicycle shop that two cousins opened.", "How did {hub} begin?"),
        ("The logo of {hub} shows a badger on a unicycle.", "What's in the logo of {hub}?"),
        (
            "Staff at {hub} may come in jeans on Fridays only.",
            "On what days does {hub} allow casual clothes?",
        ),
        (
            "{hub} gives its people thirty-one days of leave a year.",
            "How much vacation do you get at {hub}?",
        ),
    ),
    breakdowns=(
        ("{thing} packed up in {city}.", "Who has got the thing that packed up in {city}?"),
        (
            "In {city} {thing} was smashed by a falling branch.",
            "A branch fell on something in {city}. Who is the owner?",
        ),
        (
            "{thing} was seized by the police in {city}.",
            "Who does the thing that the police seized in {city} belong to?",
        ),
    ),
    terms=(
        ("{c} put its hourly rate up to {v} dollars.", ("45", "52", "60")),
        ("Deliveries from {c} come on {v}.", ("Mondays", "Wednesdays", "Fridays")),
        (
            "The guarantee that {c} gives us now runs for {v} months.",
            ("twelve", "eighteen", "thirty"),
        ),
    ),
    changed=(
        "What's new with {c} from {day1} until {day2}?",
        "Between {day1} and {day2}, which arrangements with {c} were updated?",
    ),
    through=(
        "Who do {a} and {b} both know?",
        "{a} would like to meet {b}. Who can put them in touch?",
        "Is there a mutual friend of {a} and {b}?",
    ),
    contradictions=(
        (
            "{x} takes {v} in the coffee.",
            "In {x}'s coffee there has to be {v}.",
            ("oat milk", "two sugars and cream"),
            "How does {x} like their coffee?",
        ),
        (
            "{x} supports {v}.",
            "The football club {x} roots for is {v}.",
            ("the Rovers", "the Wanderers"),
            "What football club is {x} a fan of?",
        ),
        (
            "{x} wears size {v} boots.",
            "Safety boots for {x}: size {v}.",
            ("42", "44"),
            "What size of boots does {x} need?",
        ),
        (
            "{x} turns forty in {v}.",
            "The fortieth birthday of {x} is in {v}.",
            ("April", "October"),
            "In what month does {x} turn forty?",
        ),
    ),
)
