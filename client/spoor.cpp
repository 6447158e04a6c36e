// The C boundary: checks arguments, and turns outcomes into results.
#include "client/spoor.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "client/daemon_socket.h"
#include "client/mark_queue.h"
#include "client/spool.h"
#include "tracker/paths/path.h"

namespace {

using spoor::client::Deadline;
using spoor::client::MarkBatch;
using spoor::client::MarkKind;
using spoor::client::MarkQueue;
using spoor::client::Outcome;
using spoor::client::Spool;

constexpr std::uint64_t buffer_bytes_min = std::uint64_t{512} << 10U;
constexpr std::uint64_t buffer_bytes_max = std::uint64_t{64} << 20U;
constexpr std::uint64_t spool_bytes_default = std::uint64_t{256} << 20U;
constexpr std::size_t message_bytes_max = 500;

// Without a destructor: a call at the exit of a thread finds it.
constinit thread_local std::array<char, message_bytes_max> last_error{};

int fail(int result, std::string_view message) noexcept {
  const std::size_t length = std::min(message.size(), last_error.size() - 1);
  message.copy(last_error.data(), length);
  last_error[length] = '\0';
  return result;
}

// Cancelling a thread would end the program: it unwinds the stack, and no exception leaves the library.
class Uncancelled {
 public:
  Uncancelled() { ::pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~Uncancelled() { ::pthread_setcancelstate(before_, nullptr); }
  Uncancelled(const Uncancelled&) = delete;
  Uncancelled& operator=(const Uncancelled&) = delete;

 private:
  int before_ = 0;
};

// Tells a process from its children: by a page that is zero in these, without a system call; by its number
// where the system has no such pages.
class Process {
 public:
  Process() {
    const auto bytes = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    page_ = static_cast<char*>(
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (page_ == MAP_FAILED) throw std::bad_alloc();
    if (::madvise(page_, bytes, MADV_WIPEONFORK) != 0) number_ = ::getpid();
    *page_ = 1;
  }
  ~Process() { ::munmap(page_, static_cast<size_t>(::sysconf(_SC_PAGESIZE))); }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  bool is_this() const { return *page_ == 1 && (number_ == 0 || number_ == ::getpid()); }

 private:
  char* page_;
  pid_t number_ = 0;
};

// No exception leaves the library.
template <class Call>
int guarded(const Call& call) noexcept {
  const Uncancelled uncancelled;
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return fail(SPOOR_NO_RESOURCES, "no memory");
  } catch (const std::exception& error) {
    return fail(SPOOR_NO_RESOURCES, error.what());
  } catch (...) {
    return fail(SPOOR_NO_RESOURCES, "an unknown failure");
  }
}

Deadline deadline_after(int timeout_ms) {
  return std::chrono::steady_clock::now() + std::chrono::milliseconds(std::max(timeout_ms, 0));
}

// The member at this address, if the caller's structure, of `size` bytes, has it; else 0 or null.
template <class Options, class Member>
Member member(const Options* options, Member Options::* at) {
  if (options == nullptr) return Member{};
  const auto* const end = reinterpret_cast<const char*>(&(options->*at) + 1);
  return end - reinterpret_cast<const char*>(options) > static_cast<std::ptrdiff_t>(options->size)
             ? Member{}
             : options->*at;
}

// Whether the caller's structure is longer than ours, and has more than zeros there.
bool has_unknown(const spoor_options& options) {
  const auto* const bytes = reinterpret_cast<const char*>(&options);
  const auto is_set = [](char byte) { return byte != 0; };
  return options.size > sizeof(options) && std::any_of(bytes + sizeof(options), bytes + options.size, is_set);
}

std::string text_or(const char* text, const char* otherwise) {
  return text != nullptr && *text != '\0' ? text : otherwise;
}

static_assert(static_cast<int>(MarkKind::dir) == SPOOR_DIR &&
              static_cast<int>(MarkKind::file) == SPOOR_FILE &&
              static_cast<int>(MarkKind::tree) == SPOOR_TREE);
static_assert(static_cast<int>(Outcome::done) == SPOOR_OK &&
              static_cast<int>(Outcome::spooled) == SPOOR_SPOOLED &&
              static_cast<int>(Outcome::timed_out) == SPOOR_TIMEOUT &&
              static_cast<int>(Outcome::full) == SPOOR_FULL &&
              static_cast<int>(Outcome::refused) == SPOOR_REFUSED &&
              static_cast<int>(Outcome::denied) == SPOOR_DENIED &&
              static_cast<int>(Outcome::spool_failed) == SPOOR_SPOOL_FAILED);

}  // namespace

struct spoor_client {
  spoor_client(spoor::base::Endpoint of_daemon, const std::string& token, std::uint64_t buffer_bytes,
               std::unique_ptr<spoor::base::FileSystem> of_spool, std::optional<Spool> opened_spool)
      : endpoint(std::move(of_daemon)),
        daemon(endpoint.unix_path, token),
        files(std::move(of_spool)),
        spool(std::move(opened_spool)),
        queue(
            {.held_bytes_max = buffer_bytes, .spool = spool ? &*spool : nullptr},
            [this](const MarkBatch& batch, Deadline deadline) {
              daemon.set_deadline(deadline);
              return spoor::peer::send_marks(daemon, endpoint, spoor::client::kind_name(batch.kind),
                                             batch.paths);
            },
            [this](const std::string& problem) {
              const std::lock_guard lock(refusal_mutex);
              refusal = problem;
            }) {}

