#include "daemon/status/status_metrics.h"

#include <gtest/gtest.h>

namespace spoor::daemon {
namespace {

TEST(MetricFamiliesTest, EachFamily_HasHelpTypeAndValues) {
  MetricFamilies families;
  families.begin("spoor_size_bytes", "How large.");
  families.add(1.5, {{"drive", "/a\"} 1\n\\b"}});
  families.add(1e12, {{"drive", "/b"}});
  families.begin("spoor_nobody", "Without a value.");
  families.add("spoor_things_total", "How many.", 9007199254740991.0);
  EXPECT_EQ(
      families.text(),
      "# HELP spoor_size_bytes How large.\n# TYPE spoor_size_bytes gauge\n"
      "spoor_size_bytes{drive=\"/a\\\"} 1\\n\\\\b\"} 1.5\nspoor_size_bytes{drive=\"/b\"} 1000000000000\n"
      "# HELP spoor_things_total How many.\n# TYPE spoor_things_total counter\n"
      "spoor_things_total 9007199254740991\n");
}

}  // namespace
}  // namespace spoor::daemon
