#include "error_value.h"

#include "addon_data.h"

namespace capfleet::binding {
namespace {

const char* nameOf(Code code) {
  switch (code) {
    case Code::kBadParameter:
      return "bad-parameter";
    case Code::kBadBpf:
      return "bad-bpf";
    case Code::kBadRegex:
      return "bad-regex";
    case Code::kMixedLinkType:
      return "mixed-link-type";
    case Code::kStoreUnavailable:
      return "store-unavailable";
    case Code::kAgedOut:
      return "aged-out";
    case Code::kStoreCorrupt:
      return "store-corrupt";
    case Code::kStoreFull:
      return "store-full";
    case Code::kBadCaptureFile:
      return "bad-capture-file";
    case Code::kCaptureUnavailable:
      return "capture-unavailable";
    case Code::kCancelled:
      return "cancelled";
  }
  __builtin_unreachable();
}

}  // namespace

void initialize(const Napi::CallbackInfo& info) {
  AddonData::of(info.Env())->makeError = Napi::Persistent(info[0].As<Napi::Function>());
}

Napi::Value toErrorValue(Napi::Env env, const Error& error) {
  return AddonData::of(env)->makeError.Call(
      {Napi::String::New(env, nameOf(error.code)), Napi::String::New(env, error.message)});
}

}  // namespace capfleet::binding
