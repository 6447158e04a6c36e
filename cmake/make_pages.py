"""make_pages.py --programs FOLDER --docs FOLDER --scdoc PROGRAM --output FOLDER PAGE.scd...

Makes the manual pages: docs/man/NAME.SECTION.scd becomes NAME.SECTION. A line of a source that begins with @ stands for
what is written elsewhere, so that there is no second copy of it:

  @command spoor mark      NAME, SYNOPSIS, DESCRIPTION and OPTIONS of a command of `spoor`
  @recipe spoor-rsync      NAME, SYNOPSIS and DESCRIPTION of a program of docs/recipes, from its first lines
  @options spoor mark      the options of a program or command, and of the commands below it, from --help
  @commands spoor          the commands below it, from --help
  @section cli.md#HEADING  the text below the heading of docs/cli.md, with the headings below it
  @table cli.md#CELL       the table of docs/cli.md that begins with this cell, as a list
  @document cli.md         all of docs/cli.md but its title
"""
import argparse
import ast
import functools
import os
import pathlib
import re
import shutil
import subprocess

import program_help

# The documents that are pages as well.
PAGE_OF = {"cli.md": "*spoor*(1)", "configuration.md": "*spoor.json*(5)", "http-api.md": "*spoor-http*(7)"}
# Columns that need no name.
EXPLAINS = {"meaning", "meaning and limits", "when", "effect"}

# ---- from Markdown to scdoc ----


def escape(text):
    return re.sub(r"([\\*_#~`])", r"\\\1", text)


def bold(text):
    return f"*{escape(text)}*"


def link(text, target):
    """Of a document of its own name only the name."""
    target = pathlib.Path(target.split("#")[0])
    if not target.name:
        return inline(text)
    page = PAGE_OF.get(target.name, bold(target.name))
    is_its_name = text.lower().replace(" ", "-") in (target.stem, target.name)
    return page if is_its_name else f"{inline(text)} ({page})"


SPAN = re.compile(r"`(?P<code>[^`]+)`|\[(?P<link>[^]]+)\]\((?P<target>[^)]+)\)|\*\*(?P<strong>[^*]+)\*\*")


def inline(text):
    result, end = "", 0
    for span in SPAN.finditer(text):
        result += escape(text[end:span.start()])
        if span["link"]:
            result += link(span["link"], span["target"])
        else:
            result += bold(span["code"]) if span["code"] else f"*{inline(span['strong'])}*"
        end = span.end()
    result += escape(text[end:])
    return re.sub(r"^[.|:;\-]", r"\\\g<0>", result)


def code(lines):
    return ["```", *(line.replace("\\", "\\\\") for line in lines), "```", ""]


def cells(row):
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


def table(rows):
    """A list: the last column below the others."""
    names, result = cells(rows[0]), []
    for row in map(cells, rows[2:]):
        named = [f"{name}: {cell}" if cell and name and name not in EXPLAINS else cell
                 for name, cell in zip(names, row)]
        *head, last = map(inline, [row[0], *named[1:]])
        result += ["; ".join(filter(None, head)), *(["\t" + last] if last else []), ""]
    return result


def bullets(lines):
    """A fenced block within one stands below it."""
    result = []
    for item in re.split(r"^- ", "\n".join(lines), flags=re.MULTILINE)[1:]:
        text, *rest = re.split(r"^ *```\w*\n(.*?)^ *```", item, flags=re.MULTILINE | re.DOTALL)
        result.append("- " + inline(" ".join(text.split())))
        if rest:
            block, *after = rest
            if "".join(after).strip():
                raise SystemExit(f"no page can have what follows a block in a list: {item}")
            result += ["", *code(line[2:] for line in block.splitlines())]
    return [*result, ""]


def convert(lines):
    """Each heading rises by a level, because the page has the title."""
    result, number = [], 0

    def read_while(belongs):
        nonlocal number
        start = number - 1
        while number < len(lines) and belongs(lines[number]):
            number += 1
        return lines[start:number]

    while number < len(lines):
        line = lines[number]
        number += 1
        if line.startswith("#"):
            level, text = line.split(" ", 1)
            is_title = level == "##" and "/" not in text  # the path of a route stays as it is
            result += [f"{level[1:]} {escape(text.upper() if is_title else text)}", ""]
        elif line.startswith("```"):
            result += code(read_while(lambda next_line: not next_line.startswith("```"))[1:])
            number += 1
        elif line.startswith("|"):
            result += table(read_while(lambda next_line: next_line.startswith("|")))
        elif line.startswith("- "):
            result += bullets(read_while(lambda next_line: next_line.startswith(("- ", "  ")) or not next_line and
                                         "".join(lines[number + 1:number + 2]).startswith("  ")))
        elif re.match(r" |>|\d+\. |####", line):
            raise SystemExit(f"no page can have this form of Markdown: {line}")
        elif line:
            paragraph = read_while(lambda next_line: next_line and not re.match(r"```|- |\|", next_line))
            result += [inline(" ".join(paragraph)), ""]
    return result


# ---- what stands for a line that begins with @ ----


