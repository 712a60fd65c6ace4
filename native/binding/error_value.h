// The engine's failures as JavaScript errors.
#pragma once

#include <napi.h>

#include "os/result.h"

namespace capfleet::binding {

/// initialize(makeError): the function that turns a code and a message into an error. Both addons
/// export it, and need it before anything can fail.
void initialize(const Napi::CallbackInfo& info);

/// The error that JavaScript makes of the failure: a CapfleetError with the code of the same name
/// as result.h's ("bad-bpf" for kBadBpf), or what stands for "cancelled".
Napi::Value toErrorValue(Napi::Env env, const Error& error);

}  // namespace capfleet::binding
