"""What the recipes in Python share: the change feed of one drive, and its directories without symbolic links."""

import contextlib
import ctypes
import datetime
import errno
import fcntl
import hashlib
import json
import os
import re
import shlex
import stat
import subprocess
import sys
import tempfile
import time
import urllib.parse
import uuid

SPOOR = os.environ.get("SPOOR", "spoor").split()
NAMES_NOT_STORED = 2  # exit codes of `spoor changes`
NOT_KEPT = 4
PARTIAL = 3  # exit code of a recipe, as of `spoor scan`
PROGRESS_INTERVAL_S = 0.2
# At the top of a copy: which consumer made it. No file of the drive comes there, as its folder .spoor is not copied.
MARKER = ".spoor/copy"
CLONE_NEWNS = 0x20000
MS_REMOUNT, MS_NOSYMFOLLOW, MS_BIND, MS_REC, MS_PRIVATE, MS_SLAVE = 1 << 5, 1 << 8, 1 << 12, 1 << 14, 1 << 18, 1 << 19
FLAGS_KEPT = 0xF  # read-only, nosuid, nodev, noexec: the same bits for mount() and statvfs()
ST_NOSYMFOLLOW = 0x2000
READ_ALL = 0b110  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH

libc = ctypes.CDLL(None, use_errno=True)
unread = set()  # paths that this run has skipped


class Failure(Exception):
    pass


class Progress:
    """A line on a terminal with what is done so far, which is written over. Elsewhere, nothing."""

    def __init__(self):
        self._is_terminal = sys.stderr.isatty()
        self._started = time.monotonic()
        self._next = 0.0

    def show(self, done, total, what):
        """The total is 0 if it is not known."""
        now = time.monotonic()
        if self._is_terminal and now >= self._next:
            self._next = now + PROGRESS_INTERVAL_S
            of = f" of {max(done, total):,}" if total else ""
            print(f"\r\033[K{done:,}{of} {what}", end="", file=sys.stderr, flush=True)

    def clear(self):
        """Before another line is written."""
        if self._next > 0:
            print("\r\033[K", end="", file=sys.stderr, flush=True)

    def elapsed(self):
        return datetime.timedelta(seconds=round(time.monotonic() - self._started))


progress = Progress()


def text_of(path):
    return path.decode("utf-8", "surrogateescape")


def bytes_of(path):
    return path.encode("utf-8", "surrogateescape")


def printable(text):
    """Without characters by which a name could control a terminal, or look like another line."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def pass_on(messages):
    """Prints what a program has written to its standard error, which may contain names."""
    progress.clear()
    for line in messages.split(b"\n"):
        if line:
            print(printable(text_of(line)), file=sys.stderr)


def skip(path, why):
    """Names what can't be read, which is left to the next run: no user may stop the copy of the others."""
    if path not in unread:
        progress.clear()
        print(printable(f"skips {text_of(path)}: {why}"), file=sys.stderr)
    unread.add(path)


def call(command, **options):
    """The command inherits the lock of the feed: another run waits for it, too, even if this one is killed."""
    return subprocess.run(command, close_fds=False, **options)


def start(command, **options):
    return subprocess.Popen(command, close_fds=False, **options)


def follow(command, on_line, **options):
    """As `call`, and passes on each line of the standard output. Its `stderr` is that of the command."""
    with tempfile.TemporaryFile() as errors, start(command, stdout=subprocess.PIPE, stderr=errors, **options) as running:
        for line in running.stdout:
            on_line(line)
        code = running.wait()
        errors.seek(0)
        return subprocess.CompletedProcess(command, code, stderr=errors.read())


def run(command, **options):
    done = call(command, stdout=subprocess.PIPE, **options)
    if done.returncode != 0:
        words = command[1:]
        while words[0].startswith("--"):  # options of SPOOR
            words = words[2:]
        raise Failure(f"{command[0]} {words[0]} failed with code {done.returncode}")
    return done.stdout


