// A sink that fails as servers do, and a consumer that builds a copy of the tree from the events alone.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "publish/sink.h"
#include "tests/publish/tree_copy.h"
#include "tests/support/random.h"

namespace spoor::publish {

// The copy of a consumer to which requests that were given up may arrive late (docs/publish.md, "Late
// requests").
class LateProofCopy {
 public:
  void apply(const Event& event);
  bool has_reset(const std::string& id) const { return resets_.contains(id); }
  const Tree& tree() const { return copy_.tree(); }

 private:
  TreeCopy copy_;
  std::string feed_;
  std::uint64_t scan_ = 0;  // all its changes are applied
  std::set<std::string> resets_;
};

class ModelSink final : public Sink {
 public:
  explicit ModelSink(support::Random random) : random_(random) {}

  base::Result<std::size_t> publish(const Source& source, std::span<const Event> events) override;
  bool defers() const override { return is_deferring; }
  base::Result<> settle() override;
  bool has_deferred() const { return !deferred_.empty(); }
  bool needs_reset() const override { return needs_reset_; }
  bool takes_totals() const override { return has_totals; }
  base::Result<> store_totals(const Source& source, const scanner::ScanRecord& scan,
                              std::span<const DirectoryTotals> totals, bool are_all) override;

  void lose_everything();

  // One attempt in this many fails, with any part of the batch stored; 0: none.
  std::uint64_t fails_one_in = 0;
  bool drops_repetitions = false;  // whose id was stored before
  bool is_deferring = false;       // stores what is published with the next call
  bool fails_settling = false;
  std::size_t request_max = 1'000'000;       // of events; one that does not defer stores these
  std::function<void()> on_publish = [] {};  // before a batch is stored
  std::size_t largest_batch = 0;             // of events that are not known to be stored

  bool has_totals = false;
  bool fails_totals = false;
  std::vector<std::uint64_t> totals_of;  // scans

  TreeCopy copy;
  LateProofCopy late_proof;  // to it, what was given up arrives again after the next end of a scan
  std::vector<Event> stored;

 private:
  void store(const Event& event);
  // The first ones; if it fails, any part of all.
  base::Result<> store_deferred(std::size_t count);

  support::Random random_;
  std::set<std::string> ids_;
  std::vector<Event> deferred_;
  std::vector<Event> given_up_;
  bool is_empty_ = false;  // and takes only a reset
  bool needs_reset_ = false;
};

}  // namespace spoor::publish