  int result_of(Outcome outcome) {
    if (outcome == Outcome::done) return SPOOR_OK;
    if (outcome != Outcome::refused) return fail(static_cast<int>(outcome), queue.problem());
    const std::lock_guard lock(refusal_mutex);
    return fail(SPOOR_REFUSED, refusal);
  }

  int mark(std::string_view path, spoor_kind kind, Deadline deadline) {
    std::string normalised;
    if (!spoor::tracker::is_normalised(path)) {  // most paths are
      auto made = spoor::tracker::normalise_path(path);
      if (!made) return fail(SPOOR_INVALID, made.error().message);
      if (path.front() == '/') made->insert(0, 1, '/');  // the daemon marks the path below its drive
      path = normalised = *std::move(made);
    }
    return result_of(queue.add(static_cast<MarkKind>(kind), path, deadline));
  }

  const Process process;
  const spoor::base::Endpoint endpoint;
  spoor::client::DaemonSocket daemon;
  const std::unique_ptr<spoor::base::FileSystem> files;  // that of the spool
  std::optional<Spool> spool;
  std::mutex refusal_mutex;
  std::string refusal;  // the last one
  MarkQueue queue;
};

namespace {

// In a child of its process, a client must not be touched: another thread may have held its locks.
template <class Call>
int guarded(spoor_client* client, const Call& call) noexcept {
  if (!client->process.is_this())
    return fail(SPOOR_INVALID, "the client is that of the parent process: open one after a fork");
  return guarded(call);
}

bool is_kind(spoor_kind kind) { return kind >= SPOOR_DIR && kind <= SPOOR_TREE; }

int open_client(const spoor_options* options, spoor_client** client) {
  const std::string socket = text_or(member(options, &spoor_options::socket), "/run/spoor/spoor.sock");
  const std::string token = text_or(member(options, &spoor_options::token), "");
  const std::string spool = text_or(member(options, &spoor_options::spool), "");
  std::uint64_t buffer_bytes = member(options, &spoor_options::buffer_max);
  if (buffer_bytes == 0) buffer_bytes = spoor::client::QueueOptions().held_bytes_max;
  std::uint64_t spool_bytes = member(options, &spoor_options::spool_max);
  if (spool_bytes == 0) spool_bytes = spool_bytes_default;
  const auto endpoint = spoor::base::parse_endpoint("unix:" + socket);
  if (!endpoint) return fail(SPOOR_INVALID, endpoint.error().message);
  if (buffer_bytes < buffer_bytes_min || buffer_bytes > buffer_bytes_max)
    return fail(SPOOR_INVALID, "buffer_max is 512 KiB to 64 MiB");
  if (options != nullptr && has_unknown(*options))
    return fail(SPOOR_INVALID, "the options have members that this library does not know");
  if (std::ranges::any_of(token, [](unsigned char byte) { return byte <= ' ' || byte > '~'; }))
    return fail(SPOOR_INVALID, "the token has characters that no token has");
  auto files = std::make_unique<spoor::base::PosixFileSystem>();
  std::optional<Spool> opened;
  if (!spool.empty()) {
    auto found = Spool::open(*files, spool, socket, spool_bytes);
    if (!found) return fail(SPOOR_SPOOL_FAILED, found.error().message);
    opened.emplace(std::move(*found));
  }
  *client =
      std::make_unique<spoor_client>(*endpoint, token, buffer_bytes, std::move(files), std::move(opened))
          .release();
  return SPOOR_OK;
}

}  // namespace

extern "C" {

int spoor_open(const spoor_options* options, spoor_client** client) {
  if (client == nullptr) return fail(SPOOR_INVALID, "client is null");
  *client = nullptr;
  if (options != nullptr && options->size < sizeof(options->size))
    return fail(SPOOR_INVALID, "options->size is not set: sizeof(spoor_options)");
  return guarded([&] { return open_client(options, client); });
}

int spoor_mark(spoor_client* client, const char* path, size_t length, spoor_kind kind, int timeout_ms) {
  if (client == nullptr || path == nullptr || !is_kind(kind))
    return fail(SPOOR_INVALID, "the client or the path is null, or there is no such kind");
  return guarded(client, [&] { return client->mark({path, length}, kind, deadline_after(timeout_ms)); });
}

int spoor_mark_many(spoor_client* client, const char* const* paths, size_t count, spoor_kind kind,
                    int timeout_ms, size_t* marked) {
  if (marked != nullptr) *marked = 0;
  if (client == nullptr || (paths == nullptr && count > 0) || !is_kind(kind))
    return fail(SPOOR_INVALID, "the client or the paths are null, or there is no such kind");
  return guarded(client, [&] {
    const Deadline deadline = deadline_after(timeout_ms);
    for (size_t i = 0; i < count; ++i) {
      if (paths[i] == nullptr) return fail(SPOOR_INVALID, "a path is null");
      const int result = client->mark(paths[i], kind, deadline);
      if (result != SPOOR_OK) return result;
      if (marked != nullptr) ++*marked;
    }
    return int{SPOOR_OK};
  });
}

int spoor_flush(spoor_client* client, int timeout_ms) {
  if (client == nullptr) return fail(SPOOR_INVALID, "the client is null");
  return guarded(client, [&] { return client->result_of(client->queue.flush(deadline_after(timeout_ms))); });
}

int spoor_close(spoor_client* client, int timeout_ms) {
  if (client == nullptr) return SPOOR_OK;
  const int result = spoor_flush(client, timeout_ms);
  if (!client->process.is_this()) return result;
  const Uncancelled uncancelled;
  const std::unique_ptr<spoor_client> owned(client);
  return result;
}

int spoor_get_stats(spoor_client* client, spoor_stats* stats) {
  if (client == nullptr || stats == nullptr || stats->size < sizeof(stats->size))
    return fail(SPOOR_INVALID, "the client or the stats are null, or stats->size is not set");
  return guarded(client, [&] {
    const auto figures = client->queue.figures();
    const size_t size = std::min(stats->size, sizeof(spoor_stats));
    const spoor_stats all{.size = size,
                          .acknowledged = figures.acknowledged,
                          .ignored = figures.ignored,
                          .refused = figures.refused,
                          .held = figures.held,
                          .spooled = figures.spooled,
                          .cycle = figures.cycle};
    std::memcpy(stats, &all, size);
    return int{SPOOR_OK};
  });
}

const char* spoor_last_error(void) { return last_error.data(); }

const char* spoor_version(void) { return SPOOR_LIBRARY_VERSION; }

}  // extern "C"
