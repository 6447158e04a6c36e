#include "daemon/status/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "daemon/status/metric_families.h"

namespace spoor::daemon {
namespace {

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

void add_processor_time(MetricFamilies& families) {
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return;
  families.counter("process_cpu_seconds_total", "Processor time spent, by the program and for it.",
                   seconds(usage.ru_utime) + seconds(usage.ru_stime));
}

void add_memory(MetricFamilies& families) {
  std::ifstream file("/proc/self/statm");
  std::uint64_t all_pages = 0;
  std::uint64_t resident_pages = 0;
  if (!(file >> all_pages >> resident_pages)) return;
  const auto page_bytes = static_cast<double>(::sysconf(_SC_PAGESIZE));
  families.gauge("process_virtual_memory_bytes", "Address space in use.",
                 static_cast<double>(all_pages) * page_bytes);
  families.gauge("process_resident_memory_bytes", "Memory in use.",
                 static_cast<double>(resident_pages) * page_bytes);
}

void add_descriptors(MetricFamilies& families) {
  std::error_code error;
  std::int64_t open = -1;  // without the descriptor that lists them
  for (std::filesystem::directory_iterator at("/proc/self/fd", error), end; !error && at != end;
       at.increment(error)) {
    ++open;
  }
  if (!error) families.gauge("process_open_fds", "Open file descriptors.", static_cast<double>(open));
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    families.gauge("process_max_fds", "File descriptors that may be open.",
                   static_cast<double>(limit.rlim_cur));
  }
}

}  // namespace

std::string process_metrics(base::WallTime started_at) {
  MetricFamilies families;
  families.gauge("process_start_time_seconds", "When the daemon was started, since 1970.",
                 std::chrono::duration<double>(started_at.time_since_epoch()).count());
  add_processor_time(families);
  add_memory(families);
  add_descriptors(families);
  return families.text();
}

}  // namespace spoor::daemon
