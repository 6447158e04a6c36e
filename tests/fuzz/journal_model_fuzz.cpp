// A life of a tracker with a journal, as the input tells it; then a crash that cuts off or damages the end
// of what was written. A replay from any snapshot must come to the state at the last commit before that.
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/byte_codec.h"
#include "tests/fakes/manual_clock.h"
#include "tests/fuzz/fuzz_support.h"
#include "tests/fuzz/segment_input.h"
#include "tracker/storage/recovery.h"

namespace spoor::tracker {
namespace {

using fuzz::require;

const NodeIdentity owner{"cluster", "node"};
constexpr JournalPosition run_distance = JournalPosition{1} << 40U;

std::string bytes_of(const TrackerState& state) {
  return encode_snapshot({owner, 1, base::WallTime{}, state});
}

std::size_t common_prefix(std::string_view one, std::string_view other) {
  const auto differ = std::mismatch(one.begin(), one.end(), other.begin(), other.end());
  return static_cast<std::size_t>(differ.first - one.begin());
}

class Model {
 public:
  explicit Model(std::string_view script) : script_(script) {
    header_.owner = owner;
    header_.instance.bytes.fill(7);
    begin_run(Tracker::born(header_.instance, clock_));
  }

  void run() {
    const std::uint16_t place = script_.u16();
    const std::uint8_t damage = script_.u8();
    const std::uint8_t from = script_.u8();
    while (script_.remaining() > 0) step();
    commit();
    check_whole(from);
    check_cut_off(place, from);
    check_damaged(place, damage, from);
  }

 private:
  // What is on disk when a commit is done, and what a replay of it must give.
  struct Commit {
    std::size_t segment = 0;
    std::size_t bytes = 0;  // of that segment
    TrackerState state;
  };

  void step() {
    switch (script_.u8() % 8) {
      case 0:
      case 1:
        return mark(MarkKind::dir);
      case 2:
        return mark(MarkKind::file);
      case 3:
        return mark(MarkKind::tree);
      case 4:
        clock_.advance(std::chrono::seconds(1));
        tracker_->advance({tracker_->state().current.value + script_.u8() % 8});
        return;
      case 5:
        return commit();
      case 6:
        return rotate();
      case 7:
        return restart();
    }
  }

  void mark(MarkKind kind) {
    const auto path = normalise_path(script_.raw(script_.u8() % 32));
    if (!path && kind != MarkKind::tree) return;
    const Mark mark{path ? *path : std::string(), kind};
    tracker_->mark({&mark, 1});
  }

  void commit() {
    const auto recorded = tracker_->take_records();
    require(recorded.start == commits_.back().state.position, "records follow on those that were taken");
    if (recorded.records.empty()) return;
    segments_.back() += encode_frame(header_.instance, recorded.start, recorded.records);
    remember();
    require(commits_.back().state.position == recorded.start + recorded.records.size(),
            "a tracker counts what it records");
  }

  void rotate() {
    commit();
    header_.start = header_.follows = tracker_->position();
    segments_.push_back(encode_segment_header(header_));
    starts_.push_back(header_.start);
    remember();
  }

  void restart() {
    commit();
    TrackerState state = tracker_->state();
    header_.follows = state.position;
    state.position += run_distance;
    begin_run(std::move(state));
  }

  void begin_run(TrackerState state) {
    header_.start = state.position;
    tracker_ = std::make_unique<Tracker>(options_, clock_, std::move(state));
    tracker_->start_recording();
    segments_.push_back(encode_segment_header(header_));
    starts_.push_back(header_.start);
    remember();
  }

  void remember() { commits_.push_back({segments_.size() - 1, segments_.back().size(), tracker_->state()}); }

  // From a snapshot that was taken at one of the commits up to `last`.
  Replay replay(const std::string& last_segment, std::size_t from, std::size_t last, bool same_boot) {
    LoadedJournal journal;
    for (std::size_t at = 0; at < segments_.size(); ++at) {
      const std::string& bytes = at + 1 < segments_.size() ? segments_[at] : last_segment;
      journal.segments.push_back(load_segment(bytes, starts_[at], header_.instance));
    }
    Replay replay = replay_journal(journal, commits_[from % (last + 1)].state, options_, clock_, same_boot);
    require(bytes_of(replay.state) == bytes_of(commits_[last].state), "a replay gives the state at its end");
    require(replay.state.position == commits_[last].state.position, "a replay ends where the journal does");
    return replay;
  }

  void check_whole(std::size_t from) {
    const Replay whole = replay(segments_.back(), from, commits_.size() - 1, true);
    require(whole.missing.empty() && whole.cut_off.empty(), "of a whole journal nothing is missing");
  }

  // The last commit that an end or a fault at this place of the last segment leaves alone. A frame is read
  // without its last byte, and whatever that is.
  std::size_t last_before(std::size_t place) const {
    std::size_t last = commits_.size() - 1;
    while (commits_[last].bytes > place + 1) --last;
    return last;
  }

  // A place in the last segment behind its header; its end where there is nothing.
  std::size_t place_of(std::size_t number) const {
    const std::size_t header = encode_segment_header(header_).size();
    const std::size_t frames = segments_.back().size() - header;
    return header + (frames == 0 ? 0 : number % frames);
  }

  void check_cut_off(std::size_t number, std::size_t from) {
    for (const bool same_boot : {false, true}) {
      for (const std::size_t ahead : {0U, 100U}) {
        const std::string left = segments_.back().substr(0, place_of(number)) + std::string(ahead, '\0');
        // Bytes that were to be zero are as if they were written.
        const std::size_t same = common_prefix(left, segments_.back());
        const std::size_t last = last_before(same);
        const Replay cut = replay(left, from, last, same_boot);
        require(cut.missing.empty(), "an unfinished write is no loss");
        require(cut.cut_off.empty() == (same <= commits_[last].bytes), "an unfinished write is told");
      }
    }
  }

  void check_damaged(std::size_t number, std::uint8_t damage, std::size_t from) {
    const std::size_t place = place_of(number);
    if (place == segments_.back().size() || damage == 0) return;
    const std::size_t last = last_before(place);
    const bool is_last_frame = last + 2 == commits_.size();
    const bool is_last_byte = commits_[last].bytes == place + 1;
    std::string damaged = segments_.back();
    damaged[place] = static_cast<char>(static_cast<std::uint8_t>(damaged[place]) ^ damage);
    damaged += std::string(100, '\0');  // written ahead
    if (is_last_byte) {
      require(replay(damaged, from, commits_.size() - 1, true).missing.empty(),
              "the last byte of a frame is no mark");
      return;
    }
    const bool after_power_cut = replay(damaged, from, last, false).missing.empty();
    const bool in_same_boot = replay(damaged, from, last, true).missing.empty();
    require(!in_same_boot, "without a power cut, what is not as it was written is a loss");
    require(after_power_cut == is_last_frame, "a power cut excuses the last write only");
  }

  base::ByteReader script_;
  fakes::ManualClock clock_;
  const Tracker::Options options_{LevelSchedule(200, 0.1), 4};
  SegmentHeader header_;
  std::unique_ptr<Tracker> tracker_;
  std::vector<std::string> segments_;
  std::vector<JournalPosition> starts_;
  std::vector<Commit> commits_;
};

}  // namespace
}  // namespace spoor::tracker

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  spoor::tracker::Model(spoor::fuzz::text_of(data, size)).run();
  return 0;
}
