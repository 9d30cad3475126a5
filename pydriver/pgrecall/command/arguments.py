"""The commands, with their arguments, options and examples."""

from __future__ import annotations

from pathlib import Path

import click

from pgrecall._version import __version__
from pgrecall.command.parameters import (
    BANK,
    CREATE,
    FACT_TYPE,
    FILTER,
    INTERVAL,
    MODEL,
    NO_EMBED,
    OPTIONS,
    PORT,
    SECONDS,
    SYNCING,
    TAG,
    Command,
    Group,
    argument,
    field,
    flag,
    moment,
    option,
    pair,
    setting,
    several,
    write_examples,
)
from pgrecall.doctor import LEAST_RECALL
from pgrecall.options import TOP_K

PROGRAM = "pgrecall"
AGENTS = ("claude-code", "codex", "cursor", "gemini", "vscode")
ID_FIELDS = ("fact_key", "source_id", "memory_id")
KINDS = ("jsonl", "csv", "parquet", "langchain", "mem0", "hindsight")
SHELLS = ("bash", "zsh", "fish")

_FILE = click.Path(path_type=Path, allow_dash=True)
_STATUS = "Exit status: 0 for success, 1 for an error (see standard error), 2 for wrong usage."


class _Top(Group):
    """The command; its help also shows first steps and exit statuses."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the first steps and the exit statuses."""
        write_examples(
            formatter,
            (
                "pgrecall demo",
                "pgrecall retain facts.jsonl --bank mine --create",
                'pgrecall recall mine "Who leads Atlas?"',
                "pgrecall recall --help",
            ),
        )
        formatter.write_paragraph()
        formatter.write_text(_STATUS)


