#include "tests/simulation/world.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>

#include "peer/gather/handover.h"

namespace spoor::simulation {
namespace {

constexpr std::size_t hosts_max = 60;
constexpr std::size_t writes_max = 200;

}  // namespace

World::World(const Setup& setup, Bug bug) : setup_(setup), bug_(bug) {
  for (std::uint32_t i = 0; i < setup.nodes; ++i) add(0);
}

World::~World() = default;

void World::note(const std::string& violation) {
  if (!violation_) violation_ = fmt::format("in action {}: {}", moment_, violation);
}

std::vector<std::size_t> World::members() const {
  std::vector<std::size_t> found;
  for (std::size_t at = 0; at < hosts_.size(); ++at) {
    if (hosts_[at]->is_member) found.push_back(at);
  }
  return found;
}

std::size_t World::member(std::uint32_t choice) const {
  const auto all = members();
  return all[choice % all.size()];
}

void World::act(const Action& action) {
  ++moment_;
  const auto [act, a, b, c] = action;
  const std::size_t at = member(a);
  Host& host = *hosts_[at];
  switch (act) {
    case Act::write:
      return write(at, b, c);
    case Act::retry:
      if (!writes_.empty()) send_mark(writes_[a % writes_.size()], b);
      return;
    case Act::deliver:
      if (!messages_.empty()) deliver(a % messages_.size());
      return;
    case Act::drop:
      if (!messages_.empty()) drop(a % messages_.size());
      return;
    case Act::time_out:
      return time_out(at, b);
    case Act::duplicate:
      if (!messages_.empty()) messages_.push_back(messages_[a % messages_.size()]);
      return;
    case Act::commit:
      if (const auto due = group_commits(); !due.empty()) commit(due[a % due.size()]);
      return;
    case Act::save:
      if (host.node.runs()) host.node.save();
      return;
    case Act::scan:
      return begin_scan(at);
    case Act::step_scan:
      if (const auto walking = walkers(); !walking.empty()) step_scan(walking[a % walking.size()]);
      return;
    case Act::kill_scan:
      host.scan.reset();
      return;
    case Act::lose_database:
      host.scan.reset();
      host.database = {};
      host.oracle.forget_scans();
      return;
    case Act::greet: {
      std::vector<std::size_t> due = members();
      std::erase_if(
          due, [&](std::size_t each) { return !hosts_[each]->greets_soon || !hosts_[each]->node.runs(); });
      return greet(due.empty() ? at : due[a % due.size()]);
    }
    case Act::wait:
      for (const auto& each : hosts_) each->node.clock().advance(std::chrono::seconds(b % 90));
      return;
    case Act::jump_clock: {
      const auto by = std::chrono::hours(static_cast<std::int64_t>(b) - (1 << 15U));
      host.node.clock().set_wall(host.node.clock().wall_now() + by);
      return;
    }
    case Act::cut:
      if (const std::size_t other = member(b); other != at) cuts_.emplace(at, other);
      return;
    case Act::heal:
      cuts_.clear();
      return;
    case Act::kill:
      host.node.kill();
      return down(host);
    case Act::lose_power:
      host.node.lose_power(c);
      host.scan.reset();
      return down(host);
    case Act::stop:
      host.node.stop();
      return down(host);
    case Act::start:
      if (const auto idle = without_daemon(); !idle.empty()) hosts_[idle[a % idle.size()]]->node.start(b);
      return;
    case Act::fill_disk:
      return host.node.fill_disk();
    case Act::free_disk:
      for (const std::size_t each : members()) hosts_[each]->node.free_disk();
      return;
    case Act::wipe:
      return wipe(host);
    case Act::add:
      return add(b);
    case Act::remove:
      return remove(at);
    case Act::visit:
      return visit(at, b, c);
    case Act::move:
      return move(at);
    case Act::retire:
      return retire(at, b, c);
  }
}

// --- writers ---

void World::write(std::size_t at, std::uint32_t where, std::uint32_t how) {
  Host& host = *hosts_[at];
  if (writes_.size() >= writes_max) writes_.erase(writes_.begin());
  Write made{.number = ++numbers_, .host = at, .changes = {}, .marks = {}};
  const std::size_t directory = where % Tree::count;
  made.changes.emplace_back(directory, host.tree.change(directory));
  const std::string& path = Tree::path(directory);
  const std::string object = path.empty() ? "object" : path + "/object";
  if (how % 8 == 0 && !path.empty()) {
    for (std::size_t child = 0; Tree::has_children(directory) && child < Tree::fan_out; ++child) {
      const std::size_t below = Tree::first_child(directory) + child;
      made.changes.emplace_back(below, host.tree.change(below));
    }
    made.marks.push_back({path, tracker::MarkKind::tree});
  } else if (how % 8 < 4 || path.empty()) {
    made.marks.push_back({object, tracker::MarkKind::file});
  } else {
    made.marks.push_back({path, tracker::MarkKind::dir});
  }
  writes_.push_back(made);
  send_mark(made, how / 8);
}

void World::send_mark(const Write& write, std::uint32_t through) {
  const Host& to = *hosts_[member(through)];
  messages_.push_back(
      {.kind = Kind::mark, .from = write.host, .address = to.address, .number = write.number});
}

// --- events of nodes ---

std::vector<std::size_t> World::without_daemon() const {
  std::vector<std::size_t> found = members();
  std::erase_if(found, [&](std::size_t at) { return hosts_[at]->node.runs(); });
  return found;
}

void World::down(Host& host) {
  host.met.clear();
  host.greets_soon = true;
  host.acknowledges = false;
  if (!host.node.violation().empty()) note(host.node.violation());
  for (const Waiting& each : std::exchange(host.waiting, {})) fail_request(each.message);
}

void World::wipe(Host& host) {
  host.node.wipe();
  host.scan.reset();
  host.database = {};
  host.oracle.forget_everything();
  down(host);
}

void World::add(std::uint32_t choice) {
  const auto gone =
      std::find_if(hosts_.begin(), hosts_.end(), [](const auto& host) { return !host->is_member; });
  if (choice % 2 == 1 && gone != hosts_.end()) {
    (*gone)->is_member = true;
    (*gone)->node.start(0);
    return;
  }
  if (hosts_.size() >= hosts_max) return;
  const auto number = static_cast<std::uint32_t>(hosts_.size());
  hosts_.push_back(std::make_unique<Host>(number, setup_, bug_));
  hosts_.back()->oracle.begin(hosts_.front()->oracle);
  hosts_.back()->address = fmt::format("h{}", number);
}

void World::remove(std::size_t at) {
  Host& host = *hosts_[at];
  if (members().size() <= 2) return;
  host.is_member = false;
  host.node.kill();
  host.scan.reset();
  down(host);
}

// With `reaches`, it reaches no other host.
void World::visit(std::size_t at, std::uint32_t where, std::uint32_t how,
                  std::optional<std::size_t> reaches) {
  if (hosts_.size() >= hosts_max) return;
  add(0);
  const std::size_t visitor = hosts_.size() - 1;
  const auto last = static_cast<std::uint32_t>(members().size() - 1);
  const auto others = static_cast<std::ptrdiff_t>(messages_.size());
  const auto exchange = [&] {
    const auto is_lost = [&](const Message& message) {
      return reaches && message.kind == Kind::greeting && message.address != hosts_[*reaches]->address;
    };
    messages_.erase(std::remove_if(messages_.begin() + others, messages_.end(), is_lost), messages_.end());
    while (std::ssize(messages_) > others) deliver(messages_.size() - 1);
    for (const std::size_t each : group_commits()) commit(each);
    while (std::ssize(messages_) > others) deliver(messages_.size() - 1);
  };
  if (how % 2 == 0 || reaches) greet(visitor);
  exchange();
  write(at, where, 8 * last + how % 8);
  exchange();
  remove(visitor);
}

void World::move(std::size_t at) {
  Host& host = *hosts_[at];
  host.address = fmt::format("{}-{}", host.address.substr(0, host.address.find('-')), ++host.moves);
  host.scan.reset();  // it knows the node by its old address
}

// Corresponds to daemon/membership/retirement.cpp; each of its steps may be the last one.
void World::retire(std::size_t at, std::uint32_t where, std::uint32_t how) {
  Host& host = *hosts_[at];
  if (is_hostile(at) || !host.node.runs() || host.node.has_retired()) return;
  if (host.node.is_member() && !host.acknowledges) return;
  const auto mark_here = [&](std::uint32_t directory) {
    const auto all = members();
    const auto own = static_cast<std::uint32_t>(std::ranges::find(all, at) - all.begin());
    write(member(how / 1024), directory, 8 * own + how % 8);
    const std::size_t before = messages_.size() - 1;
    deliver(before);
    if (how / 8 % 2 == 0) commit(at);
    while (messages_.size() > before) deliver(before);
  };
  mark_here(where);  // acknowledged just before, or about to be
  if (how / 16 % 2 == 0) host.node.open_cycle();

  tracker::CycleId from = host.node.current();
  std::vector<std::size_t> others;
  for (std::size_t each = 0; each < hosts_.size(); ++each) {
    Host& other = *hosts_[each];
    const bool responds = other.is_member && other.node.runs() && !is_cut(at, each) && !is_cut(each, at);
    const bool has_scanned = other.database.scanned_at.has_value();
    other.oracle.note_retirement(host.node.name(), responds && has_scanned);
    if (!responds) continue;
    if (each != at && !is_hostile(each)) others.push_back(each);
    const tracker::PeerId id{host.node.name(), host.node.instance()};
    if (has_scanned) from = std::min(from, *peer::unread_from(other.database.peers, id));
  }
  if (others.empty()) return;
  const bool was_member = host.node.is_member();
  if (!host.node.note(tracker::Membership::retiring)) return;
  const std::size_t to = others[how / 1024 % others.size()];
  if (!hosts_[to]->acknowledges || !hosts_[to]->node.is_member()) {  // it refuses
    if (was_member && host.node.note(tracker::Membership::member)) {
      for (const auto& each : hosts_) each->oracle.note_retirement(host.node.name(), false);
    }
    return;
  }
  const bool has_retired = hand_over(at, from, to, static_cast<Fate>(how / 32 % 8));
  if (!has_retired) return;
  mark_here(where + 1);  // too late
  if (how / 4096 % 2 == 0) visit(member(how / 1024), where + 2, how, at);
  if (how / 256 % 4 == 0) {
    host.node.kill();
    down(host);
  } else if (how / 256 % 4 < 3) {
    remove(at);
  }
}

// Returns whether the node has retired.
bool World::hand_over(std::size_t at, tracker::CycleId from, std::size_t to, Fate fate) {
  Host& host = *hosts_[at];
  Host& other = *hosts_[to];
  const auto position = other.node.adopt(host.node, from, host.node.marks_to_hand_over(from));
  if (fate != Fate::killed_early && bug_ != Bug::adopts_in_memory) commit(to);
  const bool is_adopted = other.node.is_durable(position) || bug_ == Bug::adopts_in_memory;
  if (fate == Fate::killed_early || fate == Fate::killed) {
    other.node.kill();
    down(other);
  }
  if (fate == Fate::ends) {
    host.node.kill();
    down(host);
    return false;
  }
  return is_adopted && fate != Fate::unheard && host.node.note(tracker::Membership::retired);
}

// --- the end ---

void World::settle() {
  ++moment_;
  lies_ = false;  // otherwise scans may stay partial, and a partial scan does not detect that a node has left
  cuts_.clear();
  while (!messages_.empty()) deliver(0);
  for (const auto& host : hosts_) {
    host->scan.reset();
    host->node.free_disk();
    host->node.kill();
    down(*host);
    if (host->is_member) host->node.start(0);
    if (!host->node.violation().empty()) note(host->node.violation());
  }
  for (const std::size_t at : members()) greet(at);
  while (!messages_.empty() || !group_commits().empty()) {
    while (!messages_.empty()) deliver(0);
    for (const std::size_t each : group_commits()) commit(each);
  }
  const int scans = setup_.forgets_late ? 6 : 2;  // until those that left are gone
  for (int times = 0; times < scans; ++times) {
    for (const std::size_t at : members()) {
      begin_scan(at);
      for (const std::size_t each : members()) hosts_[each]->node.clock().advance(std::chrono::hours(2));
      while (hosts_[at]->scan && !violation_) {
        ++moment_;
        while (!messages_.empty()) deliver(messages_.size() - 1);
        for (const std::size_t each : group_commits()) commit(each);
        if (messages_.empty() && hosts_[at]->scan && !hosts_[at]->scan->gathers()) step_scan(at);
      }
    }
  }
  for (const std::size_t at : members()) {
    if (hosts_[at]->oracle.has_promises()) {
      note(fmt::format("{}: changes are not found although everything works", hosts_[at]->node.name()));
    }
  }
}

Figures World::figures() const {
  Figures figures;
  figures.actions = moment_;
  figures.marks = marks_;
  for (const auto& host : hosts_) {
    figures.scans += host->oracle.scans();
    figures.full_scans += host->oracle.full_scans();
    figures.partial_scans += host->oracle.partial_scans();
    figures.losses += host->node.memory().losses;
  }
  return figures;
}

}  // namespace spoor::simulation
