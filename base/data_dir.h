// The files in node.data_dir. A file that is replaced is written beside, as NAME.tmp, and renamed.
#pragma once

namespace spoor::base::data_dir {

// Of spoord, but for what `spoor scan` and doctor read of them; each is synced when it is replaced.
inline constexpr const char* instance = "instance.json";  // tracker/storage/instance_record.h
inline constexpr const char* drives = "drives.json";      // tracker/storage/drive_registry.h
inline constexpr const char* journal = "journal";  // a folder of files that grow: tracker/storage/journal.h

// Of spoord, for spoor-scan.path, which waits for it and starts a scan: daemon/api/scan_waits.h
inline constexpr const char* scan_request = "scan.request";

// Of `spoor scan`; the other programs read them.
inline constexpr const char* scan_database =
    "scan.db";                                      // SQLite, with its own files beside it, and .commit,
                                                    // .new and .damaged: scanner/database/database_files.h
inline constexpr const char* usage = "usage.json";  // replaced without a sync: the next scan writes it anew
inline constexpr const char* unfinished_of_1_0_0 = "unfinished";  // a folder, which a scan removes

// Of whoever consumes the change feed: `spoor changes`, spoor-publish. SQLite: scanner/feed/consumers.h
inline constexpr const char* consumers = "consumers.db";

// Of spoor-publish; spoord reads it. Synced: scanner/feed/publish_record.h
inline constexpr const char* publish_record = "publish.json";

// One for each kind of process: held as long as it runs (base::FileLock), and never removed.
inline constexpr const char* spoord_lock = "spoord.lock";
inline constexpr const char* scan_lock = "scan.lock";
inline constexpr const char* watch_lock = "watch.lock";
inline constexpr const char* publish_lock = "publish.lock";

}  // namespace spoor::base::data_dir