top = _Top(
    PROGRAM,
    help="PostgreSQL as the memory of AI agents.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
click.version_option(__version__, prog_name=PROGRAM, message="%(prog)s %(version)s")(top)

banks = Group("bank", help="Create, list, show and drop banks.")
shards = Group("shard", help="Spread banks over several servers.")

Command(
    top,
    "demo",
    "demo.show",
    "Fill a bank with examples and ask it ten questions.",
    [
        "pgrecall demo",
        "pgrecall demo --open",
        "pgrecall demo --bank tour --dsn postgresql://me@db/app",
    ],
    option("--bank", default="demo", help="Name of the demo's bank."),
    flag("--open", help="Then open the console in the browser."),
)
Command(
    top,
    "migrate",
    "actions.migrate",
    "Install pgrecall in the database, or upgrade it.",
    [
        "pgrecall migrate --dsn postgresql://me@db/app",
        "pgrecall migrate --dry-run",
        "pgrecall migrate --sql > upgrade.sql",
    ],
    flag(
        "--dry-run",
        help="Show what would be locked and for how long, and what can be done by hand before.",
    ),
    flag("--sql", help="Print the script instead of running it."),
    option(
        "--lock-timeout",
        type=SECONDS,
        default=2.0,
        metavar="SECONDS",
        help="How long to wait for a table in use; 2.",
    ),
    option(
        "--retries",
        type=click.IntRange(min=0),
        default=5,
        metavar="N",
        help="How often to retry if a table is in use; 5.",
    ),
    flag("--citus", help="Also distribute tables and functions over the workers of Citus."),
    flag(
        "--recreate-dependents",
        help="Drop your views that depend on changed objects, and recreate them.",
    ),
    at_most_one=("dry_run", "sql", "citus"),
)
Command(
    top,
    "doctor",
    "actions.run_doctor",
    "Check server, extensions, models and banks. Exit status 1 if something is wrong.",
    ["pgrecall doctor", "pgrecall doctor --json"],
)

top.add_command(banks)
Command(
    banks,
    "create",
    "actions.bank_create",
    "Create an empty bank.",
    [
        "pgrecall bank create mine",
        "pgrecall bank create notes --text-search-config german --fact-type rumour",
    ],
    BANK(),
    option(
        "--text-search-config",
        default="english",
        metavar="NAME",
        help='Such as english; "simple" for mixed languages and identifiers.',
    ),
    several("--fact-type", metavar="NAME", help="An additional type of fact."),
)
Command(
    banks,
    "list",
    "actions.bank_list",
    "List all banks.",
    ["pgrecall bank list", "pgrecall bank list --json"],
)
Command(banks, "show", "actions.bank_show", "Show one bank.", ["pgrecall bank show mine"], BANK())
Command(
    banks,
    "drop",
    "actions.bank_drop",
    "Erase a bank and everything in it.",
    ["pgrecall bank drop mine", "pgrecall bank drop mine --yes"],
    BANK(),
    flag("--yes", help="Do not ask for confirmation."),
)

Command(
    top,
    "retain",
    "actions.retain_facts",
    'Retain facts from a JSONL file. Each line is an object: {"text": "Maya leads Atlas."}'
    " is enough; a dash reads standard input.",
    [
        "pgrecall retain facts.jsonl --bank mine --create",
        "pgrecall retain - --bank mine --replace key",
        "pgrecall retain facts.jsonl --bank mine --no-embed --no-link",
        "pgrecall retain many.jsonl --bank mine --bulk --workers 8",
    ],
    argument("file", type=_FILE, metavar="FILE.jsonl"),
    option("--bank", required=True),
    CREATE(),
    NO_EMBED(),
    MODEL(),
    flag("--no-link", help="Write no links now; the command link does."),
    flag(
        "--bulk",
        help="Load many facts over several connections; vector indexes and links come last."
        " Refused lines are listed and skipped. After an interruption, run it again to continue.",
    ),
    option(
        "--workers",
        type=click.IntRange(min=1),
        metavar="N",
        help="Connections that write at once, with --bulk; 4.",
    ),
    option(
        "--replace",
        type=click.Choice(("none", "key", "relation", "both")),
        help="End older facts with the same key, or relation; default: the bank's setting.",
    ),
)
Command(
    top,
    "retain-messages",
    "actions.retain_messages",
    "Retain raw messages from a JSONL file.",
    ["pgrecall retain-messages chat.jsonl --bank mine --create"],
    argument("file", type=_FILE, metavar="FILE.jsonl"),
    option("--bank", required=True),
    CREATE(),
)
Command(
    top,
    "recall",
    "actions.ask",
    f"Ask a bank a question.\n\nOptions that --set takes: {', '.join(sorted(OPTIONS))}.",
    [
        'pgrecall recall mine "Who leads Atlas?"',
        'pgrecall recall mine "What changed last week?" --at 2026-03-05 --top-k 5',
        'pgrecall recall mine "Atlas" --filter "confidence > 0.8" --set budget=high --explain',
        'pgrecall recall mine "Who leads Atlas?" --html why.html --why 17',
        'pgrecall recall mine "Who leads Atlas?" --json',
    ],
    BANK(),
    argument("question"),
    option("--top-k", type=int, metavar="N", help=f"Maximum number of answers; {TOP_K}."),
    click.Option(
        ["--set"],
        multiple=True,
        type=setting,
        metavar="NAME=VALUE",
        help="Set an option, as JSON or bare text; can be repeated; the options are above.",
    ),
    FILTER(),
    FACT_TYPE(),
    TAG(),
    option("--at", type=moment, metavar="TIME", help="Ask as of this time."),
    flag("--explain", help="Show what each arm did."),
    option("--html", type=_FILE, metavar="FILE", help="Write the explanation to an HTML file."),
    several(
        "--why",
        type=int,
        metavar="ID",
        help="Show why this memory is not in the answer, or its place; can be repeated.",
    ),
    flag("--no-embed", help="Do not embed the question."),
    MODEL(),
)

Command(
    top,
    "list",
    "memories.list_them",
    "List memories, newest first.",
    [
        "pgrecall list mine --top-k 10",
        "pgrecall list mine --entity Maya --since 2026-03-01",
        "pgrecall list mine --tag team --all --json",
    ],
    BANK(),
    FILTER(),
    FACT_TYPE(),
    TAG(),
    option("--entity", metavar="NAME", help="Only memories that mention this entity."),
    option("--since", type=moment, metavar="TIME", help="Only what occurred from this time on."),
    option("--until", type=moment, metavar="TIME", help="Only what occurred before this time."),
    flag("--all", help="Also memories that no longer hold."),
    option("--before", type=int, metavar="ID", help="For the next page: the last id of this one."),
    option("--top-k", type=int, metavar="N", help="Maximum number of memories; 50."),
)
Command(
    top,
    "get",
    "memories.get",
    "Show memories by id.",
    ["pgrecall get mine 1042", "pgrecall get mine 1042 1043 --json"],
    BANK(),
    argument("memory_id", type=int, nargs=-1, required=True),
)
Command(
    top,
    "history",
    "memories.history",
    "List the versions of a fact.",
    ["pgrecall history mine 1042"],
    BANK(),
    argument("memory_id", type=int),
)
Command(
    top,
    "update",
    "memories.update",
    "Change fields of a memory; history keeps the old version. A value is JSON or plain text.",
    [
        'pgrecall update mine 1042 text="Maya leads Borealis."',
        "pgrecall update mine 1042 'tags=[\"team\"]' context=null",
    ],
    BANK(),
    argument("memory_id", type=int),
    argument("changes", type=field, nargs=-1, required=True, metavar="FIELD=VALUE..."),
    flag("--no-embed", help="Store no embedding of a new text."),
    MODEL(),
)
Command(
    top,
    "forget",
    "memories.forget",
    "Erase memories, by ids or by conditions.",
    [
        "pgrecall forget mine 1042 1043",
        "pgrecall forget mine --source mail-17 --dry-run",
        "pgrecall forget mine --filter \"fact_type = 'opinion'\"",
    ],
    BANK(),
    argument("memory_id", type=int, nargs=-1),
    FILTER(),
    option("--key", metavar="KEY", help="All facts with this key, also former ones."),
    option("--source", metavar="ID", help="All facts from this source."),
    flag("--dry-run", help="Only show how many would be erased."),
)
Command(
    top,
    "forget-messages",
    "memories.forget_messages",
    "Erase raw messages, by id, session or time.\n\nFacts extracted from them stay.",
    [
        "pgrecall forget-messages mine --session s1",
        "pgrecall forget-messages mine --until 2026-01-01 --dry-run",
    ],
    BANK(),
    argument("message_id", type=int, nargs=-1),
    option("--session", metavar="ID", help="Only messages of this session."),
    option("--since", type=moment, metavar="TIME", help="Only messages sent from this time on."),
    option("--until", type=moment, metavar="TIME", help="Only messages sent before this time."),
    flag("--dry-run", help="Only show how many would be erased."),
)
Command(
    top,
    "supersede",
    "actions.supersede",
    "End a memory that no longer holds.",
    [
        "pgrecall supersede mine 1042 --by 1043",
        "pgrecall supersede mine 1042 --at 2026-03-05 --copies --dry-run",
    ],
    BANK(),
    argument("memory_id", type=int),
    option("--by", type=int, metavar="ID", help="The memory that replaces it."),
    option("--at", type=moment, metavar="TIME", help="When it ended; now."),
    flag("--copies", help="Also end its near duplicates."),
    flag("--dry-run", help="Only show what would end."),
)
Command(
    top,
    "unsupersede",
    "actions.unsupersede",
    "Undo the end of a memory.",
    ["pgrecall unsupersede mine 1042"],
    BANK(),
    argument("memory_id", type=int),
)
Command(
    top,
    "consolidate",
    "actions.consolidate",
    "List or merge near duplicates.",
    [
        "pgrecall consolidate mine",
        "pgrecall consolidate mine --apply --min-similarity 0.97",
        "pgrecall consolidate mine --undo",
    ],
    BANK(),
    option(
        "--min-similarity",
        type=float,
        metavar="SHARE",
        help="Minimum similarity at which different texts are merged; 0.95.",
    ),
    flag("--apply", help="Merge them."),
    flag("--undo", help="Undo the latest merge."),
    at_most_one=("apply", "undo"),
)

Command(
    top,
    "import",
    "transfer.import_all",
    "Import facts from a file, another store or an export.\n\nSOURCE is a file (.jsonl, .csv,"
    " .parquet), a dash for standard input, or the DSN of another store.",
    [
        "pgrecall import bank.jsonl --bank copy",
        "pgrecall import notes.csv --bank mine --text body --create",
        "pgrecall import postgresql://me@db/app --from mem0 --part ana --bank mine",
    ],
    argument("source"),
    option("--bank", required=True),
    option(
        "--from",
        "origin",
        type=click.Choice(KINDS),
        help="Type of the source; default: by the file name, else jsonl.",
    ),
    option("--text", metavar="COLUMN", help="The column of a file with the text."),
    option("--table", metavar="NAME", help="The table of the store, if not the default one."),
    option("--part", metavar="NAME", help="Only this collection, user or bank."),
    option(
        "--vectors-of",
        metavar="MODEL",
        help="Keep the embeddings, made by this model; default: embed again.",
    ),
    CREATE(),
    NO_EMBED(),
    MODEL(),
)
Command(
    top,
    "export",
    "transfer.export",
    "Write all rows of a bank as JSON lines.",
    ["pgrecall export mine bank.jsonl", "pgrecall export mine > bank.jsonl"],
    BANK(),
    argument("file", type=_FILE, required=False, metavar="[FILE.jsonl]"),
)
Command(
    top,
    "embed",
    "transfer.embed",
    "Embed facts without an embedding.",
    [
        "pgrecall embed mine",
        "pgrecall embed mine --watch --interval 30",
        "pgrecall embed mine --again",
    ],
    BANK(),
    MODEL(),
    flag("--again", help="Embed the others anew, too, as after an upgrade that reads more."),
    option("--batch-size", type=int, default=64, metavar="N", help="Texts per batch; 64."),
    flag("--watch", help="Then embed new facts as they arrive, until stopped."),
    INTERVAL(),
)
Command(
    top,
    "schema",
    "actions.print_schema",
    "Print the JSON schema of extracted facts.",
    ["pgrecall schema facts"],
    argument("name", type=click.Choice(("facts",))),
    has_dsn=False,
    has_json=False,
)
Command(
    top,
    "attach",
    "tables.attach",
    "Copy the rows of a table into a bank.",
    [
        "pgrecall attach mine ticket --key id --text body --create",
        "pgrecall attach mine ticket --key id --text body --occurred opened_at --entity author"
        " --field context=title",
    ],
    BANK(),
    argument("table"),
    option("--key", required=True, metavar="COLUMN", help="The column that identifies rows."),
    option("--text", required=True, metavar="COLUMN", help="The column with the text."),
    option("--fact-type", metavar="NAME", help="Fact type of the memories; world."),
    option("--occurred", metavar="COLUMN", help="A column with times, dates or ranges."),
    several("--entity", metavar="COLUMN", help="A column with one or more names."),
    click.Option(
        ["--field"],
        multiple=True,
        type=pair,
        metavar="FIELD=COLUMN",
        help="A column for context, fact_type, fact_key, mentioned_at, expires_at, confidence, tags"
        " or metadata; can be repeated.",
    ),
    option(
        "--apply",
        type=click.Choice(("later", "commit")),
        help="When changes reach the bank: at the next sync (later) or at their commit; later.",
    ),
    flag("--no-history", help="Do not keep the old text of a changed row."),
    CREATE(),
    *SYNCING(),
)
Command(
    top,
    "sync",
    "tables.sync",
    "Copy changes of attached tables to the bank.",
    ["pgrecall sync mine", "pgrecall sync mine ticket --watch --interval 1"],
    BANK(),
    argument("table", required=False),
    *SYNCING(),
)
Command(
    top,
    "detach",
    "tables.detach",
    "Detach a table from a bank.",
    ["pgrecall detach mine ticket", "pgrecall detach mine ticket --forget"],
    BANK(),
    argument("table"),
    flag("--forget", help="Erase its memories as well."),
)
Command(
    top,
    "link",
    "actions.link",
    "Link facts without links.",
    ["pgrecall link mine", "pgrecall link mine --batch-size 200"],
    BANK(),
    option("--batch-size", type=int, default=1000, metavar="N", help="Facts a transaction; 1000."),
)
Command(
    top,
    "maintain",
    "actions.maintain",
    "Do what is pending: counts, weights and links.",
    ["pgrecall maintain", "pgrecall maintain mine --max-seconds 60"],
    BANK(required=False),
    option(
        "--batch-size", type=int, default=500, metavar="N", help="Documents a transaction; 500."
    ),
    option("--max-seconds", type=float, metavar="S", help="Start no batch after this time."),
)
Command(
    top,
    "stats",
    "actions.stats",
    "Show how many recalls banks had and how long they took.\n\nThe figures come from a sample,"
    " which the driver logs if --share of a bank is above 0.",
    [
        "pgrecall stats mine --share 0.01",
        "pgrecall stats",
        "pgrecall stats mine --since 2026-03-05 --json",
    ],
    BANK(required=False),
    option("--since", type=moment, metavar="TIME", help="Only recalls since this time; a day ago."),
    option(
        "--share",
        type=click.FloatRange(0, 1),
        metavar="SHARE",
        help="From now on, log this share of the driver's recalls; 0 turns the log off.",
    ),
)
Command(
    top,
    "reembed",
    "actions.reembed_bank",
    "Change the embedding model of a bank.",
    [
        "pgrecall reembed mine --model ./new-model",
        "pgrecall reembed mine --model ./new-model --rate 200",
        "pgrecall reembed mine --cancel",
    ],
    BANK(),
    option("--model", metavar="NAME", help="Name or directory of the new model."),
    flag("--cancel", help="Stop, and keep the present model."),
    option("--batch-size", type=int, default=64, metavar="N", help="Texts per batch; 64."),
    option("--rate", type=float, metavar="N", help="Maximum number of texts per second."),
    option(
        "--min-recall",
        type=float,
        default=LEAST_RECALL,
        metavar="SHARE",
        help=f"Minimum recall of the new indexes; {LEAST_RECALL}.",
    ),
    flag("--lossy", help="Drop hypothetical questions that are stored without text."),
)
Command(
    top,
    "calibrate",
    "calibrate.calibrate_model",
    "Measure the similarities of an embedding model.",
    [
        "pgrecall calibrate ./e5-small facts.jsonl",
        "pgrecall calibrate ./e5-small facts.jsonl --questions questions.jsonl --bank mine",
    ],
    argument("model"),
    argument("sample", type=_FILE, metavar="SAMPLE.jsonl"),
    option(
        "--questions",
        type=_FILE,
        metavar="FILE",
        help='What is asked, {"question": "..."} a line; it tells little from much less.',
    ),
    option("--bank", metavar="NAME", help="Store the result in this bank; default: print it."),
)
Command(
    top,
    "index",
    "actions.index",
    "Show which vector indexes are due, or build them.",
    ["pgrecall index", "pgrecall index mine --apply"],
    BANK(required=False),
    flag("--apply", help="Run the statements."),
)

_QRELS = argument("qrels", type=_FILE)
_TOPICS = option(
    "--topics", type=_FILE, metavar="FILE", help="The questions for TREC qrels: id, tab, text."
)
_BY = option(
    "--by",
    type=click.Choice(ID_FIELDS),
    help="What the ids are; default: the field in which most are found.",
)
_ABOUT_QRELS = (
    '\n\nQRELS is a JSONL file of {"question": "...", "relevant": ["id", ...]}, with "category" and'
    ' "asked_at" where known; or TREC qrels.'
)
Command(
    top,
    "eval",
    "actions.measure",
    "Measure answers to questions with known answers." + _ABOUT_QRELS,
    [
        "pgrecall eval mine questions.jsonl",
        "pgrecall eval mine qrels.txt --topics topics.tsv --k 20 --rerank",
    ],
    BANK(),
    _QRELS,
    _TOPICS,
    _BY,
    flag("--no-embed", help="Do not embed."),
    option("--k", type=int, default=10, metavar="N", help="Of recall@k; 10."),
    flag("--rerank", help="Also measure reranking."),
)
Command(
    top,
    "tune",
    "actions.tune_bank",
    "Search for the best ranking.\n\nTries weights, k, fusion, gates and boosts." + _ABOUT_QRELS,
    ["pgrecall tune mine questions.jsonl", "pgrecall tune mine questions.jsonl --apply"],
    BANK(),
    _QRELS,
    _TOPICS,
    _BY,
    flag("--no-embed", help="Do not embed."),
    flag("--rerank", help="Also search for boosts of reranking."),
    option(
        "--folds",
        type=int,
        default=5,
        metavar="N",
        help="Number of folds, each held out in turn; 5.",
    ),
    option(
        "--budget", type=float, default=300, metavar="SECONDS", help="Time for the search; 300."
    ),
    flag("--apply", help="Make it the bank's default."),
    flag("--force", help="Apply the result even if the gain is uncertain."),
)

Command(
    top,
    "console",
    "console.serve",
    "Browse what is remembered.\n\nServes a page on this machine and prints its link.",
    ["pgrecall console", "pgrecall console mine --open", "pgrecall console --write --port 8765"],
    argument("bank", required=False),
    flag("--write", help="Allow correcting facts and merging entities."),
    flag("--open", help="Open the page in the browser."),
    option("--host", default="127.0.0.1", help="Address to listen at."),
    option("--port", type=PORT, metavar="N", help="Default: 8765, or a free one if it is taken."),
    flag("--no-embed", help="Do not embed."),
    MODEL(),
    has_json=False,
)
Command(
    top,
    "mcp",
    "agents.serve",
    "Serve a bank to MCP clients.",
    ["pgrecall mcp --bank mine", "pgrecall mcp --bank mine --http --port 8000 --read-only"],
    option("--bank", metavar="NAME", help="The bank to serve; default: PGRECALL_BANK."),
    CREATE(),
    flag("--read-only", help="Offer only recall and list."),
    flag("--http", help="Streamable HTTP at /mcp; default: standard input."),
    option(
        "--host",
        default="127.0.0.1",
        help="Address to listen at; beyond this machine, requests need a token.",
    ),
    option("--port", type=PORT, default=8000, metavar="N", help="8000."),
    flag(
        "--token",
        help="Requests need a bearer token, PGRECALL_MCP_TOKEN or one that is printed.",
    ),
    flag("--no-token", help="Require no token; only behind a proxy that controls access."),
    several(
        "--name", metavar="HOST", help="Another host name that requests may use; can be repeated."
    ),
    several(
        "--origin",
        metavar="URL",
        help="Origin of web pages that may send requests; can be repeated.",
    ),
    flag("--no-embed", help="Do not embed."),
    MODEL(),
    has_json=False,
)
Command(
    top,
    "init",
    "agents.init",
    f"Add a bank to coding agents, by MCP.\n\nAgents: {', '.join(AGENTS)}.",
    [
        "pgrecall init claude-code --bank mine",
        "pgrecall init codex cursor --hooks --dry-run",
    ],
    argument("agent", type=click.Choice(AGENTS), nargs=-1, required=True, metavar="AGENT..."),
    option(
        "--bank",
        metavar="NAME",
        help="Default: PGRECALL_BANK, else the name of the directory; made when served.",
    ),
    option(
        "--directory",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        default=Path(),
        metavar="PATH",
        help="Directory of the project; the current one.",
    ),
    flag("--hooks", help="Also ask the bank before each prompt."),
    option(
        "--run",
        type=click.Choice(("path", "uvx", "pipx", "python")),
        help="How agents start pgrecall: by its name, uvx, pipx, or the Python of this environment."
        " Default: the first that is found, but never python, which other machines lack.",
    ),
    flag("--dry-run", help="Only show what would be written."),
)
Command(
    top,
    "hook",
    "agents.hook",
    "Print what a bank knows about a prompt.\n\nThe prompt is what a coding agent hands to"
    " its hooks.",
    ["pgrecall hook --bank mine --max-tokens 300"],
    option("--bank", metavar="NAME", help="Default: PGRECALL_BANK."),
    option(
        "--max-tokens",
        type=int,
        default=500,
        metavar="N",
        help="Maximum number of tokens; 500.",
    ),
    option(
        "--timeout",
        type=float,
        default=5.0,
        metavar="SECONDS",
        help="Time limit; 5.",
    ),
    flag("--no-embed", help="Do not embed the prompt."),
    MODEL(),
    has_json=False,
)
Command(
    top,
    "completion",
    "completion.show",
    "Print a shell completion script.",
    [
        "pgrecall completion bash > ~/.local/share/bash-completion/completions/pgrecall",
        "pgrecall completion zsh > ~/.zfunc/_pgrecall",
        "pgrecall completion fish > ~/.config/fish/completions/pgrecall.fish",
    ],
    argument("shell", type=click.Choice(SHELLS), metavar="SHELL"),
    has_json=False,
    has_dsn=False,
)

top.add_command(shards)
Command(
    shards,
    "init",
    "shard.init",
    "Make an empty database the router. Needs PL/Proxy and a superuser.",
    ["pgrecall shard init --dsn postgresql://router/memory"],
)
Command(
    shards,
    "add",
    "shard.add",
    "Add a server with pgrecall and its banks.",
    ['pgrecall shard add one "host=db1 dbname=memory"'],
    argument("name"),
    argument("shard_dsn"),
    flag("--closed", help="The shard gets no new banks."),
)
Command(
    shards,
    "list",
    "shard.list_banks",
    "List the banks and their shards.",
    ["pgrecall shard list", "pgrecall shard list --shard one --json"],
    option("--shard", metavar="NAME", help="Only banks of this shard."),
)
Command(
    shards,
    "move",
    "shard.move",
    "Move a bank to another shard. Recalls go on; its writers wait.",
    ["pgrecall shard move mine two"],
    BANK(),
    argument("to"),
)
Command(
    shards,
    "status",
    "shard.status",
    "Show the state of each shard. Exit status 1 if one has a problem.",
    ["pgrecall shard status", "pgrecall shard status --json"],
)
Command(
    shards,
    "migrate",
    "shard.migrate",
    "Upgrade pgrecall on each shard in turn, then on the router.",
    ["pgrecall shard migrate"],
)
