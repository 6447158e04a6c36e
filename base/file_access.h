#pragma once

#include <filesystem>

#include "base/error.h"

namespace spoor::base {

// Removes the access of others from the files right in `directory`: those of older versions, and restored
// copies. Files of another owner than the directory's are left, as are symbolic links. After a failure, which
// names the file, it continues with the others. A directory that does not exist has none.
Result<> close_to_others(const std::filesystem::path& directory);

}  // namespace spoor::base
