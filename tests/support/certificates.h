// Certificates of a private authority, made by openssl.
#pragma once

#include <filesystem>
#include <string>

namespace spoor::support {

class Certificates {
 public:
  // An authority named `name`, valid for so many days, kept in `directory`: <name>.pem and <name>.key.
  Certificates(std::filesystem::path directory, std::string name, int days = 1);

  std::filesystem::path ca() const { return file(name_, ".pem"); }

  // Creates <name>.pem and <name>.key for the DNS name `name` and the IP address `address`, valid for a day;
  // `days` below 0: expired.
  void issue(const std::string& name, const std::string& address = "127.0.0.1", int days = 1) const;

  // The same with the common name `name` and without a DNS name.
  void issue_for_address(const std::string& name, const std::string& address) const;

  // The same without a common name.
  void issue_without_common_name(const std::string& name) const;

  std::filesystem::path certificate(const std::string& name) const { return file(name, ".pem"); }
  std::filesystem::path key(const std::string& name) const { return file(name, ".key"); }

 private:
  void sign(const std::string& name, const std::string& subject, const std::string& alternative_names,
            int days) const;
  std::filesystem::path file(const std::string& name, const std::string& end) const {
    return directory_ / (name + end);
  }

  std::filesystem::path directory_;
  std::string name_;
};

}  // namespace spoor::support
