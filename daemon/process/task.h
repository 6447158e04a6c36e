// What coroutines of the daemon have in common.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <type_traits>
#include <utility>

namespace spoor::daemon {

// For asynchronous operations that return their error, in a tuple, instead of throwing it.
inline constexpr auto as_result = boost::asio::as_tuple(boost::asio::use_awaitable);

// The completion handler for coroutines that return their failures as values. An exception from such a
// coroutine is a bug; it is rethrown from io_context::run(), which ends the program.
inline constexpr auto rethrow = [](const std::exception_ptr& failure) {
  if (failure) std::rethrow_exception(failure);
};

// Runs the task on the thread of `context`, at once if that is the calling one; the caller resumes on its own
// thread.
template <class T>
boost::asio::awaitable<T> run_on(boost::asio::io_context& context, boost::asio::awaitable<T> task) {
  if (context.get_executor().running_in_this_thread()) {
    auto done = co_await std::move(task);
    co_return done;
  }
  auto done = co_await boost::asio::co_spawn(context, std::move(task), boost::asio::use_awaitable);
  co_return done;
}

template <class Function>
boost::asio::awaitable<std::invoke_result_t<Function&>> call(Function function) {
  co_return function();
}

// Calls the function, which may block, on a thread of `pool`; the caller resumes on its own thread.
template <class Function>
auto run_on(boost::asio::thread_pool& pool, Function function) {
  return boost::asio::co_spawn(pool, call(std::move(function)), boost::asio::use_awaitable);
}

}  // namespace spoor::daemon
