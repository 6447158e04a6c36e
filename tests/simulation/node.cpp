#include "tests/simulation/node.h"

#include <fmt/core.h>

#include <algorithm>

#include "peer/gather/cycle_exchange.h"
#include "peer/gather/cycle_frame.h"
#include "peer/gather/handover.h"
#include "tests/fakes/saves.h"
#include "tracker/cycles/member_marks.h"
#include "tracker/paths/path.h"

namespace spoor::simulation {
namespace {

using tracker::CycleId;
using tracker::Durability;
using Fate = fakes::MemoryFileSystem::Fate;

constexpr const char* cluster = "c";
constexpr const char* data_dir = "/data";
constexpr const char* drive = "/drive";

std::unique_ptr<fakes::MemoryFileSystem> new_disks() {
  auto files = std::make_unique<fakes::MemoryFileSystem>();
  files->make_directory(data_dir);
  files->make_directory(drive);
  return files;
}

}  // namespace

Node::Node(std::uint32_t number, const Setup& setup, Bug bug)
    : bug_(bug), name_(fmt::format("n{}", number)), setup_(setup), files_(new_disks()) {
  start(0);
}

// Mostly the same options: each change of the filters adds a filter to the merged marks.
tracker::Persistence::Options Node::options() const {
  tracker::Persistence::Options options;
  options.data_dir = data_dir;
  options.drives = {drive};
  options.owner = {cluster, name_};
  options.boot_id = fmt::format("boot {}", boot_);
  const std::uint64_t items = choice_ % 8 == 1 ? 2 * std::uint64_t{setup_.items} + 1 : setup_.items;
  const double fp_rate = choice_ % 8 == 2 ? 0.01 : 0.1;
  options.tracker = {.levels = tracker::LevelSchedule(items, fp_rate), .history_max = setup_.history};
  const std::uint32_t kept = choice_ / 8 % 16;
  options.durability = kept == 1 ? Durability::memory : kept == 2 ? Durability::os : Durability::disk;
  return options;
}

void Node::start(std::uint32_t choice) {
  if (runs()) return;
  choice_ = choice;
  auto started = tracker::Persistence::start(*files_, clock_, options());
  if (!started) return;  // its disk is full
  persistence_ = *std::move(started);
  ++runs_;
  started_at_ = clock_.steady_now();
  const tracker::InstanceId before = std::exchange(instance_, tracker().status().instance);
  if (const std::string& loss = persistence_->report().loss; !loss.empty()) {
    const bool is_due = !ended_cleanly_ && (last_durability_ == Durability::memory ||
                                            (last_durability_ == Durability::os && lost_power_));
    if (!is_due) violation_ = fmt::format("{} lost its memory without a reason: {}", name_, loss);
    ++memory_.losses;
  } else if (runs_ > 1 && before != instance_ && !is_wiped_) {
    ++memory_.retirements;
  }
  is_wiped_ = false;
  last_durability_ = persistence_->durability();
  ended_cleanly_ = false;
  lost_power_ = false;
}

void Node::end_run() {
  persistence_.reset();
  split_off_.clear();
}

void Node::kill() {
  if (!runs()) return;
  end_run();
  files_->kill();
}

void Node::lose_power(std::uint32_t fates) {
  end_run();
  lost_power_ = true;
  ++boot_;
  std::uint32_t number = 0;
  files_->crash([&](const std::string&) {
    constexpr Fate all[] = {Fate::lost, Fate::kept, Fate::torn, Fate::reordered};
    if (fates % 4 < 2) return all[fates % 4];
    ++number;
    return all[(fates / 4 * 2654435761U + number * 40503U) % 65536U % 3U];
  });
}

void Node::stop() {
  if (!runs()) return;
  const auto last = fakes::stop(*persistence_);
  ended_cleanly_ = last && last->durable();
  end_run();
  files_->kill();
}

void Node::wipe() {
  end_run();
  files_ = new_disks();
  ended_cleanly_ = true;  // there is no last run
  lost_power_ = false;
  is_wiped_ = true;
  ++memory_.losses;
  split_marks_.clear();
}

tracker::JournalPosition Node::mark(const std::vector<tracker::Mark>& marks) {
  if (bug_ != Bug::split_chain) return tracker().mark(marks).position;
  place_split_marks();
  tracker::JournalPosition position = 0;
  for (const tracker::Mark& mark : marks) {
    const bool splits = mark.kind != tracker::MarkKind::tree;
    // A scan finds a changed file by its directory.
    const std::string last =
        mark.kind == tracker::MarkKind::file ? std::string(tracker::parent_path(mark.path)) : mark.path;
    const tracker::Mark parents{last, tracker::MarkKind::file};
    if (splits && !last.empty()) split_off_.push_back(last);
    const tracker::Mark& made = splits && !last.empty() ? parents : mark;
    position = std::max(position, tracker().mark({&made, 1}).position);
  }
  return position;
}

// Adds the split-off marks to the current cycle, which may have changed since their parents were marked.
void Node::place_split_marks() {
  for (const std::string& path : split_off_) {
    tracker::MarkSet set;
    set.add(tracker::hash_path(path), options().tracker.levels.shape(0));
    split_marks_.emplace_back(tracker().status().current, std::move(set));
  }
  split_off_.clear();
}

bool Node::is_durable(tracker::JournalPosition position) const {
  return persistence_->durable_position() >= position;
}

bool Node::commit() {
  place_split_marks();
  return persistence_->commit().has_value();
}

void Node::save() { fakes::save(*persistence_); }

// Corresponds to daemon/api/api.cpp.
Node::Answer Node::answer(const std::string& body) {
  const auto query = peer::parse_cycle_query(body);
  Answer made;
  if (!query) {
    violation_ = fmt::format("{} does not understand '{}'", name_, body);
    return made;
  }
  tracker::CycleRequest asked = query->request;
  if (!persistence_->journal_status().error.empty()) asked.current = {};
  peer::CycleFrame frame{{cluster, name_}, runs_, 0, {}};
  frame.answer = tracker().cycle(asked);
  frame.is_closed = persistence_->membership() != tracker::Membership::member;
  apply_bug(asked, frame.answer);
  made.position = frame.answer.position;
  if (query->member && bug_ != Bug::join_unrecorded) {
    const tracker::Mark joined = tracker::joined_mark(*query->member);
    made.position = std::max(made.position, tracker().mark({&joined, 1}).position);
  }
  made.memory = memory_;
  made.response = {200, std::string(peer::cycle_frame_content_type), peer::encode_cycle_frame(frame)};
  return made;
}

// Corresponds to daemon/membership/retirement.cpp, as do the next.
tracker::MarkSet Node::marks_to_hand_over(CycleId from) const {
  return peer::marks_to_hand_over(tracker(), bug_ == Bug::adopts_too_little ? current() : from);
}

tracker::JournalPosition Node::adopt(const Node& from, CycleId adopted_from, tracker::MarkSet marks) {
  const tracker::Retired retired{tracker::last_run_of(from.persistence_->runs()), adopted_from};
  const auto record = tracker::retired_mark({from.name_, from.instance_}, retired);
  tracker::MarkSet all = peer::everything(marks);
  if (bug_ == Bug::adopts_in_memory) {
    tracker().mark({&record, 1});
    commit();
  }
  marks.add_tree(record.path);
  if (const auto adopted = persistence_->adopt(std::move(marks))) return *adopted;
  all.add_tree(record.path);
  return persistence_->adopt(std::move(all)).value();
}

std::string Node::greeting() const {
  const auto hours = static_cast<std::uint64_t>((clock_.steady_now() - started_at_) / std::chrono::hours(1));
  const std::uint64_t run = tracker::run_of(persistence_->runs(), hours);
  return peer::probe_request({}, cluster, tracker::Joined{{name_, instance_}, run}).body;
}

// Corresponds to daemon/membership/introduction.cpp.
bool Node::meet(const peer::HttpResponse& response) {
  const auto frame = peer::decode_cycle_frame(response.body);
  if (!frame || (frame->is_closed && bug_ != Bug::records_late)) return false;
  const tracker::Mark joined = tracker::joined_mark({{frame->sender.node, frame->answer.instance}, 0});
  tracker().mark({&joined, 1});
  if (!persistence_->is_introduced())
    static_cast<void>(persistence_->note_known({clock_.steady_now(), clock_.wall_now()}, true));
  return true;
}

void Node::apply_bug(const tracker::CycleRequest& asked, tracker::CycleAnswer& answer) {
  for (const auto& [cycle, marks] : split_marks_) {
    if (asked.marks_wanted && (answer.gap || cycle >= asked.oldest)) answer.marks.merge(marks);
  }
  if (!asked.marks_wanted || (bug_ != Bug::live_excluded && bug_ != Bug::span_skipped)) return;
  const CycleId oldest = answer.gap ? CycleId{} : asked.oldest;
  const tracker::TrackerState state = tracker().state();
  answer.marks = {};
  CycleId first = state.oldest_kept;
  for (const tracker::ClosedSpan& closed : state.history) {
    const bool is_skipped = bug_ == Bug::span_skipped && first < oldest;
    if (closed.last >= oldest && !is_skipped) answer.marks.merge(*closed.marks);
    first = next(closed.last);
  }
  if (bug_ == Bug::span_skipped) answer.marks.merge(*state.current_marks);
}

}  // namespace spoor::simulation
