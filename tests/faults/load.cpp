#include "tests/faults/load.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "peer/gather/cycle_frame.h"

namespace spoor::faults {
namespace {

using nlohmann::json;

constexpr std::size_t writer_count = 4;

// What a client is told to do when its mark is not taken for now.
void expect_not_durable(const peer::HttpResponse& answer) {
  EXPECT_EQ(answer.status, 503U) << answer.body;
  EXPECT_EQ(json::parse(answer.body, nullptr, false).value("code", ""), "not_durable") << answer.body;
  EXPECT_FALSE(answer.retry_after.empty());
}

}  // namespace

void Load::start(std::uint16_t port) {
  const std::scoped_lock lock(mutex_);
  stopping_ = false;
  running_ = writer_count;
  last_sent_.assign(writer_count, {});
  for (std::size_t i = 0; i < writer_count; ++i) {
    writers_.emplace_back([this, i, port, random = random_.fork()] { write(i, port, random); });
  }
}

void Load::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  for (std::thread& writer : writers_) writer.join();
  writers_.clear();
}

bool Load::wait_until(const std::size_t& count, std::size_t more) {
  std::unique_lock lock(mutex_);
  const std::size_t wanted = count + more;
  changed_.wait(lock, [&] { return count >= wanted || running_ == 0; });
  return count >= wanted;
}

bool Load::wait_for_acknowledged(std::size_t more) { return wait_until(acknowledged_count_, more); }

bool Load::wait_for_refused(std::size_t more) { return wait_until(refused_, more); }

std::uint64_t Load::newest_cycle() const {
  const std::scoped_lock lock(mutex_);
  return newest_cycle_;
}

std::size_t Load::refused() const {
  const std::scoped_lock lock(mutex_);
  return refused_;
}

bool Load::is_stopping() const {
  const std::scoped_lock lock(mutex_);
  return stopping_;
}

void Load::write(std::size_t writer, std::uint16_t port, support::Random random) {
  daemon::KeptConnection connection(port);
  bool goes_on = true;
  while (goes_on && !is_stopping()) {
    if (writer == 0 && random.one_in(50)) {
      goes_on = advance(connection);
    } else {
      goes_on = mark(connection, choose(writer, random));
    }
  }
  const std::scoped_lock lock(mutex_);
  --running_;
  changed_.notify_all();
}

SentMark Load::choose(std::size_t writer, support::Random& random) {
  const std::scoped_lock lock(mutex_);
  const SentMark& others = last_sent_[(writer + 1 + random.below(writer_count - 1)) % writer_count];
  if (!others.path.empty() && random.one_in(4)) return others;
  const std::string name = random.letters(5) + std::to_string(sent_count_++);
  last_sent_[writer] = {"bucket/" + random.letters(1, 'e') + "/" + name, random.one_in(8)};
  return last_sent_[writer];
}

bool Load::mark(daemon::KeptConnection& connection, const SentMark& mark) {
  const json body{{"paths", {mark.path}}, {"kind", mark.is_tree ? "tree" : "dir"}};
  while (!is_stopping()) {
    const auto answer = connection.send("POST", "/v1/marks", body.dump());
    if (!answer) return false;
    const bool is_taken = answer->status == 200;
    if (!is_taken) expect_not_durable(*answer);
    const std::scoped_lock lock(mutex_);
    if (is_taken) {
      acknowledged_.push_back(mark);
      ++acknowledged_count_;
      newest_cycle_ = std::max(newest_cycle_, json::parse(answer->body)["cycle"].get<std::uint64_t>());
    } else {
      ++refused_;
    }
    changed_.notify_all();
    if (is_taken) return true;
  }
  return false;
}

// As a scan does it. A daemon that can't keep the new cycle may answer without having opened it.
bool Load::advance(daemon::KeptConnection& connection) {
  const json body{{"cluster", "default"}, {"current", newest_cycle() + 1}, {"marks", false}};
  const auto answer = connection.send("POST", "/v1/peer/cycle", body.dump());
  if (!answer) return false;
  if (answer->status != 200) {
    expect_not_durable(*answer);
    return true;
  }
  const auto frame = peer::decode_cycle_frame(answer->body);
  EXPECT_TRUE(frame.has_value());
  if (!frame) return false;
  const std::scoped_lock lock(mutex_);
  newest_cycle_ = std::max(newest_cycle_, frame->answer.current.value);
  return true;
}

}  // namespace spoor::faults
