// A cluster, its writers, its network and its scanners in one process: runs the actions of a script and
// reports violations. Deterministic, except for the ids of instances, which are only compared for equality.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/simulation/node.h"
#include "tests/simulation/oracle.h"
#include "tests/simulation/scanner.h"
#include "tests/simulation/script.h"
#include "tests/simulation/tree.h"

namespace spoor::simulation {

struct Figures {
  std::uint64_t actions = 0;
  std::uint64_t marks = 0;  // acknowledged
  std::uint64_t scans = 0;  // committed
  std::uint64_t full_scans = 0;
  std::uint64_t partial_scans = 0;
  std::uint64_t losses = 0;  // of a node's memory
};

class World {
 public:
  World(const Setup& setup, Bug bug);
  ~World();

  void act(const Action& action);

  // All failures end, the hostile host included, and every scanner scans until it has found everything.
  void settle();

  // The first violation; std::nullopt if there is none.
  const std::optional<std::string>& violation() const { return violation_; }
  Figures figures() const;

 private:
  enum class Kind { mark, marked, query, answer, greeting, greeted };
  struct Message {
    Kind kind = Kind::mark;
    std::size_t from = 0;
    std::size_t to = 0;        // of a response
    std::string address = {};  // of a request
    std::uint64_t number = 0;  // of the write or scan, or the run of the greeting node
    std::size_t round = 0;
    std::size_t index = 0;
    std::string body = {};
    std::string through = {};  // the name of the node that acknowledges
    Node::Answer answer = {};
  };

  // A response that is sent when `position` is durable.
  struct Waiting {
    Message message;
    tracker::JournalPosition position = 0;
  };

  // A machine, its data, and its scanner.
  struct Host {
    Host(std::uint32_t number, const Setup& setup, Bug bug) : node(number, setup, bug) {}

    Node node;
    std::string address;
    bool is_member = true;
    unsigned moves = 0;
    std::set<tracker::PeerId> met;  // in this run
    bool greets_soon = true;
    bool acknowledges = false;
    Tree tree;
    Database database;
    Oracle oracle;
    std::optional<Scan> scan;
    std::vector<Waiting> waiting;
  };

  struct Write {
    std::uint64_t number = 0;
    std::size_t host = 0;
    std::vector<std::pair<std::size_t, std::uint64_t>> changes;  // directory, version
    std::vector<tracker::Mark> marks;
  };

  void write(std::size_t host, std::uint32_t where, std::uint32_t how);
  void send_mark(const Write& write, std::uint32_t through);
  void deliver(std::size_t at);
  void deliver_request(const Message& message);
  void deliver_answer(const Message& message);
  void drop(std::size_t at);
  void time_out(std::size_t host, std::uint32_t which);
  void fail_request(const Message& message);
  void answer_query(std::size_t host, const Message& query, Message& answer);
  bool is_hostile(std::size_t host) const { return setup_.hostile && host == hostile_host; }
  void reply(std::size_t host, Message message, tracker::JournalPosition position);
  std::vector<std::size_t> group_commits() const;  // hosts with waiting responses
  void commit(std::size_t host);

  void greet(std::size_t host);
  void take_greeting(const Message& message);

  void begin_scan(std::size_t host);
  void send_queries(std::size_t host);
  void take(std::size_t host, std::size_t index, const base::Result<peer::HttpResponse>& response);
  std::vector<std::size_t> walkers() const;  // hosts whose scan has gathered
  void step_scan(std::size_t host);
  void commit_scan(Host& host);

  std::vector<std::size_t> without_daemon() const;
  void down(Host& host);
  void add(std::uint32_t choice);
  void remove(std::size_t host);
  void visit(std::size_t writer, std::uint32_t where, std::uint32_t how,
             std::optional<std::size_t> reaches = {});
  void move(std::size_t host);
  void retire(std::size_t host, std::uint32_t where, std::uint32_t how);
  // Of a handover: the other node is killed before it has the marks for certain, or after, the node itself is
  // killed, or hears nothing. Any other: none of these.
  enum class Fate { killed_early, killed, ends, unheard };
  bool hand_over(std::size_t host, tracker::CycleId from, std::size_t to, Fate fate);
  void wipe(Host& host);

  Message take_message(std::size_t at);
  std::optional<std::size_t> host_at(const std::string& address) const;
  bool is_cut(std::size_t from, std::size_t to) const;
  std::size_t member(std::uint32_t choice) const;
  std::vector<std::size_t> members() const;
  void note(const std::string& violation);

  static constexpr std::size_t hostile_host = 1;

  const Setup setup_;
  const Bug bug_;
  bool lies_ = true;  // whether the hostile host forges responses; until the end
  std::uint64_t moment_ = 0;
  std::uint64_t numbers_ = 0;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<Write> writes_;  // not acknowledged yet
  std::vector<Message> messages_;
  std::set<std::pair<std::size_t, std::size_t>> cuts_;
  std::optional<std::string> violation_;
  std::uint64_t marks_ = 0;
};

struct Outcome {
  std::optional<std::string> violation;
  std::size_t actions = 0;  // run until the violation or the end
  Figures figures;
};

// Runs the script up to the first violation, or to its end and until everything has settled.
Outcome run(const Script& script, Bug bug = Bug::none);

// Returns a much shorter script with the same violation or another one (delta debugging: Zeller and
// Hildebrandt 2002).
Script shrink(const Script& script, Bug bug = Bug::none);

}  // namespace spoor::simulation
