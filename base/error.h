// Errors as values, for all libraries of Spoor.
#pragma once

#include <boost/system/result.hpp>
#include <string>
#include <system_error>
#include <utility>

namespace spoor::base {

// A failure: a code for the calling code, and a sentence for the operator (what was wrong, where, and what to
// do).
struct Error {
  std::error_code code;
  std::string message;

  Error() = default;
  Error(std::error_code error_code, std::string sentence) : code(error_code), message(std::move(sentence)) {}
};

// What Result::value() throws: for code that cannot handle a failure, below a caller that does.
struct Failure : std::system_error {
  explicit Failure(Error its) : std::system_error(its.code, its.message), error(std::move(its)) {}
  Error error;
};

[[noreturn]] void throw_exception_from_error(const Error& error, const boost::source_location& where);

template <class T = void>
using Result = boost::system::result<T, Error>;

// The failure of a system call: `what` ("cannot open /x"), followed by the system's message.
Error system_error(int error_number, const std::string& what);

// The failure `inner` with a longer message: "`what`: `inner.message`".
Error wrap(const std::string& what, const Error& inner);

}  // namespace spoor::base
