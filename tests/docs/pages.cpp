#include "tests/docs/pages.h"

#include <regex>
#include <sstream>

#include "tests/support/page_blocks.h"
#include "tests/support/process.h"

namespace spoor::docs {
namespace {

constexpr const char* mark = "@@ block ended: ";

std::vector<BlockRun> blocks_to_run(const std::filesystem::path& page) {
  std::vector<BlockRun> runs;
  bool is_promise_next = false;
  for (const support::PageBlock& block : support::page_blocks(page)) {
    if (block.language == "sh") {
      runs.push_back({block.text, -1, {}, {}});
    } else if (is_promise_next && block.language.empty()) {
      runs.back().promised = block.text;
    }
    is_promise_next = block.language == "sh";
  }
  return runs;
}

// Each block ends with a line that has its exit code. What still runs at the end is stopped.
std::string script_of(const std::vector<BlockRun>& runs) {
  std::string script = "trap 'jobs -p | xargs --no-run-if-empty kill; wait' EXIT\nexec 2>&1\ncd\n";
  for (const BlockRun& run : runs) script += run.command + "echo \"" + mark + "$?\"\n";
  return script;
}

}  // namespace

std::string replace_all(std::string text, const Replacements& replacements) {
  for (const auto& [from, to] : replacements) {
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
      text.replace(at, from.size(), to);
    }
  }
  return text;
}

std::vector<BlockRun> run_page(const std::filesystem::path& page, const std::filesystem::path& home,
                               const Replacements& replacements) {
  std::vector<BlockRun> runs = blocks_to_run(page);
  for (BlockRun& run : runs) {
    run.command = replace_all(run.command, replacements);
    run.promised = replace_all(run.promised, replacements);
  }
  // `timeout` ends also what the commands have started, if this process is killed.
  const auto result =
      support::run_command({"env", "HOME=" + home.native(), "PATH=" PROGRAMS ":/usr/sbin:/usr/bin:/sbin:/bin",
                            "COLUMNS=80", "LC_ALL=C.UTF-8", "timeout", "170", "bash", "-c", script_of(runs)});
  std::istringstream lines(result.out);
  auto run = runs.begin();
  for (std::string line; run != runs.end() && std::getline(lines, line);) {
    const std::size_t end = line.find(mark);  // after what was printed without a line break
    run->printed += end == 0 ? "" : line.substr(0, end) + '\n';
    if (end == std::string::npos) continue;
    run->code = std::stoi(line.substr(end + std::string(mark).size()));
    ++run;
  }
  return runs;
}

std::string lasting(std::string text) {
  static const std::vector<std::pair<std::regex, std::string>> rules = {
      {std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)"), "TIME"},
      {std::regex(R"(\b\d+(\.\d+)? m?s\b)"), "DURATION"},
      {std::regex(R"(\b\d+(\.\d+)? [KM]iB\b)"), "SIZE"},
      {std::regex(" +"), " "},
  };
  for (const auto& [from, to] : rules) text = std::regex_replace(text, from, to);
  return text;
}

}  // namespace spoor::docs
