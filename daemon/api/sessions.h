// Sign-in to the page: a browser sends a token once, and from then on a cookie, and a secret in a header. A
// browser sends the cookie to every port of the host, and so to programs of other users.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <mutex>
#include <string_view>

#include "base/clock.h"
#include "daemon/api/access.h"
#include "daemon/http/http_message.h"

namespace spoor::daemon {

// The sessions of signed-in browsers, in memory: a restart ends them all. A session may what role `read` may,
// as long as its token has that role or `admin`. It is for GET only, so that a page of another site can
// change nothing with it.
//
// Thread-safe. `clock` must outlive it.
class Sessions {
 public:
  static constexpr std::size_t sessions_max = 1000;
  static constexpr std::chrono::hours idle_max{12};
  static constexpr std::chrono::hours age_max{24};

  explicit Sessions(const base::Clock& clock) : clock_(clock) {}

  // POST /v1/session, of a caller that may read. Sets the cookie if the caller needs one: if it was admitted
  // for its token, and returns the secret in the body. At sessions_max the session that is unused for the
  // longest time ends.
  HttpResponse sign_in(const HttpRequest& request, const Access& access);

  // DELETE /v1/session. Ends the session of the cookie, if there is one, and deletes the cookie.
  HttpResponse sign_out(const HttpRequest& request);

  // Whether a session allows this request, of a route for the roles `allowed`. Counts as a use.
  bool allow(const HttpRequest& request, Roles allowed, const Access& access);

 private:
  struct Session {
    Access::Digest token{};
    Access::Digest secret{};  // its SHA-256
    base::SteadyTime begun = {};
    base::SteadyTime used = {};
  };

  void begin(std::string_view id, Session session);
  void end(std::string_view id);
  void remove_expired(base::SteadyTime now);

  const base::Clock& clock_;

  std::mutex mutex_;  // of all below
  // By the SHA-256 of the id, so that the time of a search reveals nothing about an id.
  std::map<Access::Digest, Session> sessions_;
};

}  // namespace spoor::daemon
