// Recipes of docs/recipes that copy and back up, by the program that each is for, which a test can replace.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tests/cluster/one_node.h"

namespace spoor::cluster {

inline std::string name_of(const testing::TestParamInfo<std::string>& parameter) { return parameter.param; }

// By the program that a recipe is for.
class RecipeTest : public OneNodeTest {
 protected:
  explicit RecipeTest(std::size_t drives = 1) : OneNodeTest(drives) {}

  void SetUp() override {
    std::filesystem::create_directory(work_ / "bin");
    std::ofstream(work_ / "password") << "secret";
  }

  // Makes an empty repository for a program that needs one. That of restic has the password "secret".
  void use(const std::string& program, const std::string& encryption_of_borg = "none") {
    program_ = program;
    if (program == "restic")
      std::filesystem::copy(RESTIC_REPOSITORY, work_ / "repository",
                            std::filesystem::copy_options::recursive);
    if (program == "borg") {
      EXPECT_EQ(run_program({program, "init", "--encryption", encryption_of_borg}).code, 0);
    }
  }

  bool has_layers() const { return program_ == "restic" || program_ == "borg"; }

  std::vector<std::string> environment() const {
    return {"PATH=" + (work_ / "bin").native() + ':' + std::getenv("PATH"),
            "RESTIC_REPOSITORY=" + (work_ / "repository").native(),
            "RESTIC_PASSWORD_FILE=" + (work_ / "password").native(),
            "RESTIC_CACHE_DIR=" + (work_ / "cache").native(),
            "BORG_REPO=" + (work_ / "repository").native(),
            "BORG_BASE_DIR=" + (work_ / "borg").native(),
            "BORG_PASSPHRASE=secret",
            "RCLONE_CONFIG=" + (work_ / "rclone").native()};
  }

  // Serves work_ to rclone by WebDAV, which has no checksums, as "served:".
  std::unique_ptr<support::Daemon> serve_work() const {
    auto server = std::make_unique<support::Daemon>(
        std::vector<std::string>{"rclone", "serve", "webdav", "--addr", "127.0.0.1:0", work_.path()});
    const std::string url = "http://" + server->wait_for("WebDav Server started on http://");
    std::ofstream(work_ / "rclone") << "[served]\ntype = webdav\nvendor = other\nurl = " << url << '\n';
    return server;
  }

  support::CommandResult run_program(const std::vector<std::string>& arguments) const {
    std::vector<std::string> command{"env"};
    for (const std::string& each : environment()) command.push_back(each);
    command.insert(command.end(), arguments.begin(), arguments.end());
    return support::run_command(command);
  }

  std::vector<std::string> run_command(const std::string& consumer) {
    std::vector<std::string> arguments{drive().native(), consumer};
    if (has_layers()) {
      arguments.insert(arguments.begin(), "backup");
    } else {
      arguments.insert(arguments.begin() + 1, copy_);
    }
    return recipe_command("spoor-" + program_, arguments, environment());
  }

  support::CommandResult run(const std::string& consumer = "copy") {
    auto done = support::run_command(run_command(consumer));
    EXPECT_EQ(done.code, 0) << done.err;
    return done;
  }

  void expect_run_fails(int code, const std::string& why, const std::string& consumer = "copy") {
    const auto failed = support::run_command(run_command(consumer));
    EXPECT_EQ(failed.code, code) << failed.out;
    EXPECT_NE(failed.err.find(why), std::string::npos) << failed.err;
  }

  support::CommandResult restore() {
    return recipe("spoor-" + program_, {"restore", (work_ / "restored").native(), "copy"}, environment());
  }

  void expect_restore_is_refused(const std::string& why) {
    std::filesystem::remove_all(work_ / "restored");
    const auto refused = restore();
    EXPECT_EQ(refused.code, 1);
    EXPECT_NE(refused.err.find(why), std::string::npos) << refused.err;
    EXPECT_FALSE(std::filesystem::exists(work_ / "restored")) << "nothing was written";
  }

  // What the copy has, or a restore.
  std::filesystem::path copied() {
    if (!has_layers()) return copy_;
    std::filesystem::remove_all(work_ / "restored");
    const auto done = restore();
    EXPECT_EQ(done.code, 0) << done.err;
    return work_ / "restored";
  }

  void expect_same() {
    EXPECT_EQ(support::run_command({"diff", "-r", "--exclude=.spoor", drive(), copied()}).out, "");
  }

  // Puts this script in place of a program; it calls "$real" "$@" to run the program itself.
  void replace(const std::string& program, const std::string& script) {
    const std::filesystem::path file = work_ / "bin" / program;
    std::ofstream(file) << "#!/bin/bash\nPATH=${PATH#*:} real=" << program << '\n' << script;
    std::filesystem::permissions(file, std::filesystem::perms(0755));
  }

  // Moves a directory away when the program begins to copy, and then back, if wanted.
  void move_while_it_copies(bool and_back) {
    const std::string path = "'" + drive().native() + "/";
    const std::string away = "mv -T " + path + "moving' " + path + "elsewhere' 2>/dev/null";
    const std::string back = "mv -T " + path + "elsewhere' " + path + "moving'\n";
    replace(program_, "case \"$*\" in *--exclude=/.spoor*|copy*|sync*|backup*|*create*) " + away +
                          ";; *) exec \"$real\" \"$@\";; esac\n\"$real\" \"$@\"; code=$?\n" +
                          (and_back ? back : "") + "exit $code\n");
  }

  // It is the same directory to the scans before and after.
  void end_move() {
    std::filesystem::remove(work_ / "bin" / program_);
    if (std::filesystem::exists(drive() / "elsewhere"))
      std::filesystem::rename(drive() / "elsewhere", drive() / "moving");
    mark_and_scan("moving");
  }

  void mark_and_scan(const std::string& path) {
    ASSERT_EQ(cluster_.spoor(node(), {"mark", "--kind", "tree", path}).code, 0);
    scan_settled();
  }

  // These, each alone.
  void change_and_scan(const std::vector<std::string>& paths) {
    for (const std::string& path : paths) change(path);
    scan_settled();
  }

  support::TempDirectory work_;
  std::string program_;
  std::string copy_ = work_ / "copy";
};

class EachProgramTest : public RecipeTest, public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    RecipeTest::SetUp();
    use(GetParam());
  }
};

}  // namespace spoor::cluster
