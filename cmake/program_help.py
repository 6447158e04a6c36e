"""The commands and options of a program, as its --help lists them (CLI11)."""
import dataclasses
import re
import subprocess


@dataclasses.dataclass
class Option:
    names: list[str]  # of a positional argument: its one name
    metavar: str      # empty: takes no value
    values: list[str]  # the only ones it takes; empty: any
    default: str      # empty: none
    repeats: bool
    text: str


@dataclasses.dataclass
class Command:
    words: list[str]  # ["spoor", "members", "remove"]
    text: str
    options: list[Option]
    arguments: list[Option]
    commands: list["Command"]

    def with_all_below(self):
        yield self
        for command in self.commands:
            yield from command.with_all_below()


TEXT_COLUMN = 30
ENTRY = re.compile(r"(?P<names>\S+)(?: (?P<metavar>[A-Z]+(?:=[A-Z]+)?)(?P<check>:.*?)?(?:=(?P<default>\S+))?"
                   r"(?P<repeats> \.\.\.)?)?(?: REQUIRED)?(?: Excludes: .*)?$")


def _entries(help_text, section):
    """Each (left, text) of the section."""
    found = re.search(rf"^{section}:\n((?:  .*\n)+)", help_text, re.MULTILINE)
    lines = found.group(1).splitlines() if found else []
    for number, line in enumerate(lines):
        below = lines[number + 1] if number + 1 < len(lines) else ""
        if line.startswith(" " * TEXT_COLUMN):
            continue
        if below.startswith(" " * TEXT_COLUMN):
            yield line.strip(), below.strip()
        else:
            yield line[:TEXT_COLUMN].strip(), line[TEXT_COLUMN:].strip()


def _commands(help_text):
    """The names of the commands, whatever their groups are called."""
    sections = re.findall(r"^(\S.*):\n  ", help_text, re.MULTILINE)
    return [name for section in sections if section not in ("Options", "Positionals", "Examples")
            for name, _ in _entries(help_text, re.escape(section))]


def _options(help_text, section):
    options = []
    for left, text in _entries(help_text, section):
        entry = ENTRY.match(left)
        if not entry:
            raise SystemExit(f"--help has an entry of an unknown form: {left}")
        values = re.search(r"\{(.*)\}", entry["check"] or "")
        options.append(Option(entry["names"].split(","), entry["metavar"] or "", values[1].split(",") if values else [],
                              entry["default"] or "", bool(entry["repeats"]), text))
    return options


def read_command(program, words):
    """What `program` says about the command of these words, the first being the program's name."""
    help_text = subprocess.run([program, *words[1:], "--help"], check=True, capture_output=True, text=True).stdout
    below = [read_command(program, [*words, name]) for name in _commands(help_text)]
    return Command(words, help_text.splitlines()[0].rstrip("."), _options(help_text, "Options"),
                   _options(help_text, "Positionals"), below)
