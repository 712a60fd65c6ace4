// The list of what the addon exports. addon.ts is its only caller.
#include <napi.h>

#include "addon_data.h"
#include "download_wrap.h"
#include "import_job.h"

namespace capfleet::binding {
namespace {

/// initialize(makeError): the function that turns a code and a message into an error.
void initialize(const Napi::CallbackInfo& info) {
  AddonData::of(info.Env())->makeError = Napi::Persistent(info[0].As<Napi::Function>());
}

}  // namespace

Napi::Object defineExports(Napi::Env env, Napi::Object exports) {
  AddonData::create(env);
  DownloadWrap::define(env);
  exports.Set("initialize", Napi::Function::New<initialize>(env));
  exports.Set("openDownload", Napi::Function::New<&DownloadWrap::open>(env));
  exports.Set("startImport", Napi::Function::New<startImport>(env));
  return exports;
}

}  // namespace capfleet::binding

namespace {
// The macro takes a plain name only.
Napi::Object start(Napi::Env env, Napi::Object exports) {
  return capfleet::binding::defineExports(env, exports);
}
}  // namespace

NODE_API_MODULE(capfleet, start)
