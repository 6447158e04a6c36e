"""The completions in real shells: what they offer is what --help lists."""
import os
import pathlib
import pty
import re
import select
import subprocess
import tempfile
import unittest

import program_help

BUILD = pathlib.Path(os.environ["SPOOR_BUILD_DIR"])
COMPLETIONS = BUILD / "cli/completions"
PROGRAMS = ["spoor", "spoord", "spoor-watch", "spoor-publish"]
SECONDS_MAX = 20  # for a shell that hangs

# Fish loads completions only for a program that it finds.
ENVIRONMENT = os.environ | {"COMPLETIONS": str(COMPLETIONS), "PATH": f"{BUILD}:{os.environ['PATH']}",
                            "LC_ALL": "C.UTF-8"}

BASH = """
source /usr/share/bash-completion/bash_completion
source "$COMPLETIONS/bash/$1"
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_TYPE=9
COMP_POINT=${#COMP_LINE}
eval "$(complete -p "$1" | sed 's/^complete -F \\([^ ]*\\) .*/\\1 "$1" "${@:$#}" "${@:$#-1:1}"/')"
printf '%s\\n' "${COMPREPLY[@]}"
"""

# Each candidate that the completion system would show goes to a file.
ZSH = """
fpath=($COMPLETIONS/zsh $fpath)
autoload -Uz compinit && compinit -u -D
compadd() {
  # With one of these it only looks up candidates.
  if [[ ${@[1,(i)(-|--)]} != *-(O|A|D)\\ * ]]; then
    local -a found
    builtin compadd -A found "$@"
    print -rl -- $found >> $FOUND
  fi
  builtin compadd "$@"
}
bindkey -e
PS1='at the prompt '
"""


def in_bash(words):
    command = ["bash", "--norc", "-c", BASH, "bash", *words]
    shell = subprocess.run(command, check=True, capture_output=True, text=True, env=ENVIRONMENT, timeout=SECONDS_MAX)
    return set(shell.stdout.split())


def in_fish(words):
    script = "set -p fish_complete_path $COMPLETIONS/fish; complete -C (string join ' ' -- $argv)"
    with tempfile.TemporaryDirectory() as home:
        shell = subprocess.run(["fish", "--no-config", "-c", script, *words], check=True, capture_output=True,
                               text=True, env=ENVIRONMENT | {"HOME": home}, timeout=SECONDS_MAX)
    return {line.split("\t")[0] for line in shell.stdout.splitlines()}


class Zsh:
    """It completes only at a terminal."""

    def __init__(self):
        self.home = tempfile.TemporaryDirectory()
        self.found = pathlib.Path(self.home.name, "found")
        self.lines = 0
        script = pathlib.Path(self.home.name, "script")
        script.write_text(ZSH)
        self.child, self.terminal = pty.fork()
        if self.child == 0:
            environment = ENVIRONMENT | {"HOME": self.home.name, "FOUND": str(self.found), "TERM": "dumb"}
            os.execvpe("zsh", ["zsh", "-f", "-i"], environment)
        self.write_line(f"source {script}")

    def write_line(self, text):
        self.lines += 1
        # Printed with a sum, which the terminal does not echo. Keys are read once the prompt follows.
        os.write(self.terminal, f"{text}; print ended-$(({self.lines} + 0))\n".encode())
        read = b""
        while not re.search(b"ended-%d\r.*at the prompt" % self.lines, read, re.DOTALL):
            if not select.select([self.terminal], [], [], SECONDS_MAX)[0]:
                raise TimeoutError(f"zsh prints only {read}")
            read += os.read(self.terminal, 65536)

    def complete(self, words):
        self.found.write_text("")
        self.write_line(" ".join(words) + "\t\x15true")  # drops the line
        return set(self.found.read_text().split())

    def stop(self):
        os.close(self.terminal)
        os.waitpid(self.child, 0)
        self.home.cleanup()


class CompletionsTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        zsh = Zsh()
        cls.addClassCleanup(zsh.stop)
        cls.shells = {"bash": in_bash, "fish": in_fish, "zsh": zsh.complete}

    def expect(self, words, expected):
        for name, complete in self.shells.items():
            with self.subTest(shell=name, words=words):
                self.assertEqual(complete(words), set(expected))

    def test_BeginningOfACommand_CompletesToThoseThatBeginSo(self):
        self.expect(["spoor", "sc"], ["scan", "scans"])
        self.expect(["spoor", "members", ""], ["retire"])

    def test_OptionWithItsValueBeforeTheCommand_IsSkipped(self):
        self.expect(["spoor", "--config", "mark", "sta"], ["status"])

    def test_FixedValues_AreOffered(self):
        self.expect(["spoor", "mark", "--kind", ""], ["dir", "file", "tree"])
        self.expect(["spoor", "usage", "--sort", ""], ["size", "files", "name", "growth"])

    def test_ValueAfterAnEqualsSign_IsOffered(self):
        for name, complete in self.shells.items():
            with self.subTest(shell=name):
                # Fish repeats the option.
                offered = complete(["spoor", "mark", "--kind=t"])
                self.assertEqual({word.removeprefix("--kind=") for word in offered}, {"tree"})

    def test_ValuesWithoutFixedOnes_AreNot(self):
        self.expect(["spoor", "mark", "--prefix", ""], [])

    def test_Files_AreOfferedWhereAFileIsNamed(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "a-file").touch()
            for words in (["spoor", "inspect"], ["spoor", "--config"], ["spoord", "--config"]):
                for name, complete in self.shells.items():
                    with self.subTest(shell=name, words=words):
                        offered = complete([*words, f"{folder}/a-"])
                        self.assertEqual({pathlib.Path(each).name for each in offered}, {"a-file"})

    def test_EveryCommandAndLongOption_IsOffered(self):
        for program in PROGRAMS:
            root = program_help.read_command(BUILD / program, [program])
            for command in root.with_all_below():
                options = {name for option in command.options + root.options for name in option.names
                           if name.startswith("--") and (command is root or name != "--version")}
                for name, complete in self.shells.items():
                    with self.subTest(shell=name, command=command.words):
                        self.assertEqual({word.rstrip("=") for word in complete([*command.words, "--"])}, options)
                        if command.commands:
                            below = {below.words[-1] for below in command.commands}
                            self.assertLessEqual(below, complete([*command.words, ""]))


if __name__ == "__main__":
    unittest.main()
