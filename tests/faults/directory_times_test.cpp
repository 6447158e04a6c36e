// Whether the times of a directory show that its entries changed, on real file systems.
#include <fcntl.h>
#include <linux/fscrypt.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <set>

#include "scanner/walk/directory_reader.h"
#include "tests/faults/drive_fixture.h"
#include "tests/faults/mounts.h"

namespace spoor::faults {
namespace {

class DirectoryTimesTest : public DriveTest {
 protected:
  void SetUp() override {
    if (auto why = why_no_images(); !why.empty()) GTEST_SKIP() << why;
  }

  bool are_trusted(const fs::path& path) const {
    const auto opened = reader_.open_drive(path);
    EXPECT_TRUE(opened);
    return opened && reader_.changes_times_with_entries(*opened);
  }

  const scanner::PosixDirectoryReader reader_;
};

TEST_F(DirectoryTimesTest, FileSystems_AreDistinguished) {
  make_image(directory_ / "image", std::size_t{16} << 20U);
  MountPoint ext4(directory_ / "ext4");
  ext4.mount_image(directory_ / "image");
  EXPECT_TRUE(are_trusted(ext4.path()));
  MountPoint memory(directory_ / "memory");
  memory.mount_tmpfs("1m");
  EXPECT_TRUE(are_trusted(memory.path()));
  for (const char* name : {"lower", "upper", "work"}) fs::create_directory(memory.path() / name);
  const fs::path merged = directory_ / "merged";
  fs::create_directory(merged);
  const std::string in = memory.path().native();
  const std::string layers = "lowerdir=" + in + "/lower,upperdir=" + in + "/upper,workdir=" + in + "/work";
  const bool is_mounted = ::mount("overlay", merged.c_str(), "overlay", 0, layers.c_str()) == 0;
  if (!is_mounted && errno == ENODEV) return;  // the kernel has none
  ASSERT_TRUE(is_mounted) << std::strerror(errno);
  EXPECT_FALSE(are_trusted(merged));
  EXPECT_EQ(::umount(merged.c_str()), 0);
}

class EncryptedDirectoryTest : public DirectoryTimesTest {
 protected:
  void SetUp() override {
    DirectoryTimesTest::SetUp();
    if (IsSkipped()) return;
    make_image(directory_ / "image", std::size_t{32} << 20U, {"-O", "encrypt"});
    disk_.emplace(directory_ / "encrypted");
    disk_->mount_image(directory_ / "image");
    if (add_key()) return;
    ASSERT_TRUE(errno == EOPNOTSUPP || errno == ENOTTY) << std::strerror(errno);
    GTEST_SKIP() << "the kernel has no encryption of file systems";
  }

  // Of raw bytes that the test makes up.
  bool add_key() {
    constexpr std::size_t raw_bytes = 64;
    std::array<std::uint64_t, (sizeof(fscrypt_add_key_arg) + raw_bytes) / 8> buffer{};
    auto* const key = reinterpret_cast<fscrypt_add_key_arg*>(buffer.data());
    key->key_spec.type = FSCRYPT_KEY_SPEC_TYPE_IDENTIFIER;
    key->raw_size = raw_bytes;
    std::memset(key->raw, 'k', raw_bytes);
    const scanner::DirectoryHandle top(::open(disk_->path().c_str(), O_RDONLY | O_DIRECTORY));
    if (::ioctl(top.descriptor, FS_IOC_ADD_ENCRYPTION_KEY, key) != 0) return false;
    key_ = key->key_spec;
    return true;
  }

  void remove_key() {
    fscrypt_remove_key_arg removed{};
    removed.key_spec = key_;
    ::sync();
    const scanner::DirectoryHandle top(::open(disk_->path().c_str(), O_RDONLY | O_DIRECTORY));
    ASSERT_EQ(::ioctl(top.descriptor, FS_IOC_REMOVE_ENCRYPTION_KEY, &removed), 0) << std::strerror(errno);
  }

  void encrypt(const fs::path& path) const {
    fscrypt_policy_v2 policy{};
    policy.version = FSCRYPT_POLICY_V2;
    policy.contents_encryption_mode = FSCRYPT_MODE_AES_256_XTS;
    policy.filenames_encryption_mode = FSCRYPT_MODE_AES_256_CTS;
    std::ranges::copy(key_.u.identifier, policy.master_key_identifier);
    const scanner::DirectoryHandle directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY));
    ASSERT_EQ(::ioctl(directory.descriptor, FS_IOC_SET_ENCRYPTION_POLICY, &policy), 0)
        << std::strerror(errno);
  }

  static std::set<std::string> names(const fs::path& path) {
    std::set<std::string> found;
    for (const auto& entry : fs::directory_iterator(path)) found.insert(entry.path().filename());
    return found;
  }

  static std::pair<timespec, timespec> times(const fs::path& path) {
    struct stat status{};
    EXPECT_EQ(::stat(path.c_str(), &status), 0);
    return {status.st_mtim, status.st_ctim};
  }

  std::optional<MountPoint> disk_;
  fscrypt_key_specifier key_{};
};

TEST_F(EncryptedDirectoryTest, NamesChangeWithoutTheTimes_SoItHasNoIdentityByPath) {
  const fs::path plain = disk_->path() / "plain";
  const fs::path secret = disk_->path() / "secret";
  fs::create_directory(plain);
  fs::create_directory(secret);
  ASSERT_NO_FATAL_FAILURE(encrypt(secret));
  fs::create_directory(secret / "name");
  const auto unlocked = times(secret);
  ASSERT_NO_FATAL_FAILURE(remove_key());
  const auto locked = times(secret);
  EXPECT_FALSE(names(secret).contains("name"));
  EXPECT_EQ(locked.first.tv_nsec, unlocked.first.tv_nsec);
  EXPECT_EQ(locked.second.tv_nsec, unlocked.second.tv_nsec);
  const auto top = reader_.open_drive(disk_->path());
  ASSERT_TRUE(top);
  const auto look = [&](const char* name) { return reader_.look_at(*top, name, name); };
  ASSERT_TRUE(look("plain"));
  EXPECT_TRUE(scanner::is_proof(look("plain")->birth));
  ASSERT_TRUE(look("secret"));
  EXPECT_EQ(look("secret")->birth, scanner::no_identity);
}

}  // namespace
}  // namespace spoor::faults
