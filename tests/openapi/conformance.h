// Answers held against the description, and which of the described ones came.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tests/openapi/description.h"
#include "tests/openapi/exchange.h"

namespace spoor::openapi {

class Conformance {
 public:
  explicit Conformance(const Description& description) : description_(description) {}  // must outlive it

  // What is wrong with the answer, a sentence each; empty where it is as described. It counts as seen.
  std::vector<std::string> check(const Request& request, const Answer& answer);

  // What is described and was not seen.
  std::set<Case> unseen() const;

  // The code of a problem; empty where the answer is none.
  static std::string code_of(const Answer& answer);

 private:
  void check_content(const nlohmann::json& response, const Request& request, const Answer& answer);
  void check_body(const nlohmann::json& content, const Answer& answer);
  void check_problem(const nlohmann::json& schema, const Answer& answer);
  void check_headers(const nlohmann::json& response, const Answer& answer);
  void check_allow(const Request& request, const Answer& answer);
  void check_accepted(const Operation& operation, const Request& request);
  void complain(const std::string& what) { complaints_.push_back(about_ + what); }

  const Description& description_;
  std::set<Case> seen_;
  std::string about_;  // the exchange that is being checked
  std::vector<std::string> complaints_;
};

}  // namespace spoor::openapi
