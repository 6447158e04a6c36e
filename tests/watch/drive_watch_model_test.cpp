// A watch of a drive whose directories change, and that is scanned, between any two of its steps.
#include <gtest/gtest.h>
#include <spdlog/spdlog.h>
#include <sys/fanotify.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <system_error>
#include <utility>

#include "tests/fakes/manual_clock.h"
#include "tests/support/sanitizer.h"
#include "tests/watch/model_drive.h"
#include "watch/drive_watch.h"

namespace spoor::watch {
namespace {

base::Error failure(std::errc code) { return {std::make_error_code(code), "a failure"}; }

// The world of one watch: whatever it calls, something else may happen before and after.
class World final : public MarkSink {
 public:
  explicit World(std::uint64_t seed) : drive_(seed) {
    options_.drive = "/drive";
    // Few kinds in one world: a gap hides what was missed before.
    failures_ = random().next() & random().next() & random().next();
    if (has(Failure::pending_full)) options_.pending_bytes_max = 500;
    if (has(Failure::queue_full)) options_.queue_bytes_max = 12;
    if (random().one_in(2)) options_.batch = std::chrono::seconds(2);
    restart(nullptr);
  }

  support::Random& random() { return drive_.random(); }

  void act();

  // A scan without failures.
  void settle() {
    is_calm_ = true;
    is_mounted_ = true;
    scan();
  }

  // What differed after a scan, although nothing changed while it ran; empty: nothing did.
  const std::string& missed() const { return missed_; }

  base::Result<> send(const std::filesystem::path&, const EventMarks& marks) override {
    interfere();
    if (fails(Failure::refused_path, 8)) return failure(std::errc::invalid_argument);
    if (fails(Failure::no_daemon, 4)) return failure(std::errc::io_error);
    drive_.mark(marks);
    interfere();
    if (fails(Failure::no_response, 4)) return failure(std::errc::io_error);
    return {};
  }

  base::Result<> report(const peer::WatchedDrive& drive) override {
    interfere();
    if (fails(Failure::no_daemon, 4)) return failure(std::errc::io_error);
    if (!cookie_.empty() && drive.is_watched && drive.cookie == cookie_) confirmed_ = drive.gap.id;
    interfere();
    if (fails(Failure::no_response, 4)) return failure(std::errc::io_error);
    return {};
  }

 private:
  class Source;

  enum class Failure : std::uint8_t {
    pending_full,
    queue_full,
    kept_restart,
    restart,
    unmount,
    dropped_events,
    refused_path,
    no_daemon,
    no_response,
    hung,
    unresolved
  };
  bool has(Failure kind) const { return ((failures_ >> static_cast<unsigned>(kind)) & 1U) != 0; }
  bool fails(Failure kind, std::uint64_t one_in) { return has(kind) && !is_calm_ && random().one_in(one_in); }

  // What changes the drive meanwhile.
  void interfere() {
    if (is_calm_ || is_quiet_) return;
    while (!random().one_in(3)) {
      drive_.change();
    }
  }

  // As `spoor scan` does: whatever changed before is in it, whether or not the cookie comes back. Only what
  // is marked is read if it does, with the gap that the last scan knew.
  void scan();
  bool synchronise();

  // A service manager may keep the queue, unless events were in flight.
  void restart(std::unique_ptr<EventSource> kept);
  void unmount() {
    is_mounted_ = false;
    drive_.listen(false);
  }
  base::Result<std::unique_ptr<EventSource>> open();

  ModelDrive drive_;
  fakes::ManualClock clock_;
  DriveWatch::Options options_;
  bool is_mounted_ = true;
  bool is_calm_ = false;
  bool is_quiet_ = false;
  std::string missed_;
  std::uint64_t failures_ = 0;  // a bit for each kind
  bool is_in_flight_ = true;
  peer::DriveGap settled_gap_;
  std::string cookie_;     // of the scan that waits; empty: none does
  std::string confirmed_;  // the gap that was reported with it
  std::string known_gap_;  // of the last scan
  std::unique_ptr<DriveWatch> watch_;
};

class World::Source final : public EventSource {
 public:
  explicit Source(World& world)
      : EventSource(std::size_t{1} << world.random().between(8, 20)), world_(world) {}

