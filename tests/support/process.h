// Real programs, run by tests.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace spoor::support {

struct CommandResult {
  int code = -1;  // the exit code; 128 + the signal's number if a signal ended the program
  std::string out;
  std::string err;
  std::chrono::duration<double> took{};
  // Including the children it waited for. ru_maxrss is at least the peak of the caller.
  rusage usage{};
};

// Runs a program to its end, with `input` as its standard input.
CommandResult run_command(const std::vector<std::string>& command, const std::string& input = {});

// The same, with a terminal as its standard output; `out` is what the terminal receives, unprocessed.
CommandResult run_on_terminal(const std::vector<std::string>& command);

// A running program; a thread reads its standard error. The destructor kills it.
class Daemon {
 public:
  // Passes copies of these sockets to the program as systemd does (LISTEN_FDS).
  explicit Daemon(const std::vector<std::string>& command, const std::vector<int>& sockets = {});
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;
  ~Daemon();

  // Waits for a line of standard error that contains `text` and returns the rest of the line after it; empty
  // if the program ends without such a line. Searches log() from position `from`.
  std::string wait_for(const std::string& text, std::size_t from = 0);

  void signal(int number) const;
  pid_t pid() const { return pid_; }
  void freeze() const;  // SIGSTOP; returns when it has stopped. The caller must send SIGCONT or kill it.
  int wait();           // the exit code, as above
  std::string log();

  // The resident memory (VmRSS).
  std::uint64_t resident_bytes() const;
  std::uint64_t peak_resident_bytes() const;  // the peak so far (VmHWM)

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  void read_lines(std::unique_ptr<std::FILE, CloseFile> from);

  pid_t pid_ = -1;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::string log_;
  bool ended_ = false;
  std::jthread reader_;
};

}  // namespace spoor::support
