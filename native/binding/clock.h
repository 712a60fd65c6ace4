// The machine's clock, exact to the nanosecond: JavaScript's own stops at milliseconds.
#pragma once

#include <napi.h>

namespace capfleet::binding {

/// clockNs(): CLOCK_REALTIME in nanoseconds since 1970, as a bigint.
Napi::Value clockNs(const Napi::CallbackInfo& info);

}  // namespace capfleet::binding
