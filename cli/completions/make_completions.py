"""make_completions.py --output FOLDER PROGRAM...

Makes the completions of the programs for bash, zsh and fish, from what --help lists, in folders of these names. The
type of a value decides what it is completed with: FILE and DIR from the file system, others if their values are fixed.
"""
import argparse
import pathlib
import shlex
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "cmake"))
import program_help  # noqa: E402

HEADER = "# Completion of {0} for {1}. Made by make_completions.py from what --help lists.\n"


def kind(value):
    """How a value is completed: a list of words, @file, @dir or nothing."""
    return " ".join(value.values) or {"FILE": "@file", "DIR": "@dir"}.get(value.metavar, "")


def options_of(command, root):
    """Those of the program may stand after the name of the command."""
    return command.options if command is root else command.options + [
        option for option in root.options if not {"--help", "--version"} & set(option.names)]


def escape(text, characters):
    return "".join(f"\\{letter}" if letter in characters + "\\" else letter for letter in text)


# ---- bash ----


def bash(root):
    tables = {"commands": {}, "options": {}, "values": {}, "arguments": {}}
    for command in root.with_all_below():
        words = " ".join(command.words)
        tables["commands"][words] = " ".join(below.words[-1] for below in command.commands)
        tables["options"][words] = " ".join(name for option in options_of(command, root) for name in option.names)
        tables["arguments"][words] = " ".join(map(kind, command.arguments))
        for option in options_of(command, root):
            if option.metavar:
                tables["values"] |= {f"{words} {name}": kind(option) for name in option.names}
    entries = {name: "".join(f"    [{shlex.quote(key)}]={shlex.quote(value)}\n" for key, value in table.items())
               for name, table in tables.items()}
    declarations = "".join(f"  local -A {name}=(\n{entries[name]}  )\n" for name in tables)
    name = root.words[0]
    text = pathlib.Path(__file__).with_name("completion.bash").read_text()
    text = text.replace("_program", f"_{name.replace('-', '_')}").replace("PROGRAM", name)
    return HEADER.format(name, "bash") + text.replace("  # TABLES\n", declarations)


# ---- zsh ----

ZSH_ACTIONS = {"": " ", "@file": "_files", "@dir": "_files -/"}


def zsh_value(value):
    return f":{value.metavar}:{ZSH_ACTIONS.get(kind(value), f'({kind(value)})')}"


def zsh_option(option):
    text = f"[{escape(option.text, '[]')}]" + (zsh_value(option) if option.metavar else "")
    others = "*" if option.repeats else f"({' '.join(option.names)})"
    return [shlex.quote(others + name + ("=" if option.metavar and name.startswith("--") else "") + text)
            for name in option.names]


def zsh(root):
    functions = []
    for command in root.with_all_below():
        specs = [spec for option in options_of(command, root) for spec in zsh_option(option)]
        specs += [shlex.quote(("*" if argument.repeats else "") + zsh_value(argument))
                  for argument in command.arguments]
        lines = [f"_{'_'.join(command.words)}() {{", "  local curcontext=$curcontext state line",
                 "  typeset -A opt_args"]
        if command.commands:
            specs += ["'1: :->command'", "'*:: :->below'"]
        lines += ["  _arguments -s -C \\", " \\\n".join(f"    {spec}" for spec in specs)]
        if command.commands:
            names = [shlex.quote(f"{below.words[-1]}:{escape(below.text, ':')}") for below in command.commands]
            lines += [
                "  case $state in", "    command)", "      local -a commands=(", *(f"        {name}" for name in names),
                "      )", "      _describe command commands ;;", "    below)", "      case $words[1] in",
                *(f"        {below.words[-1]}) _{'_'.join(below.words)} ;;" for below in command.commands),
                "      esac ;;", "  esac"]
        functions.append("\n".join(lines) + "\n}\n")
    name = root.words[0]
    return f"#compdef {name}\n" + HEADER.format(name, "zsh") + "\n" + "\n".join(functions) + f'\n_{name} "$@"\n'


# ---- fish ----

FISH_ACTIONS = {"": "-x", "@file": "-r -F", "@dir": "-x -a '(__fish_complete_directories)'"}


def fish_option(option):
    names = [f"-s {name[1:]}" if len(name) == 2 else f"-l {name[2:]}" for name in option.names]
    value = FISH_ACTIONS.get(kind(option), f"-x -a {shlex.quote(kind(option))}") if option.metavar else ""
    return " ".join(filter(None, [*names, value, "-d", fish_quote(option.text)]))


def fish_quote(text):
    return "'" + escape(text, "'") + "'"


def fish(root):
    name = root.words[0]
    # Of the functions of fish all programs see all.
    function = f"__{name.replace('-', '_')}_at"
    valued = sorted({option_name for command in root.with_all_below() for option in command.options if option.metavar
                     for option_name in option.names})
    commands = [" ".join(command.words) for command in root.with_all_below()]
    text = pathlib.Path(__file__).with_name("completion.fish").read_text()
    text = text.replace("__program_at", function).replace("PROGRAM", name).replace("VALUED", " ".join(valued))
    text = text.replace("COMMANDS", " ".join(map(fish_quote, commands)))
    lines = [HEADER.format(name, "fish").rstrip(), text, f"complete -c {name} -f"]
    for command in root.with_all_below():
        begin = f"complete -c {name} -n '{function} {' '.join(command.words)}'"
        lines += [f"{begin} -a {below.words[-1]} -d {fish_quote(below.text)}" for below in command.commands]
        lines += [f"{begin} {fish_option(option)}" for option in options_of(command, root)]
        lines += [f"{begin} {FISH_ACTIONS[kind(argument)].replace('-r ', '').replace('-x ', '')}"
                  for argument in command.arguments if kind(argument)]
    return "\n".join(lines) + "\n"


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--output", type=pathlib.Path, required=True)
    arguments.add_argument("programs", type=pathlib.Path, nargs="+")
    given = arguments.parse_args()
    for program in given.programs:
        root = program_help.read_command(program, [program.name])
        for shell, name, text in (("bash", program.name, bash(root)), ("zsh", f"_{program.name}", zsh(root)),
                                  ("fish", f"{program.name}.fish", fish(root))):
            file = given.output / shell / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)


if __name__ == "__main__":
    main()
