#include "daemon/api/s3_notification.h"

#include <fmt/core.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/printable.h"

namespace spoor::daemon {
namespace {

using nlohmann::json;

// Real notifications have six levels.
constexpr std::size_t depth_max = 64;

// A value, by where it is in the document.
enum class Place { body, test, records, record, event, source, s3, bucket, name, object, key, skipped };
constexpr std::size_t places = static_cast<std::size_t>(Place::skipped) + 1;

struct Member {
  Place of;
  std::string_view name;
  Place value;
  std::optional<std::string> S3Record::* text = nullptr;
};

constexpr Member members[] = {
    {Place::body, "Event", Place::test},
    {Place::body, "Records", Place::records},
    {Place::record, "eventName", Place::event, &S3Record::event},
    {Place::record, "eventSource", Place::source, &S3Record::source},
    {Place::record, "s3", Place::s3},
    {Place::s3, "bucket", Place::bucket},
    {Place::s3, "object", Place::object},
    {Place::bucket, "name", Place::name, &S3Record::bucket},
    {Place::object, "key", Place::key, &S3Record::key},
};

class Reader final : public json::json_sax_t {
 public:
  explicit Reader(const OnS3Record& on_record) : on_record_(on_record) {}

  std::optional<Problem> problem;
  S3Notification notification;

  bool start_object(std::size_t) override {
    const Place place = next_place();
    if (place == Place::records) return other(place);
    if (place == Place::record) {
      record_ = {};
      seen_in_record_ = {};
    }
    return open(place);
  }

  bool end_object() override {
    const Place place = close();
    if (place == Place::record) problem = on_record_(record_, index_++);
    return !problem;
  }

  bool start_array(std::size_t) override {
    const Place place = next_place();
    if (place != Place::records) return other(place) && open(Place::skipped);
    notification.has_records = true;
    return open(place);
  }

  bool end_array() override {
    close();
    return true;
  }

  bool key(string_t& name) override {
    const Place of = open_.back();
    const auto* const known = std::ranges::find_if(
        members, [&](const Member& member) { return member.of == of && member.name == name; });
    next_ = known == std::end(members) ? Place::skipped : known->value;
    if (next_ == Place::skipped) return true;
    auto& seen = of == Place::body ? seen_ : seen_in_record_;
    if (!std::exchange(seen[static_cast<std::size_t>(next_)], true)) return true;
    std::string what = fmt::format("the member '{}' is given twice", name);
    return of == Place::body ? fail(std::move(what)) : fail_record(what);
  }

  bool string(string_t& value) override {
    const Place place = next_place();
    const auto* const known = std::ranges::find(members, place, &Member::value);
    if (place == Place::test) {
      notification.event = std::move(value);
    } else if (known != std::end(members) && known->text != nullptr) {
      record_.*known->text = std::move(value);
    } else {
      return other(place);
    }
    return true;
  }

  bool null() override { return other(next_place()); }
  bool boolean(bool) override { return other(next_place()); }
  bool number_integer(number_integer_t) override { return other(next_place()); }
  bool number_unsigned(number_unsigned_t) override { return other(next_place()); }
  bool number_float(number_float_t, const string_t&) override { return other(next_place()); }
  bool binary(binary_t&) override { return other(next_place()); }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    problem = Problem{400, "invalid_json",
                      fmt::format("the body is not JSON, at byte {}: {}", position, error.what())};
    return false;
  }

 private:
  using Seen = std::array<bool, places>;

  // The place of the value that begins.
  Place next_place() {
    if (open_.empty()) return Place::body;
    if (open_.back() == Place::records) return Place::record;
    return std::exchange(next_, Place::skipped);
  }

  bool open(Place place) {
    if (open_.size() == depth_max)
      return fail(fmt::format("the body is nested more than {} deep", depth_max));
    open_.push_back(place);
    return true;
  }

  Place close() {
    const Place place = open_.back();
    open_.pop_back();
    return place;
  }

  // A value of another type than the one wanted at its place. A member of a record counts as missing: an
  // event that marks nothing may have any shape.
  bool other(Place place) {
    if (place == Place::body) return fail("the body must be an object: {\"Records\":[...]}");
    if (place == Place::records) return fail("'Records' must be a list");
    return place != Place::record || fail_record("must be an object");
  }

  bool fail(std::string detail) {
    problem = Problem{400, "invalid_request", std::move(detail)};
    return false;
  }
  bool fail_record(std::string_view what) {
    problem = s3_record_problem(index_, what);
    return false;
  }

  const OnS3Record& on_record_;
  std::vector<Place> open_;      // the objects and lists around the next value
  Place next_ = Place::skipped;  // of the value of the member whose key was read last
  Seen seen_{};
  Seen seen_in_record_{};
  std::size_t index_ = 0;
  S3Record record_;
};

// JSON is UTF-8, but stores pass on what their clients wrote: names and metadata in any encoding. Bytes that
// are not UTF-8 become an escaped NUL, which no path has, so that a key with one is marked by the directory
// above it. Behind a backslash they stay, since the NUL would become another escape: the body is not JSON.
std::string with_escaped_bytes(std::string_view body) {
  constexpr std::string_view escape = "\\u0000";
  std::string text;
  bool is_behind_backslash = false;
  bool was_escaped = false;
  while (!body.empty()) {
    const std::size_t length = base::utf8_length(body);
    const bool is_escaped = length == 0 && !is_behind_backslash;
    if (!is_escaped) {
      text += body.substr(0, std::max<std::size_t>(length, 1));
    } else if (!was_escaped) {  // one for each run, which bounds the size of the text
      text += escape;
    }
    was_escaped = is_escaped;
    is_behind_backslash = !is_behind_backslash && body.front() == '\\';
    body.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return text;
}

}  // namespace

boost::system::result<S3Notification, Problem> read_s3_notification(std::string_view body,
                                                                    const OnS3Record& on_record) {
  std::string repaired;
  if (!simdjson::validate_utf8(body.data(), body.size())) body = repaired = with_escaped_bytes(body);
  Reader reader(on_record);
  static_cast<void>(json::sax_parse(body, &reader));  // a failure is in reader.problem
  if (reader.problem) return *std::move(reader.problem);
  return std::move(reader.notification);
}

Problem s3_record_problem(std::size_t index, std::string_view what) {
  return {400, "invalid_request", fmt::format("Records[{}]: {}", index, what), index};
}

}  // namespace spoor::daemon
