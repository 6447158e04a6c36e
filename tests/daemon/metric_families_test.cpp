#include "daemon/status/status_metrics.h"

#include <gtest/gtest.h>

namespace spoor::daemon {
namespace {

TEST(MetricFamiliesTest, EachFamily_HasHelpTypeAndValues) {
  MetricFamilies families;
  families.begin_gauge("spoor_size_bytes", "How large.");
  families.add(1.5, {{"drive", "/a"}});
  families.add(1e12, {{"drive", "/b"}});
  families.counter("spoor_things_total", "How many.", 9007199254740991.0);
  EXPECT_EQ(families.text(),
            "# HELP spoor_size_bytes How large.\n# TYPE spoor_size_bytes gauge\n"
            "spoor_size_bytes{drive=\"/a\"} 1.5\nspoor_size_bytes{drive=\"/b\"} 1000000000000\n"
            "# HELP spoor_things_total How many.\n# TYPE spoor_things_total counter\n"
            "spoor_things_total 9007199254740991\n");
}

TEST(MetricFamiliesTest, FamilyWithoutValues_IsOmitted) {
  MetricFamilies families;
  families.begin_gauge("spoor_nobody", "None.");
  EXPECT_EQ(families.text(), "");
}

TEST(MetricFamiliesTest, LabelValue_IsEscaped) {
  MetricFamilies families;
  families.begin_gauge("spoor_drive_ok", "Well?");
  families.add(1, {{"drive", "/a\"} 1\n\\b"}});
  EXPECT_NE(families.text().find("spoor_drive_ok{drive=\"/a\\\"} 1\\n\\\\b\"} 1\n"), std::string::npos)
      << families.text();
}

}  // namespace
}  // namespace spoor::daemon
