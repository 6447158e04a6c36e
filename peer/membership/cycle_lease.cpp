#include "peer/membership/cycle_lease.h"

#include <algorithm>
#include <utility>

namespace spoor::peer {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds pause_least{100};
constexpr milliseconds pause_most{500};

}  // namespace

CycleLease::CycleLease(EtcdClient& client, const base::Clock& clock, Options options)
    : client_(client), clock_(clock), options_(std::move(options)), random_(options_.seed) {}

bool CycleLease::acquire() {
  const auto until = clock_.steady_now() + options_.wait_max;
  for (;;) {
    const auto taken = try_once();
    if (!taken || *taken) return true;
    const auto left = std::chrono::ceil<milliseconds>(until - clock_.steady_now());
    if (left <= milliseconds(0) || !options_.wait(std::min(left, pause()))) break;
  }
  release();
  return false;
}

void CycleLease::release() {
  if (lease_ != EtcdLease()) static_cast<void>(client_.revoke(std::exchange(lease_, {})));
}

base::Result<bool> CycleLease::try_once() {
  for (bool is_first = true;; is_first = false) {
    if (lease_ == EtcdLease()) {
      const auto granted = client_.grant(options_.ttl);
      if (!granted) return granted.error();
      lease_ = *granted;
    }
    const auto put = client_.put_if_absent({cycle_lease_key(options_.location), options_.node, lease_});
    const bool lease_is_gone = !put && put.error().code == std::errc::no_such_file_or_directory;
    if (!lease_is_gone || !is_first) return put;
    lease_ = {};  // it expired during the wait
  }
}

milliseconds CycleLease::pause() {
  return milliseconds(
      std::uniform_int_distribution<milliseconds::rep>(pause_least.count(), pause_most.count())(random_));
}

}  // namespace spoor::peer
