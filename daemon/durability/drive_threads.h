#pragma once

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace spoor::daemon {

// A thread for each drive, so that a disk that hangs holds up the work on no other drive.
//
// Not thread-safe: used on the thread of `context`, which must outlive it. The destructor waits for the jobs
// that run: if a disk hangs, for ever (see busy()).
class DriveThreads {
 public:
  DriveThreads(boost::asio::io_context& context, std::size_t drives) : context_(context), drives_(drives) {}

  // Calls job() on the thread of the drive after its earlier jobs, then ended(result) on the thread of
  // `context`. A job does not count as work of `context`: it can end after context.run().
  template <class Job, class Ended>
  void run(std::size_t drive, Job job, Ended ended);

  bool is_busy(std::size_t drive) const { return drives_[drive].jobs > 0; }

  // The drive hangs until its jobs have ended, if some have not: it is to get no further one.
  void set_late(std::size_t drive) { drives_[drive].is_late = is_busy(drive); }
  bool is_late(std::size_t drive) const { return drives_[drive].is_late; }

  // The number of drives with jobs that have not ended.
  std::size_t busy() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(drives_, [](const Drive& drive) { return drive.jobs > 0; }));
  }

 private:
  struct Drive {
    std::unique_ptr<boost::asio::thread_pool> thread = std::make_unique<boost::asio::thread_pool>(1);
    std::size_t jobs = 0;  // that have not ended
    bool is_late = false;
  };

  boost::asio::io_context& context_;
  std::vector<Drive> drives_;
};

template <class Job, class Ended>
void DriveThreads::run(std::size_t drive, Job job, Ended ended) {
  ++drives_[drive].jobs;
  boost::asio::post(
      *drives_[drive].thread, [this, drive, job = std::move(job), ended = std::move(ended)]() mutable {
        auto result = job();
        boost::asio::post(context_,
                          [this, drive, ended = std::move(ended), result = std::move(result)]() mutable {
                            if (--drives_[drive].jobs == 0) drives_[drive].is_late = false;
                            ended(std::move(result));
                          });
      });
}

}  // namespace spoor::daemon
