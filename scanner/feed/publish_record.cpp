#include "scanner/feed/publish_record.h"

#include <fmt/core.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "base/data_dir.h"
#include "base/printable.h"

namespace spoor::scanner {
namespace {

using nlohmann::json;

constexpr std::uint64_t record_bytes_max = 1U << 20U;
constexpr int version = 1;

std::filesystem::path record_file(const std::filesystem::path& data_dir) {
  return data_dir / base::data_dir::publish_record;
}

std::int64_t nanoseconds(base::WallTime time) { return time.time_since_epoch().count(); }

// Throws json::exception, as all below, also for a number with a fraction.
base::WallTime wall_time(const json& value) {
  return base::WallTime(std::chrono::nanoseconds(value.get_ref<const json::number_integer_t&>()));
}

std::uint64_t count(const json& object, const char* name) {
  return object.at(name).get_ref<const json::number_unsigned_t&>();
}

json to_json(const SinkFigures& sink) {
  return {{"name", sink.name},
          {"scan", sink.scan},
          {"events", sink.events},
          {"failures", sink.failures},
          {"resets", sink.resets},
          {"last_success_ns", sink.last_success ? json(nanoseconds(*sink.last_success)) : json(nullptr)},
          {"error", base::printable(sink.error, 1000)}};
}

SinkFigures read_sink(const json& value) {
  SinkFigures sink{.name = value.at("name").get<std::string>(),
                   .scan = count(value, "scan"),
                   .events = count(value, "events"),
                   .failures = count(value, "failures"),
                   .resets = count(value, "resets"),
                   .error = value.at("error").get<std::string>()};
  if (const json& time = value.at("last_success_ns"); !time.is_null()) sink.last_success = wall_time(time);
  return sink;
}

std::optional<PublishRecord> parse(const std::string& text) {
  try {
    const json document = json::parse(text);
    if (document.at("version") != version) return std::nullopt;
    PublishRecord record{.written_at = wall_time(document.at("written_at_ns"))};
    for (const json& sink : document.at("sinks")) record.sinks.push_back(read_sink(sink));
    return record;
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

}  // namespace

base::Result<std::optional<PublishRecord>> read_publish_record(base::FileSystem& files,
                                                               const std::filesystem::path& data_dir) {
  const auto file = record_file(data_dir);
  const auto text = base::read_if_there(files, file, record_bytes_max);
  if (!text) return text.error();
  if (!*text) return std::optional<PublishRecord>();
  auto record = parse(**text);
  if (!record) {
    return base::Error(
        std::make_error_code(std::errc::bad_message),
        fmt::format("{} is corrupt: restart spoor-publish, which writes it anew", file.native()));
  }
  return record;
}

base::Result<> write_publish_record(base::FileSystem& files, const std::filesystem::path& data_dir,
                                    const PublishRecord& record) {
  json sinks = json::array();
  for (const SinkFigures& sink : record.sinks) sinks.push_back(to_json(sink));
  const json document = {
      {"version", version}, {"written_at_ns", nanoseconds(record.written_at)}, {"sinks", std::move(sinks)}};
  return base::replace_file(files, record_file(data_dir), document.dump(1) + "\n");
}

std::filesystem::path publish_lock_file(const std::filesystem::path& data_dir) {
  return data_dir / base::data_dir::publish_lock;
}

}  // namespace spoor::scanner
