#include "peer/gather/name_claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/printable.h"

namespace spoor::peer {
namespace {

using base::printable;

// The claims of one name.
class Contest {
 public:
  Contest(std::span<const NameClaim> claims, std::vector<std::size_t> indices, const ClaimContext& context,
          std::vector<JudgedClaim>& judged)
      : claims_(claims),
        indices_(std::move(indices)),
        context_(context),
        judged_(judged),
        name_(claims[indices_.front()].name) {
    if (name_ == context.own_name) homes_.insert(context.own_url);
    std::set<std::string> homes;
    for (const auto& [id, peer] : context.known) {
      if (id.name != name_ || !peer.is_expected() || peer.cycle == tracker::CycleId()) continue;
      is_read_ = true;
      if (!peer.home.empty()) homes.insert(peer.home);
    }
    if (const auto listed = context.listed_homes.find(name_); listed != context.listed_homes.end()) {
      listed_ = listed->second;
    }
    if (!is_read_ && homes_.empty()) homes = listed_;
    homes_.merge(homes);
  }

  void judge() {
    // By trust: a claim that a certificate proves precedes one from a home, where any host may respond. The
    // node's own daemon comes first: its instance is checked too.
    std::ranges::sort(indices_, {}, [&](std::size_t index) { return std::pair(rank(index), index); });
    const std::size_t first = indices_.front();
    const bool is_elsewhere = rank(first) >= Rank::listed;
    if (is_elsewhere && dispute(rank(first))) return;
    for (const std::size_t index : indices_) accept(index);
    if (!is_elsewhere) return;
    if (!homes_.empty()) {
      judged_[first].warning = fmt::format("node '{}' was last found at {}, and is now at {}",
                                           printable(name_), fmt::join(homes_, ", "), claims_[first].url);
    } else if (!is_read_ && indices_.size() > 1) {
      judged_[first].warning = fmt::format(
          "node '{}', read for the first time, answers at {} and at {}: from now on it is read at {}; if "
          "that is not the "
          "node, remove it from the members and run `spoor scan --full`",
          printable(name_), claims_[first].url, claims_[indices_[1]].url, claims_[first].url);
    }
  }

 private:
  enum class Rank { own, proven, home, listed, elsewhere };

  Rank rank(std::size_t index) const {
    const NameClaim& claim = claims_[index];
    if (name_ == context_.own_name && claim.url == context_.own_url) return Rank::own;
    if (claim.is_proven) return Rank::proven;
    if (homes_.contains(claim.url)) return Rank::home;
    return listed_.contains(claim.url) ? Rank::listed : Rank::elsewhere;
  }

  // Disputes all claims, and returns true, if an address where the name was found before, or is listed, does
  // not respond.
  bool dispute(Rank first) {
    std::set<std::string> homes = homes_;
    if (first == Rank::elsewhere) homes.insert(listed_.begin(), listed_.end());
    const auto home = std::ranges::find_if(homes, [&](const std::string& url) {
      return context_.silent.contains(url) && !(first == Rank::listed && context_.not_alive.contains(url));
    });
    if (home == homes.end()) return false;
    const char* const was_found = homes_.contains(*home) ? "was last found" : "is listed";
    for (const std::size_t index : indices_) {
      judged_[index] = {
          Verdict::disputed,
          fmt::format("node '{}' {} at {}, which does not respond; {} claims its name without a "
                      "certificate for it. If the node moved, remove {} from the members; else give the "
                      "other node a name of its own",
                      printable(name_), was_found, *home, claims_[index].url, *home)};
    }
    return true;
  }

  void accept(std::size_t index) {
    const NameClaim& claim = claims_[index];
    const bool is_second = std::ranges::any_of(accepted_, [&](std::size_t other) {
      return claims_[other].instance == claim.instance && claims_[other].run == claim.run;
    });
    judged_[index].verdict = is_second           ? Verdict::second
                             : accepted_.empty() ? Verdict::accepted
                                                 : Verdict::rival;
    if (!is_second) accepted_.push_back(index);
  }

  const std::span<const NameClaim> claims_;
  std::vector<std::size_t> indices_;
  const ClaimContext& context_;
  std::vector<JudgedClaim>& judged_;
  const std::string name_;
  bool is_read_ = false;
  std::set<std::string> homes_;   // addresses where the name was found before
  std::set<std::string> listed_;  // addresses at which a source of members lists the name
  std::vector<std::size_t> accepted_;
};

}  // namespace

std::vector<JudgedClaim> judge_claims(std::span<const NameClaim> claims, const ClaimContext& context) {
  std::map<std::string, std::vector<std::size_t>> by_name;
  for (std::size_t index = 0; index < claims.size(); ++index) by_name[claims[index].name].push_back(index);
  std::vector<JudgedClaim> judged(claims.size());
  for (auto& [name, indices] : by_name) {
    Contest(claims, std::move(indices), context, judged).judge();
  }
  return judged;
}

}  // namespace spoor::peer
