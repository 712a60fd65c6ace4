// The machine's clock, exact to the nanosecond: JavaScript's own stops at milliseconds.
#pragma once

#include <napi.h>

namespace capfleet::binding {

/// clockNs(): CLOCK_REALTIME in nanoseconds since 1970, as a bigint.
Napi::Value clockNs(const Napi::CallbackInfo& info);

/// isClockSynced(): whether the kernel says that a daemon of NTP or PTP keeps CLOCK_REALTIME.
/// Whatever sets the clock (not: corrects its rate) clears this, until the daemon has checked the
/// clock again.
Napi::Value isClockSynced(const Napi::CallbackInfo& info);

}  // namespace capfleet::binding
