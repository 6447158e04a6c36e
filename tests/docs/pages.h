// Runs the commands of a page of docs/ as a reader does: all of its blocks for sh, in one bash.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace spoor::docs {

// Texts, and what takes the place of each.
using Replacements = std::vector<std::pair<std::string, std::string>>;

std::string replace_all(std::string text, const Replacements& replacements);

struct BlockRun {
  std::string command;
  int code = -1;         // of its last command; -1: it was not reached
  std::string printed;   // standard output and standard error
  std::string promised;  // the block without a language that follows it on the page; empty if there is none
};

// With the programs of this build in PATH, in `home` as HOME and folder, and with these replacements in the
// commands and in what they promise: an address, say, that no other test uses.
std::vector<BlockRun> run_page(const std::filesystem::path& page, const std::filesystem::path& home,
                               const Replacements& replacements = {});

// Without what differs from one run to the next: times, durations, sizes on disk, and the widths of columns.
std::string lasting(std::string text);

}  // namespace spoor::docs
