// The engine's failures as JavaScript errors.
#pragma once

#include <napi.h>

#include "os/result.h"

namespace capfleet::binding {

/// The error that JavaScript makes of the failure: a CapfleetError with the code of the same name
/// as result.h's ("bad-bpf" for kBadBpf), or what stands for "cancelled".
Napi::Value toErrorValue(Napi::Env env, const Error& error);

}  // namespace capfleet::binding
