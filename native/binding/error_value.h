// The engine's failures as JavaScript errors.
#pragma once

#include <napi.h>

#include "os/result.h"

namespace capfleet::binding {

/// initialize(makeError): sets the function that turns a code and a message into an error. Both
/// addons export it, and it must be called before anything can fail.
void initialize(const Napi::CallbackInfo& info);

/// The JavaScript error for the failure: a CapfleetError with the code of the same name as in
/// result.h ("bad-bpf" for kBadBpf), or the one for "cancelled".
Napi::Value toErrorValue(Napi::Env env, const Error& error);

}  // namespace capfleet::binding
