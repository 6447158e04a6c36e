#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/thread_pool.hpp>
#include <filesystem>
#include <functional>

#include "base/clock.h"
#include "daemon/http/http_message.h"

namespace spoor::daemon {

// GET /v1/usage, /v1/usage/history, /v1/scans and /v1/changes: the results of this node's scans, from their
// database, which is opened read-only for each response.
//
// Runs on the main thread; reads on `pool`, for a time so short that a stop can wait for it. All references
// must outlive it.
class Reports {
 public:
  Reports(std::filesystem::path database, boost::asio::thread_pool& pool, const base::Clock& clock);

  boost::asio::awaitable<HttpResponse> usage(const HttpRequest& request);
  boost::asio::awaitable<HttpResponse> history(const HttpRequest& request);
  boost::asio::awaitable<HttpResponse> scans(const HttpRequest& request);
  boost::asio::awaitable<HttpResponse> changes(const HttpRequest& request);

 private:
  boost::asio::awaitable<HttpResponse> read(std::function<HttpResponse()> reading);
  std::function<bool()> time_limit() const;

  const std::filesystem::path database_;
  boost::asio::thread_pool& pool_;
  const base::Clock& clock_;
  unsigned waiting_ = 0;
};

}  // namespace spoor::daemon
