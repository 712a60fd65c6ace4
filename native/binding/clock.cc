#include "clock.h"

#include <cstdint>
#include <ctime>

namespace capfleet::binding {

Napi::Value clockNs(const Napi::CallbackInfo& info) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  const int64_t ns = static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
  return Napi::BigInt::New(info.Env(), ns);
}

}  // namespace capfleet::binding
