// The messages on the network of a simulation: marks, the queries of scans, and the responses.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "peer/gather/cycle_frame.h"
#include "tests/simulation/world.h"

namespace spoor::simulation {
namespace {

base::Error no_answer() { return {std::make_error_code(std::errc::timed_out), "no answer in time"}; }

base::Endpoint endpoint(const std::string& address) { return {address, base::spoor_port, {}}; }
std::string url(const std::string& address) { return endpoint(address).to_string(); }

// The true response of the hostile host, forged; `choice` decides how. An eighth of the responses stay true.
// `victim`: another member, whose name and instance the hostile one knows.
std::string lie(const std::string& frame, const Node& victim, std::uint64_t choice) {
  auto read = peer::decode_cycle_frame(frame);
  if (!read || choice % 8 == 0) return frame;
  peer::CycleFrame forged = *std::move(read);
  const std::uint64_t detail = choice / 8;
  const std::uint64_t ahead = detail % 16;
  forged.answer.gap = detail / 16 % 8 == 0;
  switch (choice % 8) {
    case 1:  // the victim, whole, in a cycle ahead of its own
      forged.sender.node = victim.name();
      forged.answer.instance = victim.instance();
      forged.answer.current.value += ahead;
      forged.answer.marks = {};
      break;
    case 2:
      forged.sender.node = victim.name();
      break;
    case 3:  // its own name with the victim's memory
      forged.answer.instance = victim.instance();
      forged.answer.marks = {};
      break;
    case 4:
      forged.answer.instance.bytes[detail % forged.answer.instance.bytes.size()] ^= 1;
      break;
    case 5:
      forged.answer.current.value += ahead;
      forged.answer.marks = {};
      break;
    case 6:
      forged.run += detail;
      forged.sender.node = detail % 2 == 0 ? "stranger" : victim.name();
      break;
    default:
      forged.answer.current.value = ahead % 4 == 0 ? std::uint64_t{1} << (33 + ahead) : 1 + ahead;
      forged.rules_digest = detail % 2;
      break;
  }
  return peer::encode_cycle_frame(forged);
}

}  // namespace

// --- the network ---

std::optional<std::size_t> World::host_at(const std::string& address) const {
  for (std::size_t at = 0; at < hosts_.size(); ++at) {
    if (hosts_[at]->address == address) return at;
  }
  return std::nullopt;
}

bool World::is_cut(std::size_t from, std::size_t to) const { return cuts_.contains({from, to}); }

World::Message World::take_message(std::size_t at) {
  Message message = std::move(messages_[at]);
  messages_[at] = std::move(messages_.back());
  messages_.pop_back();
  return message;
}

void World::deliver(std::size_t at) {
  const Message message = take_message(at);
  const bool is_request =
      message.kind == Kind::mark || message.kind == Kind::query || message.kind == Kind::greeting;
  if (is_request) {
    deliver_request(message);
  } else if (is_cut(message.from, message.to)) {
    fail_request(message);
  } else {
    deliver_answer(message);
  }
}

void World::drop(std::size_t at) { fail_request(take_message(at)); }

// A scanner is notified that there will be no response. A writer is not.
void World::fail_request(const Message& message) {
  const bool is_request = message.kind == Kind::query;
  if (!is_request && message.kind != Kind::answer) return;
  const std::size_t asker = is_request ? message.from : message.to;
  const auto& scan = hosts_[asker]->scan;
  if (scan && scan->input().number == message.number && scan->is_outstanding(message.round, message.index)) {
    take(asker, message.index, no_answer());
  }
}

void World::time_out(std::size_t at, std::uint32_t which) {
  const auto& scan = hosts_[at]->scan;
  if (!scan || !scan->gathers()) return;
  const std::size_t index = which % scan->requests().size();
  if (scan->is_outstanding(scan->round(), index)) take(at, index, no_answer());
}

void World::deliver_request(const Message& message) {
  const auto to = host_at(message.address);
  if (!to || !hosts_[*to]->node.runs() || is_cut(message.from, *to)) return fail_request(message);
  Host& host = *hosts_[*to];
  Message answer = message;
  answer.from = *to;
  answer.to = message.from;
  if (message.kind == Kind::greeting) {
    answer.kind = Kind::greeted;
    answer_query(*to, message, answer);
    const Host& asker = *hosts_[message.from];
    const tracker::PeerId id{asker.node.name(), asker.node.instance()};
    if (!host.met.contains(id)) host.greets_soon = true;
    const auto recorded = answer.answer.position;
    return reply(*to, std::move(answer), recorded);
  }
  if (message.kind == Kind::mark) {
    const auto write = std::find_if(writes_.begin(), writes_.end(),
                                    [&](const Write& each) { return each.number == message.number; });
    if (write == writes_.end()) return;
    answer.kind = Kind::marked;
    answer.through = host.node.name();
    answer.answer.memory = host.node.memory();
    const auto marked = host.node.mark(write->marks);
    if (host.acknowledges || bug_ == Bug::acknowledges_early) reply(*to, std::move(answer), marked);
    return;
  }
  answer.kind = Kind::answer;
  answer_query(*to, message, answer);
  const auto position = answer.answer.position;
  reply(*to, std::move(answer), position);
}

void World::answer_query(std::size_t at, const Message& query, Message& answer) {
  Host& host = *hosts_[at];
  answer.through = host.node.name();
  answer.answer = host.node.answer(query.body);
  if (!setup_.hostile) return;
  auto& response = answer.answer.response;
  response.certificate_names = {host.node.name() + ".example"};
  response.is_own_authority = true;
  if (!is_hostile(at) || !lies_) return;
  // Different moments give unrelated choices.
  const std::uint64_t choice = moment_ * 0x9e3779b97f4a7c15U >> 16U;
  const Node& victim = hosts_[member(static_cast<std::uint32_t>(choice >> 24U))]->node;
  response.body = lie(response.body, victim, choice);
}

// Corresponds to daemon/durability/group_commit.cpp: sends the response when the journal is durable.
void World::reply(std::size_t at, Message message, tracker::JournalPosition position) {
  Host& host = *hosts_[at];
  // A node that has retired meanwhile acknowledges no mark.
  const bool is_refused = message.kind == Kind::marked && !host.node.is_member() && bug_ != Bug::retires_open;
  if (is_refused) return;
  if (host.node.is_durable(position)) {
    messages_.push_back(std::move(message));
  } else {
    host.waiting.push_back({std::move(message), position});
  }
}

std::vector<std::size_t> World::group_commits() const {
  std::vector<std::size_t> found;
  for (std::size_t at = 0; at < hosts_.size(); ++at) {
    if (!hosts_[at]->waiting.empty()) found.push_back(at);
  }
  return found;
}

void World::commit(std::size_t at) {
  Host& host = *hosts_[at];
  const bool durable = host.node.commit();
  std::vector<Waiting> waiting = std::move(host.waiting);
  host.waiting.clear();
  for (Waiting& each : waiting) {
    if (host.node.is_durable(each.position)) {
      reply(at, std::move(each.message), each.position);
    } else if (durable) {
      host.waiting.push_back(std::move(each));
    } else {
      fail_request(each.message);
    }
  }
}

// A member that lies may record nothing.
void World::take_greeting(const Message& message) {
  Host& host = *hosts_[message.to];
  if (!host.node.runs() || host.node.run_number() != message.number || is_hostile(message.from)) return;
  if (!host.node.meet(message.answer.response)) return;
  host.met.insert({hosts_[message.from]->node.name(), hosts_[message.from]->node.instance()});
  host.acknowledges = true;
}

void World::deliver_answer(const Message& message) {
  if (message.kind == Kind::greeted) return take_greeting(message);
  if (message.kind == Kind::marked) {
    const auto write = std::find_if(writes_.begin(), writes_.end(),
                                    [&](const Write& each) { return each.number == message.number; });
    if (write == writes_.end()) return;
    ++marks_;
    if (is_hostile(message.from)) {  // it may acknowledge any mark
      writes_.erase(write);
      return;
    }
    for (const auto& [directory, version] : write->changes) {
      hosts_[write->host]->oracle.acknowledge(directory, version, message.through, message.answer.memory,
                                              moment_);
    }
    writes_.erase(write);
    return;
  }
  auto& scan = hosts_[message.to]->scan;
  if (!scan || scan->input().number != message.number ||
      !scan->is_outstanding(message.round, message.index)) {
    return;
  }
  if (message.round == 2) {
    scan->note_answer(message.through, message.answer.memory);
  }
  take(message.to, message.index, message.answer.response);
}

// --- scans ---

void World::greet(std::size_t at) {
  Host& host = *hosts_[at];
  if (!host.node.runs() || !host.node.is_member()) return;
  host.greets_soon = false;
  for (const std::size_t each : members()) {
    if (each == at) continue;
    messages_.push_back({.kind = Kind::greeting,
                         .from = at,
                         .address = hosts_[each]->address,
                         .number = host.node.run_number(),
                         .body = host.node.greeting()});
  }
}

void World::begin_scan(std::size_t at) {
  Host& host = *hosts_[at];
  if (host.scan) return;
  Scan::Input input;
  input.number = ++numbers_;
  input.started_at = moment_;
  input.own_url = url(host.address);
  input.own_name = host.node.name();
  if (setup_.hostile && hosts_.size() > hostile_host) input.hostile = hosts_[hostile_host]->node.name();
  input.min_cycle_age = std::chrono::seconds(setup_.min_cycle_age_s);
  input.forget_after = std::chrono::minutes(setup_.forgets_late ? 10 : 0);
  input.wall_time = host.node.clock().wall_now();
  input.listed.push_back(endpoint(host.address));
  for (const std::size_t each : members()) {
    input.names.insert(hosts_[each]->node.name());
    if (each != at) input.listed.push_back(endpoint(hosts_[each]->address));
  }
  host.scan.emplace(std::move(input), host.database);
  send_queries(at);
}

void World::send_queries(std::size_t at) {
  const Scan& scan = *hosts_[at]->scan;
  for (std::size_t index = 0; index < scan.requests().size(); ++index) {
    const peer::HttpRequest& request = scan.requests()[index];
    messages_.push_back({.kind = Kind::query,
                         .from = at,
                         .address = request.endpoint.host,
                         .number = scan.input().number,
                         .round = scan.round(),
                         .index = index,
                         .body = request.body});
  }
}

void World::take(std::size_t at, std::size_t index, const base::Result<peer::HttpResponse>& response) {
  Host& host = *hosts_[at];
  if (host.scan->take(index, response)) return send_queries(at);
  if (host.scan->gathers()) return;
  if (host.scan->is_pointless()) {
    host.scan.reset();
  } else if (bug_ == Bug::cursor_before_walk) {
    host.database.peers = host.scan->gathered().book;
  }
}

std::vector<std::size_t> World::walkers() const {
  std::vector<std::size_t> found;
  for (std::size_t at = 0; at < hosts_.size(); ++at) {
    if (hosts_[at]->scan && !hosts_[at]->scan->gathers()) found.push_back(at);
  }
  return found;
}

void World::step_scan(std::size_t at) {
  Host& host = *hosts_[at];
  if (host.scan->walk_on(host.tree, host.database)) return;
  commit_scan(host);
}

void World::commit_scan(Host& host) {
  host.scan->commit(host.database);
  const auto broken = host.oracle.check(*host.scan, host.database);
  if (broken) note(fmt::format("{}: {}", host.node.name(), *broken));
  host.scan.reset();
}

}  // namespace spoor::simulation
