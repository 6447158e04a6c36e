// A tracker whose memory outlives its process: the tracker, and what keeps it on disk (snapshots on the
// drives, the journal and the instance's record in node.data_dir). See docs/durability.md.
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
#include "tracker/instance_record.h"
#include "tracker/journal.h"
#include "tracker/recovery.h"
#include "tracker/snapshot_store.h"
#include "tracker/tracker.h"

namespace spoor::tracker {

// What came of a start, to be told.
struct StartReport {
  std::string loss;                // as in Recovery
  std::vector<std::string> notes;  // bad files and drives, what was cut off and kept aside
};

struct JournalStatus {
  std::uint64_t bytes = 0;
  std::uint64_t failures = 0;  // since the start
  std::string error;           // why nothing is acknowledged at present; empty where all is well
};

// Thread-safe as said at each function. The functions that write block; they belong on a thread that may.
class Persistence {
 public:
  struct Options {
    std::filesystem::path data_dir;
    std::vector<std::filesystem::path> drives;
    FindOverlap find_overlap;  // asked before a drive is taken in; may be empty
    NodeIdentity owner;
    Durability durability = Durability::disk;
    std::string boot_id;
    std::string rules;  // NamespaceRules::fingerprint()
    Tracker::Options tracker;
    // More is not written to the journal until a snapshot frees it.
    std::uint64_t journal_bytes_max = std::uint64_t{256} << 20U;
  };

  // Loads what the last run left, and leaves on disk that a run is under way. Fails where data_dir can't
  // be written to. `files` and `clock` must outlive it.
  static base::Result<std::unique_ptr<Persistence>> start(base::FileSystem& files, const base::Clock& clock,
                                                          Options options);

  Tracker& tracker() { return *tracker_; }
  const StartReport& report() const { return report_; }
  Durability durability() const { return options_.durability; }

  // Makes durable all that the tracker has recorded, in one write. Fails with Errc::not_durable where the
  // journal can't be written, now or since an earlier failure; the next durable save may mend that. One
  // call at a time.
  base::Result<> commit();

  // Marks up to here are as durable as promised. Never waits.
  JournalPosition durable_position() const;

  // Writes a snapshot, and frees the journal before it. Marking and commit() go on meanwhile. Where the
  // journal had failed and the snapshot is durable, begins it anew. One call at a time.
  SavedSnapshot save();

  // Saves, and leaves on disk that nothing is missing. Nothing may be marked any more. Fails where that
  // can't be written: the next start is then one after a crash.
  base::Result<SavedSnapshot> stop();

  // Whether the journal has grown so far that a save should free it. Never waits.
  bool wants_save() const;

  // Never waits for the disk.
  JournalStatus journal_status() const;

  // Takes the disk at this drive's path for the drive from now on. Not beside save().
  base::Result<> accept_drive(const std::filesystem::path& drive) { return store_.accept(drive); }

  // Whether each drive is the one it should be, by what is on disk now. Sets `checking` to the number of the
  // drive that it reads. Thread-safe.
  std::vector<DriveState> check_drives(std::atomic<std::size_t>& checking) const;

 private:
  Persistence(base::FileSystem& files, const base::Clock& clock, Options options);

  base::Result<> begin();
  void report_loaded(const LoadedSnapshot& loaded);
  base::Result<> write_record(std::optional<CleanStop> clean_stop);
  base::Result<> begin_journal(JournalPosition start, JournalPosition follows);
  base::Result<> commit_locked();
  base::Result<> fail(const base::Error& error);
  TrackerState state_to_save();
  void prepare_save();
  void finish_save(const SavedSnapshot& saved, JournalPosition covered);
  bool is_failed() const;

  base::FileSystem& files_;
  const base::Clock& clock_;
  const Options options_;
  SnapshotStore store_;
  Journal journal_;
  InstanceId instance_;
  std::optional<Birth> birth_;
  StartReport report_;
  std::unique_ptr<Tracker> tracker_;

  std::mutex writing_;  // held while the journal is written to; guards the next two
  // Where the journal had failed: from where the tracker has been recording anew, for the snapshot that
  // is being written.
  std::optional<JournalPosition> recording_anew_from_;
  bool last_save_durable_ = true;

  std::atomic<JournalPosition> durable_ = 0;
  mutable std::mutex status_mutex_;  // guards the rest; never held for long
  std::string failure_;
  std::uint64_t failures_ = 0;
};

}  // namespace spoor::tracker
