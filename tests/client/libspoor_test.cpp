// The shared library, as programs use it: against a real spoord.
#include <gmock/gmock.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "client/spoor.h"
#include "tests/daemon/spoord_fixture.h"
#include "tests/support/sanitizer.h"

namespace spoor::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// The numbers are those of all programs that were compiled with an earlier header.
static_assert(SPOOR_OK == 0 && SPOOR_SPOOLED == 1 && SPOOR_INVALID == -1 && SPOOR_TIMEOUT == -2 &&
              SPOOR_FULL == -3);
static_assert(SPOOR_REFUSED == -4 && SPOOR_DENIED == -5 && SPOOR_SPOOL_FAILED == -6 &&
              SPOOR_NO_RESOURCES == -7);
static_assert(SPOOR_DIR == 0 && SPOOR_FILE == 1 && SPOOR_TREE == 2);

constexpr int long_ms = 120'000;  // a busy machine takes its time
constexpr int short_ms = 30;

spoor_options default_options() {
  spoor_options options{};
  options.size = sizeof(options);
  return options;
}

class LibspoorTest : public daemon::SpoordTest {
 protected:
  LibspoorTest() { config_["listen"].push_back({{"unix", directory_ / "spoor.sock"}}); }

  ~LibspoorTest() override { spoor_close(client_, 0); }

  // Opens client_.
  int open(const char* spool = nullptr, const char* token = nullptr) {
    const std::string socket = directory_ / "spoor.sock";
    spoor_options options = default_options();
    options.socket = socket.c_str();
    options.token = token;
    options.spool = spool;
    return spoor_open(&options, &client_);
  }

  int mark(const std::string& path, spoor_kind kind = SPOOR_DIR) {
    return spoor_mark(client_, path.data(), path.size(), kind, long_ms);
  }

  // Flushes in vain until the reason is this one: on a busy machine the time can be over before the first
  // attempt.
  int flush_until_error(const std::string& reason) {
    int result = SPOOR_OK;
    do {
      result = spoor_flush(client_, short_ms);
    } while (result != SPOOR_OK && std::string(spoor_last_error()).find(reason) == std::string::npos);
    return result;
  }

  spoor_stats stats() {
    spoor_stats stats{};
    stats.size = sizeof(stats);
    EXPECT_EQ(spoor_get_stats(client_, &stats), SPOOR_OK);
    return stats;
  }

  bool is_dirty(const std::string& path) { return get("/v1/dirty?path=" + path)["dirty"].get<bool>(); }

  void kill_hard() {
    daemon_->signal(SIGKILL);
    daemon_->wait();
  }

  spoor_client* client_ = nullptr;
};

TEST_F(LibspoorTest, FlushedMarks_AreAtTheDaemon) {
  start();
  ASSERT_EQ(open(), SPOOR_OK) << spoor_last_error();
  EXPECT_EQ(mark("bucket/a"), SPOOR_OK);
  EXPECT_EQ(mark("files/name", SPOOR_FILE), SPOOR_OK);
  EXPECT_EQ(mark("tree", SPOOR_TREE), SPOOR_OK);
  const char* const more[] = {"bucket/b", "bucket//c/", "bucket/b", ".spoor/ignored"};
  std::size_t marked = 0;
  EXPECT_EQ(spoor_mark_many(client_, more, 4, SPOOR_DIR, long_ms, &marked), SPOOR_OK);
  EXPECT_EQ(marked, 4U);
  EXPECT_EQ(stats().held, 7U);
  EXPECT_EQ(spoor_flush(client_, long_ms), SPOOR_OK) << spoor_last_error();
  for (const char* path : {"bucket/a", "bucket/b", "bucket/c", "files", "tree/below"})
    EXPECT_TRUE(is_dirty(path)) << path;
  EXPECT_FALSE(is_dirty("files/name"));
  EXPECT_EQ(stats().acknowledged, 7U);
  EXPECT_EQ(stats().ignored, 1U);
  EXPECT_EQ(stats().held, 0U);
  EXPECT_EQ(stats().cycle, 1U);
}

