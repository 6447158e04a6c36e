#include "tests/architecture/arrows.h"

#include <algorithm>
#include <regex>
#include <sstream>

namespace spoor::architecture {
namespace {

std::string folder_of(std::string_view path) {
  const auto slash = path.find('/');
  return slash == std::string_view::npos ? std::string() : std::string(path.substr(0, slash));
}

// "tracker/filter" of "tracker/filter/hash.h"; "tracker" of a file at the module's top.
std::string inner_folder_of(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string() : std::string(path.substr(0, slash));
}

struct Include {
  std::string path;
  bool in_quotes;
  std::size_t line;
};

std::vector<Include> includes_of(std::string_view text) {
  static const std::regex pattern(R"re(^\s*#\s*include\s*([<"])([^>"]+)[>"])re");
  std::vector<Include> includes;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (std::size_t number = 1; std::getline(lines, line); ++number) {
    std::smatch match;
    if (!std::regex_search(line, match, pattern)) continue;
    includes.push_back({match[2], match[1] == "\"", number});
  }
  return includes;
}

bool is_beast(std::string_view path) { return path.starts_with("boost/beast/") || path == "boost/beast.hpp"; }

// Why `file` may not include `include` of the same module; empty if it may.
std::string broken_inner_rule(const Rules& rules, std::string_view file, std::string_view include) {
  const std::string from = inner_folder_of(file);
  const std::string to = inner_folder_of(include);
  const std::string module = folder_of(file);
  if (from != module && !rules.may_use_within.contains(from)) return from + " has no place among the arrows";
  if (from == to || from == module || include == module + "/errors.h") return "";
  return rules.may_use_within.at(from).contains(to) ? "" : from + " may not use " + to;
}

// Why `file` may not include `include`; empty if it may.
std::string broken_rule(const Rules& rules, std::string_view file, const Include& include,
                        const Folders& declared) {
  const std::string from = folder_of(file);
  const std::string to = folder_of(include.path);
  if (is_beast(include.path)) {
    return rules.beast_files.contains(file) ? "" : "Beast is for the files listed in arrows.cpp only";
  }
  if (to == "tests") return "production code does not know the tests";
  if (!rules.may_use.contains(to)) {
    return include.in_quotes ? "an own file is included by its path from the top: \"folder/file.h\"" : "";
  }
  if (to == from) return broken_inner_rule(rules, file, include.path);
  if (!rules.may_use.at(from).contains(to)) return from + " may not use " + to;
  return declared.contains(to) ? "" : from + "/CMakeLists.txt does not declare that it uses " + to;
}

}  // namespace

const Rules& rules() {
  static const Rules rules = {
      .may_use = {{"base", {}},
                  {"tracker", {"base"}},
                  {"peer", {"tracker", "base"}},
                  {"scanner", {"tracker", "base"}},
                  {"config", {"tracker", "base"}},
                  {"daemon", {"config", "peer", "scanner", "tracker", "base"}},
                  {"client", {"peer", "tracker", "base"}},
                  {"cli", {"client", "config", "peer", "scanner", "tracker", "base"}},
                  {"watch", {"config", "peer", "tracker", "base"}},
                  {"publish", {"config", "peer", "scanner", "tracker", "base"}}},
      .may_use_within = {{"tracker/paths", {}},
                         {"tracker/filter", {"tracker/paths"}},
                         {"tracker/cycles", {"tracker/filter", "tracker/paths"}},
                         {"tracker/storage", {"tracker/cycles", "tracker/filter", "tracker/paths"}},
                         {"peer/http", {}},
                         {"peer/membership", {"peer/http"}},
                         {"peer/gather", {"peer/membership", "peer/http"}},
                         {"scanner/database", {}},
                         {"scanner/history", {"scanner/database"}},
                         {"scanner/store", {"scanner/history", "scanner/database"}},
                         {"scanner/walk", {"scanner/store", "scanner/history", "scanner/database"}},
                         {"scanner/audit", {"scanner/walk", "scanner/store", "scanner/database"}},
                         {"scanner/feed", {"scanner/store", "scanner/database"}},
                         {"scanner/usage", {"scanner/store", "scanner/history", "scanner/database"}},
                         {"cli/program", {}},
                         {"cli/setup", {"cli/program"}},
                         {"cli/usage", {"cli/program"}},
                         {"cli/scan", {"cli/usage", "cli/program"}},
                         {"daemon/process", {}},
                         {"daemon/http", {"daemon/process"}},
                         {"daemon/durability", {"daemon/process"}},
                         {"daemon/membership", {"daemon/process"}},
                         {"daemon/status",
                          {"daemon/durability", "daemon/membership", "daemon/http", "daemon/process"}},
                         {"daemon/api",
                          {"daemon/status", "daemon/durability", "daemon/membership", "daemon/http",
                           "daemon/process"}}},
      .beast_files = {"cli/setup/invitation.cpp", "client/daemon_socket.cpp", "peer/http/http_transport.cpp",
                      "daemon/http/http_header.cpp", "daemon/http/http_header.h",
                      "daemon/http/http_session.cpp", "daemon/http/http_stream.cpp",
                      "daemon/http/http_stream.h"},
  };
  return rules;
}

std::vector<std::string> check_includes(const Rules& rules, std::string_view file, std::string_view text,
                                        const Folders& declared) {
  const std::string folder = folder_of(file);
  if (!rules.may_use.contains(folder)) {
    return {std::string(file) + ": the folder " + folder + " has no place among the arrows"};
  }
  std::vector<std::string> broken;
  for (const Include& include : includes_of(text)) {
    const std::string why = broken_rule(rules, file, include, declared);
    if (why.empty()) continue;
    broken.push_back(std::string(file) + ":" + std::to_string(include.line) + ": includes " + include.path +
                     ": " + why);
  }
  return broken;
}

Folders declared_uses(std::string_view cmake_text) {
  static const std::regex comment(R"(#[^\n]*)");
  static const std::regex uses(R"(\bUSES\s+([a-z_\s]*))");
  static const std::regex word(R"([a-z_]+)");
  static const std::regex target(R"(\bspoor::([a-z_]+))");
  const std::string text = std::regex_replace(std::string(cmake_text), comment, "");
  Folders folders;
  for (std::sregex_iterator list(text.begin(), text.end(), uses), end; list != end; ++list) {
    const std::string names = (*list)[1];
    for (std::sregex_iterator name(names.begin(), names.end(), word); name != end; ++name)
      folders.insert(name->str());
  }
  for (std::sregex_iterator name(text.begin(), text.end(), target), end; name != end; ++name) {
    folders.insert((*name)[1]);
  }
  return folders;
}

std::vector<std::string> check_declared(const Rules& rules, std::string_view folder,
                                        const Folders& declared) {
  std::vector<std::string> broken;
  const auto allowed = rules.may_use.find(folder);
  if (allowed == rules.may_use.end()) return {std::string(folder) + " has no place among the arrows"};
  for (const std::string& used : declared) {
    if (used == folder || allowed->second.contains(used)) continue;
    broken.push_back(std::string(folder) + "/CMakeLists.txt: " + std::string(folder) + " may not use " +
                     used);
  }
  return broken;
}

}  // namespace spoor::architecture
