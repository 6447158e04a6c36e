// A drive in memory: its directories, the kernel's queue of their events, and scans that read what is marked.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/support/random.h"
#include "watch/event_marks.h"
#include "watch/event_source.h"

namespace spoor::watch {

class ModelDrive {
 public:
  explicit ModelDrive(std::uint64_t seed);

  // One random change: a file is written or moved, or a directory is made, moved, exchanged or removed.
  void change();

  // The kernel's side. Without a listener, no events are kept.
  void listen(bool is_listening);
  bool is_listening() const { return is_listening_; }
  std::deque<KernelEvent>& queue() { return queue_; }
  std::optional<Place> resolve(const DirectoryHandle& handle) const;

  // The daemon's and the scanner's side.
  void mark(const EventMarks& marks);
  void set_gap() { has_gap_ = true; }
  // Reads what is marked, and forgets the marks.
  void scan();
  // The differences between what the scans know and what is there; empty if there are none.
  std::string difference() const;

  support::Random& random() { return random_; }

 private:
  struct Directory {
    std::string id;
    int inode = 0;  // given anew once the directory is removed
    Directory* parent = nullptr;
    std::string name;
    std::map<std::string, Directory*> children;
    int version = 0;
  };
  struct Known {
    std::string id;
    int inode = 0;
    int version = 0;
    std::map<std::string, Known> children;
  };

  Directory& any();
  Directory& make(Directory* parent, const std::string& name);
  void write();
  void move_file();
  void make_directory();
  void remove();
  void move();
  void exchange();
  void report(KernelEvent event);
  static std::string path_of(const Directory& directory);
  static bool is_below(const Directory& inner, const Directory& outer);
  static Known read_all(const Directory& directory);
  void visit(const Directory& directory, const std::string& path, Known& known) const;
  static std::string compare(const Directory& directory, const Known& known, const std::string& path);

  support::Random random_;
  std::vector<std::unique_ptr<Directory>> all_;
  std::vector<Directory*> alive_;  // the first is the top
  std::deque<KernelEvent> queue_;
  bool is_listening_ = false;
  std::set<std::string> marked_;  // with all parents; "" is the top
  std::set<std::string> trees_;
  bool has_gap_ = true;  // the first scan reads everything
  std::optional<Known> known_;
};

}  // namespace spoor::watch
