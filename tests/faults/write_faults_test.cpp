// Each write of spoord, the scan and spoor-publish fails once, or fails until the disk is well again: nothing
// that was acknowledged is lost, no scan reports success with totals that are not true, and everything
// recovers by itself. SPOOR_WRITE_FAULTS sets how many of the writes are tried; 0: all.
#include "tests/faults/write_faults.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <array>
#include <cstring>
#include <set>

#include "base/file_system.h"
#include "tests/faults/fault_fixture.h"
#include "tests/publish/http_collector.h"
#include "tests/support/file_times.h"
#include "tests/support/tree_totals.h"

namespace spoor::faults {
namespace {

constexpr std::uint64_t never = ~std::uint64_t{0};

// The faults of all programs that a test starts.
class SharedFaults {
 public:
  explicit SharedFaults(const fs::path& file) {
    const base::Descriptor fd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (::ftruncate(fd.get(), sizeof(WriteFaults)) != 0) throw std::runtime_error("ftruncate");
    void* const at = ::mmap(nullptr, sizeof(WriteFaults), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
    if (at == MAP_FAILED) throw std::runtime_error("mmap");
    faults_ = static_cast<WriteFaults*>(at);
    heal();
  }
  SharedFaults(const SharedFaults&) = delete;
  SharedFaults& operator=(const SharedFaults&) = delete;
  ~SharedFaults() { ::munmap(faults_, sizeof(WriteFaults)); }

  void fail(std::uint64_t first, std::uint64_t last, int error) {
    faults_->calls = 0;
    faults_->error = error;
    faults_->last = last;
    faults_->first = first;
  }
  void heal() { fail(never, never, 0); }
  std::uint64_t calls() const { return faults_->calls; }

 private:
  WriteFaults* faults_ = nullptr;
};

// The life of a node on one disk, which holds its data directory and its drive's `.spoor`.
class Life {
 public:
  explicit Life(const fs::path& directory) : directory_(directory), faults_(made(directory) / "faults") {
    fs::create_directories(disk() / "drive");
    nlohmann::json sink = published_.sink();
    sink["name"] = "events";
    const nlohmann::json config{{"node", {{"name", "n1"}, {"data_dir", disk() / "data"}}},
                                {"drives", {disk() / "drive"}},
                                {"listen", {{{"unix", directory_ / "sock"}}}},
                                {"publish", {{"sinks", nlohmann::json::array({sink})}}},
                                {"scan", {{"min_cycle_age", "1ms"}}}};
    std::ofstream(directory_ / "spoor.json") << config;
  }

  SharedFaults& faults() { return faults_; }

  // Everything that a node does, to its end, whatever fails of it.
  void live() {
    start();
    change("a/1");
    scan({});
    change("a/2/3");
    take_changes();
    snapshot();
    change("b");
    scan({});
    take_changes();
    stop();
    change("c/4");
    start();
    change("c/5");
    scan({"--full"});
    change("a/1");
    take_changes();
    scan({});
    stop();
  }

  // Once the disk is well, without a hand: writers repeat what was not acknowledged, and timers go on.
  void expect_recovery() {
    faults_.heal();
    if (!daemon_) start();
    ASSERT_TRUE(daemon_) << what_failed_;
    while (!unmarked_.empty()) mark_all();  // the daemon tries again after 8 s at most
    EXPECT_EQ(scan({}), 0) << last_.err << last_.out;
    take_changes();
    std::set<std::string> published;
    for (const publish::Event& event : published_.events()) published.insert(event.path);
    for (const std::string& path : changed_) {
      EXPECT_TRUE(published.contains(path)) << path << '\n' << what_failed_;
      EXPECT_TRUE(taken_.contains(path)) << path << '\n' << what_failed_ << last_.out;
    }
    stop();
  }

  // Two scans, the second of which found `path`.
  void scan_twice(const std::string& path) {
    start();
    change("a");
    EXPECT_EQ(scan({}), 0);
    change(path);
    EXPECT_EQ(scan({}), 0);
    stop();
  }

  // A consumer that has read the first scan reads on while calls fail, and again if that failed. Returns how
  // many calls there were.
  std::uint64_t read_on(const std::string& path, std::uint64_t first, std::uint64_t last, int error) {
    const auto read = [&] { return spoor({"changes", "--consumer", "backup", "--commit"}); };
    EXPECT_TRUE(spoor({"changes", "--consumer", "backup", "--commit", "--quiet", "--until", "1"}))
        << last_.err;
    faults_.fail(first, last, error);
    const bool is_read = read();
    const std::uint64_t calls = faults_.calls();
    faults_.heal();
    EXPECT_TRUE(is_read || read()) << last_.err;
    EXPECT_NE(last_.out.find(path), std::string::npos) << what_failed_;
    what_failed_.clear();
    return calls;
  }

 private:
  static fs::path made(const fs::path& directory) {
    fs::create_directories(directory);
    return directory;
  }
  fs::path disk() const { return directory_ / "disk"; }

  std::vector<std::string> command(const char* program, std::vector<std::string> arguments) const {
    std::vector<std::string> all{"env",
                                 "LD_PRELOAD=" FAILING_WRITES_LIBRARY,
                                 "FAILING_WRITES=" + (directory_ / "faults").native(),
                                 "FAILING_WRITES_BELOW=" + disk().native(),
                                 program,
                                 "--config",
                                 (directory_ / "spoor.json").native()};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return all;
  }

  bool spoor(std::vector<std::string> arguments) {
    last_ = support::run_command(command(SPOOR, std::move(arguments)));
    if (last_.code != 0) what_failed_ += last_.err;
    EXPECT_LT(last_.code, 128) << "a signal: " << last_.err;
    return last_.code == 0;
  }

