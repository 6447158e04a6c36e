// Which disk belongs to which drive path: every drive holds a random id (`.spoor/drive.json`), and
// `node.data_dir` stores the id for each path (`drives.json`). An unmounted or swapped disk is thus neither
// taken for the drive nor for an empty one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file_system.h"

namespace spoor::tracker {

// `<drive>/.spoor`: Spoor's own files on a drive.
std::filesystem::path spoor_directory(const std::filesystem::path& drive);

// The file that holds a drive's identity: its path below the drive, and its maximum size.
inline constexpr const char* drive_identity_file = ".spoor/drive.json";
inline constexpr std::uint64_t drive_identity_bytes_max = 64U << 10U;

// The identity in the content of that file; nullopt if it is corrupt.
std::optional<std::string> parse_drive_identity(std::string_view content);

// Which scan has read the drive last, in a file beside it. A drive that does not have the stamp of the last
// scan was rolled back to an older copy of itself.
inline constexpr const char* drive_stamp_file = ".spoor/last-scan";
inline constexpr std::size_t drive_stamp_bytes_max = 256;

struct DriveStamp {
  std::string stamp = {};   // random
  std::string before = {};  // of the last scan that was committed before it: this one may not have been
};
std::string format_drive_stamp(const DriveStamp& stamp);
// nullopt for anything else than the content of such a file.
std::optional<DriveStamp> parse_drive_stamp(std::string_view content);

enum class DriveIdentity {
  known,  // The drive has the id stored for this path.
  fresh,  // No id is stored for this path: any drive there can be admitted.
};

// Describes the overlap of this drive with another of the node's drives; empty if there is none.
using FindOverlap = std::function<std::string(const std::filesystem::path& drive)>;

// Thread-safe after load(). A drive that hangs blocks only the calls that read it. `files` must outlive it.
class DriveRegistry {
 public:
  // Does not read any file. `find_overlap` may be empty.
  DriveRegistry(base::FileSystem& files, std::filesystem::path data_dir, FindOverlap find_overlap = {})
      : files_(files), data_dir_(std::move(data_dir)), find_overlap_(std::move(find_overlap)) {}

  // Reads the ids of these drives; the next admit() removes those of other drives from the file. A missing
  // `drives.json` is not an error. If the file exists and can't be used, load() fails, and check() refuses
  // every drive without an id until it is admitted, since it may be an unmounted one.
  base::Result<> load(const std::vector<std::filesystem::path>& drives);

  // Fails with Errc::drive_refused, and what to do, for no drive, or another one than the known one: it must
  // not be written to, read or walked.
  base::Result<DriveIdentity> check(const std::filesystem::path& drive) const;

  // The id stored for the drive; empty if there is none.
  std::string id_of(const std::filesystem::path& drive) const;

  // Makes the drive that is at this path now the known one: stores its id, or writes a new one to the drive.
  // Durable on success. Fails if the drive can't be written to, or overlaps with another drive.
  base::Result<> admit(const std::filesystem::path& drive);

 private:
  std::optional<std::string> find_id(const std::filesystem::path& drive) const;
  std::vector<std::filesystem::path> others_with(const std::string& id,
                                                 const std::filesystem::path& drive) const;
  base::Result<std::optional<std::string>> read_id(const std::filesystem::path& drive) const;
  base::Result<std::string> give_id(const std::filesystem::path& drive);
  base::Result<> store(const std::filesystem::path& drive, const std::string& id,
                       const std::vector<std::filesystem::path>& others);

  base::FileSystem& files_;
  std::filesystem::path data_dir_;
  FindOverlap find_overlap_;

  std::mutex storing_;                                // held while `drives.json` is written
  mutable std::mutex mutex_;                          // guards the rest; never held during I/O
  std::map<std::filesystem::path, std::string> ids_;  // an empty id matches no drive
};

}  // namespace spoor::tracker
