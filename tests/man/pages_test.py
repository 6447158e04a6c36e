"""The manual pages as they are made, against the programs and the documents that they describe."""
import functools
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import program_help

SOURCE = pathlib.Path(os.environ["SPOOR_SOURCE_DIR"])
BUILD = pathlib.Path(os.environ["SPOOR_BUILD_DIR"])
PAGES = BUILD / "docs/man"
NAMES = sorted(source.stem for source in (SOURCE / "docs/man").glob("*.scd"))
OPTION = re.compile(r"(?<![\w/'-])--?[a-z0-9][a-z-]*")


def options_in(text):
    return set(OPTION.findall(text))


def run(*command, locale="C.UTF-8"):
    environment = os.environ | {"LC_ALL": locale, "MANWIDTH": "80", "MAN_KEEP_FORMATTING": ""}
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment)


@functools.cache
def shown(page, locale="C.UTF-8"):
    return run("man", "--warnings", "-l", PAGES / page, locale=locale)


def part(page, heading):
    found = re.search(rf"^{heading}\n(.*?)(?=^\S)", shown(page).stdout, re.MULTILINE | re.DOTALL)
    return found[1] if found else ""


def help_of(words):
    program, *names = words
    return run(BUILD / program, *names, "--help").stdout


def programs():
    return [program_help.read_command(BUILD / name, [name]) for name in ("spoor", "spoord", "spoor-watch", "spoor-publish")]


def pages_of_programs():
    """The name of each page of a program or of a command, and what it is about."""
    spoor, spoord, watch, publish = programs()
    yield "spoor.1", [spoor]
    for command in spoor.commands:
        yield f"{'-'.join(command.words)}.1", list(command.with_all_below())
    yield "spoord.8", [spoord]
    yield "spoor-watch.8", [watch]
    yield "spoor-publish.8", [publish]


class PagesTest(unittest.TestCase):
    maxDiff = None

    def test_EveryCommand_HasAPage(self):
        recipes = {f"{path.name}.1" for path in (SOURCE / "docs/recipes").glob("spoor-*")}
        needed = {name for name, _ in pages_of_programs()} | recipes | {"libspoor.3", "spoor.json.5", "spoor-http.7"}
        self.assertEqual(set(NAMES), needed, "docs/man needs one NAME.SECTION.scd for each, and has no others")

    def test_EveryPage_IsShownWithoutWarnings(self):
        for page in NAMES:
            for locale in ("C", "C.UTF-8"):
                with self.subTest(page=page, locale=locale):
                    self.assertEqual(shown(page, locale).stderr, "")
            with self.subTest(page=page):
                # As whatis and apropos read it.
                self.assertIn(f'"{page[:-2]} - ', run("lexgrog", PAGES / page).stdout)

    def test_EveryReferenceToAPageOfSpoor_IsToOneThatExists(self):
        for page in NAMES:
            for name, section in re.findall(r"\b((?:lib)?spoor[a-z.-]*)\((\d)\)", shown(page).stdout):
                with self.subTest(page=page):
                    self.assertIn(f"{name}.{section}", NAMES)

    def test_OptionsOfEachPage_AreThoseOfHelp(self):
        for page, commands in pages_of_programs():
            with self.subTest(page=page):
                # Options start the entries; text below them may name others.
                entries = "".join(re.findall(r"^ {7}-.*\n", part(page, "OPTIONS"), re.MULTILINE))
                helps = [re.findall(r"^  (-\S*)", help_of(command.words), re.MULTILINE) for command in commands]
                expected = options_in(" ".join(" ".join(names).replace(",", " ") for names in helps))
                # The table of docs/cli.md has the long name alone.
                self.assertEqual(options_in(entries) | {"-h"}, expected)

    def test_SynopsisOfEachCommand_HasTheOptionsOfHelp(self):
        spoor = programs()[0]
        for command in spoor.commands:
            with self.subTest(command=command.words):
                options = [option.names for below in command.with_all_below() for option in below.options
                           if "--help" not in option.names]
                named = options_in(part(f"{'-'.join(command.words)}.1", "SYNOPSIS"))
                for names in options:
                    self.assertTrue(named & set(names), f"docs/cli.md: no {' or '.join(names)} in the heading")
                self.assertLessEqual(named, {name for names in options for name in names})


def effective(configuration):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(configuration, file)
        file.flush()
        return json.loads(run(BUILD / "spoor", "config", "show", "--config", file.name).stdout)


def flat(settings, prefix=""):
    """By dotted key; an object is itself a setting as well, but not a section of the file."""
    for key, value in settings.items():
        if prefix or not isinstance(value, dict):
            yield prefix + key, value
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{key}.")


class DocumentsTest(unittest.TestCase):
    maxDiff = None

    def test_SettingsOfTheDocument_AreThoseOfTheConfiguration(self):
        minimal = {"node": {"name": "x"}, "drives": ["/srv"],
                   "peers": {"etcd": {"endpoints": ["unix:/e"], "url": "unix:/u"}}}
        rows = re.findall(r"^\| `([a-z_.0-9]+)` \|[^|]*\| ([^|]*) \|",
                          (SOURCE / "docs/configuration.md").read_text().split("## Keys")[1], re.MULTILINE)
        self.assertEqual(sorted(key for key, _ in rows), sorted(key for key, _ in flat(effective(minimal))))
        with_defaults = json.loads(json.dumps(minimal))
        for key, default in rows:
            # Others are described: "required", "none", "see below".
            if key not in ("listen", "peers.etcd") and re.fullmatch("`.*`", default):
                section = with_defaults
                *parents, name = key.split(".")
                for parent in parents:
                    section = section.setdefault(parent, {})
                section[name] = json.loads(default.strip("`"))
        self.assertEqual(effective(with_defaults), effective(minimal))

    def test_PageOfTheLibrary_HasEveryFunctionAndResult(self):
        header = (SOURCE / "client/spoor.h").read_text()
        names = re.findall(r"^SPOOR_API .*?(spoor_\w+)\(|^  (SPOOR_\w+) =", header, re.MULTILINE)
        self.assertGreater(len(names), 15)
        for name in map("".join, names):
            with self.subTest(name=name):
                self.assertRegex(shown("libspoor.3").stdout, rf"\b{name}\b")

    def test_PageOfTheApi_HasEveryRoute(self):
        routes = re.findall(r"^  (/\S*):$", (SOURCE / "docs/openapi.yaml").read_text(), re.MULTILINE)
        self.assertGreater(len(routes), 10)
        text = shown("spoor-http.7").stdout
        for route in routes:
            with self.subTest(route=route):
                self.assertIn(route, text)


if __name__ == "__main__":
    unittest.main()
