// Converts the exceptions of SQLiteCpp to error values.
#pragma once

#include <SQLiteCpp/Exception.h>

#include <string_view>
#include <type_traits>
#include <utility>

#include "base/error.h"

namespace spoor::scanner {

// `what` completes "cannot ... in the scan database FILE". Errc::database_failed or database_damaged.
base::Error database_error(std::string_view what, std::string_view file, const SQLite::Exception& exception);

// Runs `action`, which may return a value, nothing, or a Result.
template <class Action>
auto guarded(std::string_view what, std::string_view file, Action&& action) {
  using Returned = std::invoke_result_t<Action>;
  constexpr bool returns_result = requires(Returned returned) { returned.has_error(); };
  using Outcome = typename std::conditional_t<returns_result, std::type_identity<Returned>,
                                              std::type_identity<base::Result<Returned>>>::type;
  try {
    if constexpr (std::is_void_v<Returned>) {
      std::forward<Action>(action)();
      return Outcome();
    } else {
      return Outcome(std::forward<Action>(action)());
    }
  } catch (const SQLite::Exception& exception) {
    return Outcome(database_error(what, file, exception));
  }
}

}  // namespace spoor::scanner
