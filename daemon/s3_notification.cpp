#include "daemon/s3_notification.h"

#include <fmt/core.h>
#include <simdjson.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/printable.h"

namespace spoor::daemon {
namespace {

using nlohmann::json;

// Real notifications have six; deeper ones are somebody's attempt.
constexpr unsigned depth_max = 64;

class Reader final : public json::json_sax_t {
 public:
  explicit Reader(const OnS3Record& on_record) : on_record_(on_record) {}

  std::optional<Problem> problem;
  S3Notification notification;

  bool start_object(std::size_t) override {
    if (!descend()) return false;
    if (skipped_ > 0) return skip();
    const Member wanted = std::exchange(next_, Member::none);
    switch (place_) {
      case Place::outside:
        return enter(Place::top);
      case Place::top:
        return wanted == Member::records ? refuse_records() : skip();
      case Place::records:
        record_ = {};
        seen_in_record_ = {};
        return enter(Place::record);
      case Place::record:
        return wanted == Member::s3 ? enter(Place::s3) : skip();
      case Place::s3:
        if (wanted == Member::bucket) return enter(Place::bucket);
        return wanted == Member::object ? enter(Place::object) : skip();
      default:
        return skip();
    }
  }

  bool end_object() override {
    if (ascend()) return true;
    switch (place_) {
      case Place::bucket:
      case Place::object:
        return enter(Place::s3);
      case Place::s3:
        return enter(Place::record);
      case Place::record:
        problem = on_record_(record_, index_++);
        return enter(Place::records) && !problem;
      default:
        return enter(Place::outside);
    }
  }

  bool start_array(std::size_t) override {
    if (!descend()) return false;
    if (skipped_ > 0) return skip();
    if (place_ == Place::outside || place_ == Place::records) return scalar();
    if (std::exchange(next_, Member::none) != Member::records) return skip();
    notification.has_records = true;
    return enter(Place::records);
  }

  bool end_array() override { return ascend() || enter(Place::top); }

  bool key(string_t& name) override {
    if (skipped_ > 0) return true;
    next_ = member(name);
    if (next_ == Member::none) return true;
    auto& seen = place_ == Place::top ? seen_ : seen_in_record_;
    if (!std::exchange(seen[static_cast<std::size_t>(next_)], true)) return true;
    std::string what = fmt::format("the member '{}' is given twice", name);
    return place_ == Place::top ? fail(std::move(what)) : fail_record(what);
  }

  bool string(string_t& value) override {
    if (skipped_ > 0) return true;
    switch (next_) {
      case Member::event:
        record_.event = std::move(value);
        break;
      case Member::source:
        record_.source = std::move(value);
        break;
      case Member::bucket_name:
        record_.bucket = std::move(value);
        break;
      case Member::object_key:
        record_.key = std::move(value);
        break;
      case Member::test:
        notification.event = std::move(value);
        break;
      default:
        return scalar();
    }
    next_ = Member::none;
    return true;
  }

  bool null() override { return scalar(); }
  bool boolean(bool) override { return scalar(); }
  bool number_integer(number_integer_t) override { return scalar(); }
  bool number_unsigned(number_unsigned_t) override { return scalar(); }
  bool number_float(number_float_t, const string_t&) override { return scalar(); }
  bool binary(binary_t&) override { return scalar(); }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    problem = Problem{400, "invalid_json",
                      fmt::format("the body is not JSON, at byte {}: {}", position, error.what())};
    return false;
  }

 private:
  enum class Place { outside, top, records, record, s3, bucket, object };
  enum class Member {
    none,
    records,
    test,
    event,
    source,
    s3,
    bucket,
    bucket_name,
    object,
    object_key,
    count
  };
  using Seen = std::array<bool, static_cast<std::size_t>(Member::count)>;

  Member member(std::string_view name) const {
    switch (place_) {
      case Place::top:
        if (name == "Event") return Member::test;
        return name == "Records" ? Member::records : Member::none;
      case Place::record:
        if (name == "eventName") return Member::event;
        if (name == "eventSource") return Member::source;
        return name == "s3" ? Member::s3 : Member::none;
      case Place::s3:
        if (name == "bucket") return Member::bucket;
        return name == "object" ? Member::object : Member::none;
      case Place::bucket:
        return name == "name" ? Member::bucket_name : Member::none;
      case Place::object:
        return name == "key" ? Member::object_key : Member::none;
      default:
        return Member::none;
    }
  }

  bool enter(Place place) {
    place_ = place;
    return true;
  }
  bool descend() {
    return ++depth_ <= depth_max || fail(fmt::format("the body is nested more than {} deep", depth_max));
  }
  bool skip() {
    ++skipped_;
    return true;
  }
  // True where what has ended is something skipped.
  bool ascend() {
    --depth_;
    if (skipped_ == 0) return false;
    --skipped_;
    return true;
  }

  // A value that is not what is wanted here. That of a record counts as missing: an event that marks nothing
  // may look as it likes.
  bool scalar() {
    if (skipped_ > 0) return true;
    const Member wanted = std::exchange(next_, Member::none);
    if (place_ == Place::outside) return fail("the body must be an object: {\"Records\":[...]}");
    if (place_ == Place::records) return fail_record("must be an object");
    return wanted == Member::records ? refuse_records() : true;
  }

  bool refuse_records() { return fail("'Records' must be a list"); }
  bool fail(std::string detail) {
    problem = Problem{400, "invalid_request", std::move(detail)};
    return false;
  }
  bool fail_record(std::string_view what) {
    problem = s3_record_problem(index_, what);
    return false;
  }

  const OnS3Record& on_record_;
  Place place_ = Place::outside;
  Member next_ = Member::none;  // what the next value is
  unsigned depth_ = 0;
  unsigned skipped_ = 0;  // of the depth, what is inside a value of no interest
  Seen seen_{};
  Seen seen_in_record_{};
  std::size_t index_ = 0;
  S3Record record_;
};

// JSON is UTF-8, but stores pass on what their clients wrote: names and metadata in any encoding. What is no
// UTF-8 becomes an escaped NUL, which no path has, so that a key with one is marked by what is above it. Not
// behind a backslash, where it would be another escape: that stays what it is, no JSON.
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
    } else if (!was_escaped) {  // one for each run, so that the text stays of a size
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
  static_cast<void>(json::sax_parse(body, &reader));  // what it says is in its problem
  if (reader.problem) return *std::move(reader.problem);
  return std::move(reader.notification);
}

Problem s3_record_problem(std::size_t index, std::string_view what) {
  return {400, "invalid_request", fmt::format("Records[{}]: {}", index, what), index};
}

}  // namespace spoor::daemon
