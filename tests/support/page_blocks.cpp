#include "tests/support/page_blocks.h"

#include <fstream>
#include <stdexcept>

namespace spoor::support {

std::vector<PageBlock> page_blocks(const std::filesystem::path& page) {
  std::ifstream file(page);
  if (!file) throw std::runtime_error("cannot read " + page.native());
  std::vector<PageBlock> blocks;
  std::string section;
  bool is_inside = false;
  std::size_t indentation = 0;  // of a block in a list
  for (std::string line; std::getline(file, line);) {
    const std::size_t begin = line.find_first_not_of(' ');
    const bool is_fence = begin != std::string::npos && line.compare(begin, 3, "```") == 0;
    if (is_fence) {
      is_inside = !is_inside;
      indentation = begin;
      if (is_inside) blocks.push_back({section, line.substr(begin + 3), {}});
    } else if (is_inside) {
      blocks.back().text += (line.size() > indentation ? line.substr(indentation) : std::string()) + '\n';
    } else if (line.starts_with("## ")) {
      section = line.substr(3);
    }
  }
  if (is_inside) throw std::runtime_error("the last block of " + page.native() + " does not end");
  return blocks;
}

std::vector<std::string> page_blocks(const std::filesystem::path& page, const std::string& section,
                                     const std::string& language) {
  std::vector<std::string> texts;
  for (PageBlock& block : page_blocks(page)) {
    if (block.section == section && block.language == language) texts.push_back(std::move(block.text));
  }
  return texts;
}

}  // namespace spoor::support
