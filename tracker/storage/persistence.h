// A tracker and its persistent state: snapshots on the drives; the journal and the instance record in
// node.data_dir. See docs/durability.md.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/file_system.h"
#include "tracker/cycles/tracker.h"
#include "tracker/storage/instance_record.h"
#include "tracker/storage/journal.h"
#include "tracker/storage/recovery.h"
#include "tracker/storage/snapshot_store.h"

namespace spoor::tracker {

// The result of a start, for the log.
struct StartReport {
  std::string loss;                // as in Recovery
  std::vector<std::string> notes;  // on unusable files and drives, unfinished writes, and files kept aside
};

struct JournalStatus {
  std::uint64_t bytes = 0;
  std::uint64_t failures = 0;  // since the start
  std::string error;           // why marks are not acknowledged at present; empty if the journal works
};

// Thread-safe, with the limits stated at each function. The functions that write block on the disk.
class Persistence {
 public:
  struct Options {
    std::filesystem::path data_dir;
    std::vector<std::filesystem::path> drives;
    FindOverlap find_overlap;  // called before a drive is admitted; may be empty
    NodeIdentity owner;
    Durability durability = Durability::disk;
    std::string boot_id;
    std::string rules;  // NamespaceRules::fingerprint()
    Tracker::Options tracker;
    // Over this size commit() fails until a snapshot frees the journal.
    std::uint64_t journal_bytes_max = std::uint64_t{256} << 20U;
  };

  // Recovers the state of the last run, and records on disk that a run has begun. Fails if data_dir can't be
  // written to. `files` and `clock` must outlive the object.
  static base::Result<std::unique_ptr<Persistence>> start(base::FileSystem& files, const base::Clock& clock,
                                                          Options options);

  Tracker& tracker() { return *tracker_; }
  const StartReport& report() const { return report_; }
  Durability durability() const { return options_.durability; }

  // Makes all recorded marks durable, in one write. Fails with Errc::not_durable if the journal can't be
  // written, now or since an earlier failure; the next durable save begins the journal anew. One call at a
  // time.
  base::Result<> commit();

  // Marks up to this position are durable in the sense of durability(). Never blocks.
  JournalPosition durable_position() const;

  // A save, in steps for a caller that does not wait for a drive that hangs: begin_save(); save_to() for
  // each drive; finish_save() with the results, in which a drive that has not finished is not ok: it frees
  // the journal before the snapshot, and begins the journal anew if it had failed and the snapshot is
  // durable. Marking and commit() continue during the save. One save at a time. save_to() may run at the same
  // time for different drives, and end after finish_save(): the drive then holds an older snapshot than
  // others, or none.
  std::shared_ptr<const PreparedSnapshot> begin_save();
  DriveState save_to(std::size_t drive, const PreparedSnapshot& snapshot) {
    return store_.save_to(drive, snapshot);
  }
  void finish_save(const SavedSnapshot& saved, JournalPosition covered);

  // Records a clean stop on disk: `saved` is a durable snapshot of all marks. No mark may be made any more;
  // with a journal, commit() fails from here on. Fails if the record can't be written: the next start is then
  // one after a crash.
  base::Result<> record_stop(const SavedSnapshot& saved);

  // Whether this instance may acknowledge marks (InstanceRecord). Thread-safe.
  bool is_introduced() const { return is_introduced_; }
  // What note_known() noted last, on the clocks of this boot. Thread-safe.
  std::optional<KnownAt> known_at() const;
  // Durable on success.
  base::Result<> note_known(const KnownAt& at, bool is_introduced);
  Membership membership() const { return membership_; }
  // Durable on success.
  base::Result<> note_membership(Membership membership);

  // Puts the marks of another tracker into a cycle of their own (Tracker::adopt()). They are durable once the
  // journal is, up to the position that is returned. Fails with std::errc::message_size if they may take too
  // much memory here.
  base::Result<JournalPosition> adopt(MarkSet marks);

  // Grows with each start of this instance, until it retires.
  std::uint64_t runs() const { return runs_; }

  // Whether the journal is so large that a save should free it. Never blocks.
  bool wants_save() const;

  // Never blocks on the disk.
  JournalStatus journal_status() const;

  // To find and to check drives. For each drive, one call of check(), save_to() and accept_drive() at a time.
  const SnapshotStore& drives() const { return store_; }

  // Makes the disk at this path the known drive.
  base::Result<> accept_drive(std::size_t drive) { return store_.accept(drive); }

 private:
  Persistence(base::FileSystem& files, const base::Clock& clock, Options options);

  base::Result<> begin();
  void report_loaded(const LoadedSnapshot& loaded);
  base::Result<> note(const InstanceRecord& changed);
  base::Result<> commit_locked();
  base::Result<> fail(const base::Error& error);
  TrackerState state_to_save();
  void prepare_save();
  bool is_failed() const;

  base::FileSystem& files_;
  const base::Clock& clock_;
  const Options options_;
  SnapshotStore store_;
  Journal journal_;
  InstanceId instance_;
  std::uint64_t runs_ = 0;
  mutable std::mutex noting_;  // held while the instance record is written; guards it
  InstanceRecord record_;
  std::atomic<bool> is_introduced_ = false;
  std::atomic<Membership> membership_ = Membership::member;
  StartReport report_;
  std::unique_ptr<Tracker> tracker_;

  std::mutex writing_;  // held while the journal is written to; guards the next two
  // If the journal has failed: the position from which the tracker records again, for the snapshot that is
  // being written.
  std::optional<JournalPosition> recording_anew_from_;
  bool last_save_durable_ = true;

  std::atomic<JournalPosition> durable_ = 0;
  mutable std::mutex status_mutex_;  // guards the rest; never held for long
  std::string failure_;
  std::uint64_t failures_ = 0;
};

}  // namespace spoor::tracker
