#pragma once

#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <memory>
#include <vector>

namespace spoor::daemon {

// The threads that serve connections: the main thread, and others with a context each.
class ServingThreads {
 public:
  // `threads`: the total number; 0: one for each processor.
  explicit ServingThreads(std::size_t threads);

  // The contexts of the other threads. They live as long as this object.
  std::vector<boost::asio::io_context*> others() const;

  // Runs `main` on the calling thread and the others on their own threads, until `main` has no work left. If
  // there are other threads, an exception in any of them terminates the program.
  void run(boost::asio::io_context& main);

 private:
  std::vector<std::unique_ptr<boost::asio::io_context>> others_;
};

}  // namespace spoor::daemon