  base::Result<> enter() override {
    if (!world_.is_mounted_) return failure(std::errc::no_such_device);
    return {};
  }
  void leave() override {}
  base::Result<std::vector<KernelEvent>> read() override {
    world_.interfere();
    auto& queue = world_.drive_.queue();
    const auto count = std::min<std::size_t>(queue.size(), 1 + world_.random().below(10));
    if (count > 0) world_.is_in_flight_ = true;
    std::vector<KernelEvent> events(queue.begin(), queue.begin() + static_cast<std::ptrdiff_t>(count));
    queue.erase(queue.begin(), queue.begin() + static_cast<std::ptrdiff_t>(count));
    return events;
  }
  base::Result<std::optional<Place>> resolve(const DirectoryHandle& handle) override {
    if (handle == "spoor") return std::optional(Place{".spoor"});
    if (world_.random().one_in(8)) world_.interfere();
    if (world_.fails(Failure::unresolved, 100)) return failure(std::errc::not_enough_memory);
    return world_.drive_.resolve(handle);
  }
  base::Result<std::optional<Place>> resolve(const EntryName&, const FileHandle&) override {
    return std::optional<Place>();
  }
  std::uint64_t queue_bytes() override { return world_.drive_.queue().size(); }
  void settle(const peer::DriveGap& gap) override {
    world_.is_in_flight_ = false;
    world_.settled_gap_ = gap;
  }
  const peer::DriveGap& settled() const override { return world_.settled_gap_; }
  void discard() override {}
  int descriptor() const override { return 1; }
  std::vector<std::string> own_directories() const override { return {".spoor"}; }

 private:
  World& world_;
};

void World::act() {
  if (fails(Failure::kept_restart, 20) && !is_in_flight_) return restart(std::make_unique<Source>(*this));
  if (fails(Failure::restart, 40)) return restart(nullptr);
  if (fails(Failure::unmount, 40)) return unmount();
  if (fails(Failure::dropped_events, 40)) drive_.queue().push_back({FAN_Q_OVERFLOW, {}, {}});
  if (random().one_in(10)) return scan();
  if (random().one_in(3)) {
    watch_->step();
    clock_.advance(std::chrono::milliseconds(random().below(8000)));
  } else {
    interfere();
  }
}

void World::scan() {
  is_quiet_ = is_calm_ || random().one_in(2);
  const bool is_watched = synchronise();
  if (!is_watched || confirmed_ != known_gap_) drive_.set_gap();
  if (is_watched) known_gap_ = confirmed_;
  drive_.scan();
  if (is_quiet_ && missed_.empty()) missed_ = drive_.difference();
  is_quiet_ = false;
}

// Returns whether the cookie came back in time.
bool World::synchronise() {
  cookie_ = peer::new_cookie();
  confirmed_.clear();
  const int steps_max = is_calm_ ? 1000 : static_cast<int>(random().between(1, 10));
  for (int step = 0; step < steps_max && confirmed_.empty(); ++step) {
    if (drive_.is_listening()) drive_.queue().push_back({FAN_CREATE, {"spoor", cookie_}, {}});
    if (fails(Failure::hung, 3)) break;
    watch_->step();
    clock_.advance(std::chrono::seconds(1));
  }
  cookie_.clear();
  return !confirmed_.empty();
}

void World::restart(std::unique_ptr<EventSource> kept) {
  if (!kept) {
    drive_.listen(false);
    is_in_flight_ = true;
  }
  watch_ = std::make_unique<DriveWatch>(options_, [this] { return open(); }, *this, clock_, std::move(kept));
}

base::Result<std::unique_ptr<EventSource>> World::open() {
  interfere();
  if (!is_mounted_ && fails(Failure::unmount, 2)) return failure(std::errc::no_such_device);
  is_mounted_ = true;
  drive_.listen(true);
  is_in_flight_ = true;
  interfere();
  return std::unique_ptr<EventSource>(std::make_unique<Source>(*this));
}

TEST(DriveWatchModelTest, RandomChangesAndScans_NoChangeIsMissed) {
  SPOOR_RANDOM(seeds);
  const char* const given = std::getenv("SPOOR_WATCH_MODELS");
  const int models = given != nullptr ? std::atoi(given) : support::is_sanitized ? 200 : 3000;
  spdlog::set_level(spdlog::level::off);
  for (int model = 0; model < models; ++model) {
    const std::uint64_t seed = seeds.next();
    World world(seed);
    for (int round = 0; round < 3; ++round) {
      for (int action = 0; action < 60; ++action) world.act();
    }
    world.settle();
    ASSERT_EQ(world.missed(), "") << "model " << model << ", seed " << seed;
  }
}

}  // namespace
}  // namespace spoor::watch
