#include "daemon/process/logging.h"

#include <spdlog/details/log_msg.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "base/printable.h"

namespace spoor::daemon {
namespace {

// %J: the message as a JSON string, with any invalid UTF-8 replaced.
class JsonMessage final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& out) override {
    const std::string text(message.payload.data(), message.payload.size());
    const std::string quoted =
        nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    out.append(quoted.data(), quoted.data() + quoted.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<JsonMessage>(); }
};

// Indents the lines after the first: text from outside must not look like a new event.
std::string event_text(std::string_view text) {
  std::string lines;
  for (const char each : base::printable_lines(text)) {
    lines += each;
    if (each == '\n') lines += "    ";
  }
  return lines;
}

// %K: the message as text.
class TextMessage final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& out) override {
    const std::string text = event_text({message.payload.data(), message.payload.size()});
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<TextMessage>(); }
};

// Whether standard error is the journal of systemd: JOURNAL_STREAM has its device and inode
// (systemd.exec(5)).
bool stderr_is_journal() {
  const char* const stream = std::getenv("JOURNAL_STREAM");
  struct stat status{};
  if (stream == nullptr || ::fstat(STDERR_FILENO, &status) != 0) return false;
  return stream == std::to_string(status.st_dev) + ':' + std::to_string(status.st_ino);
}

// The prefix that the journal parses as the priority of a line (sd-daemon(3)).
std::string_view journal_prefix(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::trace:
    case spdlog::level::debug:
      return SD_DEBUG;
    case spdlog::level::warn:
      return SD_WARNING;
    case spdlog::level::err:
      return SD_ERR;
    case spdlog::level::critical:
      return SD_CRIT;
    default:
      return SD_INFO;
  }
}

// Adds `prefix` to each line of `text`: a line without it would have the default priority of the unit.
std::string prefix_lines(std::string_view prefix, std::string_view text) {
  std::string lines(prefix);
  for (const char each : text) {
    lines += each;
    if (each == '\n') lines += prefix;
  }
  return lines;
}

// Formats as `inner` does, and adds the priority to each line.
class JournalFormatter final : public spdlog::formatter {
 public:
  explicit JournalFormatter(std::unique_ptr<spdlog::formatter> inner) : inner_(std::move(inner)) {}

  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    spdlog::memory_buf_t plain;
    inner_->format(message, plain);
    std::string_view text(plain.data(), plain.size());
    if (text.ends_with('\n')) text.remove_suffix(1);
    const std::string lines = prefix_lines(journal_prefix(message.level), text) + '\n';
    out.append(lines.data(), lines.data() + lines.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<JournalFormatter>(inner_->clone());
  }

 private:
  std::unique_ptr<spdlog::formatter> inner_;
};

spdlog::level::level_enum to_spdlog(config::LogLevel level) {
  switch (level) {
    case config::LogLevel::trace:
      return spdlog::level::trace;
    case config::LogLevel::debug:
      return spdlog::level::debug;
    case config::LogLevel::info:
      return spdlog::level::info;
    case config::LogLevel::warn:
      return spdlog::level::warn;
    case config::LogLevel::error:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

}  // namespace

void set_up_logging(const config::Config::Log& log) {
  auto logger = std::make_shared<spdlog::logger>("spoord", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  const bool is_journal = stderr_is_journal();
  auto formatter = std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc);
  if (log.format == config::LogFormat::json) {
    formatter->add_flag<JsonMessage>('J').set_pattern(
        R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l","message":%J})");
  } else {
    const char* const pattern =
        is_journal ? "%-7l %K" : "%Y-%m-%dT%H:%M:%S.%eZ %-7l %K";  // the journal has the time
    formatter->add_flag<TextMessage>('K').set_pattern(pattern);
  }
  if (is_journal) {
    logger->set_formatter(std::make_unique<JournalFormatter>(std::move(formatter)));
  } else {
    logger->set_formatter(std::move(formatter));
  }
  logger->flush_on(spdlog::level::trace);
  spdlog::set_default_logger(std::move(logger));
  set_log_level(log.level);
}

void set_log_level(config::LogLevel level) { spdlog::set_level(to_spdlog(level)); }

void print_failure(const std::string& message) {
  const std::string lines =
      prefix_lines(stderr_is_journal() ? SD_ERR : "", "spoord: " + base::printable_lines(message)) + '\n';
  std::fputs(lines.c_str(), stderr);
}

void print_failure(const config::Config::Log& log, const std::string& message) {
  if (log.format == config::LogFormat::json) {
    spdlog::error("{}", message);
  } else {
    print_failure(message);
  }
}

}  // namespace spoor::daemon
