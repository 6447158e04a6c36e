#pragma once

#include <boost/asio/io_context.hpp>
#include <cstddef>
#include <memory>
#include <vector>

namespace spoor::daemon {

// The threads that serve connections: the main one, and others with a context each.
class ServingThreads {
 public:
  // So many in all; 0: one for each processor.
  explicit ServingThreads(std::size_t threads);

  // Those of the others.
  std::vector<boost::asio::io_context*> others() const;

  // Runs `main` here and the others on threads of their own, until nothing is left to do for `main`. Where
  // there are others, an exception out of any of them ends the program.
  void run(boost::asio::io_context& main);

 private:
  std::vector<std::unique_ptr<boost::asio::io_context>> others_;
};

}  // namespace spoor::daemon
