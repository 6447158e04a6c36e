"""Backups in layers: all of a drive the first time, then the directories that scans found changed.

A layer has two snapshots (archives) in a repository, both with the tag CONSUMER:
  files, part-P                            the whole drive; or the entries of changed directories but directories
  full, layer-N, feed-ID, scan-S, part-P, left-L
                       ends a layer of the whole drive, not older than scan S of the database ID
  changes, layer-N...  ends one of changes: has a line of JSON for each directory that was deleted or changed, with the
                       names in it; {"made": PATH} for one that is left to the next layer, but has files in this one
If L is not 0, the last line has the L directories that are left to the next layer.

A repository is an object with these methods, which raise Failure:
  snapshots(consumer)                      those with this tag, or all: dictionaries with "id", "tags", "hostname",
                                           "paths", and "time" as in ISO 8601
  add_all(tags, drive)                     a snapshot of the whole drive, without its .spoor; returns the paths that
                                           were not found or read, and the directories in the snapshot
  add_files(tags, drive, paths, parent)    of the paths in a file, each with a NUL behind it; returns those not found
                                           or read, and whether there is a snapshot: there may be none without files
  add_listing(tags, listing)               of an open file, as LISTING
  read_listing(id)                         its bytes
  restore(id, target, path)                all, or what is at a path and below it, if there is anything
"""

import base64
import contextlib
import datetime
import getopt
import json
import os
import shutil
import stat
import sys
import tempfile
import uuid

from spoor_feed import (
    Failure,
    Feed,
    Left,
    below,
    bytes_of,
    confine,
    count,
    directory,
    explain,
    has,
    is_dry_run,
    is_there,
    missing,
    mode_of,
    print_plan,
    printable,
    progress,
    read_directory,
    run_recipe,
    text_of,
)

IDLE_SCANS = 8  # after so many without a change of the drive, an empty layer is written
LISTING = "directories.jsonl"
NO_PART = "none"  # of a layer without files
TAGS = ("files", "full", "changes")
TAG_PREFIXES = ("layer-", "feed-", "scan-", "part-", "left-")


class Layer:
    def __init__(self, snapshot):
        self.id = snapshot["id"]
        self.tags = snapshot["tags"]
        self.number = int(self.tag("layer"))
        self.feed = self.tag("feed")
        self.scan = int(self.tag("scan"))
        self.is_full = "full" in self.tags
        self.left = int(self.tag("left", "0"))
        # When its files were read. `list` prints no fractions.
        self.time = datetime.datetime.fromisoformat(snapshot["time"]).astimezone().replace(microsecond=0)

    def tag(self, name, *default):
        return next(iter([tag[len(name) + 1 :] for tag in self.tags if tag.startswith(name + "-")] + [*default]))


def read_layers(repository, consumer):
    """The layers of the consumer by number, and the snapshots of their files by the tag of their part."""
    snapshots = repository.snapshots(consumer)
    layers = [Layer(each) for each in snapshots if any(tag.startswith("layer-") for tag in each["tags"])]
    files = {tag: each for each in snapshots if "files" in each["tags"] for tag in each["tags"]}
    return sorted(layers, key=lambda layer: layer.number), files


def files_of(layer, files):
    """The snapshot of a layer's files; None for a layer without files."""
    part = layer.tag("part")
    if part == NO_PART:
        return None
    if f"part-{part}" not in files:
        raise Failure(f"the files of layer {layer.number} are missing: keep all snapshots since the last full one")
    return files[f"part-{part}"]


def since_last_full(layers, files):
    """The last full layer and those after it. Fails if one is missing."""
    full = [at for at, layer in enumerate(layers) if layer.is_full]
    if not full:
        raise Failure("there is no full snapshot")
    layers = layers[full[-1] :]
    for at, layer in enumerate(layers):
        files_of(layer, files)
        if layer.number != layers[0].number + at:
            raise Failure(
                f"layer {layers[0].number + at} is missing, or there twice: keep all snapshots since the last full one"
            )
    return layers


# ---- backup ----


