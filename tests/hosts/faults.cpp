#include "tests/hosts/faults.h"

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <utility>

namespace spoor::hosts {
namespace {

constexpr std::size_t faults_max = 3;
// The other daemons must be able to acknowledge marks.
constexpr std::ptrdiff_t daemons_down_max = 2;
constexpr int tries_max = 100;

}  // namespace

Faults::Condition::Condition(std::size_t hosts)
    : answers(hosts, false),
      plugged(hosts, true),
      fast(hosts, true),
      packets(hosts, std::vector<bool>(hosts, true)),
      requests(hosts, std::vector<bool>(hosts, true)) {}

bool Faults::Condition::reaches(std::size_t from, std::size_t to) const {
  if (from == to || !answers[to]) return answers[to];
  return plugged[from] && plugged[to] && packets[from][to] && packets[to][from] && requests[from][to];
}

Faults::Faults(Network& network, const Hosts& hosts, Knowledge& knowledge, Reachability& reachability,
               Ledger& ledger, support::Random& random)
    : network_(network),
      hosts_(hosts),
      knowledge_(knowledge),
      reachability_(reachability),
      ledger_(ledger),
      random_(random),
      condition_(hosts.size()) {}

void Faults::start_all() {
  Condition after = condition_;
  after.answers.assign(hosts_.size(), true);
  change(after, [this] {
    for (const auto& host : hosts_) host->start();
  });
}

void Faults::work(std::chrono::steady_clock::time_point until) {
  while (ledger_.wait_for_scans(random_.between(1, 3), until)) {
    if (random_.one_in(10)) {
      mend_all();
      ledger_.note("all is well for a while");
      ledger_.wait_for_scans(2 * hosts_.size(), until);
    }
    mend_what_is_due();
    if (faults_.size() < faults_max) break_something();
  }
}

void Faults::mend_all() {
  for (Fault& fault : faults_) fault.steps_left = 0;
  mend_what_is_due();
}

void Faults::mend_what_is_due() {
  for (std::size_t i = 0; i < faults_.size();) {
    if (faults_[i].steps_left > 0) {
      --faults_[i++].steps_left;
      continue;
    }
    const Fault fault = std::move(faults_[i]);
    faults_.erase(faults_.begin() + static_cast<std::ptrdiff_t>(i));
    ledger_.note("mending: " + fault.what);
    fault.mend();
    ledger_.note("mended: " + fault.what);
  }
}

void Faults::break_something() {
  Host& host = *random_.pick(hosts_);
  const std::size_t other = (host.index() + 1 + random_.below(hosts_.size() - 1)) % hosts_.size();
  switch (random_.below(8)) {
    case 0:
    case 1:
      return break_cable(host.index());
    case 2:
      return slow_down(host.index());
    case 3:
    case 4:
      return break_way(host.index(), other);
    default:
      return break_daemon(host);
  }
}

void Faults::break_daemon(Host& host) {
  const auto& answers = condition_.answers;
  if (!answers[host.index()]) return;
  if (std::count(answers.begin(), answers.end(), false) >= daemons_down_max) return;
  switch (random_.below(8)) {
    case 0:
    case 1:
      return freeze(host);
    case 2:
    case 3:
      return stop(host);
    case 4:
      return lose(host);
    default:
      return kill(host);
  }
}

void Faults::break_cable(std::size_t host) {
  if (!condition_.plugged[host]) return;
  const End end = random_.one_in(2) ? End::at_the_host : End::at_the_switch;
  Condition after = condition_;
  after.plugged[host] = false;
  stay_broken(hosts_[host]->name() + " unplugged", [this, host, end] {
    Condition mended = condition_;
    mended.plugged[host] = true;
    change(mended, [&] { network_.plug_in(host, end); });
  });
  change(after, [&] { network_.unplug(host, end); });
}

void Faults::slow_down(std::size_t host) {
  if (!condition_.fast[host] || !network_.slow_down(host)) return;
  condition_.fast[host] = false;
  stay_broken(hosts_[host]->name() + " on a slow cable", [this, host] {
    network_.speed_up(host);
    condition_.fast[host] = true;
  });
}

void Faults::break_way(std::size_t from, std::size_t to) {
  if (!condition_.packets[from][to] || !condition_.requests[from][to]) return;
  const bool all_packets = random_.one_in(2);
  Condition after = condition_;
  (all_packets ? after.packets : after.requests)[from][to] = false;
  const std::string way = " from " + hosts_[from]->name() + " to " + hosts_[to]->name();
  stay_broken((all_packets ? "no packets" : "no requests") + way, [this, from, to] {
    Condition mended = condition_;
    mended.packets[from][to] = true;
    mended.requests[from][to] = true;
    change(mended, [&] { network_.mend(from, to); });
  });
  change(after, [&] { all_packets ? network_.cut_packets(from, to) : network_.cut_requests(from, to); });
}

void Faults::freeze(Host& host) {
  take_down(host, "frozen", [&] { host.freeze(); }, [&host] { host.thaw(); });
}

void Faults::stop(Host& host) {
  const auto stop_cleanly = [&] {
    const int code = host.stop();
    if (code != 0) ledger_.violated("spoord of " + host.name() + " stopped with " + std::to_string(code));
  };
  take_down(host, "stopped", stop_cleanly, [&host] { host.start(); });
}

void Faults::kill(Host& host) {
  take_down(host, "killed", [&] { host.kill(); }, [&host] { host.start(); });
}

void Faults::take_down(Host& host, const std::string& how, const std::function<void()>& act,
                       std::function<void()> bring_back) {
  Condition after = condition_;
  after.answers[host.index()] = false;
  stay_broken(host.name() + " " + how, [this, index = host.index(), bring_back = std::move(bring_back)] {
    Condition mended = condition_;
    mended.answers[index] = true;
    change(mended, bring_back);
  });
  change(after, act);
}

void Faults::lose(Host& host) {
  kill(host);
  const std::scoped_lock still(host.still());  // no scan of its own runs
  const auto loss = static_cast<Loss>(random_.below(3));
  host.lose(loss);
  knowledge_.lose(host.index());
  ledger_.note(host.name() + " lost its data_dir" + (loss == Loss::data_dir ? "" : " and its snapshots"));
  ledger_.count("losses");
}

void Faults::stay_broken(const std::string& what, std::function<void()> mend) {
  ledger_.note("breaking: " + what);
  ledger_.count("faults");
  faults_.push_back({what, random_.below(5), std::move(mend)});
}

void Faults::change(Condition after, const std::function<void()>& act) {
  std::vector<std::pair<std::size_t, std::size_t>> changed;
  for (std::size_t from = 0; from < hosts_.size(); ++from) {
    for (std::size_t to = 0; to < hosts_.size(); ++to) {
      if (condition_.reaches(from, to) != after.reaches(from, to)) changed.emplace_back(from, to);
    }
  }
  for (const auto& [from, to] : changed) reachability_.set(from, to, Reach::changing);
  act();
  condition_ = std::move(after);
  for (const auto& [from, to] : changed) {
    const bool reaches = condition_.reaches(from, to);
    if (reaches) wait_until_reached(from, to);
    reachability_.set(from, to, reaches ? Reach::yes : Reach::no);
  }
}

// After a link comes up, it takes a while until connections succeed.
void Faults::wait_until_reached(std::size_t from, std::size_t to) {
  const Host& target = *hosts_[to];
  const std::string url = from == to ? target.socket_url() : target.url();
  for (int i = 0; i < tries_max; ++i) {
    if (ledger_.is_violated()) return;
    if (hosts_[from]->spoor({"--url", url, "status", "--json"}).code == 0) return;
  }
  ledger_.violated(target.name() + " cannot be reached from " + hosts_[from]->name());
}

}  // namespace spoor::hosts
