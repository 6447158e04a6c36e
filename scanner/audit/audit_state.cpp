#include "scanner/audit/audit_state.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

namespace spoor::scanner {
namespace {

using nlohmann::json;

base::WallTime from_ns(std::int64_t ns) { return base::WallTime(std::chrono::nanoseconds(ns)); }

}  // namespace

AuditState AuditState::begun(base::WallTime now) {
  AuditState state;
  state.now_ = now;
  state.all_read_at_ = now;
  return state;
}

std::optional<AuditState> AuditState::parse(const std::string& text) {
  const auto samples = [](const json& list) {
    std::vector<Sample> found;
    for (const json& each : list) found.push_back({each.at(0), from_ns(each.at(1))});
    return found;
  };
  try {
    const json from = json::parse(text);
    AuditState state;
    state.all_read_at_ = from_ns(from.at("all_read_at_ns"));
    state.done_ = from.at("done");
    state.share_ = from.at("share");
    state.is_at_end_ = from.at("is_at_end");
    state.last_round_ = samples(from.at("last_round"));
    state.this_round_ = samples(from.at("this_round"));
    state.now_ = from_ns(from.at("now_ns"));
    state.elapsed_ = std::chrono::nanoseconds(from.at("elapsed_ns").get<std::int64_t>());
    return state;
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

std::string AuditState::to_text() const {
  const auto to_ns = [](base::WallTime time) { return time.time_since_epoch().count(); };
  const auto list = [&](const std::vector<Sample>& samples) {
    json found = json::array();
    for (const Sample& each : samples) found.push_back(json::array({each.share, to_ns(each.at)}));
    return found;
  };
  return json{{"now_ns", to_ns(now_)},
              {"elapsed_ns", elapsed_.count()},
              {"all_read_at_ns", to_ns(all_read_at_)},
              {"done", done_},
              {"share", share_},
              {"is_at_end", is_at_end_},
              {"last_round", list(last_round_)},
              {"this_round", list(this_round_)}}
      .dump();
}

bool AuditState::advance_to(base::WallTime now, std::chrono::nanoseconds period) {
  constexpr std::chrono::nanoseconds elapsed_max = std::chrono::nanoseconds::max() / 4;
  const std::chrono::nanoseconds passed = now - now_;
  if (passed.count() < 0) {
    date_back_by(-passed);
  } else {
    elapsed_ = passed < elapsed_max - elapsed_ ? elapsed_ + passed : elapsed_max;
  }
  now_ = now;
  if (period.count() <= 0 || !is_at_end_ || elapsed_ < period) return false;
  last_round_ = std::exchange(this_round_, {});
  // The next round does not catch up on time in which no scan ran.
  elapsed_ = elapsed_ - period < period ? elapsed_ - period : std::chrono::nanoseconds(0);
  done_ = 0;
  share_ = 0;
  is_at_end_ = false;
  return true;
}

void AuditState::date_back_by(std::chrono::nanoseconds step) {
  all_read_at_ -= step;
  for (auto* const round : {&last_round_, &this_round_}) {
    for (Sample& each : *round) each.at -= step;
  }
}

std::uint64_t AuditState::due(std::uint64_t total, std::chrono::nanoseconds period) const {
  if (is_at_end_ || elapsed_.count() <= 0) return 0;
  if (elapsed_ >= period) return std::numeric_limits<std::uint64_t>::max();
  const double passed = static_cast<double>(elapsed_.count()) / static_cast<double>(period.count());
  const auto wanted = static_cast<std::uint64_t>(passed * static_cast<double>(total));
  return wanted > done_ ? wanted - done_ : 0;
}

void AuditState::visited(std::uint64_t count, std::uint64_t total, bool is_at_end) {
  done_ += count;
  is_at_end_ = is_at_end;
  const double share = static_cast<double>(done_) / static_cast<double>(std::max<std::uint64_t>(total, 1));
  share_ = is_at_end ? 1 : std::min(std::max(share, share_), 1.0);
  this_round_.push_back({share_, now_});
  if (this_round_.size() <= samples_max) return;
  // Two become one: up to the share of the later, read at the time of the earlier.
  std::vector<Sample> fewer;
  for (std::size_t at = 0; at + 1 < this_round_.size(); at += 2) {
    fewer.push_back({this_round_[at + 1].share, this_round_[at].at});
  }
  if (this_round_.size() % 2 == 1) fewer.push_back(this_round_.back());
  this_round_ = std::move(fewer);
}

base::WallTime AuditState::oldest() const {
  if (is_at_end_ && !this_round_.empty()) return this_round_.front().at;
  const auto next =
      std::ranges::find_if(last_round_, [&](const Sample& each) { return each.share > share_; });
  if (next != last_round_.end()) return next->at;
  if (!last_round_.empty()) return last_round_.back().at;
  return all_read_at_;
}

}  // namespace spoor::scanner