def describe(path, at):
    """A directory's own attributes and the names in it; the paths of its entries but directories."""
    status = os.fstat(at)
    names, others = [], []
    with os.scandir(at) as entries:
        for entry in entries:
            name = os.fsencode(entry.name)
            if path == b"." and name == b".spoor":
                continue
            if entry.is_dir(follow_symlinks=False):
                continue
            names.append(text_of(name))
            others.append(os.path.join(path, name))
    line = {
        "path": text_of(path),
        "files": names,
        "mode": stat.S_IMODE(status.st_mode),
        "uid": status.st_uid,
        "gid": status.st_gid,
        "mtime_ns": status.st_mtime_ns,
        "attributes": {name: base64.b64encode(os.getxattr(at, name)).decode() for name in os.listxattr(at)},
    }
    return line, others


def list_directories(drive, deleted, changed, listing, files):
    """Writes the listing, and the list of the files. Returns the number of files, and the directories not found: a
    later scan finds them deleted, or they were moved away for a moment."""
    file_count = 0
    not_found = set()
    with open(listing, "w", encoding="ascii") as lines, open(files, "wb") as paths:
        for path in deleted:
            print_plan("delete", path + b"/")
            lines.write(json.dumps({"deleted": text_of(path)}) + "\n")
        for path in changed:
            described = read_directory(drive, path, lambda at, path=path: describe(path, at))
            if described is None:
                not_found.add(path)
                continue
            line, others = described
            for other in others:
                print_plan("copy", os.path.normpath(other))
            lines.write(json.dumps(line) + "\n")
            file_count += len(others)
            paths.writelines(b"./" + other + b"\0" for other in others)
    return file_count, not_found


def copy_lines(source, target, left_out):
    """With the lines of directories that are left out, a restore would delete older files."""
    names = {text_of(path) for path in left_out}
    for line in source:
        path = json.loads(line).get("path")
        target.write(json.dumps({"made": path}).encode() + b"\n" if path in names else line)


class Backup:
    def __init__(self, repository, drive, consumer):
        self.repository = repository
        self.feed = Feed(drive, consumer)
        self.drive, self.consumer = self.feed.drive, consumer
        self.layers, self.files = read_layers(repository, consumer)
        self.number = self.layers[-1].number + 1 if self.layers else 1

    def run(self):
        feed = self.feed
        changed = deleted = None
        try:
            layers = since_last_full(self.layers, self.files)
            why = "scan.db was built anew"
        except Failure as failure:
            layers, why = [], str(failure)
        if layers:
            self._check_source(files_of(layers[0], self.files))
        if layers and layers[-1].feed == feed.id:
            feed.since = layers[-1].scan
            changed = feed.directories()
            deleted = feed.directories("--deleted")
            why = "what changed since the last backup is not kept"
        if changed is None or deleted is None:
            print(f"backs up all of {self.drive}: {why}")
            self._back_up_all()
            return
        left = self._read_left(layers[-1])
        again = left.to_copy(changed, deleted)
        unwanted = left.to_delete(feed, changed)
        is_back = any(has(self.drive, path) for path in again)
        if changed or deleted or unwanted or is_back or feed.until >= layers[-1].scan + IDLE_SCANS:
            parent = files_of(layers[0], self.files)["id"]
            self._back_up_changes(parent, [*deleted, *unwanted], [*changed, *again], left)
        else:
            print(f"nothing changed since {self.feed.describe_scan(layers[-1].scan)}")

    def _read_left(self, layer):
        if layer.left == 0:
            return Left()
        return Left.from_json(json.loads(self.repository.read_listing(layer.id).splitlines()[-1])["left"])

    def _check_source(self, snapshot):
        theirs = (snapshot["hostname"], *snapshot["paths"])
        own = (os.uname().nodename, os.path.realpath(self.drive))
        if theirs != own:
            theirs, own = ":".join(theirs), ":".join(own)
            raise Failure(f"'{self.consumer}' has backed up {theirs}, not {own}: give each drive a name of its own")

    def _back_up_all(self):
        known = self.feed.start_all(self.consumer)
        part = f"part-{uuid.uuid4()}"
        gone, copied = set(), known or set()
        if not is_dry_run():
            gone, copied = self.repository.add_all([self.consumer, "files", part], self.drive)
        self.feed.check_drive()
        with tempfile.TemporaryFile() as listing:
            listing.write(b"{}\n")
            self._end_layer("full", part, listing, Left.by_comparison(self.feed, known, copied, gone))
        self.feed.report(f"backed up all {len(copied - {b'.'}):,} directories")

    def _back_up_changes(self, parent, deleted, changed, left):
        with tempfile.TemporaryDirectory() as work, tempfile.TemporaryFile() as listing:
            lines, files = os.path.join(work, LISTING), os.path.join(work, "files")
            file_count, not_found = list_directories(self.drive, deleted, changed, lines, files)
            part, gone, is_saved = f"part-{uuid.uuid4()}", set(), False
            if file_count > 0 and not is_dry_run():
                tags = [self.consumer, "files", part]
                gone, is_saved = self.repository.add_files(tags, self.drive, files, parent)
            self.feed.check_drive()
            not_found |= missing(self.drive, changed, gone)
            with open(lines, "rb") as source:
                copy_lines(source, listing, not_found)
            self._end_layer("changes", part if is_saved else f"part-{NO_PART}", listing, left.next(not_found))
        self.feed.set_position(self.consumer, self.feed.until)
        self.feed.report(
            f"backed up {len(changed) - len(not_found):,} changed directories with {count(file_count, 'file')} in them,"
            f" {len(deleted):,} deleted"
        )

    def _end_layer(self, kind, part, listing, left):
        if is_dry_run():
            return
        left_count = len(left.missing) + len(left.unknown)
        if left_count > 0:
            listing.write(json.dumps({"left": left.to_json()}).encode() + b"\n")
        listing.seek(0)
        place = [f"layer-{self.number}", f"feed-{self.feed.id}", f"scan-{self.feed.until}", part, f"left-{left_count}"]
        self.repository.add_listing([self.consumer, kind, *place], listing)


