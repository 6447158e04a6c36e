#include "tests/support/certificates.h"

#include <fstream>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tests/support/process.h"

namespace spoor::support {
namespace {

void openssl(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "openssl");
  const auto done = run_command(arguments);
  if (done.code != 0) throw std::runtime_error("openssl: " + done.err);
}

}  // namespace

Certificates::Certificates(std::filesystem::path directory, std::string name, int days)
    : directory_(std::move(directory)), name_(std::move(name)) {
  openssl({"req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days",
           std::to_string(days), "-subj", "/CN=" + name_, "-keyout", key(name_).native(), "-out",
           ca().native()});
}

void Certificates::issue(const std::string& name, const std::string& address, int days) const {
  sign(name, "/CN=" + name, "DNS:" + name + ",IP:" + address, days);
}

void Certificates::issue_for_address(const std::string& name, const std::string& address) const {
  sign(name, "/CN=" + name, "IP:" + address, 1);
}

void Certificates::issue_without_common_name(const std::string& name) const {
  sign(name, "/O=Spoor", "DNS:" + name, 1);
}

void Certificates::sign(const std::string& name, const std::string& subject,
                        const std::string& alternative_names, int days) const {
  const auto request = file(name, ".csr").native();
  openssl({"req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", subject,
           "-keyout", key(name).native(), "-out", request});
  std::ofstream(file(name, ".ext")) << "subjectAltName=" << alternative_names << '\n';
  openssl({"x509", "-req", "-in", request, "-CA", ca().native(), "-CAkey", key(name_).native(),
           "-CAcreateserial", "-days", std::to_string(days), "-extfile", file(name, ".ext").native(), "-out",
           certificate(name).native()});
}

}  // namespace spoor::support
