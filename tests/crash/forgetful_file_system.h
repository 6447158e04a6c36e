// A file system that leaves out one of the syncs it is asked for: what a crash matrix must notice.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/file_system.h"

namespace spoor::crash {

class ForgetfulFileSystem final : public base::FileSystem {
 public:
  // Says which paths are not synced: files, or directories.
  using Forgets = std::function<bool(const std::filesystem::path&)>;

  ForgetfulFileSystem(base::FileSystem& inner, Forgets forgets)
      : inner_(inner), forgets_(std::move(forgets)) {}

  base::Result<std::string> read(const std::filesystem::path& path, std::uint64_t bytes_max) override {
    return inner_.read(path, bytes_max);
  }
  base::Result<std::unique_ptr<base::OutputFile>> create(const std::filesystem::path& path) override {
    auto file = inner_.create(path);
    if (!file || !forgets_(path)) return file;
    return std::make_unique<Unsynced>(*std::move(file));
  }
  base::Result<> rename(const std::filesystem::path& from, const std::filesystem::path& to) override {
    return inner_.rename(from, to);
  }
  base::Result<> remove(const std::filesystem::path& path) override { return inner_.remove(path); }
  base::Result<> create_directory(const std::filesystem::path& path) override {
    return inner_.create_directory(path);
  }
  base::Result<> remove_directory(const std::filesystem::path& path) override {
    return inner_.remove_directory(path);
  }
  base::Result<> sync_file(const std::filesystem::path& path) override {
    if (forgets_(path)) return {};
    return inner_.sync_file(path);
  }
  base::Result<std::vector<std::string>> list_directory(const std::filesystem::path& path) override {
    return inner_.list_directory(path);
  }
  base::Result<> sync_directory(const std::filesystem::path& path) override {
    if (forgets_(path)) return {};
    return inner_.sync_directory(path);
  }
  base::Result<base::DiskSpace> space(const std::filesystem::path& path) override {
    return inner_.space(path);
  }

 private:
  class Unsynced final : public base::OutputFile {
   public:
    explicit Unsynced(std::unique_ptr<base::OutputFile> inner) : inner_(std::move(inner)) {}
    base::Result<> append(std::string_view bytes) override { return inner_->append(bytes); }
    base::Result<> write_at(std::uint64_t offset, std::string_view bytes) override {
      return inner_->write_at(offset, bytes);
    }
    base::Result<> sync() override { return {}; }
    base::Result<> close() override { return inner_->close(); }

   private:
    std::unique_ptr<base::OutputFile> inner_;
  };

  base::FileSystem& inner_;
  Forgets forgets_;
};

}  // namespace spoor::crash
