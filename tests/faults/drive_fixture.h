// A daemon whose drives are looked at, one by one.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/faults/fault_fixture.h"

namespace spoor::faults {

inline std::string content(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline fs::path snapshot_on(const fs::path& drive) { return drive / ".spoor/.tracker.bin"; }
inline fs::path identity_on(const fs::path& drive) { return drive / ".spoor/drive.json"; }

class DriveTest : public FaultTest {
 protected:
  bool save() { return request("POST", "/v1/snapshot").status == 200; }

  unsigned accept(const fs::path& drive) {
    return request("POST", "/v1/drives/accept?path=" + drive.native()).status;
  }

  // The last save went to this drive, and it holds the same as the first.
  void expect_saved(std::size_t index) {
    EXPECT_EQ(drive_state(index)["ok"], true) << drive_state(index);
    EXPECT_EQ(content(snapshot_on(drive(index))), content(snapshot_on(drive(0))));
  }

  void expect_refused(std::size_t index, const std::string& why) {
    const auto state = drive_state(index);
    EXPECT_EQ(state["ok"], false);
    EXPECT_NE(state.value("error", "").find(why), std::string::npos) << state;
  }

  fs::path aside() const { return directory_ / "unplugged"; }
};

}  // namespace spoor::faults
