// The body of POST /v1/marks, in each of its forms, as marks: the one place where paths from outside
// are normalised and filtered.
#pragma once

#include <boost/system/result.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "base/error.h"
#include "daemon/http_message.h"
#include "daemon/problem.h"
#include "tracker/drive_paths.h"
#include "tracker/namespace_rules.h"
#include "tracker/path.h"

namespace spoor::daemon {

// Takes some of the marks of a request.
using TakeMarks = std::function<void(std::span<const tracker::Mark>)>;

// Keeps what parsing takes from one request to the next. Not thread-safe.
class MarkReader {
 public:
  // References must outlive it. A path on a drive of this node is a bad one.
  MarkReader(const tracker::NamespaceRules& rules, const tracker::DrivePaths& drive_paths);
  ~MarkReader();
  MarkReader(const MarkReader&) = delete;
  MarkReader& operator=(const MarkReader&) = delete;

  // Hands over the marks of a request, some at a time, and gives the number of paths that the namespace rules
  // take no notice of. All or nothing: one bad path makes the whole request a problem, and no mark is handed
  // over. Uses the body's spare capacity, where there is some.
  boost::system::result<std::uint64_t, Problem> read(const HttpRequest& request, const TakeMarks& take);

  // Reading a body of up to so many bytes takes little memory, which is kept; a larger one up to fourteen
  // times its size, until it is read.
  static constexpr std::size_t small_body_bytes = std::size_t{256} << 10U;

 private:
  class Json;
  class Paths;

  boost::system::result<std::uint64_t, Problem> read_json(const HttpRequest& request, const TakeMarks& take);
  boost::system::result<std::uint64_t, Problem> read_text(const HttpRequest& request, const TakeMarks& take);

  std::unique_ptr<Json> json_;
  std::unique_ptr<Paths> paths_;
};

// The problem that a path, the `index`th of its request, could not be normalised.
Problem path_problem(const base::Error& error, std::string_view raw, std::size_t index);

}  // namespace spoor::daemon
