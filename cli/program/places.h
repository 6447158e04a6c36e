// What a user means by ".", "./x" or "/mnt/disk1/x": directories on the drives of this node.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/program/options.h"

namespace spoor::cli {

// Not thread-safe: the current directory must stay the same.
class Places {
 public:
  // Without the configuration, no place is on a drive.
  explicit Places(const GlobalOptions& global);

  // Whether it is ".", "..", or begins with "./" or "../".
  static bool is_from_here(std::string_view given);

  // The logical path of an absolute path, or of one from here; nothing if it is neither, or on no drive. Only
  // looks at the file system if the names alone lead to no drive: they may have symbolic links.
  std::optional<std::string> logical_path(std::string_view given);

 private:
  std::vector<std::string> tops_;                      // of the drives; each ends with a '/'
  std::optional<std::vector<std::string>> real_tops_;  // without links, once they were needed
};

}  // namespace spoor::cli