def backup(repository, consumer, drive):
    Backup(repository, drive, consumer).run()


# ---- restore ----


def delete(top, line):
    """Deletes a directory that the scan found deleted, with all that was below."""
    if "deleted" not in line:
        return
    above, name = os.path.split(bytes_of(line["deleted"]))
    with directory(top, above or b".") as at:
        if at is not None and stat.S_ISDIR(mode_of(name, at)):
            shutil.rmtree(name, dir_fd=at)


def prune(top, line):
    """Removes all entries but directories, which the layer restores, and directories that are files now.

    A directory that is missing in the layer but not listed as deleted stays: it may have been moved for a moment only,
    and a later layer has it.
    """
    if "path" not in line:
        return
    with directory(top, bytes_of(line["path"])) as at:
        if at is None:
            return
        files = {os.fsdecode(bytes_of(name)) for name in line["files"]}
        with os.scandir(at) as entries:
            found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        for name, is_a_directory in found:
            if not is_a_directory:
                os.unlink(name, dir_fd=at)
            elif name in files:
                shutil.rmtree(name, dir_fd=at)


def make(top, line):
    """Also the directories of which only files are in the layer: they could be links in an older one."""
    path = line.get("path", line.get("made"))
    if path is None:
        return
    at = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for name in bytes_of(path).split(b"/"):
            if not stat.S_ISDIR(mode_of(name, at)):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=at)
                os.mkdir(name, dir_fd=at)
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
            os.close(at)
            at = inner
    finally:
        os.close(at)


def set_attributes(top, line):
    if "path" not in line:
        return
    with directory(top, bytes_of(line["path"])) as at:
        if at is None:
            return
        if os.geteuid() == 0:
            os.fchown(at, line["uid"], line["gid"])
        os.fchmod(at, line["mode"])
        for name, value in line["attributes"].items():
            os.setxattr(at, name, base64.b64decode(value))
        os.utime(at, ns=(line["mtime_ns"], line["mtime_ns"]))


def path_of(line):
    return bytes_of(line.get("path", line.get("made", "")))


def is_in(path, top):
    return top is None or path == top or path.startswith(top + b"/")


def restore_changes(repository, layer, files, target, wanted):
    """Of all paths, or of what is at one, and below it."""
    lines = [json.loads(line) for line in repository.read_listing(layer.id).splitlines()]
    for line in lines:
        for path in map(line.get, ("deleted", "path", "made")):
            below(bytes_of(path or "."))
    for step in (delete, prune):  # with all lines: what is wanted may be below
        for line in lines:
            step(target, line)
    inner = [line for line in lines if is_in(path_of(line), wanted)]
    for line in inner:
        make(target, line)
    above = os.path.dirname(wanted or b"") or b"."
    if files is not None and (inner or any(path_of(line) == above for line in lines)):
        repository.restore(files["id"], target, wanted)
    for line in inner:
        set_attributes(target, line)


