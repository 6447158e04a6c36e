#include "config/logging.h"

#include <fmt/core.h>
#include <spdlog/details/log_msg.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <boost/algorithm/string/replace.hpp>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/printable.h"
#include "base/standard_streams.h"

namespace spoor::config {
namespace {

// `text` with `prefix` after each line break.
std::string prefix_further_lines(std::string_view prefix, std::string text) {
  boost::algorithm::replace_all(text, "\n", fmt::format("\n{}", prefix));
  return text;
}

// %J: the message as a JSON string, with any invalid UTF-8 replaced.
std::string json_text(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// %K: the message as text. Indents the lines after the first: text from outside must not look like a new
// event.
std::string event_text(const std::string& text) {
  return prefix_further_lines("    ", base::printable_lines(text));
}

template <std::string (*render)(const std::string&)>
class Message final : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& out) override {
    const std::string text = render({message.payload.data(), message.payload.size()});
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<Message>(); }
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
std::string prefix_lines(std::string_view prefix, std::string text) {
  return prefix_further_lines(prefix, text.insert(0, prefix));
}

// Formats as `inner` does, and adds the priority to each line.
class JournalFormatter final : public spdlog::formatter {
 public:
  explicit JournalFormatter(std::unique_ptr<spdlog::formatter> inner) : inner_(std::move(inner)) {}

  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    spdlog::memory_buf_t plain;
    inner_->format(message, plain);
    std::string text(plain.data(), plain.size());
    if (text.ends_with('\n')) text.pop_back();
    const std::string lines = prefix_lines(journal_prefix(message.level), std::move(text)) + '\n';
    out.append(lines.data(), lines.data() + lines.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<JournalFormatter>(inner_->clone());
  }

 private:
  std::unique_ptr<spdlog::formatter> inner_;
};

// Waits for no reader, such as a collector that hangs: events that it does not take are lost, and the next
// one that it takes follows their number.
class StderrSink final : public spdlog::sinks::base_sink<std::mutex> {
 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (lost_ > 0) {
      const std::string text =
          fmt::format("{} events were lost here: standard error did not take them", lost_);
      if (write({message.logger_name, spdlog::level::warn, text})) lost_ = 0;
    }
    if (lost_ > 0 || !write(message)) ++lost_;
  }

  void flush_() override {}

  bool write(const spdlog::details::log_msg& message) {
    spdlog::memory_buf_t line;
    if (is_cut_off_) line.push_back('\n');
    formatter_->format(message, line);
    const std::size_t written = base::write_to_standard_error({line.data(), line.size()});
    if (written > 0) is_cut_off_ = written < line.size();
    return written == line.size();
  }

  std::uint64_t lost_ = 0;
  bool is_cut_off_ = false;  // the last line
};

}  // namespace

void set_up_logging(const Config::Log& log) {
  // A runtime of containers that restarts closes the pipe: that must not end the process.
  std::signal(SIGPIPE, SIG_IGN);
  auto logger = std::make_shared<spdlog::logger>("spoor", std::make_shared<StderrSink>());
  const bool is_journal = stderr_is_journal();
  auto formatter = std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc);
  if (log.format == LogFormat::json) {
    formatter->add_flag<Message<json_text>>('J').set_pattern(
        R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l","message":%J})");
  } else {
    const char* const pattern =
        is_journal ? "%-7l %K" : "%Y-%m-%dT%H:%M:%S.%eZ %-7l %K";  // the journal has the time
    formatter->add_flag<Message<event_text>>('K').set_pattern(pattern);
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

void set_log_level(LogLevel level) {
  static_assert(static_cast<int>(LogLevel::trace) == SPDLOG_LEVEL_TRACE);
  static_assert(static_cast<int>(LogLevel::error) == SPDLOG_LEVEL_ERROR);
  spdlog::set_level(static_cast<spdlog::level::level_enum>(level));
}

void print_failure(std::string_view program, const std::string& message) {
  const std::string lines = prefix_lines(stderr_is_journal() ? SD_ERR : "",
                                         fmt::format("{}: {}", program, base::printable_lines(message))) +
                            '\n';
  base::write_to_standard_error(lines);
}

void print_failure(std::string_view program, const Config::Log& log, const std::string& message) {
  if (log.format == LogFormat::json) {
    spdlog::error("{}", message);
  } else {
    print_failure(program, message);
  }
}

}  // namespace spoor::config
