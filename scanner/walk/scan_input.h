// What the caller hands to a scan: how to scan, what was gathered, and what to work with.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "scanner/history/history_options.h"
#include "scanner/store/scan_record.h"
#include "scanner/walk/directory_reader.h"
#include "scanner/walk/pace.h"
#include "tracker/cycles/ids.h"
#include "tracker/cycles/peer_book.h"
#include "tracker/filter/mark_set.h"
#include "tracker/paths/namespace_rules.h"

namespace spoor::scanner {

struct Drive {
  std::filesystem::path path;
  // Why the drive must not be walked in this scan, as a sentence for the report; empty if it may be.
  std::string refused;
  // The identity it has to carry; empty if that is not known. Another one than at the last scan is another
  // drive: what is stored of it is removed, and all of it is walked. It is checked on the descriptor of the
  // root when the walk begins, and again before the scan commits.
  std::string identity = {};
  // The last gap in what spoor-watch marked on it; empty if it is not watched. If the last scan that walked
  // the drive did not know this gap, all of the drive is walked.
  std::string gap = {};
  // Why spoor-watch may have missed changes; all of the drive is walked, unless the gap is known.
  std::string gap_reason = {};
  // It is refused because it overlaps with another drive: what is stored of it is removed.
  bool overlaps = false;
};

// How to scan.
struct ScanOptions {
  // Absolute paths, none twice. Drives of the last scan that are not listed leave the database; new ones are
  // walked in full.
  std::vector<Drive> drives;
  tracker::NamespaceRules rules;
  // Of the node, if the marks of other nodes are not read; else empty.
  std::string own_marks_of = {};
  // Walk everything, and accept drives as they are that look unmounted.
  bool full = false;
  std::uint64_t max_dirs_per_second = 0;    // 0: no limit
  std::size_t threads = 1;                  // of all drives; each drive that is walked has one at least
  std::size_t open_directories_max = 1024;  // of all drives, about
  // In which every directory without a mark is read once; 0: never.
  std::chrono::nanoseconds audit_period{0};
  bool file_feed = false;  // the feed names files, too
  // Keeps totals by owner, of directories at most so many levels below the root; nothing: it does not.
  std::optional<std::uint32_t> owners_depth = {};
  HistoryOptions history = {};
  std::vector<UsageLimit> limits = {};
  std::size_t errors_kept_max = 1000;
  std::uint64_t progress_every = 64;  // directories read
  // A longer scan commits what it walked so often; what it walked since then is walked again if it is killed.
  std::chrono::nanoseconds commit_every = std::chrono::seconds(5);
  // Changes from this scan on are kept, because a consumer has not read them yet, up to the bound.
  std::optional<std::uint64_t> oldest_unread = {};
  std::uint64_t changes_kept_max = 10'000'000;
};

// What was gathered: all that decides what a scan walks. It is fixed when the scan begins; a scan that
// resumes a killed one uses the input of that one.
struct ScanInput {
  tracker::MarkSet marks;
  // The known peers afterwards, and from where to read each of them next time.
  tracker::PeerBook book = {};
  // The level at which the next cycle is to open; 0 is no opinion.
  std::size_t start_level = 0;
  // When gathering began: the scan may miss changes made later.
  base::WallTime started_at = {};
  tracker::CycleId cycle = {};
  bool partial = false;         // some peer did not respond
  std::string everything = {};  // why everything must be walked; empty if the marks decide
  bool is_resumed = false;      // of an unfinished scan
};

struct Progress {
  WalkFigures figures = {};      // so far, all drives
  std::uint64_t dirs_done = 0;   // read or skipped, about
  std::uint64_t dirs_known = 0;  // before the scan
  std::string path = {};         // the real one of the directory just read
};

// Writes the stamp of this scan, and that of the last one, to the drive; returns whether it is there.
using StampDrive = std::function<bool(const std::filesystem::path& drive, const std::string& stamp,
                                      const std::string& before)>;

// What to work with. All that is referred to must outlive the scan.
struct ScanEnvironment {
  const DirectoryReader& reader;
  const base::Clock& clock;
  Waiter& waiter;
  std::stop_token stop = {};
  std::function<void(const Progress&)> progress = {};  // called on the scan's thread; may be empty
  StampDrive stamp_drive = {};                         // without it, no rolled back drive is noticed
};

}  // namespace spoor::scanner