  void start() {
    auto daemon = std::make_unique<support::Daemon>(command(SPOORD, {}));
    if (!daemon->wait_for("listening on ").empty()) {
      daemon_ = std::move(daemon);
    } else {
      EXPECT_LT(daemon->wait(), 128) << daemon->log();
      what_failed_ += daemon->log();
    }
  }

  void stop() {
    if (!daemon_) return;
    daemon_->signal(SIGTERM);
    EXPECT_LT(daemon_->wait(), 128) << daemon_->log();
    daemon_.reset();
  }

  // The drive is not written by Spoor but for its `.spoor`: this never fails.
  void change(const std::string& path) {
    fs::create_directories(disk() / "drive" / path);
    std::ofstream(disk() / "drive" / path / "file", std::ios::app) << "some bytes";
    changed_.insert(path);
    unmarked_.insert(path);
    support::outlast_timestamp_step();
    mark_all();
  }

  void mark_all() {
    if (post("/v1/marks", nlohmann::json{{"paths", unmarked_}}.dump())) unmarked_.clear();
  }

  void snapshot() { post("/v1/snapshot", {}); }

  bool post(const std::string& target, const std::string& body) {
    peer::HttpTransport transport({.timeout = std::chrono::minutes(2)});
    const auto endpoint = base::parse_endpoint("unix:" + (directory_ / "sock").native()).value();
    const auto response = peer::exchange(transport, {endpoint, "POST", target, "application/json", body});
    if (response && !response->is_success()) what_failed_ += response->body;
    return response && response->is_success();
  }

  // A scan that reports success knows all that was acknowledged.
  int scan(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "scan");
    if (!spoor(std::move(arguments)) || !unmarked_.empty()) return last_.code;
    const auto usage = support::run_command(command(SPOOR, {"usage", "--json"}));
    const auto json = nlohmann::json::parse(usage.out, nullptr, false);
    if (!json.is_object()) return last_.code;  // it could not be read, and this was said
    const auto totals = support::walk_independently({disk() / "drive"});
    EXPECT_EQ(json.value("files", 0U), totals.files) << last_.out;
    EXPECT_EQ(json.value("bytes", 0U), totals.bytes) << last_.out;
    return 0;
  }

  void publish() {
    last_ = support::run_command(command(SPOOR_PUBLISH, {"--once"}));
    if (last_.code != 0) what_failed_ += last_.err;
    EXPECT_LT(last_.code, 128) << "a signal: " << last_.err;
  }

  // As a backup: what was copied counts once the position is stored, and is copied anew otherwise.
  void take_changes() {
    publish();
    if (!spoor({"changes", "--consumer", "backup", "--commit"})) {
      if (last_.err.find("copy everything once") != std::string::npos) taken_ = changed_;  // by a full copy
      return;
    }
    std::istringstream lines(last_.out);
    for (std::string line; std::getline(lines, line);) {
      if (line.ends_with('/')) line.pop_back();
      taken_.insert(line);
    }
  }

  const fs::path directory_;
  SharedFaults faults_;
  publish::HttpCollector published_{"batched"};
  std::unique_ptr<support::Daemon> daemon_;
  std::set<std::string> changed_;
  std::set<std::string> unmarked_;
  std::set<std::string> taken_;
  support::CommandResult last_;
  std::string what_failed_;
};

std::uint64_t tries_wanted(std::uint64_t all) {
  const char* const wanted = std::getenv("SPOOR_WRITE_FAULTS");
  const std::uint64_t tries = wanted == nullptr ? 12 : std::strtoull(wanted, nullptr, 10);
  return tries == 0 ? all : tries;
}

TEST(WriteFaultsTest, AnyWriteThatFails_LosesNothingAndRecovers) {
  const support::TempDirectory directory;
  std::uint64_t calls = 0;
  {
    Life life(directory / "none");
    life.live();
    calls = life.faults().calls();
    life.expect_recovery();
  }
  ASSERT_GT(calls, 50U) << "the library sees no writes";
  SPOOR_RANDOM(random);
  const std::array errors{ENOSPC, EDQUOT, EROFS};
  const std::uint64_t all = calls * errors.size() * 2;
  const std::uint64_t tries = tries_wanted(all);
  for (std::uint64_t number = 0; number < tries && !HasFailure(); ++number) {
    const std::uint64_t choice = tries == all ? number : random.below(all);
    const std::uint64_t first = choice / (2 * errors.size()) + 1;
    const int error = errors[choice / 2 % errors.size()];
    const bool until_healed = choice % 2 == 1;
    SCOPED_TRACE(fmt::format("write {} of {}, {}{}", first, calls, std::strerror(error),
                             until_healed ? ", and all after it" : ""));
    const fs::path place = directory / fmt::format("{}", number);
    Life life(place);
    life.faults().fail(first, until_healed ? never - 1 : first, error);
    life.live();
    life.expect_recovery();
    fs::remove_all(place);
  }
  RecordProperty("writes", static_cast<int>(calls));
}

// A position that moves although the command fails: the changes are skipped, and in no backup.
TEST(WriteFaultsTest, EachWriteOfAConsumerThatFails_SkipsNoChange) {
  const support::TempDirectory directory;
  Life life(directory / "consumer");
  life.scan_twice("b");
  for (const int error : {ENOSPC, EROFS}) {
    for (const bool until_healed : {false, true}) {
      std::uint64_t first = 0;
      for (bool has_failed = true; has_failed && !testing::Test::HasFailure();) {
        ++first;
        SCOPED_TRACE(fmt::format("write {}, {}, {}", first, std::strerror(error), until_healed));
        has_failed = life.read_on("b/", first, until_healed ? never - 1 : first, error) >= first;
      }
      EXPECT_GT(first, 5U);
    }
  }
}

}  // namespace
}  // namespace spoor::faults
