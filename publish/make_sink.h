#pragma once

#include <memory>

#include "base/clock.h"
#include "base/error.h"
#include "config/config.h"
#include "publish/sink.h"

namespace spoor::publish {

// The sink of this configuration; reads its secrets. `node` and `cluster` tell the sinks of several nodes
// apart. The clock must outlive it. Connects only when something is published.
base::Result<std::unique_ptr<Sink>> make_sink(const config::Sink& sink, const config::Config::Node& node,
                                              const base::Clock& clock);

}  // namespace spoor::publish
