#include "daemon/api/sessions.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "peer/http/credentials.h"

namespace spoor::daemon {
namespace {

constexpr std::size_t id_bytes = 32;
constexpr std::size_t id_chars = 2 * id_bytes;
constexpr std::string_view scheme = "Session ";  // of Authorization, before the secret
constexpr Roles reading = role_bit(config::Role::read) | role_bit(config::Role::admin);

std::string random_id() { return fmt::format("{:02x}", fmt::join(peer::random_bytes(id_bytes), "")); }

std::string cookie(std::string_view id, std::chrono::seconds age, const HttpRequest& request) {
  return fmt::format("{}={}; Path=/; Max-Age={}; HttpOnly; SameSite=Strict{}", session_cookie(request.host),
                     id, age.count(), request.caller.is_tls ? "; Secure" : "");
}

HttpResponse response_of(bool has_session) {
  HttpResponse response;
  response.body = fmt::format(R"({{"session":{}}})", has_session);
  response.headers["Cache-Control"] = "no-store";
  return response;
}

}  // namespace

HttpResponse Sessions::sign_in(const HttpRequest& request, const Access& access) {
  const Caller& caller = request.caller;
  const auto token = access.asks_for_credentials(caller) ? access.token_of(request) : std::nullopt;
  if (!token || (access.roles_of_token(*token) & reading) == 0) return response_of(false);
  if (!caller.is_tls && !caller.is_loopback && !caller.unix_peer) {
    return to_response(
        {403, "tls_required",
         "another host on the network could read the session: give this listener 'tls', or sign "
         "in through one on a loopback address"});
  }
  end(request.session);
  const std::string id = random_id();
  const std::string secret = random_id();
  begin(id, {*token, peer::sha256(secret)});
  auto response = response_of(true);
  response.body = fmt::format(R"({{"session":true,"secret":"{}"}})", secret);
  response.headers["Set-Cookie"] = cookie(id, age_max, request);
  return response;
}

HttpResponse Sessions::sign_out(const HttpRequest& request) {
  end(request.session);
  auto response = response_of(false);
  response.headers["Set-Cookie"] = cookie("", std::chrono::seconds(0), request);
  return response;
}

bool Sessions::allow(const HttpRequest& request, Roles allowed, const Access& access) {
  if (request.method != "GET" || (allowed & role_bit(config::Role::read)) == 0) return false;
  if (!request.caller.gets_page || request.session.size() != id_chars) return false;
  const std::string_view authorization = request.authorization;
  if (!authorization.starts_with(scheme)) return false;
  const Access::Digest secret = peer::sha256(authorization.substr(scheme.size()));
  const base::SteadyTime now = clock_.steady_now();
  const std::scoped_lock lock(mutex_);
  remove_expired(now);
  const auto found = sessions_.find(peer::sha256(request.session));
  if (found == sessions_.end() || found->second.secret != secret) return false;
  found->second.used = now;
  return (access.roles_of_token(found->second.token) & reading) != 0;
}

void Sessions::begin(std::string_view id, Session session) {
  session.begun = session.used = clock_.steady_now();
  const std::scoped_lock lock(mutex_);
  remove_expired(session.begun);
  if (sessions_.size() >= sessions_max) {
    sessions_.erase(
        std::ranges::min_element(sessions_, {}, [](const auto& each) { return each.second.used; }));
  }
  sessions_[peer::sha256(id)] = session;
}

void Sessions::end(std::string_view id) {
  if (id.size() != id_chars) return;
  const std::scoped_lock lock(mutex_);
  sessions_.erase(peer::sha256(id));
}

void Sessions::remove_expired(base::SteadyTime now) {
  std::erase_if(sessions_, [now](const auto& each) {
    return now - each.second.begun >= age_max || now - each.second.used >= idle_max;
  });
}

}  // namespace spoor::daemon
