#include "clock.h"

#include <sys/timex.h>

#include <cstdint>
#include <ctime>

namespace capfleet::binding {

Napi::Value clockNs(const Napi::CallbackInfo& info) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  const int64_t ns = static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
  return Napi::BigInt::New(info.Env(), ns);
}

Napi::Value isClockSynced(const Napi::CallbackInfo& info) {
  timex state{};
  const bool isSynced = adjtimex(&state) >= 0 && (state.status & STA_UNSYNC) == 0;
  return Napi::Boolean::New(info.Env(), isSynced);
}

}  // namespace capfleet::binding
