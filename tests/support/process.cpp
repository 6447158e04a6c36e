#include "tests/support/process.h"

#include <fcntl.h>
#include <pty.h>
#include <spawn.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <utility>

#include "tests/support/temp_directory.h"

namespace spoor::support {
namespace {

class FileActions {
 public:
  FileActions() { ::posix_spawn_file_actions_init(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  ~FileActions() { ::posix_spawn_file_actions_destroy(&actions_); }

  void open(int fd, const std::filesystem::path& path, int flags) {
    ::posix_spawn_file_actions_addopen(&actions_, fd, path.c_str(), flags, 0600);
  }
  void dup(int from, int to) { ::posix_spawn_file_actions_adddup2(&actions_, from, to); }
  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

pid_t spawn(std::vector<std::string> command, const FileActions& actions) {
  std::vector<char*> arguments;
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t pid = -1;
  const int error = ::posix_spawnp(&pid, arguments[0], actions.get(), nullptr, arguments.data(), environ);
  if (error != 0) throw std::system_error(error, std::system_category(), command[0]);
  return pid;
}

int wait_for_exit(pid_t pid, rusage* usage = nullptr) {
  int status = 0;
  while (::wait4(pid, &status, 0, usage) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

CommandResult run_command(const std::vector<std::string>& command, const std::string& input) {
  const TempDirectory directory;
  std::ofstream(directory / "in", std::ios::binary) << input;
  FileActions actions;
  actions.open(STDIN_FILENO, directory / "in", O_RDONLY);
  actions.open(STDOUT_FILENO, directory / "out", O_WRONLY | O_CREAT | O_TRUNC);
  actions.open(STDERR_FILENO, directory / "err", O_WRONLY | O_CREAT | O_TRUNC);
  CommandResult result;
  const auto started = std::chrono::steady_clock::now();
  result.code = wait_for_exit(spawn(command, actions), &result.usage);
  result.took = std::chrono::steady_clock::now() - started;
  result.out = content(directory / "out");
  result.err = content(directory / "err");
  return result;
}

CommandResult run_on_terminal(const std::vector<std::string>& command) {
  int terminal = -1;
  int program_end = -1;
  termios raw{};
  ::cfmakeraw(&raw);
  if (::openpty(&terminal, &program_end, nullptr, &raw, nullptr) != 0)
    throw std::system_error(errno, std::system_category(), "openpty");
  for (const int end : {terminal, program_end}) ::fcntl(end, F_SETFD, FD_CLOEXEC);
  const TempDirectory directory;
  FileActions actions;
  actions.open(STDIN_FILENO, "/dev/null", O_RDONLY);
  actions.dup(program_end, STDOUT_FILENO);
  actions.open(STDERR_FILENO, directory / "err", O_WRONLY | O_CREAT | O_TRUNC);
  const pid_t pid = spawn(command, actions);
  ::close(program_end);
  CommandResult result;
  char bytes[4096];
  // Fails with EIO once the program has closed its end.
  for (ssize_t count = 0; (count = ::read(terminal, bytes, sizeof bytes)) > 0;)
    result.out.append(bytes, static_cast<std::size_t>(count));
  ::close(terminal);
  result.code = wait_for_exit(pid, &result.usage);
  result.err = content(directory / "err");
  return result;
}

Daemon::Daemon(const std::vector<std::string>& command, const std::vector<int>& sockets) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::system_category(), "pipe");
  std::unique_ptr<std::FILE, CloseFile> from(::fdopen(ends[0], "r"));
  FileActions actions;
  actions.open(STDIN_FILENO, "/dev/null", O_RDONLY);
  actions.open(STDOUT_FILENO, "/dev/null", O_WRONLY);
  actions.dup(ends[1], STDERR_FILENO);
  // It must not outlive a test that is killed.
  std::vector<std::string> words{"setpriv", "--pdeathsig", "KILL"};
  std::vector<int> copies;  // with numbers that do not collide with the final ones
  for (const int socket : sockets) {
    constexpr int first = 3;  // SD_LISTEN_FDS_START
    copies.push_back(::fcntl(socket, F_DUPFD_CLOEXEC, 1000));
    actions.dup(copies.back(), first + static_cast<int>(copies.size()) - 1);
  }
  if (!sockets.empty()) {
    const std::string set = "export LISTEN_PID=$$ LISTEN_FDS=" + std::to_string(sockets.size());
    words.insert(words.end(), {"sh", "-c", set + R"(; exec "$@")", "sh"});
  }
  words.insert(words.end(), command.begin(), command.end());
  pid_ = spawn(words, actions);
  ::close(ends[1]);
  for (const int copy : copies) ::close(copy);
  reader_ = std::jthread([this, file = std::move(from)]() mutable { read_lines(std::move(file)); });
}

Daemon::~Daemon() {
  if (pid_ > 0) {
    signal(SIGKILL);
    wait();
  }
}

void Daemon::read_lines(std::unique_ptr<std::FILE, CloseFile> from) {
  char chunk[4096];
  while (std::fgets(chunk, sizeof(chunk), from.get()) != nullptr) {
    const std::scoped_lock lock(mutex_);
    log_ += chunk;
    changed_.notify_all();
  }
  const std::scoped_lock lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

std::string Daemon::wait_for(const std::string& text, std::size_t from) {
  std::unique_lock lock(mutex_);
  for (;;) {
    const std::size_t found = log_.find(text, from);
    const std::size_t end = found == std::string::npos ? found : log_.find('\n', found);
    if (end != std::string::npos) return log_.substr(found + text.size(), end - found - text.size());
    if (ended_) return {};
    changed_.wait(lock);
  }
}

void Daemon::signal(int number) const {
  if (pid_ > 0) ::kill(pid_, number);  // -1 would signal every process
}

std::uint64_t Daemon::resident_bytes() const {
  std::ifstream statm("/proc/" + std::to_string(pid_) + "/statm");
  std::uint64_t pages = 0;
  std::uint64_t resident_pages = 0;
  statm >> pages >> resident_pages;
  return resident_pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::uint64_t Daemon::peak_resident_bytes() const {
  std::ifstream status("/proc/" + std::to_string(pid_) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("VmHWM:", 0) == 0) return std::stoull(line.substr(6)) * 1024;
  }
  return 0;
}

void Daemon::freeze() const {
  signal(SIGSTOP);
  siginfo_t stopped{};
  while (::waitid(P_PID, static_cast<id_t>(pid_), &stopped, WSTOPPED) < 0 && errno == EINTR) {
  }
}

int Daemon::wait() { return wait_for_exit(std::exchange(pid_, -1)); }

std::string Daemon::log() {
  const std::scoped_lock lock(mutex_);
  return log_;
}

}  // namespace spoor::support
