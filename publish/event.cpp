#include "publish/event.h"

#include <fmt/core.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>

#include "base/base64.h"
#include "base/clock.h"
#include "base/printable.h"

namespace spoor::publish {
namespace {

using nlohmann::ordered_json;

// Each byte may become six, and servers refuse messages over 1 MiB by default.
constexpr std::size_t path_bytes_max = std::size_t{64} << 10U;
// Enough for most, so that a string is allocated once.
constexpr std::size_t id_bytes = 160;
constexpr std::size_t json_bytes = 480;  // without the path, which is there twice

struct FreeAlgorithm {
  void operator()(EVP_MD* algorithm) const { EVP_MD_free(algorithm); }
};

std::unique_ptr<EVP_MD, FreeAlgorithm> fetch_sha256() {
  std::unique_ptr<EVP_MD, FreeAlgorithm> sha256(EVP_MD_fetch(nullptr, "SHA256", nullptr));
  if (!sha256) throw std::runtime_error("OpenSSL has no SHA-256");
  return sha256;
}

// The numbers of scans alone would not do: a scan that commits while a range is read moves entries to the
// next range.
std::string id_of(const Source& source, const Event& event, const std::string& start_over_id) {
  std::string id;
  id.reserve(id_bytes);
  id.append(source.node).append("/").append(source.feed).append("/").append(std::to_string(event.scan));
  if (!start_over_id.empty()) id.append(".").append(start_over_id);
  id.append("/").append(name_of(event.kind));
  if (event.kind != Event::Kind::reset && event.kind != Event::Kind::scan)
    id.append("/").append(digest((event.is_file ? "f" : "d") + event.path));
  return id;
}

Event::Kind kind_of(const scanner::FeedEntry& entry) {
  if (entry.is_file_now) return Event::Kind::replaced;
  if (!entry.is_there) return Event::Kind::deleted;
  if (entry.is_deleted) return Event::Kind::replaced;
  return entry.is_new ? Event::Kind::created : Event::Kind::changed;
}

// Most paths need no escape at all.
bool is_plain(std::string_view text) {
  return std::ranges::all_of(
      text, [](char each) { return each >= ' ' && each < '\x7F' && each != '"' && each != '\\'; });
}

// U+FDD0 to U+FDEF, and the last two of each plane, in UTF-8.
bool has_noncharacter(std::string_view text) {
  for (std::size_t at = text.find('\xEF'); at != std::string_view::npos; at = text.find('\xEF', at + 1)) {
    const std::string_view code = text.substr(at, 3);
    if (code >= "\xEF\xB7\x90" && code <= "\xEF\xB7\xAF") return true;
  }
  for (std::size_t at = text.find('\xBF'); at != std::string_view::npos; at = text.find('\xBF', at + 1)) {
    const bool is_last = at > 0 && at + 1 < text.size() && (text[at - 1] & 0x0F) == 0x0F &&
                         (text[at + 1] == '\xBE' || text[at + 1] == '\xBF');
    if (is_last) return true;
  }
  return false;
}

// A string of CloudEvents has no control characters; an attribute is not empty.
bool is_cloud_events_string(std::string_view text) {
  return !text.empty() &&
         (is_plain(text) || (base::printable(text, text.size()) == text && !has_noncharacter(text)));
}

// A path that is not UTF-8 gets replacements.
void append_string(std::string& json, std::string_view text) {
  if (is_plain(text)) {
    json += '"';
    json += text;
    json += '"';
  } else {
    json += ordered_json(text).dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  }
}

void append_data(std::string& json, const Event& event) {
  json.append(R"({"scan":)").append(std::to_string(event.scan)).append(event.totals);
  if (event.kind != Event::Kind::scan && event.kind != Event::Kind::reset) {
    json += event.is_file ? R"(,"kind":"file","path":)" : R"(,"kind":"dir","path":)";
    append_string(json, event.path);
    if (event.is_deeper) json += R"(,"deeper":true)";
    if (!base::is_utf8(event.path)) json += R"(,"path_base64":")" + base::to_base64(event.path) + '"';
  }
  json += '}';
}

}  // namespace

std::string digest(std::string_view bytes) {
  constexpr std::size_t bytes_kept = 16;
  constexpr std::string_view digits = "0123456789abcdef";
  // To fetch it takes as long as to hash a path.
  static const std::unique_ptr<EVP_MD, FreeAlgorithm> sha256 = fetch_sha256();
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash{};
  // Events that all have the same id would count as one.
  if (EVP_Digest(bytes.data(), bytes.size(), hash.data(), nullptr, sha256.get(), nullptr) != 1)
    throw std::runtime_error("OpenSSL cannot compute SHA-256");
  std::string text;
  for (const unsigned char byte : std::span(hash).first(bytes_kept)) {
    text += digits[byte >> 4U];
    text += digits[byte & 0xFU];
  }
  return text;
}

const char* name_of(Event::Kind kind) {
  constexpr std::array names = {"new", "changed", "replaced", "deleted", "reset", "scan"};
  return names.at(static_cast<std::size_t>(kind));
}

Event make_event(const Source& source, const scanner::FeedEntry& entry, const std::string& start_over_id) {
  const bool is_file = entry.is_file || entry.is_file_now;
  Event event{.kind = kind_of(entry),
              .is_file = is_file,
              .is_file_entry = entry.is_file,
              .path = entry.path,
              .scan = entry.scan};
  if (event.path.size() > path_bytes_max) {
    event.path.resize(event.path.rfind('/', path_bytes_max));
    event.kind = Event::Kind::changed;
    event.is_file = false;
    event.is_deeper = true;
  }
  event.id = id_of(source, event, start_over_id);
  return event;
}

Event make_reset(const Source& source, std::uint64_t scan, const std::string& start_over_id) {
  Event event{.kind = Event::Kind::reset, .scan = scan};
  event.id = id_of(source, event, start_over_id);
  return event;
}

Event make_scan_end(const Source& source, std::uint64_t scan,
                    const std::optional<scanner::ScanRecord>& record, const std::string& start_over_id) {
  Event event{.kind = Event::Kind::scan, .scan = scan};
  event.id = id_of(source, event, start_over_id);
  if (record) {
    event.totals = fmt::format(R"(,"started_at":"{}","finished_at":"{}","partial":{},"files":{},"bytes":{})",
                               base::iso_time(record->started_at), base::iso_time(record->finished_at),
                               record->partial, record->files, record->bytes);
  }
  return event;
}

std::string to_json(const Source& source, const Event& event) {
  std::string json;
  json.reserve(json_bytes + 2 * event.path.size());
  json += R"({"specversion":"1.0","id":)";
  append_string(json, event.id);
  // Names of clusters and nodes need no escape (config/check.cpp).
  json.append(R"(,"source":"/spoor/)").append(source.cluster).append("/").append(source.node);
  json.append(R"(","type":"spoor.)").append(name_of(event.kind));
  json += R"(","datacontenttype":"application/json")";
  if (is_cloud_events_string(event.path)) {
    json += R"(,"subject":)";
    append_string(json, event.path);
  }
  json += R"(,"data":)";
  append_data(json, event);
  json += '}';
  return json;
}

}  // namespace spoor::publish