def until(layers, at):
    """Up to the last one that was made at this time or before."""
    made = [index for index, layer in enumerate(layers) if layer.time <= at]
    if layers and not made:
        raise Failure(f"there is no backup of that time: the first is of {layers[0].time.isoformat()}")
    return layers[: made[-1] + 1] if made else []


def time_of(text):
    """A date means its end; a time without a zone is local."""
    with contextlib.suppress(ValueError):
        return datetime.datetime.combine(datetime.date.fromisoformat(text), datetime.time.max).astimezone()
    try:
        return datetime.datetime.fromisoformat(text).astimezone()
    except ValueError:
        raise Failure(f"'{text}' is no time such as 2026-11-01 or 2026-11-01T14:30") from None


def path_in(drive, text):
    """Of a path on the drive, or from its top."""
    path = os.path.normpath(os.path.relpath(text, drive) if os.path.isabs(text) else text)
    if path.split("/")[0] == "..":
        raise Failure(f"{text} is not on {drive}")
    return None if path == "." else os.fsencode(path)


def read_backup(repository, consumer):
    """As `read_layers`. Fails if there is no layer."""
    layers, files = read_layers(repository, consumer)
    if not layers:
        tags = {tag for each in repository.snapshots(None) if "full" in each["tags"] for tag in each["tags"]}
        names = sorted(tag for tag in tags if tag not in TAGS and not tag.startswith(TAG_PREFIXES))
        found = f"it has {', '.join(names)}" if names else "it has none"
        raise Failure(f"the repository has no backup with the name '{consumer}': {found}")
    return layers, files


def restore(repository, consumer, target, at=None, path="."):
    layers, files = read_backup(repository, consumer)
    layers = since_last_full(layers if at is None else until(layers, time_of(at)), files)
    wanted = path_in(files_of(layers[0], files)["paths"][0], path)
    os.makedirs(target, exist_ok=True)
    if os.listdir(target):
        raise Failure(f"{target} is not empty")
    confine(target)
    for number, layer in enumerate(layers):
        progress.show(number, len(layers), "layers")
        if layer.is_full:
            repository.restore(files_of(layer, files)["id"], target, wanted)
        else:
            restore_changes(repository, layer, files_of(layer, files), target, wanted)
    progress.clear()
    made = layers[-1].time.isoformat()
    if wanted is not None and not is_there(os.path.join(os.fsencode(target), wanted)):
        raise Failure(f"{path} is not in the backup of {made}")
    print(
        printable(f"restored {'all' if wanted is None else path} as of {made} (scan {layers[-1].scan}):"),
        f"the full snapshot and {count(len(layers) - 1, 'layer')} of changes in {progress.elapsed()}",
    )


def list_layers(repository, consumer):
    layers, files = read_backup(repository, consumer)
    for at, layer in enumerate(layers):
        content = "all" if layer.is_full else "changes"
        try:
            since_last_full(layers[: at + 1], files)
        except Failure as failure:
            content += f", cannot be restored: {failure}"
        print(f"{layer.time.isoformat()}  scan {layer.scan}  {content}")


def run_layers(repository, consumer, usage):
    """The command line: backup DRIVE [CONSUMER], restore TARGET [CONSUMER], or list [CONSUMER]."""

    def main(command="", *arguments):
        options = ["at=", "path="] if command == "restore" else []
        try:
            options, arguments = getopt.gnu_getopt(arguments, "", options)
        except getopt.GetoptError:
            explain(usage)
        places = [] if command == "list" else [os.path.abspath(each) for each in arguments[:1]]
        names = arguments[len(places) :]
        if command not in COMMANDS or len(places) != (command != "list") or len(names) > 1:
            explain(usage)
        if is_dry_run() and command != "backup":
            explain(usage)
        name = (*names, consumer)[0]
        if "," in name:
            raise Failure("the name of a consumer has no comma")
        if name in TAGS or name.startswith(TAG_PREFIXES):
            raise Failure(f"'{name}' is the name of a tag of layers: choose another one for the consumer")
        COMMANDS[command](repository, name, *places, **{option[2:]: value for option, value in options})

    run_recipe(main)


COMMANDS = {"backup": backup, "restore": restore, "list": list_layers}