class Sources:
    def __init__(self, programs, docs):
        self.programs = programs
        self.docs = docs

    @functools.cache
    def command(self, words):
        """The command of these words, such as "spoor mark"."""
        program, *names = words.split()
        command = program_help.read_command(self.programs / program, [program])
        for name in names:
            command = next((below for below in command.commands if below.words[-1] == name), None)
            if not command:
                raise SystemExit(f"there is no command '{words}'")
        return command

    def lines(self, name):
        return (self.docs / name).read_text().splitlines()

    def section(self, name, is_heading):
        """The lines below the heading, or below several that follow each other, and the headings themselves."""
        headings, found = [], []
        for line in self.lines(name):
            level = len(line) - len(line.lstrip("#")) if re.match(r"#+ ", line) else 0
            text = line[level + 1:]
            if level and is_heading(text):
                headings.append(text)
                own_level = level
            elif headings and level and level <= own_level:
                break
            elif headings:
                found.append(line)
        return headings, found

    def expand_section(self, where):
        name, heading = where.split("#")
        headings, lines = self.section(name, heading.__eq__)
        if not headings:
            raise SystemExit(f"docs/{name} has no heading '{heading}'")
        return convert(lines)

    def expand_table(self, where):
        name, cell = where.split("#")
        lines = self.lines(name)
        begins = next((number for number, line in enumerate(lines) if line.startswith(f"| {cell} |")), None)
        if begins is None:
            raise SystemExit(f"docs/{name} has no table that begins with '{cell}'")
        ends = lines.index("", begins)
        return table(lines[begins:ends])

    def expand_document(self, name):
        return convert(self.lines(name)[1:])

    def expand_commands(self, words):
        result = []
        for below in self.command(words).commands:
            result += [f"*{'-'.join(below.words)}*(1)", "\t" + inline(below.text) + ".", ""]
        return result

    def expand_options(self, words):
        result = []
        for command in self.command(words).with_all_below():
            if " ".join(command.words) != words:
                result += [f"## {' '.join(command.words)}", "", inline(command.text) + ".", ""]
            for option in command.options + command.arguments:
                if " ".join(command.words) == words or "--help" not in option.names:
                    result += option_entry(option, option in command.arguments)
        return result

    def expand_command(self, words):
        command = self.command(words)
        headings, lines = self.section("cli.md", lambda text: f"{text} ".startswith(f"{words} "))
        if not headings:
            raise SystemExit(f"docs/cli.md has no heading '{words}'")
        text = command.text[0].lower() + command.text[1:]
        return ["# NAME", "", f"{words.replace(' ', '-')} - {inline(text)}", "",
                "# SYNOPSIS", "", *("++\n".join(map(synopsis, headings)).split("\n")), "",
                "# DESCRIPTION", "", *convert(lines),
                "# OPTIONS", "", "*spoor*(1) has those of every command.", "", *self.expand_options(words)]

    def expand_recipe(self, name):
        text = ast.get_docstring(ast.parse((self.docs / "recipes" / name).read_text()))
        title, usage, *paragraphs = text.split("\n\n")
        calls = [synopsis(call.strip()) for call in usage.splitlines()]
        return ["# NAME", "", f"{name} - {inline(title[0].lower() + title[1:].rstrip('.'))}", "",
                "# SYNOPSIS", "", *("++\n".join(calls).split("\n")), "",
                "# DESCRIPTION", "", *(inline(" ".join(each.split())) for each in paragraphs), ""]

    def expand(self, line):
        if not line.startswith("@"):
            return [line]
        directive, argument = line[1:].split(" ", 1)
        return getattr(self, f"expand_{directive}")(argument)


def synopsis(heading):
    """What is typed is bold, what stands for something else is underlined."""
    return re.sub(r"(?P<named>[A-Z]+)|[a-z0-9-]+",
                  lambda word: f"_{word[0]}_" if word["named"] else f"*{word[0]}*", heading).replace("* *", " ")


def option_entry(option, is_argument):
    value = "|".join(map(bold, option.values)) or (option.metavar and f"_{option.metavar}_")
    names = [f"_{option.names[0]}_"] if is_argument else [bold(name) for name in option.names]
    head = ", ".join(names) + (f" {value}" if value and not is_argument else "") + ("..." if option.repeats else "")
    default = f" Default: {bold(option.default)}." if option.default else ""
    return [head, f"\t{inline(option.text)}.{default}", ""]


def changed_at(page):
    """When the page changed, in seconds: two builds of one commit have the same date."""
    command = ["git", "-C", page.parent, "log", "-1", "--format=%ct", "--", page.name]
    git = subprocess.run(command, capture_output=True, text=True) if shutil.which("git") else None
    return git.stdout.strip() if git and git.stdout.strip() else str(int(page.stat().st_mtime))


def finish(roff):
    """What scdoc leaves to do: names are not hyphenated, for which the header ends its setting, and a - is a minus."""
    lines = []
    for line in roff.splitlines():
        lines.append(line if line.startswith((".", "'")) else re.sub(r"(?<!\\)(?<!\\h')-", r"\\-", line))
        if line.startswith(".TH "):
            lines += [".nh", ".ad l"]
    return "\n".join(lines) + "\n"


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--programs", type=pathlib.Path, required=True)
    arguments.add_argument("--docs", type=pathlib.Path, required=True)
    arguments.add_argument("--scdoc", required=True)
    arguments.add_argument("--output", type=pathlib.Path, required=True)
    arguments.add_argument("pages", type=pathlib.Path, nargs="+")
    given = arguments.parse_args()
    sources = Sources(given.programs, given.docs)
    for page in given.pages:
        text = "\n".join(line for source in page.read_text().splitlines() for line in sources.expand(source)) + "\n"
        environment = {"SOURCE_DATE_EPOCH": changed_at(page), **os.environ}
        made = subprocess.run([given.scdoc], input=re.sub(r"\n{3,}", "\n\n", text), capture_output=True, text=True,
                              env=environment)
        if made.returncode != 0:
            raise SystemExit(f"{page}: {made.stderr.strip()}")
        (given.output / page.stem).write_text(finish(made.stdout))


if __name__ == "__main__":
    main()