def make_durable(directory):
    """Returns when a local copy is on its disk."""
    if os.path.exists(directory) and not is_dry_run():
        run(["sync", "-f", "--", directory])


class Feed:
    """What scans found on a drive and the consumer has not read, up to the last scan. A directory is named as
    b"bucket/a", the top as b".".

    One run of a consumer at a time has it, until its end and that of the commands that it calls: another consumer has
    other copies. The lock, and what a run leaves to the next one, are in a directory of the user that runs it, for the
    owner of node.data_dir could make them links."""

    def __init__(self, drive, consumer, is_confined=True):
        self.drive = os.path.abspath(drive)
        self.consumer = consumer
        data_dir = json.loads(run([*SPOOR, "config", "show"]))["node"]["data_dir"]
        name = "recipe-" + urllib.parse.quote(consumer, safe=" ")
        self._old_file = os.path.join(data_dir, name)  # of earlier versions
        of_daemon = hashlib.sha256(os.fsencode(data_dir)).hexdigest()[:8]  # there may be several on a machine
        self._file = os.path.join(state_directory(), f"{name}-{of_daemon}")
        self._lock()
        if is_confined:
            confine(self.drive)
        latest = self.check_drive()
        self.id, self.until = latest["feed"], latest["scan"]
        self.since = None  # a scan, for a consumer that stores its position by itself
        self._copy_id = None

    def _lock(self):
        lock = os.open(self._file + ".lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        os.set_inheritable(lock, True)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"waits for the end of another run of '{self.consumer}'", file=sys.stderr)
            fcntl.flock(lock, fcntl.LOCK_EX)

    def check_drive(self):
        """Fails if the drive is not at its path, as after it was unmounted. Returns the last scan."""
        return json.loads(run([*SPOOR, "changes", "--drive", self.drive, "--latest", "--json"]))

    def read(self, *options, also_without=()):
        """A list; None if the changes are not kept, or for another exit code in `also_without`."""
        since = ["--consumer", self.consumer] if self.since is None else ["--since", str(self.since)]
        return self._list(*since, "--until", str(self.until), *options, also_without=also_without)

    def directories(self, *options):
        found = self.read(*options)
        return None if found is None else [os.path.normpath(each) for each in found]

    def files(self):
        """None also if scans do not store the names of files."""
        found = self.read("--files", also_without=[NAMES_NOT_STORED])
        return None if found is None else [os.path.normpath(each) for each in found]

    def deleted(self, *options):
        """Deleted directories; with "--files" also files, which have no "/" at the end."""
        found = self.read("--deleted", *options)
        if found is None:
            raise Failure("a scan has removed what changed: run it again")
        return [each.removeprefix(b"./") for each in found]

    def start_all(self, consumer=None):
        """Before a copy of everything, which takes long: keeps the changes after the last scan until `commit_all`, or
        for that consumer. Returns the directories that this scan found; None if it has not read the drive."""
        while True:
            self.set_position(consumer or self._copies(), self.until)
            known = self._list("--everything")
            latest = self.check_drive()
            if (latest["feed"], latest["scan"]) == (self.id, self.until):
                return None if known is None else {os.path.normpath(each) for each in known}
            self.id, self.until = latest["feed"], latest["scan"]

    def commit_all(self, left):
        self.commit(left)
        if not is_dry_run():
            run([*SPOOR, "changes", "--consumer", self._copies(), "--forget"])

    def new_marker(self, place, is_marked_as):
        """Fails if the copy is not at its place. Returns the marker to write to it; None if it is there."""
        self._copy_id = self._state().get("copy")
        if self._copy_id and is_marked_as(self._marker()):
            return None
        if self._copy_id and self._has_position():
            forget = f"spoor changes --consumer {shlex.quote(self.consumer)} --forget"
            raise Failure(
                f"{place} is not the copy that '{self.consumer}' made: {MARKER} is missing in it, or of another copy."
                " Mount the target, or name the right one: each target needs a consumer of its own. To begin anew"
                f" there, run '{forget}': the next run then copies everything, and deletes what the drive does not have"
            )
        self._copy_id = str(uuid.uuid4())  # with the old one, an older copy would pass for this one
        return self._marker()

    def _marker(self):
        return json.dumps({"consumer": self.consumer, "id": self._copy_id}).encode() + b"\n"

    def _has_position(self):
        known = json.loads(run([*SPOOR, "changes", "--consumers", "--json"]))["consumers"]
        return any(each["consumer"] == self.consumer for each in known)

    def left(self):
        """What the last run has left to this one."""
        return Left.from_json({name: paths for name, paths in self._state().items() if name != "copy"})

    def _state(self):
        for name in (self._file, self._old_file):
            with contextlib.suppress(FileNotFoundError):
                return json.loads(read_own(name + ".left"))
        return {}

    def commit(self, left):
        """The changes are read, but for what is left to the next run."""
        if is_dry_run():
            return
        new = self._file + ".new"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(new)  # of a run that was killed
        with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "w") as file:
            json.dump(left.to_json() | ({"copy": self._copy_id} if self._copy_id else {}), file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, self._file + ".left")
        for end in (".left", ".lock"):
            with contextlib.suppress(OSError):
                os.unlink(self._old_file + end)
        position = ["--consumer", self.consumer, "--until", str(self.until)]
        if self._changes(*position, "--commit", "--quiet").returncode == 0:
            return
        # The drive may have been unmounted while it was read.
        if call([*SPOOR, "changes", "--consumer", self.consumer, "--forget"]).returncode == 0:
            raise Failure("the next run copies everything")
        raise Failure(
            f"once the cause is removed, run 'spoor changes --consumer {self.consumer} --forget': the next run then"
            " copies everything"
        )

    def report(self, what):
        """The last line of a run."""
        progress.clear()
        scan = self.describe_scan(self.until)
        if is_dry_run():
            print(f"dry run: would have {what}, and read up to {scan}")
        else:
            print(f"{what} in {progress.elapsed()}; '{self.consumer}' has read up to {scan}")

    def describe_scan(self, number):
        """With its start, if it is one of the last scans."""
        done = call([*SPOOR, "scans", "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        scans = json.loads(done.stdout)["scans"] if done.returncode == 0 else []
        times = [f" of {each['started_at']}" for each in scans if each["scan"] == number]
        return f"scan {number}" + "".join(times)

    def set_position(self, consumer, scan):
        """Keeps all changes after that scan."""
        if is_dry_run():
            return
        run([*SPOOR, "changes", "--consumer", consumer, "--until", str(scan), "--commit", "--quiet"])

    def _copies(self):
        return f"{self.consumer} (copies)"

    def _list(self, *options, also_without=()):
        done = self._changes("-0", *options, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if done.returncode == NOT_KEPT or done.returncode in also_without:
            return None
        if done.returncode != 0:
            raise Failure(done.stderr.decode(errors="replace").strip())
        return [below(path) for path in done.stdout.split(b"\0")[:-1]]

    def _changes(self, *options, **keywords):
        return call([*SPOOR, "changes", "--drive", self.drive, *options], **keywords)


class Left:
    """Directories that a run has left to the next one.

    missing: those that the scan found and the program did not. A later scan finds them deleted, or they were moved away
             for a moment and are back: then no scan lists what is below them again.
    unknown: those that the copy has and the scan did not find. A later scan finds them new, or they are gone again.
    """

    def __init__(self, missing=(), unknown=()):
        self.missing, self.unknown = set(missing), set(unknown)

    @classmethod
    def by_comparison(cls, feed, known, copied, gone):
        """After a copy of everything: of the directories that the scan found and those that the copy has. `gone` are
        paths that the program did not find."""
        if known is None:
            return cls()
        return cls((known - copied) | missing(feed.drive, known, gone), copied - known - {b"."})

    def to_copy(self, directories, deleted):
        """The missing ones that are not listed since, neither themselves nor as deleted with one above."""
        listed, gone = set(directories), set(deleted)
        return sorted(each for each in self.missing - listed if gone.isdisjoint(with_parents(each)))

    def to_delete(self, feed, directories):
        """The unknown ones that are not listed since, and gone. Takes them out."""
        self.unknown.difference_update(directories)
        found = missing(feed.drive, self.unknown)
        self.unknown -= found
        return sorted(found)

    def next(self, missing):
        """What is left after the run that has read this."""
        return Left(missing, self.unknown)

    def to_json(self):
        return {name: [text_of(path) for path in sorted(paths)] for name, paths in vars(self).items()}

    @classmethod
    def from_json(cls, value):
        return cls(**{name: [below(bytes_of(path)) for path in paths] for name, paths in value.items()})


def state_directory():
    path = os.environ.get("STATE_DIRECTORY", "").split(":")[0]  # set by systemd
    if not path and os.geteuid() == 0:
        path = "/var/lib/spoor-recipes"
    elif not path:
        path = os.path.join(os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state"), "spoor")
    os.makedirs(path, mode=0o700, exist_ok=True)
    status = os.stat(path)
    if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise Failure(f"{path} belongs to another user, or others can write it: set STATE_DIRECTORY to one of your own")
    return path


def read_own(path):
    """Of a file that root or this user has written, for others may write the directory."""
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            status = os.fstat(file.fileno())
            if stat.S_ISREG(status.st_mode) and status.st_uid in (0, os.geteuid()):
                return file.read()
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
    raise Failure(
        f"{path} is not a file of root's or of this user's: run the recipe as its owner; or remove it, and forget the"
        " consumer to copy everything"
    )


def confine(top):
    """For this process and the programs that it calls, no symbolic link below `top` leads anywhere, and no other file
    system is there. A user who swaps a directory for a link as a program opens it gets nothing from outside; a mount
    that refuses root, as those of FUSE do, stops nothing.

    By a mount namespace of its own, with `top` mounted over itself: paths stay the same."""
    with open("/proc/self/status", encoding="ascii") as status:
        effective = next(int(line.split()[1], 16) for line in status if line.startswith("CapEff:"))
    may_read_all = os.geteuid() == 0 or effective & READ_ALL
    if os.environ.get("SPOOR_UNCONFINED") == "1" or not may_read_all:
        return
    real = os.fsencode(os.path.realpath(top))
    # It keeps the drive from being unmounted meanwhile, as the namespace does not.
    os.set_inheritable(os.open(real, os.O_PATH | os.O_DIRECTORY), True)
    try:
        if real == b"/":
            raise OSError(errno.EINVAL, "nothing can be mounted over /")
        if libc.unshare(CLONE_NEWNS) != 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        mount(None, b"/", MS_SLAVE | MS_REC)  # other file systems may be unmounted meanwhile
        make_private(real)
        for path in mounts_below(real):
            print(printable(f"skips {text_of(path)}: another file system is mounted there"), file=sys.stderr)
        mount(real, real, MS_BIND)
        mount(None, real, MS_REMOUNT | MS_BIND | MS_NOSYMFOLLOW | os.statvfs(real).f_flag & FLAGS_KEPT)
        why = None if os.statvfs(real).f_flag & ST_NOSYMFOLLOW else "Linux before 5.10"
    except OSError as error:
        why = error.strerror
    if why:
        raise Failure(
            f"cannot keep links on {top} from leading out of it ({why}): that takes CAP_SYS_ADMIN and Linux 5.10. Set"
            " SPOOR_UNCONFINED=1 if no user of the drive is to be feared"
        )


def mount(source, target, flags):
    if libc.mount(source, target, None, ctypes.c_ulong(flags), None) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def make_private(path):
    """The mount in which this path is: what is mounted below it from now on is not there."""
    while True:
        try:
            return mount(None, path, MS_PRIVATE)
        except OSError as error:
            if error.errno != errno.EINVAL or path == b"/":  # it is no mount point
                raise
        path = os.path.dirname(path)


def mounts_below(top):
    with open("/proc/self/mountinfo", "rb") as lines:
        paths = [re.sub(rb"\\([0-7]{3})", lambda code: bytes([int(code[1], 8)]), line.split()[4]) for line in lines]
    return sorted({path for path in paths if path.startswith(top + b"/")})


def below(path):
    """This path, of a list that others may have written."""
    if path.startswith(b"/") or b".." in path.split(b"/"):
        raise Failure(f"a list has a path that leads out of its top: {text_of(path)}")
    return path


def with_parents(path):
    while path:
        yield path
        path = os.path.dirname(path)


def missing(drive, directories, gone=()):
    """After a copy, those of these directories that it may lack: they are not there, or among `gone`, paths that a
    program did not find, or above one that is back. If a file was removed, a later scan finds its directory changed."""
    directories = set(directories)
    found = {path for path in directories if path in gone or not has(drive, path)}
    for path in gone:
        parent, name = os.path.split(path)
        try:
            with directory(drive, parent or b".") as at:
                is_back = at is not None and mode_of(name, at)
        except OSError:
            is_back = True
        if is_back:
            found.add(parent or b".")
    return found & directories


def open_directory(top, path):
    """Without following symbolic links; `path` is relative, b"." the top itself."""
    at = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
    for name in path.split(b"/"):
        try:
            below = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=at)
        finally:
            os.close(at)
        at = below
    return at


@contextlib.contextmanager
def directory(top, path):
    """Its descriptor; None if there is no such directory (any more)."""
    try:
        at = open_directory(top, path)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            raise
        yield None
        return
    try:
        yield at
    finally:
        os.close(at)


def read_directory(drive, path, read):
    """What `read` returns of its descriptor; None if there is no such directory (any more), or it can't be read."""
    try:
        with directory(drive, path) as at:
            return None if at is None else read(at)
    except OSError as error:
        skip(path, error.strerror)
        return None


def has(drive, path):
    """Whether there may be such a directory: an error, as of lacking rights, proves nothing."""
    try:
        with directory(drive, path) as at:
            return at is not None
    except OSError:
        return True


def mode_of(name, at):
    """The mode of an entry of the directory; 0 if there is none."""
    try:
        return os.stat(name, dir_fd=at, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return 0


def is_there(path):
    """Whether there may be such an entry: an error, as of lacking rights, proves nothing."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def topmost(directories):
    """Those that are not below another one."""
    kept = []
    for each in sorted(directories, key=lambda path: path.split(b"/")):
        if not kept or not each.startswith(kept[-1] + b"/"):
            kept.append(each)
    return kept


def is_help_wanted():
    return sys.argv[1:] in (["--help"], ["-h"])


def is_dry_run():
    """The run prints what it would do, and changes neither the target nor what the consumer has read."""
    return "--dry-run" in sys.argv[1:]


def print_plan(action, path):
    if is_dry_run():
        progress.clear()
        print(printable(f"{action} {text_of(path)}"))


def count(number, noun):
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def explain(text):
    """Prints how the program is called, and ends it: as it was asked to, or because it was called otherwise."""
    print(text.strip(), file=sys.stdout if is_help_wanted() else sys.stderr)
    sys.exit(0 if is_help_wanted() else 2)


def run_recipe(main):
    """Calls `main` with the arguments of the command line; prints a failure. Ends with PARTIAL if something could not
    be read."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace", line_buffering=True)
    try:
        main(*(each for each in sys.argv[1:] if each != "--dry-run"))
    except (Failure, OSError) as failure:
        progress.clear()
        message = f"{os.path.basename(sys.argv[0])}: {failure}"
        sys.exit("\n".join(map(printable, message.split("\n"))))
    if unread:
        sys.exit(PARTIAL)
