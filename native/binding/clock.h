// The machine's clock with nanosecond resolution: JavaScript's own has milliseconds.
#pragma once

#include <napi.h>

namespace capfleet::binding {

/// clockNs(): CLOCK_REALTIME in nanoseconds since 1970, as a bigint.
Napi::Value clockNs(const Napi::CallbackInfo& info);

/// isClockSynced(): whether the kernel reports that an NTP or PTP daemon synchronizes
/// CLOCK_REALTIME. Setting the clock (unlike correcting its rate) clears this, until the daemon has
/// checked the clock again.
Napi::Value isClockSynced(const Napi::CallbackInfo& info);

}  // namespace capfleet::binding
