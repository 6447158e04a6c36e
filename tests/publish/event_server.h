// A server that stores events, as the tests see it.
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "publish/event.h"
#include "tests/support/random.h"

namespace spoor::publish {

// From the JSON of a CloudEvent; throws if it is none. The path has the bytes of the name.
Event read_event(const nlohmann::json& json);

// The kind of this name (name_of()); throws if there is none.
Event::Kind kind_of(const std::string& name);

// Not thread-safe.
class EventServer {
 public:
  // Of events that are stored more than once.
  enum class Repeats { none, within_a_batch };

  virtual ~EventServer() = default;

  // The element of `publish.sinks`, without name and batch.
  virtual nlohmann::json sink() const = 0;

  // All events, in the order in which consumers read them.
  virtual std::vector<Event> events() = 0;

  // From then on nothing is acknowledged, until restore().
  virtual void fail(support::Random& random) = 0;
  // Returns when it serves again, with all that it acknowledged.
  virtual void restore() = 0;

  virtual Repeats repeats() const = 0;

  // When spoor-publish publishes, as a rule: after its start, from the first to the last.
  struct Moments {
    std::chrono::milliseconds first{0};
    std::chrono::milliseconds last{60};
  };
  virtual Moments moments() const { return {}; }
};

}  // namespace spoor::publish
