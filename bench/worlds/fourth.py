"""A fourth wording of the worlds of bench/worlds.py: a trust with wards, a stage, a yard, a school.

It was written without knowledge of the product and of its figures, and is not mended against them.
Nothing but the form is shared with the other wordings. Relations seldom go by their names, and
others have newer facts, the same trouble and the same failures as those who are asked for.
"""

from __future__ import annotations

from bench.worlds.wording import Wording, words

__all__ = ["FOURTH"]

FOURTH = Wording(
    female=words(
        "Agnes Bronwen Cordelia Daphne Edith Flora Ginevra Hester Isolde Jocasta Kerensa Lavinia "
        "Morag Nerys Odette Philippa Ramona Saskia Tamsin Ursula Verity Winifred Zelda"
    ),
    male=words(
        "Ambrose Barnaby Caspian Dorian Edmund Fergus Gideon Horatio Isambard Jasper Kenelm "
        "Lionel Mungo Ned Osbert Phineas Quentin Rupert Silas Tobias Uriah Vaughan Wilfred"
    ),
    surnames=words(
        "Abernathy Bickerstaff Cavendish Drummond Eddington Farquhar Greenhalgh Hollingworth "
        "Inchbald Jellicoe Kilbride Lascelles Macready Nethercott Oglethorpe Postlethwaite "
        "Quarrington Rawlinson Satterthwaite Throckmorton Uttley Venables Wolstenholme Yelverton "
        "Applegarth Brocklebank Cholmondeley Dalrymple Entwistle Featherstone Garside "
        "Hebblethwaite Iddesleigh Jephson Knatchbull Liversedge Micklethwait Nuttall Osbaldeston "
        "Pilkington Quennell Ramsbottom Shuttleworth Tunnicliffe Umfreville Vavasour "
        "Wigglesworth Yeadon"
    ),
    cities=words(
        "Antwerp Bruges Cardiff Dundee Elgin Falmouth Grimsby Harwich Ipswich Jarrow Kirkwall "
        "Lerwick Margate Newlyn Oban Penzance Ramsgate Stornoway Torquay Ullapool Valletta "
        "Wexford Yarmouth Zeebrugge Mallaig"
    ),
    countries=words("Aldmark Brennia Cormoria Hesperland Thule"),
    teams=("Ward Nine", "Slipway Three", "Prompt Corner", "Net Loft", "Lower Sixth"),
    projects=(
        "the Chekhov revival",
        "the seal census",
        "Hull 118",
        "the maternity wing",
        "the timetable reform",
        "the dredging scheme",
        "the puppet festival",
    ),
    things=(
        "the ambulance Florence",
        "the tugboat Hector",
        "the spotlight Cyclops",
        "the concert piano",
        "the fog cannon",
        "the X-ray van",
        "the school bus",
        "the ice maker",
        "the rowing skiff",
        "the laminator",
    ),
    companies=(
        "Calloway Chandlers",
        "Mossop Surgical",
        "Pentland Rigging",
        "Quayle Costumes",
        "Thistle Linen",
        "Orme Oysters",
        "Brackley Boilers",
        "Vantage Lighting",
        "Sedge Catering",
        "Kittiwake Ice",
    ),
    hub="Pelham Quay Trust",
    jobs=("midwife", "fishmonger", "joiner", "harpist"),
    facts={
        "reports_to": (
            "{a}'s superior is {b}.",
            "{b} approves {a}'s overtime.",
            "{a} is one of {b}'s subordinates.",
            "{a} has {b} for a head of department.",
            "On every rota that {a} works, {b} signs as the supervisor.",
        ),
        "manages": (
            "{a} supervises {b}.",
            "{a} allots {b} the week's duties.",
            "{b} works under {a}.",
            "{b} is subordinate to {a}.",
        ),
        "mentors": (
            "{a} is {b}'s preceptor.",
            "{b} was apprenticed to {a}.",
            "{a} passes the craft on to {b}.",
            "{b} is a protégé of {a}.",
        ),
        "works_on": (
            "{a} is attached to {b}.",
            "{b} is what {a} spends the working week on.",
            "{a} has been seconded to {b}.",
            "{a} toils away at {b}.",
        ),
        "member_of": (
            "{a} does duty in {b}.",
            "{a} is on the roll of {b}.",
            "{b} has {a} on its strength.",
            "{a} serves with {b}.",
        ),
        "leads": (
            "{a} oversees {b}.",
            "{b} is under the direction of {a}.",
            "{a} has charge of {b}.",
            "The person responsible for {b} is {a}.",
        ),
        "parent_of": (
            "{b} is the offspring of {a}.",
            "{a} adopted {b} as a baby.",
            "The register has {a} down as parent of {b}.",
        ),
        "married_to": (
            "{a} and {b} celebrated their silver wedding.",
            "{a} is {b}'s lawful spouse.",
            "{a} said yes to {b} at the altar.",
            "{a} and {b} have been a married couple for eleven years.",
        ),
        "sibling_of": (
            "The same parents had first {a} and then {b}.",
            "{a} is {b}'s twin.",
            "{a} and {b} fought over the top bunk as children of one family.",
        ),
        "lives_in": (
            "{a} is domiciled in {b}.",
            "{a}'s post goes to a terrace in {b}.",
            "{a} lodges with a widow in {b}.",
            "{a} has set up house in {b}.",
            "{a} goes home to {b} after work.",
        ),
        "born_in": (
            "{a}'s cradle stood in {b}.",
            "{a} first drew breath in {b}.",
            "{a} was delivered at the cottage hospital in {b}.",
        ),
        "located_in": (
            "{a} is situated in {b}.",
            "{a} stands in {b}.",
            "On the map, {a} is in {b}.",
        ),
        "owns": (
            "{b} is {a}'s own property.",
            "{a} holds the title to {b}.",
            "{a} got {b} as a legacy.",
            "{a} won {b} in a wager and kept it.",
        ),
        "made_by": (
            "{a} is a product of {b}.",
            "{b} constructed {a}.",
            "The nameplate on {a} says that {b} fabricated it.",
        ),
        "knows": (
            "{a} and {b} sing shanties together.",
            "{a} is on first-name terms with {b}.",
            "{a} and {b} shared a bench at night school.",
            "{a} digs an allotment with {b}.",
        ),
    },
    phrases={
        "boss": (
            "the supervisor over {x}",
            "whoever {x} is subordinate to",
            "the one who gives {x} orders",
            "{x}'s department head",
            "the person above {x}",
            "the one under whom {x} serves",
        ),
        "mentor": (
            "{x}'s preceptor",
            "the person {x} was apprenticed to",
            "{x}'s teacher on the job",
            "the old hand who is training {x}",
            "the one whose protégé {x} is",
        ),
        "spouse.f": (
            "the woman {x} wedded",
            "{x}'s bride",
            "{x}'s better half",
            "the lady whose ring {x} wears",
        ),
        "spouse.m": (
            "the man {x} wedded",
            "{x}'s groom",
            "{x}'s better half",
            "the man whose ring {x} wears",
        ),
        "parent.f": ("{x}'s mama", "the woman whose child {x} is"),
        "parent.m": ("{x}'s papa", "the man whose child {x} is"),
        "child.f": ("the girl {x} is parent to", "{x}'s lass", "{x}'s female offspring"),
        "child.m": ("the boy {x} is parent to", "{x}'s lad", "{x}'s male offspring"),
        "sibling.f": (
            "the woman who shares {x}'s parents",
            "{x}'s sister by birth",
            "the girl {x} grew up with at home",
        ),
        "sibling.m": (
            "the man who shares {x}'s parents",
            "{x}'s brother by birth",
            "the boy {x} grew up with at home",
        ),
        "team": (
            "{x}'s section",
            "{x}'s outfit",
            "the section {x} is on the roll of",
            "the outfit {x} serves with",
        ),
        "project": (
            "the undertaking {x} is attached to",
            "the work {x} is seconded to",
            "{x}'s main undertaking",
            "whatever {x} is toiling away at",
        ),
        "lead": (
            "the director of {x}",
            "the one responsible for {x}",
            "the person who has charge of {x}",
            "whoever oversees {x}",
        ),
        "thing": (
            "the property of {x}",
            "whatever {x} holds the title to",
            "{x}'s prize possession",
            "the piece of equipment that is {x}'s own",
        ),
        "maker": (
            "the builder of {x}",
            "the works that turned out {x}",
            "whoever constructed {x}",
            "the company behind {x}",
        ),
        "home": (
            "the place {x} is domiciled in",
            "the town {x} goes home to",
            "{x}'s place of abode",
        ),
        "owner": (
            "the holder of the title to {x}",
            "the person whose property {x} is",
            "the one who may call {x} their own",
        ),
    },
    asks={
        "boss": (
            "Whose subordinate is {x}?",
            "Who has authority over {x}?",
            "Who is directly above {x}?",
            "Who does {x} have to obey at work?",
        ),
        "mentor": (
            "Whose protégé is {x}?",
            "Who is {x} apprenticed to?",
            "Who is passing the craft on to {x}?",
            "Under whose tutelage is {x}?",
        ),
        "spouse": (
            "Who walked down the aisle with {x}?",
            "Who is {x} wedded to?",
            "{x} is the husband or wife of whom?",
            "Who wears the ring that matches {x}'s?",
        ),
        "parent": (
            "Of whom is {x} the offspring?",
            "Who is {x}'s mother or father?",
            "Who counts {x} as their child?",
        ),
        "child": (
            "Who is {x}'s offspring?",
            "Who calls {x} mum or dad?",
            "Does {x} have children, and what are they called?",
        ),
        "sibling": (
            "Who came from the same parents as {x}?",
            "Name the brother or sister of {x}.",
            "With whom did {x} share a nursery?",
        ),
        "team": (
            "Which section has {x} on its roll?",
            "What outfit does {x} serve with?",
            "{x}: which section?",
            "In which section should one look for {x}?",
        ),
        "team lead": (
            "Whose section is {x} in?",
            "Who has charge of the section where {x} serves?",
            "Under whose direction is {x}'s section?",
        ),
        "project": (
            "What has {x} been seconded to?",
            "What undertaking is {x} attached to?",
            "What takes up {x}'s working week?",
            "{x} is toiling away at what?",
        ),
        "lead": (
            "Who oversees {x}?",
            "Who is responsible for {x}?",
            "Under whose direction is {x}?",
            "Who has been put in charge of {x}?",
        ),
        "thing": (
            "What does {x} hold the title to?",
            "What can {x} call their own?",
            "Which piece of equipment is the property of {x}?",
        ),
        "owner": (
            "Who holds the title to {x}?",
            "Whose property is {x}?",
            "Who can call {x} their own?",
        ),
        "maker": (
            "Who constructed {x}?",
            "Which works turned out {x}?",
            "Whose nameplate is on {x}?",
        ),
        "home": (
            "Where is {x} domiciled?",
            "Where does {x} go home to at night?",
            "In what town would a letter reach {x}?",
            "Where does {x} lay their head?",
            "Which town has {x} among its residents?",
        ),
        "birthplace": (
            "Where did {x} draw their first breath?",
            "In what town did {x} enter the world?",
            "{x}'s birth took place where?",
        ),
        "place": (
            "Where is {x} situated?",
            "Where on the map is {x}?",
            "Where does one travel to for {x}?",
        ),
    },
    who=(
        "{p}: the name, please.",
        "What do they call {p}?",
        "Who do we mean by {p}?",
        "I need the name of {p}.",
        "Put a name to {p}.",
    ),
    stories=(
        (
            ("{person} hung a wet oilskin over the stove of the wardrobe.", "the wet oilskin"),
            ("Soot settled on the white gowns of the chorus.", "the sooty gowns"),
            ("The ballet in {city} was danced in nightshirts.", "the ballet in nightshirts"),
            ("{company} sold nine hundred nightshirts in a day.", "the run on nightshirts"),
        ),
        (
            (
                "A seal crept into the cooling inlet of the dairy at {city}.",
                "the seal in the inlet",
            ),
            ("The butter of {company} melted in the vat.", "the melted butter"),
            ("The scones at the regatta were served dry.", "the dry scones"),
            ("The commodore moved the regatta to another county.", "the loss of the regatta"),
        ),
        (
            ("The matron wrote a seven that looked like a one.", "the unclear seven"),
            (
                "The dispensary in {city} stocked a tenth of the cough syrup.",
                "the scant cough syrup",
            ),
            ("The audience coughed through the whole of Hamlet.", "the coughing in Hamlet"),
            ("{person} swore never to act again.", "the actor's farewell to the stage"),
        ),
        (
            ("A pupil tied a kite to the aerial of the coastguard.", "the kite on the aerial"),
            ("The gale warning did not reach {city}.", "the unheard gale warning"),
            ("The herring fleet lost its nets off the point.", "the lost nets"),
            ("{company} smoked mackerel instead of kippers.", "the winter of mackerel"),
        ),
        (
            ("Woodworm got into the keel blocks at {city}.", "the woodworm in the blocks"),
            ("The new ferry leaned over on the stocks.", "the leaning ferry"),
            ("The bottle of champagne missed the bow.", "the failed christening"),
            ("The crew of {company} refused to sail under a bad omen.", "the crew's refusal"),
        ),
        (
            ("{person} set the school bell by a stopped watch.", "the stopped watch"),
            ("The boarders came down to cold porridge.", "the cold porridge"),
            ("The pupils of {city} marched out with pots and pans.", "the march of the pupils"),
            ("The bishop cut his visit short.", "the bishop's hasty departure"),
        ),
        (
            ("A hawser of {company} was coiled the wrong way round.", "the badly coiled hawser"),
            (
                "The hospital ship swung across the channel at {city}.",
                "the ship across the channel",
            ),
            ("The mail boat unloaded at the coal jetty.", "the landing at the coal jetty"),
            ("All of Friday's letters arrived black.", "the blackened letters"),
        ),
    ),
    cause=(
        "What lay behind {e}?",
        "What set off {e}?",
        "Where does the blame for {e} lie?",
        "To what do we owe {e}?",
        "Explain how it could come to {e}.",
        "What gave rise to {e}?",
        "On account of what was there {e}?",
    ),
    root=(
        "Trace {e} back to the origin.",
        "What started the chain that finished in {e}?",
        "What was the original mishap behind {e}?",
        "Go back to the very beginning: what did {e} spring from?",
        "How did it all begin that gave us {e}?",
    ),
    consequence=(
        "What happened in the wake of {e}?",
        "What did {e} bring in its train?",
        "What did {e} set in motion?",
        "What were the repercussions of {e}?",
        "Where did {e} get us in the end, step by step?",
    ),
    prevented=(
        (
            "{person} counted the swabs twice before the wound was closed.",
            "A swab had nearly stayed inside a patient in {city}.",
            "the forgotten swab",
        ),
        (
            "The prompter pulled the iron curtain down at the first spark.",
            "A torch had almost set the stalls in {city} alight.",
            "a blaze in the stalls",
        ),
        (
            "A diver of {company} wedged the cracked lock gate on Tuesday.",
            "The dry dock in {city} was on the verge of filling with men inside.",
            "the drowning of the dock",
        ),
    ),
    prevention=(
        "What nipped {e} in the bud?",
        "What was it that headed off {e}?",
        "Why did {e} never come to pass?",
        "To what do we owe it that we were spared {e}?",
    ),
    failures=(
        (
            "The incubator of the {city} maternity home went cold; its relay was a {code}.",
            "{company} says that a {code} sticks unless it is oiled monthly.",
            "What upkeep does the relay in the incubator of the {city} maternity home need?",
        ),
        (
            "The foghorn of {city} is out of order, the keeper logged it as defect {code}.",
            "Defect {code} was put right last time with a new reed.",
            "How was the trouble with the foghorn of {city} put right last time?",
        ),
        (
            "A trawler with the registration {code} ran down a buoy off {city}.",
            "{code} sails under charter to {company}.",
            "Who had chartered the trawler that ran down a buoy off {city}?",
        ),
        (
            "The greasepaint that blistered the cast in {city} came out of tin {code}.",
            "Somebody at {company} thinned {code} with turpentine.",
            "Where was the greasepaint thinned that blistered the cast in {city}?",
        ),
        (
            "Pupils in {city} sat an exam paper with the number {code} that had no last page.",
            "The proofs of {code} were read at {company} by a man without his spectacles.",
            "Who read the proofs of the exam paper without a last page in {city}?",
        ),
    ),
    affected=(
        (
            "the rotten rope",
            (
                "A rope of coil {code} parted at {c} in {city}.",
                "{c} lost an anchor through {code}.",
                "Two riggers of {c} fell into the water when {code} gave.",
            ),
        ),
        (
            "the tainted ether",
            (
                "Ether of consignment {code} gave headaches at {c} in {city}.",
                "{c} sent {code} back with a furious letter.",
                "Everybody at {c} dozed off: {code} had leaked.",
            ),
        ),
        (
            "the shrinking cloth",
            (
                "Curtains of {c} in {city} shrank, they were cut from bolt {code}.",
                "{c} took up every hem after washing {code}.",
                "With {code} in the laundry, {c} was left with dolls' shirts.",
            ),
        ),
    ),
    others=(
        "Where else besides {c} did {e} turn up?",
        "{c} was not alone with {e}: which other firms suffered?",
        "Leaving {c} aside, who had to cope with {e}?",
        "Who shared {c}'s misfortune with {e}?",
    ),
    topics=(
        "the tea trolley",
        "the fish auction",
        "the costume store",
        "the visiting hours",
        "the slipway toll",
        "the school orchard",
    ),
    decided=(
        (
            "The governors resolved to hand {t} to {v}.",
            ("the almoner", "the stage manager", "the harbour master", "the head cook"),
        ),
        ("On {t} the ruling is {v}.", ("scheme one", "scheme two", "scheme three", "scheme four")),
        (
            "The trustees plumped for {v} in the matter of {t}.",
            ("delay", "expansion", "closing down", "a trial period"),
        ),
        (
            "Motion carried: {t} to be put under {v}.",
            ("the chaplain", "the bosun", "the sixth form", "the night sister"),
        ),
    ),
    latest=(
        "What is the most recent ruling on {t}?",
        "Last thing we heard about {t}?",
        "How does the matter of {t} stand, going by the newest resolution?",
        "What was resolved about {t} the last time it came up?",
        "Any update on {t}? I only want the ruling in force.",
    ),
    month=(
        "What was resolved in {month}?",
        "Which rulings date from {month}?",
        "List the resolutions passed in {month}.",
    ),
    moves={
        "lives_in": (
            "{a} has lodgings in {b}.",
            "{a} took up residence in {b}.",
            "{a} shifted to {b} with all the furniture.",
            "{a} is domiciled in {b}.",
        ),
        "works_on": (
            "{a} was seconded to {b}.",
            "{a} transferred to {b}.",
            "{a} is attached to {b}.",
            "{a} was taken on for {b}.",
        ),
    },
    now={
        "lives_in": (
            "Where is {x} domiciled nowadays?",
            "Where does {x} lodge at present?",
            "{x} is at home in which town, as things stand?",
            "Current residence of {x}?",
            "Which town does {x} go home to?",
        ),
        "works_on": (
            "What is {x} attached to nowadays?",
            "What does {x} have in hand at the moment?",
            "{x}'s present undertaking?",
            "What is {x} toiling away at?",
            "What is {x} currently seconded to?",
        ),
    },
    still={
        "lives_in": (
            "Is {old} {x}'s residence as of today?",
            "Does {x} go on lodging in {old}?",
            "Would I find {x} at home in {old} if I called tomorrow?",
        ),
        "works_on": (
            "Is {x} attached to {old} even now?",
            "Does {x} go on toiling at {old}?",
            "Can I count on {x} for {old} as of today?",
        ),
    },
    past={
        "lives_in": (
            "In which towns did {x} lodge in days gone by?",
            "Former residences of {x}?",
            "Where had {x} been domiciled earlier?",
        ),
        "works_on": (
            "What was {x} seconded to in days gone by?",
            "Former undertakings of {x}?",
            "What had {x} been attached to earlier?",
        ),
    },
    first={
        "lives_in": (
            "Where were {x}'s earliest lodgings?",
            "In which town was {x} domiciled at the outset?",
            "Of all the places {x} resided in, which came before the rest?",
        ),
        "works_on": (
            "What was {x}'s earliest undertaking?",
            "What was {x} seconded to at the outset?",
            "Of all that {x} was attached to, what came before the rest?",
        ),
    },
    no_longer={
        "lives_in": (
            "Which towns has {x} turned their back on?",
            "Where has {x} given up lodgings?",
            "What addresses of {x} are out of date?",
        ),
        "works_on": (
            "Which undertakings has {x} been released from?",
            "What has {x} put behind them at work?",
            "What is {x} rid of by now, as far as undertakings go?",
        ),
    },
    events=(
        "{person} set a broken wing of a puffin.",
        "The understudy from {city} forgot the second act.",
        "{company} unloaded sixty hammocks at the side door.",
        "A porpoise swam up the slipway.",
        "{person} was promoted with a glass of sherry.",
        "The stage trapdoor jammed during rehearsal.",
        "The school nurse looked into four hundred throats.",
        "{person} dropped the ward keys down a well.",
        "A delegation from {city} admired the new mast.",
        "The gutters over the net store overflowed.",
        "{person} conducted the brass band with a ladle.",
    ),
    week=(
        "Bring me up to date on last week.",
        "What was the news of last week?",
        "Summarise last week for the notice board.",
        "Which things occurred in the course of last week?",
        "So, last week: what was there to report?",
    ),
    standing=(
        "{person} holds season ticket {n} of the {city} Lyceum.",
        "{person} is on the jury list of {city}.",
        "{person} has coat peg {n}.",
        "{person} wears name badge {n}.",
        "{person} is down for lifeboat {n}.",
        "{person} is customer {n} of {company}.",
        "{person} empties pigeonhole {n}.",
    ),
    noise=(
        "{hub} boiled {n} bandages.",
        "{hub} mended {n} nets for {company}.",
        "{hub} sewed {n} buttons on costumes for {city}.",
        "{hub} took in {n} buckets from {company}.",
        "{person} stamped docket {n} of {hub}.",
        "{hub} marked {n} exercise books.",
        "{hub} shipped {n} blankets to {city}.",
    ),
    attributes=(
        (
            "{hub} was endowed by a widow who sold cockles.",
            "To whom does {hub} owe its existence?",
        ),
        (
            "On the flag of {hub} there is a cormorant with a lamp.",
            "What is shown on the flag of {hub}?",
        ),
        (
            "{hub} rings for the early shift at ten to seven.",
            "At what time does the early shift begin at {hub}?",
        ),
        (
            "Visitors leave {hub} through the north porch.",
            "Which way do guests go out of {hub}?",
        ),
        (
            "The old papers of {hub} lie in a disused lighthouse.",
            "Where are the archives of {hub} stored?",
        ),
    ),
    breakdowns=(
        (
            "{thing} gave up the ghost in {city}.",
            "Who holds the title to what gave up the ghost in {city}?",
        ),
        (
            "Vandals in {city} daubed {thing} with tar.",
            "Something was daubed with tar in {city}: whose is it?",
        ),
        (
            "{thing} was battered by hail in {city}.",
            "Hail battered something in {city}. To whose possessions does it count?",
        ),
        (
            "In {city} {thing} slid down the embankment.",
            "Who can call that their own which slid down the embankment in {city}?",
        ),
    ),
    terms=(
        ("{c} raised its fee for a call-out to {v} pounds.", ("35", "48", "55")),
        (
            "Complaints to {c} go through {v} from now on.",
            ("the purser", "the bursar", "the registrar"),
        ),
        ("{c} grants us credit for {v} weeks.", ("six", "eight", "ten")),
    ),
    changed=(
        "Sum up what was rearranged with {c} between {day1} and {day2}.",
        "From {day1} to {day2}: what became different in our dealings with {c}?",
        "Which conditions of {c} were revised in the period {day1} to {day2}?",
    ),
    through=(
        "Who is a common acquaintance of {a} and {b}?",
        "{a} wants a word with {b} and needs a go-between: who would do?",
        "By whom are {a} and {b} linked?",
        "Is there anybody with whom both {a} and {b} are friendly?",
    ),
    contradictions=(
        (
            "{x} has blood group {v}.",
            "The donor card of {x} says {v}.",
            ("A positive", "O negative"),
            "Which blood group is {x}'s?",
        ),
        (
            "{x} sings {v} in the chorus.",
            "The choirmaster lists {x} under {v}.",
            ("second voice", "third voice"),
            "Which voice does {x} sing?",
        ),
        (
            "{x}'s exam is on the {v} of June.",
            "The examiners come to {x} on the {v} of June.",
            ("third", "ninth"),
            "On what date does {x} sit the exam?",
        ),
        (
            "{x} trained at {v}.",
            "The diploma of {x} was awarded by {v}.",
            ("Saint Bride's", "the Nautical College"),
            "Where did {x} get a diploma?",
        ),
        (
            "{x} needs glasses of {v} dioptres.",
            "The optician wrote down {v} dioptres for {x}.",
            ("two", "three"),
            "How strong are {x}'s spectacles?",
        ),
    ),
    chained={
        "boss": (
            "the supervisor over {x}",
            "the department head of {x}",
            "the one who has authority over {x}",
        ),
        "mentor": (
            "the preceptor of {x}",
            "the old hand who is training {x}",
            "the one passing the craft on to {x}",
        ),
        "spouse.f": ("the bride of {x}", "the woman wedded to {x}"),
        "spouse.m": ("the groom of {x}", "the man wedded to {x}"),
        "home": ("the place of abode of {x}", "the town of residence of {x}"),
    },
    changing=(
        (
            (
                "{a} rents a mooring at {v}.",
                "{a} ties up at {v}.",
                "{a} has taken over a berth at {v}.",
                "The harbour office moved {a}'s boat to {v}.",
            ),
            (
                "Coal Quay",
                "Bishop's Steps",
                "the North Basin",
                "Whalebone Jetty",
                "Customs Pier",
                "the Old Lock",
                "Mermaid Slip",
                "the Tar Wharf",
            ),
            (
                "Where does {x} rent a mooring now?",
                "Where is {x}'s boat tied up these days?",
                "At which quay is {x}'s berth at the moment?",
                "Where does {x} moor?",
            ),
            (
                "What is the most recent berth of {x} that we have on file?",
                "Last thing we heard about {x}'s mooring?",
                "What is the newest word on where {x} ties up?",
            ),
        ),
        (
            (
                "{a} leases a lock-up in {v}.",
                "{a} keeps the car in a garage in {v}.",
                "{a} was given the key of a garage in {v}.",
                "{a} has gone over to a lock-up in {v}.",
            ),
            (
                "Tanner's Row",
                "Gallows Lane",
                "Vinegar Yard",
                "Chapel Mews",
                "Pudding Street",
                "Ropewalk Hill",
                "Lamplighter Alley",
                "Candlemaker Close",
            ),
            (
                "Where is {x}'s lock-up nowadays?",
                "Which street is the garage of {x} in at present?",
                "Where does {x} garage the car?",
                "{x}'s garage: where currently?",
            ),
            (
                "Going by the latest note, where does {x} have a lock-up?",
                "What did we hear most recently about {x}'s garage?",
                "The last garage that we know of {x}'s?",
            ),
        ),
        (
            (
                "{a} is a patient of Dr {v}.",
                "{a} has signed on with Dr {v}.",
                "The surgery of Dr {v} took {a} on.",
                "Dr {v} looks after {a}'s health.",
            ),
            words("Pym Cleghorn Strachey Bannerjee Ludlow Fanshawe Trott Widdecombe"),
            (
                "Who is {x}'s doctor at the moment?",
                "Whose patient is {x} these days?",
                "Which physician does {x} see?",
                "By whom is {x} treated currently?",
            ),
            (
                "Who is the most recent doctor of {x}'s on record?",
                "At last report, whose surgery was {x} with?",
                "What is the latest on {x}'s physician?",
            ),
        ),
        (
            (
                "{a} sits in room {v}.",
                "{a} has been given room {v}.",
                "{a}'s desk was carried to room {v}.",
                "The door plate of room {v} bears {a}'s name.",
            ),
            words("B12 C4 F30 D17 A9 E21 G6 H15"),
            (
                "In which room do I find {x} now?",
                "What room does {x} sit in these days?",
                "What is {x}'s room number?",
                "Where in the building is {x}'s desk at the moment?",
            ),
            (
                "What is the latest room that was noted for {x}?",
                "Last we heard, which room was {x}'s?",
                "Which room did {x} get most recently?",
            ),
        ),
        (
            (
                "{a} drives a {v}.",
                "{a} has changed to a {v}.",
                "{a} was seen at the wheel of a {v}.",
                "{a} swapped the last car for a {v}.",
            ),
            (
                "green Hillman",
                "cream Morris",
                "grey Humber",
                "yellow Lanchester",
                "black Wolseley",
                "white Sunbeam",
                "blue Riley",
                "maroon Alvis",
            ),
            (
                "What car does {x} drive nowadays?",
                "What is {x} driving at the moment?",
                "What make of car does {x} have?",
                "Which car should I look out for today if I wait for {x}?",
            ),
            (
                "What was the last car that {x} was reported with?",
                "What is {x}'s most recent car?",
                "Newest information on what {x} drives?",
            ),
        ),
        (
            (
                "{a} can be rung on {v}.",
                "{a} answers the telephone under {v}.",
                "The switchboard puts {a} through on {v}.",
                "{a} was allotted the number {v}.",
            ),
            words("2210 3874 5096 6613 7421 8057 9238 4489"),
            (
                "On what number do I get {x} at the moment?",
                "What is {x}'s telephone number now?",
                "What do I dial for {x}?",
                "Under which number does {x} currently answer?",
            ),
            (
                "What is the most recent number that we were given for {x}?",
                "{x}'s number, the last one that was reported?",
                "What is the newest entry for {x}'s telephone?",
            ),
        ),
    ),
    rivals=(
        (
            "{c} called off its stand at the spring fair.",
            "the stand that {c} called off at the spring fair",
            (
                (
                    "A plumber shut the wrong valve at {c}.",
                    "The packing room was a foot under water by dawn.",
                    "Nine crates of samples grew mould.",
                ),
                (
                    "The harbour pilots of {city} went on strike.",
                    "The display cases of {c} never left the quay.",
                    "There was nothing that visitors could have been shown.",
                ),
                (
                    "{person} sent the fee for the spring fair to the wrong account.",
                    "The organisers counted {c} among those who had not paid.",
                    "The pitch was handed to a seller of fudge.",
                ),
            ),
        ),
        (
            "{c} paid its people three weeks late.",
            "the late wages at {c}",
            (
                (
                    "A beetle got into the card reader in the office of {c}.",
                    "The time sheets of a whole quarter were unreadable.",
                    "The hours had to be counted by hand.",
                ),
                (
                    "The bank in {city} merged with a rival.",
                    "All signatures of {c} lost their validity.",
                    "The transfer lay in a tray marked unsigned.",
                ),
                (
                    "{person} was bitten by a goose.",
                    "The only cashier of {c} was off sick.",
                    "Nobody knew the word that opens the safe.",
                ),
            ),
        ),
        (
            "The night watch found the gates of {c} wide open.",
            "the open gates at {c}",
            (
                (
                    "Salt spray crept into the fuse box at {c}.",
                    "The magnetic lock lost its current.",
                    "The alarm took the lull for a drill.",
                ),
                (
                    "A lodger of {person} made a copy of a bunch of keys.",
                    "The copy was traded for a bottle of gin in {city}.",
                    "Boys from the boatyard let themselves in at {c}.",
                ),
                (
                    "The clocks of {c} were put forward instead of back.",
                    "The porter went off duty an hour too early.",
                    "The relief had not yet come through the fog.",
                ),
            ),
        ),
    ),
    aftermaths=(
        (
            "The power went out at {c} on the longest night.",
            "the power cut at {c}",
            (
                (
                    "The hatchery in the yard turned cold.",
                    "Two hundred ducklings had to be warmed in the vestry.",
                    "The vicar held evensong in the gym.",
                ),
                (
                    "A cold store full of herring thawed.",
                    "Every gull of {city} sat on the roof.",
                    "The tennis club gave up its lawn.",
                ),
                (
                    "The lift stood still with {person} inside.",
                    "The annual ball began without a host.",
                    "The accordion players went on until breakfast.",
                ),
            ),
        ),
        (
            "{c} put its warehouse under new management.",
            "the change of management in the warehouse of {c}",
            (
                (
                    "The shelves were sorted by colour.",
                    "A sack of plaster was sent out as icing sugar.",
                    "A wedding cake in {city} could not be cut.",
                ),
                (
                    "The late shift was done away with.",
                    "The first lorries left at noon.",
                    "The crab reached {city} after closing time.",
                ),
                (
                    "Smoking was forbidden within the walls.",
                    "The men gathered under the hayloft with their pipes.",
                    "The hayloft was ash by Whitsun.",
                ),
            ),
        ),
        (
            "A flu laid low half the people of {c}.",
            "the flu at {c}",
            (
                (
                    "The errand boys were given the keys to the van.",
                    "The van ended up in the duck pond of {city}.",
                    "The duck pond was fenced in.",
                ),
                (
                    "Orders were taken by {person} alone.",
                    "Forty bedpans were delivered as soup bowls.",
                    "The harvest supper ended in uproar.",
                ),
                (
                    "The furnace was left to burn out.",
                    "The enamel on the big order cracked.",
                    "The buyer in {city} turned to a potter.",
                ),
            ),
        ),
    ),
    batches=(
        (
            "The hoist in the theatre of {city} dropped its load; the hook was stamped {code}.",
            (
                "What lay behind the dropped load of the theatre hoist in {city}?",
                "What was wrong with the hook of the theatre hoist in {city}?",
                "Who is to answer for the hook that failed in the theatre of {city}?",
            ),
            (
                "Hooks stamped {code} were cast by {company} with slag in the iron.",
                "{company} admits that {code} never went through the tensile test.",
                "A foreman of {company} let {code} pass although the steel was too soft.",
            ),
            (
                "{person} greased the rope of the hoist with lard.",
                "Rats gnawed the rope overnight.",
                "The hoist in the theatre of {city} dropped its load onto the stage.",
            ),
        ),
        (
            "Patients of the clinic in {city} came out in hives under dressings of lot {code}.",
            (
                "How is it that patients of the clinic in {city} came out in hives?",
                "What was the matter with the dressings that the clinic in {city} used?",
                "Whose carelessness gave the patients in {city} hives?",
            ),
            (
                "{company} had soaked {code} in the wrong antiseptic.",
                "At {company} the sterilising of {code} was cut short by an hour.",
                "{code} was packed at {company} in a shed full of lilies.",
            ),
            (
                "{person} brought a llama into the waiting room.",
                "The waiting room was sprayed against lice.",
                "Patients of the clinic in {city} came out in hives from head to toe.",
            ),
        ),
        (
            "The tyres of the school coach in {city} burst; on the rubber one could read {code}.",
            (
                "What were the burst tyres of the school coach in {city} down to?",
                "What is known against the make of tyre on the school coach in {city}?",
                "Who let down the school in {city} with those tyres?",
            ),
            (
                "{company} vulcanised {code} at half the proper heat.",
                "Series {code} lay in the sun behind {company} for two summers.",
                "{company} has had to own up that {code} was made without cords.",
            ),
            (
                "A crate of tacks fell off a cart of {company}.",
                "Nobody swept the bypass before the first lesson.",
                "The tyres of the school coach in {city} burst on the bypass.",
            ),
        ),
    ),
)
