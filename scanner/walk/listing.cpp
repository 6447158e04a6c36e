#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <utility>

#include "base/printable.h"
#include "scanner/errors.h"
#include "scanner/walk/directory_reader.h"

namespace spoor::scanner {
namespace {

template <class... Numbers>
std::uint64_t digest_of(Numbers... numbers) {
  const std::array fields = {static_cast<std::uint64_t>(numbers)...};
  return XXH3_64bits(fields.data(), sizeof fields);
}

// Sums up one directory, entry by entry.
class ListingBuilder {
 public:
  ListingBuilder(const DirectoryHandle& directory, std::string_view path,
                 const tracker::NamespaceRules& rules, const ListingParts& parts, std::int64_t now_ns)
      : directory_(directory),
        now_ns_(now_ns),
        rules_(rules),
        wants_owners_(parts.owners),
        child_path_(path) {
    listing_.own.mtime_ns = directory.mtime_ns;
    listing_.ctime_ns = directory.ctime_ns;
    listing_.is_racy = is_racy(directory.mtime_ns, directory.ctime_ns);
    if (parts.files) listing_.files.emplace();
    if (!child_path_.empty()) child_path_ += '/';
    prefix_bytes_ = child_path_.size();
  }

  base::Result<> add(const dirent64& entry) {
    const std::string_view name = entry.d_name;
    if (name == "." || name == ".." || ignored(name)) return {};
    if (entry.d_type != DT_DIR) return look_at(entry);
    add_subdirectory(entry);
    return {};
  }

  Listing finish() {
    // A directory that changes while it is listed may give an entry twice.
    listing_.subdirectories.sort();
    if (listing_.files) listing_.files->sort();
    // The signature counts each name of a file, as in databases of versions without hard links.
    listing_.signature = digest_of(digests_, named_bytes_, named_allocated_, sum_of_digests_,
                                   directory_.mtime_ns, directory_.ctime_ns);
    listing_.entries = std::max<std::uint64_t>(digest_of(digests_, sum_of_digests_), 1);
    add_linked();
    listing_.owners = encode_owners(owners_);
    return std::move(listing_);
  }

 private:
  bool ignored(std::string_view name) {
    child_path_.resize(prefix_bytes_);
    child_path_ += name;
    return rules_.ignores_child(child_path_, name);
  }

  void add_digest(std::uint64_t digest) {
    ++digests_;
    sum_of_digests_ += digest;
  }

  void add_subdirectory(const dirent64& entry) {
    const std::string_view name = entry.d_name;
    add_digest(XXH3_64bits(name.data(), name.size()));
    listing_.subdirectories.add(name, inode_in(directory_.subvolume, entry.d_ino));
  }

  base::Result<> look_at(const dirent64& entry) {
    constexpr unsigned wanted = STATX_TYPE | STATX_SIZE | STATX_BLOCKS | STATX_MTIME | STATX_CTIME |
                                STATX_NLINK | STATX_INO | STATX_UID | STATX_GID | STATX_MNT_ID;
    constexpr int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT;
    struct statx status{};
    if (::statx(directory_.descriptor, entry.d_name, flags, wanted, &status) == 0) {
      if (S_ISDIR(status.stx_mode)) {
        add_subdirectory(entry);
      } else {
        add_file(entry.d_name, status);
      }
      return {};
    }
    if (errno == ENOENT) return {};
    auto failure = base::system_error(errno, "cannot look at '" + base::printable(entry.d_name) + "' in it");
    // It may be a directory, with anything below it: then the listing itself is not known.
    if (entry.d_type == DT_UNKNOWN) return failure;
    if (!listing_.incomplete) listing_.incomplete = std::move(failure);
    return {};
  }

