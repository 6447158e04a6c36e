#include "tests/hosts/writers.h"

#include <algorithm>
#include <exception>
#include <mutex>

namespace spoor::hosts {

void Writers::work(support::Random random) {
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

void Writers::change(Host& host, support::Random& random) {
  support::TreeWriter& writer = host.some_writer(random);
  for (std::uint64_t i = random.between(1, 4); i > 0; --i) writer.change();
  const std::string lines = writer.take_changed();
  if (!lines.empty()) mark(host, lines, random);
}

// Repeats a mark that is refused or gets no response, as the change is complete only when its mark is
// acknowledged.
void Writers::mark(const Host& changed, const std::string& lines, support::Random& random) {
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

bool Writers::try_to_mark(const Host& at, const std::string& lines, support::Random& random) {
  const std::string kind = random.one_in(8) ? "tree" : "dir";
  const bool over_the_network = random.one_in(2);
  const Host& from = over_the_network ? *random.pick(hosts_) : at;
  const std::string url = over_the_network ? at.url() : at.socket_url();
  return from.spoor({"--url", url, "mark", "--timeout", "0", "--kind", kind, "-0"}, lines).code == 0;
}

}  // namespace spoor::hosts
