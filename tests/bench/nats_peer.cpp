// nats_peer URL COUNT RUN: publishes as many messages of the size of an event to the subject spoor.changes,
// by the asynchronous calls of the library, and waits until the stream has stored all of them. The messages
// of each run have ids of their own. Exits with 1 after an error.
#include <fmt/core.h>
#include <nats/nats.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>

namespace {

constexpr std::int64_t pending_max = 10'000;  // as in a batch of spoor-publish
constexpr std::chrono::milliseconds wait_max{60'000};

struct Destroy {
  void operator()(natsConnection* connection) const { natsConnection_Destroy(connection); }
  void operator()(jsCtx* context) const { jsCtx_Destroy(context); }
};

void check(natsStatus status) {
  if (status != NATS_OK) throw std::runtime_error(natsStatus_GetText(status));
}

void on_error(jsCtx* /*context*/, jsPubAckErr* error, void* has_failed) {
  fmt::print(stderr, "nats_peer: not stored: {}\n", error->ErrText);
  *static_cast<bool*>(has_failed) = true;
}

void publish(jsCtx* context, const std::string& id) {
  const std::string body =
      fmt::format(R"({{"specversion":"1.0","id":"{}","source":"/spoor/default/node","type":"spoor.new",)"
                  R"("datacontenttype":"application/json","subject":"bucket-100/object-00100.dat",)"
                  R"("data":{{"scan":1,"kind":"file","path":"bucket-100/object-00100.dat"}}}})",
                  id);
  const std::string full_id = "spoor.changes/" + id;
  natsMsg* message = nullptr;
  check(natsMsg_Create(&message, "spoor.changes", nullptr, body.data(), static_cast<int>(body.size())));
  check(natsMsgHeader_Set(message, "content-type", "application/cloudevents+json; charset=utf-8"));
  jsPubOptions options;
  check(jsPubOptions_Init(&options));
  options.MsgId = full_id.c_str();
  check(js_PublishMsgAsync(context, &message, &options));
}

void run(const std::string& url, std::uint64_t count, const std::string& run) {
  bool has_failed = false;
  natsConnection* connection = nullptr;
  check(natsConnection_ConnectTo(&connection, url.c_str()));
  const std::unique_ptr<natsConnection, Destroy> own_connection(connection);
  jsOptions options;
  check(jsOptions_Init(&options));
  options.PublishAsync.MaxPending = pending_max;
  options.PublishAsync.StallWait = wait_max.count();
  options.PublishAsync.ErrHandler = on_error;
  options.PublishAsync.ErrHandlerClosure = &has_failed;
  jsCtx* context = nullptr;
  check(natsConnection_JetStream(&context, connection, &options));
  const std::unique_ptr<jsCtx, Destroy> own_context(context);
  for (std::uint64_t number = 0; number < count; ++number)
    publish(context, fmt::format("node/{0:0>32}/1.{0:0>32}/new/{1:032x}", run, number));
  jsPubOptions wait;
  check(jsPubOptions_Init(&wait));
  wait.MaxWait = wait_max.count();
  check(js_PublishAsyncComplete(context, &wait));
  if (has_failed) throw std::runtime_error("messages are missing");
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 4) throw std::runtime_error("usage: nats_peer URL COUNT RUN");
  run(argv[1], std::strtoull(argv[2], nullptr, 10), argv[3]);
} catch (const std::exception& error) {
  fmt::print(stderr, "nats_peer: {}\n", error.what());
  return EXIT_FAILURE;
}
