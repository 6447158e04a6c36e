#pragma once

#include <SQLiteCpp/Statement.h>

namespace spoor::scanner {

// Leaves a statement ready for its next use, and free of pointers to what was bound.
class StatementUse {
 public:
  explicit StatementUse(SQLite::Statement& statement) : statement_(statement) {}
  StatementUse(const StatementUse&) = delete;
  StatementUse& operator=(const StatementUse&) = delete;
  ~StatementUse() { statement_.tryReset(); }

 private:
  SQLite::Statement& statement_;
};

}  // namespace spoor::scanner
