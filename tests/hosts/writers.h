// Applications: they change the drives of the hosts, and send the marks to any daemon that responds.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>

#include "tests/hosts/host.h"
#include "tests/hosts/knowledge.h"
#include "tests/hosts/ledger.h"

namespace spoor::hosts {

// Thread-safe: any number of threads may call work().
class Writers {
 public:
  Writers(const Hosts& hosts, Knowledge& knowledge, Ledger& ledger)
      : hosts_(hosts), knowledge_(knowledge), ledger_(ledger) {}

  // Runs until stop(), and then until all of its changes are acknowledged.
  void work(support::Random random) {
    try {
      while (!stopping_ && !ledger_.is_violated()) {
        Host& host = *random.pick(hosts_);
        // A host that is being scanned is skipped; there are always others.
        const std::unique_lock still(host.still(), std::try_to_lock);
        if (still.owns_lock()) change(host, random);
      }
    } catch (const std::exception& error) {
      ledger_.violated(std::string("a writer ended: ") + error.what());
    }
  }
  void stop() { stopping_ = true; }

 private:
  void change(Host& host, support::Random& random) {
    support::TreeWriter& writer = host.some_writer(random);
    for (std::uint64_t i = random.between(1, 4); i > 0; --i) writer.change();
    const std::string lines = writer.take_changed();
    if (!lines.empty()) mark(host, lines, random);
  }

  // Repeats a mark that is refused or gets no response, as the change is complete only when its mark is
  // acknowledged.
  void mark(const Host& changed, const std::string& lines, support::Random& random) {
    const auto count = static_cast<std::uint64_t>(std::count(lines.begin(), lines.end(), '\0'));
    while (!ledger_.is_violated()) {
      const Host& at = *random.pick(hosts_);
      if (!try_to_mark(at, lines, random)) {
        ledger_.count("batches refused or without a response");
        continue;
      }
      knowledge_.acknowledged(changed.index(), at.index());
      ledger_.note(changed.name() + " changed, " + at.name() + " acknowledged " + std::to_string(count));
      ledger_.count("changes marked", count);
      return;
    }
  }

  bool try_to_mark(const Host& at, const std::string& lines, support::Random& random) {
    const std::string kind = random.one_in(8) ? "tree" : "dir";
    const bool over_the_network = random.one_in(2);
    const Host& from = over_the_network ? *random.pick(hosts_) : at;
    const std::string url = over_the_network ? at.url() : at.socket_url();
    return from.spoor({"--url", url, "mark", "--timeout", "0", "--kind", kind, "-0"}, lines).code == 0;
  }

  const Hosts& hosts_;
  Knowledge& knowledge_;
  Ledger& ledger_;
  std::atomic<bool> stopping_ = false;
};

}  // namespace spoor::hosts
