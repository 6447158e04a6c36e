// Clients that share a spool, with failures of any kind: no mark that a flush has promised is lost.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/client/mark_queue_fixture.h"
#include "tests/support/random.h"

namespace spoor::client {
namespace {

using Marks = std::set<std::pair<MarkKind, std::string>>;

// Marks what it acknowledges, and sometimes what it does not.
class UnreliableDaemon {
 public:
  explicit UnreliableDaemon(support::Random& random) : random_(random) {}

  peer::MarkReply respond(const MarkBatch& batch) {
    std::vector<std::string> paths = split(batch.paths);
    EXPECT_EQ(batch.count, paths.size());
    const bool fails = !is_healthy && random_.one_in(2);
    if (fails && random_.one_in(3)) throw std::bad_alloc();
    if (fails && random_.one_in(3)) return {.problem = "no right"};
    if (fails && random_.one_in(3)) return {.problem = "too large", .is_too_large = true};
    const auto refused = std::ranges::find_if(paths, [](const std::string& path) { return path[0] == '!'; });
    if (refused != paths.end()) {
      return {.problem = "bad path", .refused = static_cast<std::size_t>(refused - paths.begin())};
    }
    if (!fails || random_.one_in(2)) {
      for (std::string& path : paths) marked.emplace(batch.kind, std::move(path));
    }
    if (fails && random_.one_in(3)) throw std::bad_alloc();
    if (fails) return {.problem = "it is down", .may_retry = true};
    return {.is_acknowledged = true, .marked = batch.count};
  }

  bool is_healthy = false;
  Marks marked;

 private:
  support::Random& random_;
};

// A program that marks, until it ends.
struct Client {
  Client(fakes::MemoryFileSystem& files, UnreliableDaemon& daemon, bool has_spool)
      : spools(has_spool),
        spool(open(files)),
        queue(
            {.batch_bytes_max = 40, .held_bytes_max = 100, .spool = spools ? &spool : nullptr},
            [&](const MarkBatch& batch, Deadline) { return daemon.respond(batch); },
            [](const std::string&) {}) {}

  // Whatever call fails now.
  static Spool open(fakes::MemoryFileSystem& files) {
    for (;;) {
      if (auto spool = Spool::open(files, "/spool", "/spoor.sock", 2'000)) return *std::move(spool);
    }
  }

  const bool spools;
  Spool spool;
  MarkQueue queue;
  Marks held;     // by it alone, as far as it knows
  Marks spooled;  // by it
};

class RandomMarks {
 public:
  explicit RandomMarks(support::Random& random) : random_(random), daemon_(random) {
    files_.make_directory("/spool");
    for (auto& client : clients_) client = std::make_unique<Client>(files_, daemon_, true);
  }

  void step() {
    auto& client = *clients_.at(random_.below(clients_.size()));
    switch (random_.below(12)) {
      case 0:
        daemon_.is_healthy = !daemon_.is_healthy;
        return;
      case 1:
        files_.fail_call(random_.between(1, 8), random_.one_in(2) ? EIO : ENOSPC);
        return;
      case 2:
        if (random_.one_in(8)) end_all();
        if (random_.one_in(4)) start_again(clients_.at(random_.below(clients_.size())));
        return;
      case 3:
      case 4:
      case 5:
        flush(client);
        return;
      default:
        add(client);
    }
  }

  // With all well again.
  void expect_all_marked() {
    end_all(true);
    daemon_.is_healthy = true;
    for (auto& client : clients_) {
      const Outcome outcome = client->queue.flush(Deadline::max());
      EXPECT_TRUE(outcome == Outcome::done || outcome == Outcome::refused) << client->queue.problem();
    }
    expect_marked(promised_);
  }

 private:
  Deadline deadline() {
    return random_.one_in(2) ? Deadline::min()
                             : std::chrono::steady_clock::now() + std::chrono::milliseconds(random_.below(3));
  }

  void add(Client& client) {
    const auto kind = static_cast<MarkKind>(random_.below(3));
    std::string path = (random_.one_in(10) ? "!" : "") + std::to_string(++last_path_);
    path.append(random_.below(25), 'x');
    try {
      if (client.queue.add(kind, path, deadline()) == Outcome::done) client.held.emplace(kind, path);
    } catch (const std::bad_alloc&) {
      return;  // it may be held, and is not promised
    }
  }

  void flush(Client& client) {
    Outcome outcome{};
    try {
      outcome = client.queue.flush(deadline());
    } catch (const std::bad_alloc&) {
      return;
    }
    if (outcome == Outcome::spooled || (outcome == Outcome::refused && client.spools)) {
      promised_.insert(client.held.begin(), client.held.end());
      client.spooled.merge(client.held);
    } else if (outcome == Outcome::done || outcome == Outcome::refused) {
      expect_marked(client.held);
      expect_marked(client.spooled);
      client.spooled.clear();
      client.held.clear();
    }
  }

  // The programs end, or the machine does. What they held is lost, which no flush had promised to keep.
  void end_all(bool spools = false) {
    for (auto& client : clients_) client.reset();
    if (random_.one_in(2)) {
      files_.kill();
    } else {
      files_.crash([&](const std::string&) {
        using enum fakes::MemoryFileSystem::Fate;
        return random_.pick(std::vector{lost, torn, reordered, kept});
      });
    }
    for (auto& client : clients_) start_again(client, spools);
  }

  void start_again(std::unique_ptr<Client>& client, bool spools = false) {
    client.reset();
    client = std::make_unique<Client>(files_, daemon_, spools || !random_.one_in(4));
  }

  void expect_marked(const Marks& marks) {
    for (const auto& [kind, path] : marks) {
      EXPECT_TRUE(path[0] == '!' || daemon_.marked.contains({kind, path})) << kind_name(kind) << ' ' << path;
    }
  }

  support::Random& random_;
  UnreliableDaemon daemon_;
  fakes::MemoryFileSystem files_;
  std::array<std::unique_ptr<Client>, 2> clients_;
  Marks promised_;  // by a flush that called them spooled
  int last_path_ = 0;
};

TEST(RandomMarks, AnyFailures_LoseNoMarkThatWasPromised) {
  SPOOR_RANDOM(random);
  for (int run = 0; run < 30 && !testing::Test::HasFailure(); ++run) {
    RandomMarks marks(random);
    for (int step = 0; step < 150; ++step) marks.step();
    marks.expect_all_marked();
  }
}

}  // namespace
}  // namespace spoor::client
