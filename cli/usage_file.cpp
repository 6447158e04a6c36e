#include "cli/usage_file.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <string>

#include "scanner/report_json.h"
#include "scanner/store/usage_query.h"

namespace spoor::cli {
namespace {

constexpr int version = 1;
constexpr std::uint64_t children_max = 10'000;

}  // namespace

base::Result<> write_usage_file(base::FileSystem& files, const std::filesystem::path& data_dir,
                                scanner::UsageDatabase& database, std::uint64_t scan) {
  scanner::UsageOptions options;
  options.children_max = children_max;
  const auto usage = scanner::query_usage(database, "", options);
  if (!usage) return usage.error();
  const std::optional<scanner::Usage>& found = *usage;
  // Before any drive could be read, there is no root.
  nlohmann::ordered_json json{{"version", version}, {"scan", scan}};
  json.update(scanner::usage_json(found ? *found : scanner::Usage()));
  return base::replace_file(
      files, data_dir / "usage.json",
      json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n');
}

}  // namespace spoor::cli
