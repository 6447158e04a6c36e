#include "daemon/process/reload.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "config/load.h"

namespace spoor::daemon {
namespace {

// Only other programs use these settings; they read the file at each start.
bool is_for_others(std::string_view key) {
  constexpr std::array others{"scan.", "watch.", "publish.", "history.", "usage."};
  return key == "peers.timeout" ||
         std::ranges::any_of(others, [&](const char* section) { return key.starts_with(section); });
}

}  // namespace

Reload::Reload(config::Config started, std::vector<Reloadable> settings)
    : started_(std::move(started)), last_(started_), settings_(std::move(settings)) {}

void Reload::apply(const base::Result<config::Config>& fresh) {
  failed_ = !fresh;
  if (!fresh) {
    spdlog::error("not reloaded, everything stays as it was: {}", fresh.error().message);
    return;
  }
  std::vector<std::string_view> known;
  std::vector<std::string_view> refused;
  for (const Reloadable& setting : settings_) {
    known.insert(known.end(), setting.keys.begin(), setting.keys.end());
    if (setting.apply(*fresh)) continue;
    failed_ = true;
    refused.insert(refused.end(), setting.keys.begin(), setting.keys.end());
  }
  const auto is_in = [](const std::vector<std::string_view>& keys, const std::string& key) {
    return std::ranges::find(keys, key) != keys.end();
  };

  auto taken_over = config::changed_keys(last_, *fresh);
  std::erase_if(taken_over,
                [&](const std::string& key) { return !is_in(known, key) || is_in(refused, key); });
  if (!taken_over.empty()) {
    spdlog::info("reloaded: {}", fmt::join(taken_over, ", "));
  } else if (!failed_) {
    spdlog::info("reloaded: no setting has changed; tokens and certificates were read anew");
  }

  // Compared with the configuration at the start, so that the warning is logged at every reload until a
  // restart.
  auto waiting = config::changed_keys(started_, *fresh);
  std::erase_if(waiting, [&](const std::string& key) { return is_in(known, key) || is_for_others(key); });
  if (!waiting.empty()) spdlog::warn("changed, but needs a restart: {}", fmt::join(waiting, ", "));
  if (!failed_) last_ = *fresh;
}

}  // namespace spoor::daemon
