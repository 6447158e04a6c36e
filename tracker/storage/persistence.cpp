#include "tracker/storage/persistence.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/byte_codec.h"
#include "base/printable.h"
#include "tracker/errors.h"
#include "tracker/storage/mark_set_codec.h"

namespace spoor::tracker {
namespace {

constexpr std::chrono::minutes::rep minutes_max = std::int64_t{1} << 40U;

// Packed: in the journal's buffer, which has Tracker::recorded_bytes_max.
constexpr std::size_t adopted_bytes_max = std::size_t{16} << 20U;

// What the last run recorded of an instance that continues, on the clocks of this boot.
void carry_over(const InstanceRecord& last, const base::Clock& clock, InstanceRecord& record) {
  record.is_introduced = last.is_introduced;
  record.runs = last.runs;
  record.membership = last.membership;
  record.known_at = last.known_at;
  const bool is_same_boot = !record.boot_id.empty() && last.boot_id == record.boot_id;
  if (!record.known_at || is_same_boot) return;
  const auto elapsed = clock.wall_now() - record.known_at->wall;  // only the time of day continues
  record.known_at->steady = clock.steady_now() - elapsed;
  if (elapsed.count() < 0) record.known_at.reset();
}

// Follows the time of day where that is ahead, so that an old copy of the files has a larger number, too.
std::uint64_t next_run(std::uint64_t last, const base::Clock& clock) {
  const auto minutes = std::chrono::floor<std::chrono::minutes>(clock.wall_now().time_since_epoch()).count();
  return std::max(last + 1,
                  static_cast<std::uint64_t>(std::clamp(minutes, decltype(minutes){0}, minutes_max)));
}

}  // namespace

Persistence::Persistence(base::FileSystem& files, const base::Clock& clock, Options options)
    : files_(files),
      clock_(clock),
      options_(std::move(options)),
      store_(files, options_.drives, options_.owner, options_.data_dir, options_.find_overlap,
             snapshot_bytes_max_of(options_.tracker)),
      journal_(files, options_.data_dir, options_.durability == Durability::disk) {}

base::Result<std::unique_ptr<Persistence>> Persistence::start(base::FileSystem& files,
                                                              const base::Clock& clock, Options options) {
  std::unique_ptr<Persistence> persistence(new Persistence(files, clock, std::move(options)));
  if (auto done = persistence->begin(); !done) return done.error();
  return persistence;
}

base::Result<> Persistence::begin() {
  RecoveryInput input;
  input.record = read_instance_record(files_, options_.data_dir);
  std::optional<InstanceId> living;
  if (input.record && *input.record) living = (*input.record)->instance;
  input.snapshot = store_.load(living);
  if (living) input.journal = load_journal(files_, options_.data_dir, options_.owner, *living);
  report_loaded(input.snapshot);

  const RecoveryContext now{clock_, options_.tracker, options_.rules, options_.boot_id};
  auto recovery = recover(input, now);
  instance_ = recovery.state.instance;
  record_ = {.instance = instance_,
             .clean_stop = std::nullopt,
             .rules = options_.rules,
             .durability = options_.durability,
             .boot_id = options_.boot_id,
             .birth = recovery.birth};
  if (living == instance_) {
    carry_over(**input.record, clock_, record_);
  } else if (living && (*input.record)->membership == Membership::retired) {
    record_.membership = Membership::returned;
  }
  // A retirement is repeated under one number.
  if (!is_leaving(record_.membership)) record_.runs = next_run(record_.runs, clock_);
  runs_ = record_.runs;
  report_.loss = std::move(recovery.loss);
  if (!recovery.cut_off.empty()) report_.notes.push_back(std::move(recovery.cut_off));

  const JournalPosition start = recovery.state.position;
  tracker_ = std::make_unique<Tracker>(options_.tracker, clock_, std::move(recovery.state));
  const bool has_journal = options_.durability != Durability::memory;
  durable_ = has_journal ? start : std::numeric_limits<JournalPosition>::max();
  if (has_journal) {
    if (living == instance_) journal_.adopt(input.journal);
    if (auto done = journal_.sync_adopted(); !done) return done;
    tracker_->start_recording();
    if (auto done = journal_.begin({options_.owner, instance_, start, recovery.follows}); !done) return done;
  }
  // After this write, a start after a crash reads this instance's journal, so the journal must exist. Before
  // it, the files of the last run must not be changed.
  if (auto done = note(record_); !done) {
    journal_.abandon();
    return done;
  }
  for (std::string& kept : journal_.remove_leftovers()) report_.notes.push_back(std::move(kept));
  return {};
}

void Persistence::report_loaded(const LoadedSnapshot& loaded) {
  if (!loaded.registry_error.empty()) report_.notes.push_back(loaded.registry_error);
  for (const DriveState& drive : loaded.drives) {
    if (!drive.ok)
      report_.notes.push_back(
          fmt::format("drive {}: {}", base::printable(drive.drive.native()), drive.error));
  }
}

// What the record says counts from the begin of the write on; as before if it can't be written.
base::Result<> Persistence::note(const InstanceRecord& changed) {
  is_introduced_ = changed.is_introduced;
  membership_ = changed.membership;
  auto done = write_instance_record(files_, options_.data_dir, changed);
  if (done) {
    record_ = changed;
  } else {
    is_introduced_ = record_.is_introduced;
    membership_ = record_.membership;
  }
  return done;
}

std::optional<KnownAt> Persistence::known_at() const {
  const std::scoped_lock lock(noting_);
  return record_.known_at;
}

base::Result<> Persistence::note_known(const KnownAt& at, bool is_introduced) {
  const std::scoped_lock lock(noting_);
  if (record_.clean_stop) return {};
  InstanceRecord changed = record_;
  changed.known_at = at;
  changed.is_introduced = record_.is_introduced || is_introduced;
  if (is_introduced && record_.membership == Membership::returned) changed.membership = Membership::member;
  return note(changed);
}

base::Result<> Persistence::note_membership(Membership membership) {
  const std::scoped_lock lock(noting_);
  InstanceRecord changed = record_;
  changed.clean_stop.reset();
  changed.membership = membership;
  return note(changed);
}

base::Result<JournalPosition> Persistence::adopt(MarkSet marks) {
  // Foreign shapes would pile up in the history, and a packed filter of a few bytes may be a large one once
  // spans are merged.
  const LevelSchedule& levels = options_.tracker.levels;
  const auto is_adopted = [&](const BloomFilter& filter) {
    return levels.level_of(filter.shape()) &&
           filter.shape().byte_count() <=
               std::max(options_.tracker.memory_bytes_max / 4, levels.shape(0).byte_count());
  };
  const auto refused = std::ranges::find_if_not(marks.filters(), is_adopted);
  if (refused != marks.filters().end()) {
    return base::Error(
        std::make_error_code(std::errc::message_size),
        fmt::format("a filter of {} bits, which is of another tracker.items or tracker.fp_rate, or too large "
                    "for tracker.memory_limit",
                    refused->shape().bits));
  }
  marks = marks.packed();
  base::ByteWriter out;
  encode_mark_set(out, marks);
  if (out.bytes().size() > adopted_bytes_max) {
    return base::Error(std::make_error_code(std::errc::message_size),
                       fmt::format("marks of {} bytes, and this node adopts up to {} at once",
                                   out.bytes().size(), adopted_bytes_max));
  }
  return tracker_->adopt(std::make_shared<const MarkSet>(std::move(marks)), out.take());
}

base::Result<> Persistence::commit() {
  const std::scoped_lock lock(writing_);
  return commit_locked();
}

base::Result<> Persistence::commit_locked() {
  if (options_.durability == Durability::memory) return {};
  if (const auto status = journal_status(); !status.error.empty()) {
    return base::Error(Errc::not_durable, status.error);
  }
  const auto recorded = tracker_->take_records();
  if (recorded.is_cut_off) {
    return fail(
        {Errc::not_durable,
         "the journal was not written for so long that more marks came than are kept in memory for it"});
  }
  if (recorded.records.empty()) return {};
  if (journal_.bytes() + recorded.records.size() > options_.journal_bytes_max) {
    return fail({Errc::not_durable,
                 fmt::format("the journal in {} is at its bound ({} bytes) until a drive takes a snapshot, "
                             "which frees it",
                             options_.data_dir.native(), journal_.bytes())});
  }
  if (auto done = journal_.append(recorded.records); !done) return fail(done.error());
  durable_ = std::max<JournalPosition>(durable_, recorded.start + recorded.records.size());
  return {};
}

// After a failure marks are in memory only, until a snapshot holds them.
base::Result<> Persistence::fail(const base::Error& error) {
  tracker_->stop_recording();
  recording_anew_from_.reset();
  const std::scoped_lock lock(status_mutex_);
  failure_ = error.message;
  ++failures_;
  return base::Error(Errc::not_durable, failure_);
}

bool Persistence::is_failed() const { return !journal_status().error.empty(); }

JournalPosition Persistence::durable_position() const { return durable_; }

std::shared_ptr<const PreparedSnapshot> Persistence::begin_save() {
  return std::make_shared<const PreparedSnapshot>(store_.prepare(state_to_save(), clock_.wall_now()));
}

// A snapshot must hold no marks that the journal does not hold. Otherwise a mark that adds nothing to them is
// acknowledged at once, and is lost together with the drive that has the snapshot; the loss is not detected
// if an older snapshot and the journal are complete. While the journal has failed no mark is acknowledged, so
// marking can wait for the exact copy.
TrackerState Persistence::state_to_save() {
  prepare_save();
  if (options_.durability == Durability::memory) return tracker_->state();
  if (!is_failed()) {
    TrackerState state = tracker_->state();
    if (commit()) return state;
    prepare_save();
  }
  return tracker_->exact_state();
}

void Persistence::prepare_save() {
  if (options_.durability == Durability::memory) return;
  const std::scoped_lock lock(writing_);
  // A new segment for the records that the snapshot will not hold. Not after a failed save: the number of
  // segments would grow as long as no snapshot can be saved.
  if (!is_failed() && last_save_durable_) {
    auto done = commit_locked();
    if (done) done = journal_.rotate();
    if (!done && !is_failed()) static_cast<void>(fail(done.error()));
  }
  if (is_failed()) recording_anew_from_ = tracker_->start_recording();
}

void Persistence::finish_save(const SavedSnapshot& saved, JournalPosition covered) {
  if (options_.durability == Durability::memory) return;
  const std::scoped_lock lock(writing_);
  last_save_durable_ = saved.durable();
  const auto anew_from = std::exchange(recording_anew_from_, std::nullopt);
  if (!saved.durable()) {
    if (anew_from) tracker_->stop_recording();
    return;
  }
  if (anew_from) {
    // The snapshot holds all records before `anew_from`. Only the new segment shows that records are missing
    // in the journal before it, if only an older snapshot is left: the position is durable only after it is
    // written.
    if (auto done = journal_.begin({options_.owner, instance_, *anew_from, *anew_from}); !done) {
      static_cast<void>(fail(done.error()));
      return;
    }
    durable_ = std::max<JournalPosition>(durable_, *anew_from);
    const std::scoped_lock status_lock(status_mutex_);
    failure_.clear();
  }
  journal_.cut(covered);
}

// A mark after the record would be lost without notice: the next start does not read the journal. So none is
// acknowledged from here on.
base::Result<> Persistence::record_stop(const SavedSnapshot& saved) {
  {
    const std::scoped_lock lock(writing_);
    static_cast<void>(fail({Errc::not_durable, "spoord has stopped"}));
  }
  const std::scoped_lock lock(noting_);
  InstanceRecord changed = record_;
  changed.clean_stop = {saved.generation, tracker_->position()};
  auto done = note(changed);
  if (done) return done;
  return base::wrap(
      "stopped, and the snapshot is saved, but the clean stop could not be recorded: the next start is "
      "treated as one after a crash",
      done.error());
}

bool Persistence::wants_save() const { return journal_.bytes() > options_.journal_bytes_max / 2; }

JournalStatus Persistence::journal_status() const {
  const std::scoped_lock lock(status_mutex_);
  return {journal_.bytes(), failures_, failure_};
}

}  // namespace spoor::tracker
