#include "daemon/process/open_files.h"

#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <algorithm>

namespace spoor::daemon {
namespace {

constexpr rlim_t kept_for_the_rest = 64;
constexpr rlim_t kept_for_a_thread = 3;  // opened by an io_context

}  // namespace

std::size_t connections_that_fit(std::size_t wanted, std::size_t further_threads) {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return wanted;
  if (files.rlim_cur < files.rlim_max) {
    const rlimit raised{files.rlim_max, files.rlim_max};
    if (::setrlimit(RLIMIT_NOFILE, &raised) == 0) files = raised;
  }
  if (files.rlim_cur == RLIM_INFINITY) return wanted;
  const rlim_t kept = kept_for_the_rest + kept_for_a_thread * further_threads;
  const rlim_t left = files.rlim_cur - std::min(files.rlim_cur, kept);
  // A quarter more may be open for a moment while they are being refused.
  const std::size_t fit = std::max<std::size_t>(left - left / 5, 1);
  if (wanted <= fit) return wanted;
  spdlog::warn(
      "limits.max_connections is {}, but with {} open files allowed there is room for {}: that many are "
      "served. Raise LimitNOFILE= in the unit, or lower the setting",
      wanted, files.rlim_cur, fit);
  return fit;
}

}  // namespace spoor::daemon