TEST_F(LibspoorTest, PathsThatTheDaemonRefuses_AreReported_AndTheOthersMarked) {
  start();
  ASSERT_EQ(open(), SPOOR_OK);
  EXPECT_EQ(mark("/on/no/drive"), SPOOR_OK);
  EXPECT_EQ(mark("good"), SPOOR_OK);
  EXPECT_EQ(mark(directory_ / "drive" / "absolute"), SPOOR_OK);
  EXPECT_EQ(spoor_flush(client_, long_ms), SPOOR_REFUSED);
  EXPECT_THAT(spoor_last_error(), HasSubstr("'/on/no/drive' is on none of the drives"));
  EXPECT_TRUE(is_dirty("good"));
  EXPECT_TRUE(is_dirty("absolute"));
  EXPECT_EQ(stats().refused, 1U);
}

TEST_F(LibspoorTest, InvalidArguments_AreRefused_WithNothingMarked) {
  start();
  ASSERT_EQ(open(), SPOOR_OK);
  EXPECT_EQ(mark(""), SPOOR_INVALID);
  EXPECT_EQ(mark(std::string("a\0b", 3)), SPOOR_INVALID);
  EXPECT_EQ(mark(std::string(5'000, 'a')), SPOOR_INVALID);
  EXPECT_THAT(spoor_last_error(), HasSubstr("at most 255"));
  EXPECT_EQ(mark("a/../b"), SPOOR_INVALID);
  EXPECT_EQ(mark("a", static_cast<spoor_kind>(3)), SPOOR_INVALID);
  EXPECT_EQ(spoor_mark(nullptr, "a", 1, SPOOR_DIR, 0), SPOOR_INVALID);
  EXPECT_EQ(spoor_flush(nullptr, 0), SPOOR_INVALID);
  EXPECT_EQ(spoor_close(nullptr, 0), SPOOR_OK);
  EXPECT_EQ(spoor_open(nullptr, nullptr), SPOOR_INVALID);
  EXPECT_EQ(stats().held, 0U);
  spoor_client* other = nullptr;
  for (const auto& make_invalid : {+[](spoor_options& options) { options.size = 0; },
                                   +[](spoor_options& options) { options.socket = "spoor.sock"; },
                                   +[](spoor_options& options) { options.buffer_max = 1; },
                                   +[](spoor_options& options) { options.token = "a\r\nX: y"; }}) {
    spoor_options options = default_options();
    make_invalid(options);
    EXPECT_EQ(spoor_open(&options, &other), SPOOR_INVALID);
  }
  spoor_options no_spool = default_options();
  no_spool.spool = "/no/such/directory";
  EXPECT_EQ(spoor_open(&no_spool, &other), SPOOR_SPOOL_FAILED);
  EXPECT_EQ(other, nullptr);
}

// A program that was compiled with a newer header passes longer structures.
TEST_F(LibspoorTest, LongerStructures_AreTaken_IfNothingUnknownIsSet) {
  struct {
    spoor_options known;
    const char* unknown;
  } options{default_options(), nullptr};
  options.known.size = sizeof(options);
  ASSERT_EQ(spoor_open(&options.known, &client_), SPOOR_OK) << spoor_last_error();
  options.unknown = "set";
  spoor_client* other = nullptr;
  EXPECT_EQ(spoor_open(&options.known, &other), SPOOR_INVALID);
  struct {
    spoor_stats known;
    std::uint64_t unknown;
  } stats{};
  stats.known.size = sizeof(stats);
  EXPECT_EQ(spoor_get_stats(client_, &stats.known), SPOOR_OK);
  EXPECT_EQ(stats.known.size, sizeof(spoor_stats));
}

// A program that was compiled with an older header passes a shorter structure.
TEST_F(LibspoorTest, ShorterOptions_HaveDefaultsForTheRest) {
  start();
  const std::string socket = directory_ / "spoor.sock";
  spoor_options options = default_options();
  options.size = offsetof(spoor_options, token);
  options.socket = socket.c_str();
  options.token = "not a token";
  ASSERT_EQ(spoor_open(&options, &client_), SPOOR_OK) << spoor_last_error();
  EXPECT_EQ(mark("a"), SPOOR_OK);
  EXPECT_EQ(spoor_flush(client_, long_ms), SPOOR_OK) << spoor_last_error();
}

TEST_F(LibspoorTest, NoDaemon_TimesOut_AndSendsOnceItRuns) {
  ASSERT_EQ(open(), SPOOR_OK);
  EXPECT_EQ(mark("a"), SPOOR_OK);
  EXPECT_EQ(flush_until_error("cannot connect to"), SPOOR_TIMEOUT);
  EXPECT_EQ(stats().held, 1U);
  start();
  EXPECT_EQ(spoor_flush(client_, long_ms), SPOOR_OK) << spoor_last_error();
  EXPECT_TRUE(is_dirty("a"));
}

TEST_F(LibspoorTest, FrozenDaemon_TimesOut_AndTheConnectionIsMadeAnew) {
  start();
  ASSERT_EQ(open(), SPOOR_OK);
  EXPECT_EQ(mark("a"), SPOOR_OK);
  EXPECT_EQ(spoor_flush(client_, long_ms), SPOOR_OK);
  daemon_->freeze();
  EXPECT_EQ(mark("b"), SPOOR_OK);
  EXPECT_EQ(flush_until_error("not responded in time"), SPOOR_TIMEOUT);
  daemon_->signal(SIGCONT);
  EXPECT_EQ(spoor_flush(client_, long_ms), SPOOR_OK) << spoor_last_error();
  EXPECT_TRUE(is_dirty("b"));
}

TEST_F(LibspoorTest, RequestThatTheDaemonRefuses_IsDenied_AndTheMarksAreKept) {
  config_["limits"]["max_body"] = "1KiB";
  start();
  ASSERT_EQ(open(), SPOOR_OK);
  for (char name = 'a'; name < 'f'; ++name) EXPECT_EQ(mark(std::string(200, name)), SPOOR_OK);
  EXPECT_EQ(spoor_flush(client_, long_ms), SPOOR_OK) << "in several requests";
  std::string path = "a";
  for (int depth = 0; depth < 6; ++depth) path += '/' + std::string(200, 'b');
  EXPECT_EQ(mark(path), SPOOR_OK);
  EXPECT_EQ(spoor_flush(client_, long_ms), SPOOR_DENIED);
  EXPECT_THAT(spoor_last_error(), HasSubstr("limits.max_body"));
  EXPECT_EQ(stats().held, 1U);
  EXPECT_EQ(spoor_close(std::exchange(client_, nullptr), long_ms), SPOOR_DENIED) << "the marks are lost";
}

TEST_F(LibspoorTest, Token_GivesItsRole) {
  std::ofstream(directory_ / "token") << "a-token-for-marks-only\n";
  config_["auth"]["tokens"] = {{{"name", "m"}, {"role", "mark"}, {"file", directory_ / "token"}}};
  start();
  ASSERT_EQ(open(nullptr, "a-token-for-marks-only"), SPOOR_OK);
  EXPECT_EQ(mark("a"), SPOOR_OK);
  EXPECT_EQ(spoor_flush(client_, long_ms), SPOOR_OK) << spoor_last_error();
}

TEST_F(LibspoorTest, Spool_OutlivesTheClient_AndIsSentByTheNext) {
  const std::string spool = directory_ / "spool";
  std::filesystem::create_directory(spool);
  ASSERT_EQ(open(spool.c_str()), SPOOR_OK) << spoor_last_error();
  EXPECT_EQ(mark("a"), SPOOR_OK);
  EXPECT_EQ(flush_until_error("cannot connect to"), SPOOR_SPOOLED);
  EXPECT_EQ(spoor_close(std::exchange(client_, nullptr), 0), SPOOR_SPOOLED);
  start();
  EXPECT_FALSE(is_dirty("a"));
  ASSERT_EQ(open(spool.c_str()), SPOOR_OK);
  EXPECT_EQ(spoor_flush(client_, long_ms), SPOOR_OK) << spoor_last_error();
  EXPECT_TRUE(is_dirty("a"));
  for (const auto& file : std::filesystem::directory_iterator(spool))
    EXPECT_EQ(file.path().extension(), ".socket");
}

// Another thread of the parent may have held the client's locks.
TEST_F(LibspoorTest, ForkedChild_IsRefused_AndTheParentGoesOn) {
  start();
  ASSERT_EQ(open(), SPOOR_OK);
  EXPECT_EQ(mark("a"), SPOOR_OK);
  const pid_t child = ::fork();
  if (child == 0) {
    spoor_stats stats{};
    stats.size = sizeof(stats);
    const bool are_refused = mark("b") == SPOOR_INVALID && spoor_flush(client_, 0) == SPOOR_INVALID &&
                             spoor_get_stats(client_, &stats) == SPOOR_INVALID &&
                             spoor_close(client_, 0) == SPOOR_INVALID;
    ::_exit(are_refused ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(spoor_flush(client_, long_ms), SPOOR_OK) << spoor_last_error();
  EXPECT_TRUE(is_dirty("a"));
  EXPECT_FALSE(is_dirty("b"));
}

TEST_F(LibspoorTest, CancelledThread_EndsItsCallFirst) {
  start();
  ASSERT_EQ(open(), SPOOR_OK);
  EXPECT_EQ(mark("a"), SPOOR_OK);
  pthread_t thread{};
  const auto flush = [](void* client) -> void* {
    ::pthread_cancel(::pthread_self());  // at the next point that allows it
    spoor_flush(static_cast<spoor_client*>(client), long_ms);
    ::pthread_testcancel();
    return nullptr;
  };
  ASSERT_EQ(::pthread_create(&thread, nullptr, flush, client_), 0);
  void* result = nullptr;
  ASSERT_EQ(::pthread_join(thread, &result), 0);
  EXPECT_EQ(result, PTHREAD_CANCELED);
  EXPECT_TRUE(is_dirty("a"));
}

// Threads mark and flush while the daemon is killed and started again.
TEST_F(LibspoorTest, DaemonKilledAtRandom_LosesNoAcknowledgedMark) {
  start();
  ASSERT_EQ(open(), SPOOR_OK);
  std::atomic<bool> is_over = false;
  std::atomic<int> flushed = 0;
  std::vector<std::vector<std::string>> acknowledged(3);
  std::vector<std::thread> writers;
  for (std::size_t writer = 0; writer < acknowledged.size(); ++writer) {
    writers.emplace_back([&, writer] {
      for (int i = 0; !is_over; ++i) {
        const std::string path = "w" + std::to_string(writer) + "/d" + std::to_string(i) + "/f";
        if (mark(path) != SPOOR_OK || spoor_flush(client_, long_ms) != SPOOR_OK) {
          ADD_FAILURE() << spoor_last_error();
          return;
        }
        acknowledged[writer].push_back(path);
        ++flushed;
        flushed.notify_all();
      }
    });
  }
  for (int round = 0; round < 6 && !HasFailure(); ++round) {
    for (const int before = flushed; flushed < before + 20 && !HasFailure();) flushed.wait(before);
    kill_hard();
    start();
  }
  is_over = true;
  for (std::thread& writer : writers) writer.join();
  for (const auto& paths : acknowledged) {
    EXPECT_FALSE(paths.empty());
    for (const std::string& path : paths) EXPECT_TRUE(is_dirty(path)) << path;
  }
}

#if !SPOOR_IS_SANITIZED  // these programs have no sanitizer's runtime, and a library that has adds symbols
TEST_F(LibspoorTest, Header_IsC99_AndTheExampleWorks) {
  start();
  const std::string program = directory_ / "example";
  const auto compiled =
      support::run_command({"cc", "-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I", CLIENT,
                            EXAMPLES "/mark.c", "-o", program, LIBSPOOR, "-Wl,-rpath," LIBSPOOR_FOLDER});
  ASSERT_EQ(compiled.code, 0) << compiled.err;
  const auto run = support::run_command({program, directory_ / "spoor.sock", "from/c"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(is_dirty("from/c"));
}

TEST_F(LibspoorTest, Python_MarksAndReportsErrors) {
  start();
  const char* const script = R"(
import os, signal, sys, threading, spoor
socket, spool = sys.argv[1:]
with spoor.Client(socket, spool=spool) as client:
    client.mark("from/python")
    client.mark_many([b"bytes/\xff", "t"], spoor.Kind.TREE)
    assert client.stats().held == 3
    assert client.flush() is spoor.Result.OK
    assert client.stats().acknowledged == 3, client.stats()
    try:
        client.mark("a/..")
        sys.exit("no error")
    except spoor.Error as error:
        assert error.result is spoor.Result.INVALID and "a/.." in str(error), error
assert client.close() is spoor.Result.OK
try:
    client.flush()
    sys.exit("no error")
except spoor.Error as error:
    assert "closed" in str(error)
try:
    spoor.Client(socket + ".none", spool=spool)
    sys.exit("no error")
except spoor.Error as error:
    assert "has marks for the daemon at " + socket in str(error), error
try:
    spoor.Client(socket + "\0")
    sys.exit("no error")
except ValueError:
    pass
os.mkdir(spool + ".none")
down = spoor.Client(socket + ".none", spool=spool + ".none")
down.mark("later")
if os.fork() == 0:
    try:
        down.close()
    except spoor.Error as error:
        os._exit(0 if "parent" in str(error) else 1)
    os._exit(2)
assert os.wait()[1] == 0
def fails(call, error, text=""):
    try:
        call()
    except error as raised:
        assert text in str(raised), raised
    else:
        sys.exit("no error")
down._calls["another thread's, which takes its time"] = 0
signal.signal(signal.SIGALRM, signal.default_int_handler)
signal.setitimer(signal.ITIMER_REAL, 0.1)
fails(down.close, KeyboardInterrupt)
fails(lambda: down.close(timeout=0.01), spoor.Error, "other threads")
down._calls.clear()
fails(lambda: down.close(timeout=None), TypeError)
# As by a signal handler during a call.
down._calls["this thread's"] = threading.get_ident()
fails(lambda: down.close(timeout=0.01), spoor.Error, "of this thread")
down._calls.clear()
assert down.close(timeout=0.01) is spoor.Result.SPOOLED
assert down.close() is spoor.Result.OK
forgotten = spoor.Client(socket + ".none", spool=spool + ".none")
forgotten.mark("also later")
sys.unraisablehook = lambda _: None  # the warning is an error here
del forgotten
assert len(os.listdir(spool + ".none")) == 3
assert spoor.version()
)";
  std::filesystem::create_directory(directory_ / "spool");
  const auto run = support::run_command(
      {"env", "LD_LIBRARY_PATH=" LIBSPOOR_FOLDER, "PYTHONPATH=" CLIENT "/python", "PYTHONDONTWRITEBYTECODE=1",
       "/usr/bin/python3", "-W", "error", "-c", script, directory_ / "spoor.sock", directory_ / "spool"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(is_dirty("from/python"));
}

TEST(LibspoorFileTest, Library_ExportsItsFunctionsOnly_AndNeedsTheCLibraryOnly) {
  const auto symbols =
      support::run_command({"nm", "--dynamic", "--defined-only", "--format=just-symbols", LIBSPOOR});
  EXPECT_EQ(symbols.out,
            "SPOOR_1.0\nspoor_close@@SPOOR_1.0\nspoor_flush@@SPOOR_1.0\nspoor_get_stats@@SPOOR_1.0\n"
            "spoor_last_error@@SPOOR_1.0\nspoor_mark@@SPOOR_1.0\nspoor_mark_many@@SPOOR_1.0\nspoor_open@@"
            "SPOOR_1.0\n"
            "spoor_version@@SPOOR_1.0\n");
  const auto needed = support::run_command(
      {"sh", "-c", "readelf -d " LIBSPOOR " | sed -n 's/.*(NEEDED).*\\[\\(.*\\)\\]/\\1/p' | sort"});
  EXPECT_THAT(needed.out, testing::AnyOf("libc.so.6\n", "ld-linux-x86-64.so.2\nlibc.so.6\n"));
}
#endif

}  // namespace
}  // namespace spoor::client
