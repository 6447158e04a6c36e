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
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "base/printable.h"
#include "base/standard_streams.h"

namespace spoor::config {
namespace {

// Whether standard error is the journal of systemd: JOURNAL_STREAM has its device and inode
// (systemd.exec(5)).
bool stderr_is_journal() {
  const char* const stream = std::getenv("JOURNAL_STREAM");
  struct stat status{};
  if (stream == nullptr || ::fstat(STDERR_FILENO, &status) != 0) return false;
  return stream == std::to_string(status.st_dev) + ':' + std::to_string(status.st_ino);
}

// The prefix that the journal parses as the priority of a line (sd-daemon(3)); a line without it would have
// the default priority of the unit. Empty if standard error is not the journal.
std::string_view priority(spdlog::level::level_enum level, bool is_journal) {
  if (!is_journal) return {};
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

// `text` with `prefix` after each line break.
std::string prefix_further_lines(std::string_view prefix, std::string text) {
  boost::algorithm::replace_all(text, "\n", fmt::format("\n{}", prefix));
  return text;
}

// A part of a line of the log.
class Part final : public spdlog::custom_flag_formatter {
 public:
  using Render = std::function<std::string(const spdlog::details::log_msg&)>;

  explicit Part(Render render) : render_(std::move(render)) {}

  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& out) override {
    const std::string text = render_(message);
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<Part>(render_); }

 private:
  Render render_;
};

// %P: the priority for the journal. %J: the message as a JSON string, with any invalid UTF-8 replaced. %K:
// the message as text, with the lines after the first indented: text from outside must not look like a new
// event.
std::unique_ptr<spdlog::formatter> make_formatter(LogFormat format, bool is_journal) {
  using Message = spdlog::details::log_msg;
  const auto text_of = [](const Message& message) {
    return std::string(message.payload.data(), message.payload.size());
  };
  auto formatter = std::make_unique<spdlog::pattern_formatter>(spdlog::pattern_time_type::utc);
  formatter->add_flag<Part>(
      'P', [=](const Message& message) { return std::string(priority(message.level, is_journal)); });
  formatter->add_flag<Part>('J', [=](const Message& message) {
    return nlohmann::json(text_of(message)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  });
  formatter->add_flag<Part>('K', [=](const Message& message) {
    const std::string indent = fmt::format("{}    ", priority(message.level, is_journal));
    return prefix_further_lines(indent, base::printable_lines(text_of(message)));
  });
  const char* const pattern = format == LogFormat::json
                                  ? R"(%P{"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l","message":%J})"
                              : is_journal ? "%P%-7l %K"  // the journal has the time
                                           : "%Y-%m-%dT%H:%M:%S.%eZ %-7l %K";
  formatter->set_pattern(pattern);
  return formatter;
}

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
  logger->set_formatter(make_formatter(log.format, stderr_is_journal()));
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
  const std::string_view prefix = priority(spdlog::level::err, stderr_is_journal());
  const std::string lines = fmt::format("{}{}: {}", prefix, program, base::printable_lines(message));
  base::write_to_standard_error(prefix_further_lines(prefix, lines) + '\n');
}

void print_failure(std::string_view program, const Config::Log& log, const std::string& message) {
  if (log.format == LogFormat::json) {
    spdlog::error("{}", message);
  } else {
    print_failure(program, message);
  }
}

}  // namespace spoor::config
