// The commands and files that a page of docs/ shows, for tests that run them as they stand there.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace spoor::support {

// A block between ``` and ```.
struct PageBlock {
  std::string section;   // the heading (##) above it
  std::string language;  // what follows the first ```
  std::string text;
};

// In their order. Throws if the page cannot be read, or its last block does not end.
std::vector<PageBlock> page_blocks(const std::filesystem::path& page);

// The texts of those of one language in one section.
std::vector<std::string> page_blocks(const std::filesystem::path& page, const std::string& section,
                                     const std::string& language);

}  // namespace spoor::support
