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
  int code = -1;  // the exit code; 128 + the signal's number where one ended it
  std::string out;
  std::string err;
  std::chrono::duration<double> took{};
  // With the children it waited for. ru_maxrss is at least what the caller itself has needed so far.
  rusage usage{};
};

// Runs a program to its end, with `input` as its standard input.
CommandResult run_command(const std::vector<std::string>& command, const std::string& input = {});

// A program that goes on running, its standard error read all the while. Killed with the object.
class Daemon {
 public:
  // Passes it these sockets in the way of systemd (LISTEN_FDS); they stay the caller's, too.
  explicit Daemon(const std::vector<std::string>& command, const std::vector<int>& sockets = {});
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;
  ~Daemon();

  // The rest of the first line of standard error that holds `text`, from behind it; empty where the
  // program ends without one. Looks from that position of log() on.
  std::string wait_for(const std::string& text, std::size_t from = 0);

  void signal(int number) const;
  pid_t pid() const { return pid_; }
  void freeze() const;  // SIGSTOP; returns when it has stopped. SIGCONT, or the end, is for the caller.
  int wait();           // the exit code, as above
  std::string log();

  // What it holds of the machine's memory (VmRSS).
  std::uint64_t resident_bytes() const;
  std::uint64_t peak_resident_bytes() const;  // the most so far (VmHWM)

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
