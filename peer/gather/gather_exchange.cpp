#include "peer/gather/gather_exchange.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <utility>
#include <vector>

#include "base/byte_codec.h"
#include "tracker/filter/level_schedule.h"
#include "tracker/storage/mark_set_codec.h"

namespace spoor::peer {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view query_magic = "SPOORGQ1";
constexpr std::string_view gathered_magic = "SPOORGA1";
constexpr std::uint64_t time_ms_max = std::uint64_t{1} << 48U;
constexpr unsigned status_not_found = 404;

base::Error bad(std::string_view what) {
  return {std::make_error_code(std::errc::bad_message), std::string(what)};
}

void put_time(base::ByteWriter& out, milliseconds time) {
  out.u64(static_cast<std::uint64_t>(std::max<milliseconds::rep>(time.count(), 0)));
}

milliseconds get_time(base::ByteReader& in) { return milliseconds(std::min(in.u64(), time_ms_max)); }

void put_texts(base::ByteWriter& out, const std::vector<std::string>& texts) {
  out.u64(texts.size());
  for (const std::string& text : texts) out.text(text);
}

std::vector<std::string> get_texts(base::ByteReader& in) {
  std::vector<std::string> texts;
  for (std::uint64_t left = in.u64(); left > 0 && in.ok(); --left) texts.emplace_back(in.text());
  return texts;
}

std::string encode_gather_query(const GatherQuery& query) {
  const GatherOptions& options = query.options;
  base::ByteWriter out;
  out.raw(query_magic);
  out.short_string(query.node.cluster);
  out.short_string(query.node.node);
  tracker::encode_instance(out, query.instance);
  out.u64(query.members_digest);
  put_time(out, query.timeout);
  out.u64(options.rules_digest);
  put_time(out, options.min_cycle_age);
  put_time(out, options.forget_after);
  out.u8(options.own_only ? 1 : 0);
  out.u8(options.has_scanned ? 1 : 0);
  put_time(out, options.since_last_scan);
  out.u64(options.start_level);
  out.u8(options.read_only ? 1 : 0);
  tracker::encode_peer_book(out, query.book);
  return out.take();
}

}  // namespace

HttpRequest gather_request(const base::Endpoint& daemon, const GatherQuery& query) {
  return {daemon, "POST", "/v1/gather", "application/vnd.spoor.gather", encode_gather_query(query)};
}

base::Result<GatherQuery> decode_gather_query(std::string_view bytes) {
  base::ByteReader in(bytes);
  if (in.raw(query_magic.size()) != query_magic) {
    return bad(
        "the body is not the query of a scan, or of one of another version: install the same version "
        "of spoor and spoord, and restart spoord");
  }
  GatherQuery query;
  GatherOptions& options = query.options;
  query.node.cluster = in.short_string();
  query.node.node = in.short_string();
  query.instance = tracker::decode_instance(in);
  query.members_digest = in.u64();
  query.timeout = std::min(get_time(in), GatherQuery::timeout_max);
  options.rules_digest = in.u64();
  options.min_cycle_age = get_time(in);
  options.forget_after = get_time(in);
  options.own_only = in.u8() != 0;
  options.has_scanned = in.u8() != 0;
  options.since_last_scan = get_time(in);
  options.start_level = in.u64();
  options.read_only = in.u8() != 0;
  query.book = tracker::decode_peer_book(in);
  if (!in.ok() || in.remaining() != 0) return bad("the query is cut off, or has bytes after its end");
  if (options.start_level > tracker::LevelSchedule::level_max) return bad("its level is too high");
  return query;
}

std::string encode_gathered(const Gathered& gathered) {
  base::ByteWriter out;
  out.raw(gathered_magic);
  out.u64(std::bit_cast<std::uint64_t>(gathered.items));
  out.u64(gathered.cycle.value);
  tracker::encode_peer_book(out, gathered.book);
  out.u64(gathered.peers.size());
  for (const PeerOutcome& peer : gathered.peers) {
    out.text(peer.name);
    out.text(peer.url);
    out.u8(peer.ok ? 1 : 0);
    out.text(peer.error);
  }
  put_texts(out, gathered.unknown_sources);
  put_texts(out, gathered.gaps);
  put_texts(out, gathered.warnings);
  tracker::encode_mark_groups(out, gathered.marks);
  return out.take();
}

base::Result<Gathered> read_gathered(const base::Result<HttpResponse>& response) {
  if (!response) return response.error();
  if (!response->is_success()) {
    const std::string advice =
        response->status == status_not_found ? ": it is of an older version, restart it" : "";
    return base::Error(std::make_error_code(std::errc::protocol_error), problem_detail(*response) + advice);
  }
  base::ByteReader in(response->body);
  if (in.raw(gathered_magic.size()) != gathered_magic)
    return bad("the response is not one to a scan, or one of another version: restart spoord");
  Gathered gathered;
  gathered.items = std::bit_cast<double>(in.u64());
  gathered.cycle = {in.u64()};
  gathered.book = tracker::decode_peer_book(in);
  for (std::uint64_t left = in.u64(); left > 0 && in.ok(); --left) {
    std::string name(in.text());
    std::string url(in.text());
    const bool ok = in.u8() != 0;
    gathered.peers.push_back({std::move(name), std::move(url), ok, std::string(in.text())});
  }
  gathered.unknown_sources = get_texts(in);
  gathered.gaps = get_texts(in);
  gathered.warnings = get_texts(in);
  auto marks = tracker::decode_mark_groups(in);
  if (!marks) return marks.error();
  if (!in.ok() || in.remaining() != 0) return bad("the response is cut off, or has bytes after its end");
  gathered.marks = *std::move(marks);
  return gathered;
}

}  // namespace spoor::peer
