// Which disk is behind which drive path: every drive carries a random id (`.spoor/drive.json`), and
// `node.data_dir` remembers it (`drives.json`). So an unmounted or swapped disk is not taken for the
// drive, nor for an empty one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file_system.h"

namespace spoor::tracker {

// `<drive>/.spoor`: what Spoor keeps on a drive.
std::filesystem::path spoor_directory(const std::filesystem::path& drive);

// `.spoor/drive.json`, which holds a drive's identity: its path below the drive, and how long it may be.
inline constexpr const char* drive_identity_file = ".spoor/drive.json";
inline constexpr std::uint64_t drive_identity_bytes_max = 64U << 10U;

// The identity in the content of that file; nothing where it is corrupt.
std::optional<std::string> parse_drive_identity(std::string_view content);

// How one drive stands.
enum class DriveIdentity {
  known,    // It is the drive remembered by this path.
  fresh,    // No drive was ever seen at this path: whatever is there is taken for it.
  refused,  // Another one than the one remembered, or none: not to be written to, read or walked.
};

struct DriveCheck {
  DriveIdentity identity = DriveIdentity::fresh;
  std::string error;  // why it is refused, and what to do
};

// Why the drive at this path overlaps with another of the node's drives; empty where it does not.
using FindOverlap = std::function<std::string(const std::filesystem::path& drive)>;

// Not thread-safe. `files` must outlive it.
class DriveRegistry {
 public:
  // Nothing is read before load(). `find_overlap` may be empty.
  DriveRegistry(base::FileSystem& files, std::filesystem::path data_dir, FindOverlap find_overlap = {})
      : files_(files), data_dir_(std::move(data_dir)), find_overlap_(std::move(find_overlap)) {}

  // Reads what is remembered of these drives; others are forgotten with the next admission. Nothing
  // remembered is a success. Where `drives.json` is there and can't be used: fails, and any drive that
  // carries no id is refused until it is accepted, since it may be an unmounted one.
  base::Result<> load(const std::vector<std::filesystem::path>& drives);

  DriveCheck check(const std::filesystem::path& drive) const;

  // The id remembered for it; empty where none is.
  std::string id_of(const std::filesystem::path& drive) const;

  // Takes the drive that is at this path now for the one to remember: adopts its id, or gives it one.
  // Durable when it returns. Fails where the drive can't be written to, or overlaps with another one.
  base::Result<> admit(const std::filesystem::path& drive);

 private:
  std::string owner_of(const std::string& id) const;
  base::Result<std::optional<std::string>> read_id(const std::filesystem::path& drive) const;
  base::Result<std::string> give_id(const std::filesystem::path& drive);
  base::Result<> refuse_twin(const std::filesystem::path& drive, const std::string& id) const;

  base::FileSystem& files_;
  std::filesystem::path data_dir_;
  FindOverlap find_overlap_;
  std::map<std::filesystem::path, std::string> ids_;  // an empty id is that of no drive
};

}  // namespace spoor::tracker
