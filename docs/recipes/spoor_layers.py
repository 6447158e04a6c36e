"""Backups in layers: all of a drive the first time, then the directories that scans found changed.

A layer has two snapshots (archives) in a repository, both with the tag CONSUMER:
  files, part-P                            the whole drive; or the entries of changed directories but directories
  full, layer-N, feed-ID, scan-S, part-P, left-L
                       ends a layer of the whole drive, not older than scan S of the database ID
  changes, layer-N...  ends one of changes: has a line of JSON for each directory that was deleted or changed, with the
                       names in it; {"made": PATH} for one that is left to the next layer, but has files in this one
If L is not 0, the last line has the L directories that are left to the next layer.

A repository is an object with these methods, which raise Failure:
  snapshots(consumer)                      those with this tag: dictionaries with "id", "tags", "hostname", "paths"
  add_all(tags, drive)                     a snapshot of the whole drive, without its .spoor; returns the paths that
                                           were not found or read, and the directories in the snapshot
  add_files(tags, drive, paths, parent)    of the paths in a file, each with a NUL behind it; returns those not found
                                           or read
  add_listing(tags, listing)               of an open file, as LISTING
  read_listing(id)                         its bytes
  restore(id, target)
"""

import base64
import contextlib
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
    directory,
    explain,
    has,
    missing,
    mode_of,
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

    def tag(self, name, *default):
        return next(iter([tag[len(name) + 1 :] for tag in self.tags if tag.startswith(name + "-")] + [*default]))


def read_layers(repository, consumer):
    """All snapshots of the consumer, and its layers by number."""
    snapshots = repository.snapshots(consumer)
    layers = [Layer(each) for each in snapshots if any(tag.startswith("layer-") for tag in each["tags"])]
    return snapshots, sorted(layers, key=lambda layer: layer.number)


def files_of(layer, snapshots):
    """The snapshot of a layer's files; None for a layer without files."""
    part = "part-" + layer.tag("part")
    if part == f"part-{NO_PART}":
        return None
    for each in snapshots:
        if part in each["tags"] and "files" in each["tags"]:
            return each
    raise Failure(f"the files of layer {layer.number} are missing: keep all snapshots since the last full one")


def since_last_full(layers, snapshots):
    """The last full layer and those after it. Fails if one is missing."""
    full = [at for at, layer in enumerate(layers) if layer.is_full]
    if not full:
        raise Failure("there is no full snapshot")
    layers = layers[full[-1] :]
    for at, layer in enumerate(layers):
        files_of(layer, snapshots)
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
            lines.write(json.dumps({"deleted": text_of(path)}) + "\n")
        for path in changed:
            described = read_directory(drive, path, lambda at, path=path: describe(path, at))
            if described is None:
                not_found.add(path)
                continue
            line, others = described
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
        self.snapshots, self.layers = read_layers(repository, consumer)
        self.number = self.layers[-1].number + 1 if self.layers else 1

    def run(self):
        feed = self.feed
        changed = deleted = None
        try:
            layers = since_last_full(self.layers, self.snapshots)
            why = "scan.db was built anew"
        except Failure as failure:
            layers, why = [], str(failure)
        if layers:
            self._check_source(files_of(layers[0], self.snapshots))
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
            parent = files_of(layers[0], self.snapshots)["id"]
            self._back_up_changes(parent, [*deleted, *unwanted], [*changed, *again], left)
            feed.set_position(self.consumer, feed.until)

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
        gone, copied = self.repository.add_all([self.consumer, "files", part], self.drive)
        self.feed.check_drive()
        with tempfile.TemporaryFile() as listing:
            listing.write(b"{}\n")
            self._end_layer("full", part, listing, Left.by_comparison(self.feed, known, copied, gone))

    def _back_up_changes(self, parent, deleted, changed, left):
        with tempfile.TemporaryDirectory() as work, tempfile.TemporaryFile() as listing:
            lines, files = os.path.join(work, LISTING), os.path.join(work, "files")
            file_count, not_found = list_directories(self.drive, deleted, changed, lines, files)
            part = f"part-{uuid.uuid4() if file_count > 0 else NO_PART}"
            gone = set()
            if file_count > 0:
                gone = self.repository.add_files([self.consumer, "files", part], self.drive, files, parent)
            self.feed.check_drive()
            not_found |= missing(self.drive, changed, gone)
            with open(lines, "rb") as source:
                copy_lines(source, listing, not_found)
            self._end_layer("changes", part, listing, left.next(not_found))
        print(f"backed up {len(changed) - len(not_found)} changed directories with {file_count} files in them")

    def _end_layer(self, kind, part, listing, left):
        count = len(left.missing) + len(left.unknown)
        if count > 0:
            listing.write(json.dumps({"left": left.to_json()}).encode() + b"\n")
        listing.seek(0)
        place = [f"layer-{self.number}", f"feed-{self.feed.id}", f"scan-{self.feed.until}", part, f"left-{count}"]
        self.repository.add_listing([self.consumer, kind, *place], listing)


def backup(repository, drive, consumer):
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


def restore_changes(repository, layer, snapshots, target):
    files = files_of(layer, snapshots)
    lines = [json.loads(line) for line in repository.read_listing(layer.id).splitlines()]
    for line in lines:
        for path in map(line.get, ("deleted", "path", "made")):
            below(bytes_of(path or "."))
    for step in (delete, prune, make):
        for line in lines:
            step(target, line)
    if files is not None:
        repository.restore(files["id"], target)
    for line in lines:
        set_attributes(target, line)


def restore(repository, target, consumer):
    snapshots, layers = read_layers(repository, consumer)
    layers = since_last_full(layers, snapshots)
    os.makedirs(target, exist_ok=True)
    if os.listdir(target):
        raise Failure(f"{target} is not empty")
    confine(target)
    for layer in layers:
        if layer.is_full:
            repository.restore(files_of(layer, snapshots)["id"], target)
        else:
            restore_changes(repository, layer, snapshots, target)
    print(f"restored the full snapshot and {len(layers) - 1} layers of changes")


def run_layers(repository, consumer, usage):
    """The command line: backup DRIVE [CONSUMER], or restore TARGET [CONSUMER]."""

    def main(*arguments):
        if len(arguments) not in (2, 3) or arguments[0] not in ("backup", "restore"):
            explain(usage)
        name = (*arguments, consumer)[2]
        if "," in name:
            raise Failure("the name of a consumer has no comma")
        if name in TAGS or name.startswith(TAG_PREFIXES):
            raise Failure(f"'{name}' is the name of a tag of layers: choose another one for the consumer")
        {"backup": backup, "restore": restore}[arguments[0]](repository, os.path.abspath(arguments[1]), name)

    run_recipe(main)