  void add_file(std::string_view name, struct statx& status) {
    // A file that is mounted on another one takes no space here.
    const bool is_mounted = has_mount(status) && status.stx_mnt_id != directory_.mount;
    if (is_mounted) status.stx_size = status.stx_blocks = status.stx_nlink = 0;
    Totals file{.files = 1, .mtime_ns = nanoseconds(status.stx_mtime)};
    const std::int64_t ctime_ns = nanoseconds(status.stx_ctime);
    const std::uint64_t digest =
        XXH3_64bits_withSeed(name.data(), name.size(), digest_of(status.stx_size, file.mtime_ns, ctime_ns));
    add_digest(digest);
    const std::uint64_t bytes = S_ISREG(status.stx_mode) ? status.stx_size : 0;
    const std::uint64_t allocated = saturating_multiply(status.stx_blocks, 512);
    named_bytes_ = saturating_add(named_bytes_, bytes);
    named_allocated_ = saturating_add(named_allocated_, allocated);
    std::optional<Owner> owner;
    if (wants_owners_) owner = owner_of(status);
    const std::uint64_t device = ::makedev(status.stx_dev_major, status.stx_dev_minor);
    if (status.stx_nlink > 1 && device == directory_.device) {
      const std::uint64_t inode = inode_in(directory_.subvolume, status.stx_ino);
      listing_.linked.push_back({inode, bytes, allocated, owner});
    } else {
      file.bytes = bytes;
      file.allocated = allocated;
    }
    if (owner) add_owned(*owner, file);
    const bool racy = is_racy(file.mtime_ns, ctime_ns);
    if (listing_.files) listing_.files->add(name, racy ? unrepeatable(digest) : digest);
    listing_.own.add(file);
    listing_.ctime_ns = std::max(listing_.ctime_ns, ctime_ns);
    listing_.is_racy = listing_.is_racy || racy;
  }

  // An mtime can be set to any time: one ahead of the clock is no time of a change.
  bool is_racy(std::int64_t mtime_ns, std::int64_t ctime_ns) const {
    return is_within_step(ctime_ns, now_ns_) || (mtime_ns <= now_ns_ && is_within_step(mtime_ns, now_ns_));
  }

  std::uint64_t unrepeatable(std::uint64_t digest) const {
    return XXH3_64bits_withSeed(&digest, sizeof digest, static_cast<std::uint64_t>(now_ns_));
  }

  void add_linked() {
    LinkedFiles& linked = listing_.linked;
    std::ranges::sort(linked, {}, &LinkedFile::inode);
    const auto others = std::ranges::unique(linked, {}, &LinkedFile::inode);
    linked.erase(others.begin(), others.end());
    for (const LinkedFile& file : linked) {
      const Totals sizes{.bytes = file.bytes, .allocated = file.allocated, .mtime_ns = listing_.own.mtime_ns};
      listing_.own.add(sizes);
      if (file.owner) add_owned(*file.owner, sizes);
    }
  }

  // Of many owners, all beyond the first ones are one.
  Owner owner_of(const struct statx& status) const {
    const Owner owner{status.stx_uid, status.stx_gid};
    return owners_.size() < owners_max || owners_.contains(owner) ? owner : other_owners;
  }

  void add_owned(const Owner& owner, const Totals& file) {
    OwnedTotals& owned = owners_[owner];
    owned.files += file.files;
    owned.bytes = saturating_add(owned.bytes, file.bytes);
    owned.allocated = saturating_add(owned.allocated, file.allocated);
  }

  const DirectoryHandle& directory_;
  const std::int64_t now_ns_;
  const tracker::NamespaceRules& rules_;
  const bool wants_owners_;
  std::string child_path_;
  std::size_t prefix_bytes_ = 0;
  Listing listing_;
  std::uint64_t digests_ = 0;  // of entries, in any order
  std::uint64_t sum_of_digests_ = 0;
  std::uint64_t named_bytes_ = 0;  // of all names: a file with two counts twice
  std::uint64_t named_allocated_ = 0;
  Owners owners_;
};

}  // namespace

base::Result<Listing> PosixDirectoryReader::read(const DirectoryHandle& directory, std::string_view path,
                                                 const tracker::NamespaceRules& rules,
                                                 const ListingParts& parts,
                                                 const std::stop_token& stop) const {
  ListingBuilder builder(directory, path, rules, parts, now_ns());
  constexpr std::size_t buffer_bytes = std::size_t{16} << 10U;
  const auto buffer = std::make_unique_for_overwrite<char[]>(buffer_bytes);
  for (;;) {
    if (stop.stop_requested()) return interrupted_error();
    const ssize_t got = ::getdents64(directory.descriptor, buffer.get(), buffer_bytes);
    if (got < 0) return base::system_error(errno, "cannot list the directory");
    if (got == 0) return builder.finish();
    for (std::size_t at = 0; at < static_cast<std::size_t>(got);) {
      const auto& entry = *reinterpret_cast<const dirent64*>(&buffer[at]);
      if (auto added = builder.add(entry); !added) return added.error();
      at += entry.d_reclen;
    }
  }
}

}  // namespace spoor::scanner
