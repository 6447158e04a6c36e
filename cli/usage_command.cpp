#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/format.h"
#include "scanner/usage_database.h"
#include "scanner/usage_query.h"
#include "tracker/path.h"

namespace spoor::cli {
namespace {

using nlohmann::ordered_json;
using scanner::UsageEntry;

struct UsageFlags {
  std::string path;
  std::uint64_t depth = 1;
  std::string sort = "size";
  bool json = false;
};

void sort_entries(std::vector<UsageEntry>& entries, const std::string& by) {
  std::sort(entries.begin(), entries.end(), [&](const UsageEntry& a, const UsageEntry& b) {
    if (by == "size" && a.bytes != b.bytes) return a.bytes > b.bytes;
    if (by == "files" && a.files != b.files) return a.files > b.files;
    return a.path < b.path;
  });
}

ordered_json entry_json(const UsageEntry& entry) {
  return {{"path", entry.path},
          {"files", entry.files},
          {"dirs", entry.dirs},
          {"bytes", entry.bytes},
          {"allocated", entry.allocated}};
}

ordered_json to_json(const scanner::Usage& usage) {
  ordered_json json = entry_json(usage.total);
  json["as_of"] = usage.as_of ? ordered_json(iso_time(*usage.as_of)) : ordered_json(nullptr);
  json["complete"] = usage.complete;
  json["children"] = ordered_json::array();
  for (const UsageEntry& entry : usage.below) json["children"].push_back(entry_json(entry));
  return json;
}

std::string to_text(const scanner::Usage& usage) {
  Table table({"size", "on disk", "files", "directories", "path"}, {4});
  const auto add = [&](const UsageEntry& entry) {
    const std::string path = entry.path.empty() ? "(all)" : tracker::printable(entry.path);
    table.add({human_bytes(entry.bytes), human_bytes(entry.allocated), with_commas(entry.files),
               with_commas(entry.dirs),
               entry.complete ? path : path + "  (a part was left for the next scan)"});
  };
  for (const UsageEntry& entry : usage.below) add(entry);
  add(usage.total);
  const std::string as_of = usage.as_of ? iso_time(*usage.as_of) : "no complete scan yet";
  return table.to_string() +
         fmt::format("as of {}{}\n", as_of, usage.complete ? "" : "; newer changes are pending");
}

int run(const GlobalOptions& global, const UsageFlags& flags) {
  const auto config = global.load_config();
  if (!config) return fail(exit_usage, config.error().message);
  std::string path;
  if (!flags.path.empty() && flags.path != "/" && flags.path != ".") {
    auto normal = tracker::normalise_path(flags.path);
    if (!normal) return fail(exit_usage, normal.error().message);
    path = *std::move(normal);
  }
  auto database =
      scanner::UsageDatabase::open_read_only(scanner::UsageDatabase::file_in(config->node.data_dir));
  if (!database && database.error().code == std::errc::no_such_file_or_directory) {
    return fail(exit_failed, "there was no scan yet; run 'spoor scan'");
  }
  if (!database) return fail(exit_failed, database.error().message);
  auto usage = scanner::query_usage(*database, path, flags.depth);
  if (!usage) return fail(exit_failed, usage.error().message);
  std::optional<scanner::Usage> found = *std::move(usage);
  if (!found) {
    return fail(exit_failed, path.empty() ? "there was no scan yet; run 'spoor scan'"
                                          : fmt::format("no directory '{}' was found by the last scan",
                                                        tracker::printable(path)));
  }
  sort_entries(found->below, flags.sort);
  fmt::print("{}", flags.json
                       ? to_json(*found).dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n"
                       : to_text(*found));
  return exit_done;
}

}  // namespace

void add_usage_command(CLI::App& program, const GlobalOptions& options, int& code) {
  auto flags = std::make_shared<UsageFlags>();
  CLI::App* command =
      program.add_subcommand("usage", "Shows the totals of a directory and those below it, like du");
  command->add_option("PATH", flags->path, "A logical path; none is everything");
  command->add_option("--depth", flags->depth, "How many levels below it")->capture_default_str();
  command->add_option("--sort", flags->sort, "size, files or name")
      ->check(CLI::IsMember({"size", "files", "name"}))
      ->capture_default_str();
  command->add_flag("--json", flags->json, "Prints one JSON object");
  command->callback([flags, &options, &code] { code = run(options, *flags); });
}

}  // namespace spoor::cli
